"""A table for a terminal."""

from __future__ import annotations

from syncline.printable import printable
from syncline.render.table import render as render_table

from ..answer import answer as find_answer
from ..comparison import Comparison
from . import answer, row_table, wording

__all__ = ["render"]


def render(comparison: Comparison, *, everything: bool = False, terminal: bool = False) -> str:
    """Renders warnings, verdict, answer, rows, contributors and method, in this order."""
    head = [f"base  {wording.side(comparison.base)}", f"new   {wording.side(comparison.new)}"]
    head += [f"warning: {warning}" for warning in comparison.warnings]
    lines = [*map(printable, head), "", printable(wording.headline(comparison)), ""]
    found = find_answer(comparison.base, comparison.new)
    told = [*answer.sentences(found), *answer.bars(found)]
    lines += [*map(printable, told), ""] if told else []
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
        lines += ["", heading + ":", *(f"  {line}" for line in groups)]
    lines += ["", *map(printable, comparison.notes)]
    lines.append(wording.method(comparison))
    left = len(comparison.rows) - len(rows)
    if left and not everything:
        lines.append(f"{left} more rows: --all prints them.")
    return "\n".join(lines) + "\n"
