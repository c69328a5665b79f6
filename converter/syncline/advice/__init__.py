"""Advice: what a recording shows that costs time or is a risk, with its evidence. One SQL file each."""

from .catalogue import Finding, UnknownFinding, load, names
from .run import Advice, Place, advise, evidence, why_not

__all__ = [
    "Advice",
    "Finding",
    "Place",
    "UnknownFinding",
    "advise",
    "evidence",
    "load",
    "names",
    "why_not",
]
