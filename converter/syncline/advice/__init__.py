"""Advice: what a recording shows that costs time or is a risk, with its evidence. One SQL file each."""

from .catalogue import Finding, UnknownFinding, load, names
from .run import Advice, Place, advise, can_check, evidence

__all__ = [
    "Advice",
    "Finding",
    "Place",
    "UnknownFinding",
    "advise",
    "can_check",
    "evidence",
    "load",
    "names",
]
