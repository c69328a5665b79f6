"""A comparison as text: one form a file, all `render(comparison, everything=...) -> str`."""

from __future__ import annotations

import importlib

from ..compare import Comparison

__all__ = ["FORMS", "render"]

# The name on the command line, and the module here.
FORMS = {"table": "table", "json": "json", "md": "markdown", "junit": "junit"}


def render(
    form: str, comparison: Comparison, *, everything: bool = False, terminal: bool = False
) -> str:
    """The comparison in a form; `terminal` if it goes to stdout, which may be one."""
    module = importlib.import_module(f".{FORMS[form]}", __package__)
    if form == "table":
        return module.render(comparison, everything=everything, terminal=terminal)
    return module.render(comparison, everything=everything)
