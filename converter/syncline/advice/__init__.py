"""Advice: what a recording shows that costs time or is a risk, with its evidence. One SQL file each."""

from .catalogue import Finding, UnknownFinding, load, names
from .run import Advice, Place, advise, evidence, statements_of_advice, why_not, with_advice

__all__ = [
    "Advice",
    "Finding",
    "Place",
    "UnknownFinding",
    "advise",
    "evidence",
    "load",
    "names",
    "statements_of_advice",
    "why_not",
    "with_advice",
]
