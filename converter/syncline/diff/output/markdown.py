"""For a pull request: the verdict, what changed, and all the rest folded away."""

from __future__ import annotations

from syncline.render import markdown as house

from ..compare import Comparison, Row
from . import words

__all__ = ["render"]


def render(comparison: Comparison, *, everything: bool = False) -> str:
    """Markdown as GitHub shows it."""
    lines = [f"## Writeback: {comparison.verdict}", "", words.headline(comparison), ""]
    lines += [f"- base: {house.escaped(words.side(comparison.base))}"]
    lines += [f"- new: {house.escaped(words.side(comparison.new))}", ""]
    for warning in comparison.warnings:
        lines += [f"> **Warning:** {house.escaped(warning)}", ""]
    shown = words.rows_to_show(comparison, everything=False)
    first = [row for row in shown if row.verdict != "no change"]
    if first:
        lines += [_table(first)]
    for heading, moved in words.moved(comparison):
        lines += [f"**{house.escaped(heading)}**", ""]
        lines += [*(f"- {house.escaped(line)}" for line in moved), ""]
    rest = words.rows_to_show(comparison, everything) if everything else shown
    rest = [row for row in rest if row not in first]
    if rest:
        lines += [f"<details><summary>{len(rest)} more rows</summary>", "", _table(rest), "</details>", ""]  # fmt: skip
    lines += [house.escaped(note) + "  " for note in comparison.notes]
    lines.append(f"<sub>{house.escaped(words.method(comparison))}</sub>")
    return "\n".join(lines) + "\n"


def _table(rows: list[Row]) -> str:
    return house.render(*words.table(rows)).removeprefix("## \n\n")
