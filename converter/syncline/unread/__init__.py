"""Texts that people have of a slow sync and that hold no event: what such a text is, what it answers, and what records the rest.

A refusal of an input says so (`syncline.problems`).
"""

from .kinds import KINDS, Kind
from .texts import Explanation, explained, kinds_of, named

__all__ = ["KINDS", "Explanation", "Kind", "explained", "kinds_of", "named"]
