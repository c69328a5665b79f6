"""A comparison as text: one module for each format, all with `render(comparison, everything=...) -> str`."""

from __future__ import annotations

import importlib

from ..comparison import Comparison

__all__ = ["FORMATS", "render"]

# Name on the command line -> module in this package.
FORMATS = {"table": "table", "json": "json", "md": "markdown", "junit": "junit"}


def render(
    form: str, comparison: Comparison, *, everything: bool = False, terminal: bool = False
) -> str:
    """Renders the comparison in a format.

    Args:
        everything: include all rows.
        terminal: the text goes to stdout, which may be a terminal.
    """
    module = importlib.import_module(f".{FORMATS[form]}", __package__)
    if form == "table":
        return module.render(comparison, everything=everything, terminal=terminal)
    return module.render(comparison, everything=everything)
