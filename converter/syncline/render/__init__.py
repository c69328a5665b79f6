"""Tables as text: one exporter a file, all of the form `render(table, report) -> str`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from syncline.report import Report, Table

__all__ = ["FORMATS", "exporter", "preface"]

# The name on the command line, and the module here.
FORMATS = {"table": "table", "csv": "csv", "json": "json", "md": "markdown"}


def exporter(name: str) -> Callable[[Table, Report | None], str]:
    """The `render` of a format; `report` is None for the answer to a query."""
    # Imported when asked for: only the terminal table needs rich.
    return importlib.import_module(f".{FORMATS[name]}", __package__).render


def preface(name: str, caveats: Sequence[str]) -> tuple[str, str]:
    """The warnings as they go before a report: (for stdout, for stderr).

    People read them above the figures; a program reads data there.
    """
    if not caveats:
        return "", ""
    if name == "md":
        return "".join(f"> **Warning:** {caveat}\n" for caveat in caveats) + "\n", ""
    text = "".join(f"warning: {caveat}\n" for caveat in caveats)
    return (text + "\n", "") if name == "table" else ("", text)
