"""Markdown for a pull request: the verdict, the rows that changed, and the other rows collapsed."""

from __future__ import annotations

from syncline.render.markdown import escaped
from syncline.render.markdown import render as render_table

from ..answer import answer as find_answer
from ..comparison import Comparison, Row
from . import answer, row_table, wording

__all__ = ["render"]


def render(comparison: Comparison, *, everything: bool = False) -> str:
    """Renders Markdown as GitHub shows it."""
    lines = [f"## Writeback: {comparison.verdict}", "", escaped(wording.headline(comparison)), ""]
    if power := wording.power(comparison):
        lines += [escaped(power), ""]
    found = find_answer(comparison.base, comparison.new)
    for sentence in answer.sentences(found):
        lines += [escaped(sentence), ""]
    if drawn := list(answer.bars(found)):
        lines += ["```text", *drawn, "```", ""]
    lines += [f"- base: {escaped(wording.side(comparison.base))}"]
    lines += [f"- new: {escaped(wording.side(comparison.new))}", ""]
    for warning in comparison.warnings:
        lines += [f"> **Warning:** {escaped(warning)}", ""]
    shown = row_table.rows_to_show(comparison, everything=False)
    first = [row for row in shown if row.verdict != "no change"]
    if first:
        lines += [_table(first)]
    for heading, groups in wording.contributors(comparison):
        lines += [f"**{escaped(heading)}**", ""]
        lines += [*(f"- {escaped(line)}" for line in groups), ""]
    rest = row_table.rows_to_show(comparison, everything=True) if everything else shown
    rest = [row for row in rest if row not in first]
    if rest:
        lines += [f"<details><summary>{len(rest)} more rows</summary>", "", _table(rest), "</details>", ""]  # fmt: skip
    lines += [escaped(note) + "  " for note in comparison.notes]
    lines.append(f"<sub>{escaped(wording.method(comparison))}</sub>")
    return "\n".join(lines) + "\n"


def _table(rows: list[Row]) -> str:
    # Removes the heading: the table has no title.
    return render_table(*row_table.table(rows)).removeprefix("## \n\n")
