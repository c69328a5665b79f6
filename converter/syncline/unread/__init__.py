"""Texts that people have of a slow sync and that hold no event: what such a text is, what it answers, and what records the rest.

A refusal of an input says so (`syncline.problems`).
"""

from .texts import KINDS, Explanation, Kind, explained

__all__ = ["KINDS", "Explanation", "Kind", "explained"]
