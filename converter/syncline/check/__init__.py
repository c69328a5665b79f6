"""Checks rules about durability on a recording: what was synced before what. One SQL file each."""

from .rules import Kind, Rule, RuleError, kinds, load_rules, sets
from .run import Checked, Outcome, Unanswerable, check, statements

__all__ = [
    "Checked",
    "Kind",
    "Outcome",
    "Rule",
    "RuleError",
    "Unanswerable",
    "check",
    "kinds",
    "load_rules",
    "sets",
    "statements",
]
