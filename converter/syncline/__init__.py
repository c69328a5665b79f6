"""Syncline: converts logs of fsync-driven writeback to Perfetto traces and reports.

`syncline.open(...)` opens a recording; docs/guides/python.md says what it has. The names in `__all__` are the API, and all
other modules are internal.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncline.api import Answer, Comparison, Error, Run, Table, diff, open, reports

__all__ = ["Answer", "Comparison", "Error", "Run", "Table", "diff", "open", "reports"]


def __getattr__(name: str) -> Any:
    # Loaded when it is used: the commands import this package too, and need little of it.
    if name in __all__:
        return getattr(importlib.import_module("syncline.api"), name)
    raise AttributeError(f"module 'syncline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
