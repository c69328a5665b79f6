"""A table for a terminal."""

from __future__ import annotations

from syncline import terminal as screen
from syncline.printable import printable
from syncline.render.table import render as render_table

from ..answer import answer as find_answer
from ..comparison import CANT_TELL, Comparison
from . import answer, row_table, wording

__all__ = ["render"]

_COLOURS = {"regression": "red", CANT_TELL: "yellow"}


def render(comparison: Comparison, *, everything: bool = False, terminal: bool = False) -> str:
    """Renders warnings, verdict, answer, rows, contributors and method, in this order."""
    head = [f"base  {wording.side(comparison.base)}", f"new   {wording.side(comparison.new)}"]
    head += [f"warning: {warning}" for warning in comparison.warnings]
    room = screen.width() if terminal else None
    lines = [part for line in head for part in screen.wrapped(printable(line), room)]
    said = screen.wrapped(printable(wording.headline(comparison)), room)
    colour = _COLOURS.get(comparison.verdict or "", "bold")
    lines += ["", *(screen.paint(line, colour) if terminal else line for line in said)]
    lines += [*screen.wrapped(printable(wording.power(comparison)), room), ""]
    found = find_answer(comparison.base, comparison.new)
    evidence = [
        part for line in answer.sentences(found) for part in screen.wrapped(printable(line), room)
    ]
    evidence += answer.bars(found, room)
    lines += [*evidence, ""] if evidence else []
    rows = row_table.rows_to_show(comparison, everything=everything)
    text = render_table(
        *row_table.table(rows),
        rows=len(rows),
        width=None if terminal else 10_000,
        elsewhere="-o FILE.json",
    )
    # Removes the line of the title: the table has none.
    lines += text.strip("\n").splitlines()
    for heading, groups in wording.contributors(comparison):
        lines += ["", *screen.wrapped(heading + ":", room)]
        lines += [part for line in groups for part in screen.wrapped(f"  {line}", room)]
    last = [*map(printable, comparison.notes), wording.method(comparison)]
    lines += ["", *(part for line in last for part in screen.wrapped(line, room))]
    left = len(comparison.rows) - len(rows)
    if left and not everything:
        lines.append(f"{left} more rows: --all prints them.")
    return "\n".join(lines) + "\n"
