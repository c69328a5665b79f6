"""For people at a terminal."""

from __future__ import annotations

from syncline.render import table as house

from ..compare import Comparison
from . import words

__all__ = ["render"]


def render(comparison: Comparison, *, everything: bool = False, terminal: bool = False) -> str:
    """Warnings, verdict, rows, what moved, method; in this order."""
    lines = [f"base  {words.side(comparison.base)}", f"new   {words.side(comparison.new)}"]
    lines += [f"warning: {warning}" for warning in comparison.warnings]
    lines += ["", words.headline(comparison), ""]
    rows = words.rows_to_show(comparison, everything)
    text = house.render(
        *words.table(rows),
        rows=len(rows),
        width=None if terminal else 10_000,
        elsewhere="-o FILE.json",
    )
    # The house's table begins with its title, of which this one has none.
    lines += text.strip("\n").splitlines()
    for heading, moved in words.moved(comparison):
        lines += ["", heading + ":", *(f"  {line}" for line in moved)]
    lines += ["", *comparison.notes]
    lines.append(words.method(comparison))
    left = len(comparison.rows) - len(rows)
    if left and not everything:
        lines.append(f"{left} more rows: --all prints them.")
    return "\n".join(lines) + "\n"
