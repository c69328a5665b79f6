"""Tables as text: one module for each format, all with `render(table, report) -> str`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from syncline import terminal
from syncline.printable import printable

if TYPE_CHECKING:
    from syncline.report import Report, Table

__all__ = ["FORMATS", "exporter", "preface", "streamed"]

# Name on the command line -> module in this package.
FORMATS = {"table": "table", "csv": "csv", "json": "json", "md": "markdown"}


def exporter(name: str) -> Callable[[Table, Report | None], str]:
    """Returns the `render` of a format; `report` is None for the result of a query."""
    # Imported on demand: only the terminal table needs rich.
    return importlib.import_module(f".{FORMATS[name]}", __package__).render


def streamed(name: str) -> Callable[..., Iterator[str]] | None:
    """Returns the `parts` of a format; None for a format that needs all rows for its first line."""
    found: Callable[..., Iterator[str]] | None = getattr(
        importlib.import_module(f".{FORMATS[name]}", __package__), "parts", None
    )
    return found


def preface(name: str, caveats: Sequence[str]) -> tuple[str, str]:
    """Returns the warnings before a report as (text for stdout, text for stderr).

    Formats for people have them above the figures; for formats that programs read they go to stderr.
    """
    if not caveats:
        return "", ""
    if name == "md":
        from .markdown import escaped

        return "".join(f"> **Warning:** {escaped(caveat)}\n" for caveat in caveats) + "\n", ""
    if name == "table":
        mark = terminal.paint("warning:", "yellow")
        lines = [
            line
            for caveat in caveats
            for line in terminal.wrapped(f"warning: {printable(caveat)}", terminal.width())
        ]
        text = "".join(
            f"{mark}{line.removeprefix('warning:')}\n"
            if line.startswith("warning:")
            else f"{line}\n"
            for line in lines
        )
        return text + "\n", ""
    return "", "".join(f"warning: {printable(caveat)}\n" for caveat in caveats)
