"""Advice for people, as text, and for programs, as a table or as JSON."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from typing import Any

from syncline import terminal
from syncline.advice import Advice
from syncline.engine import Value
from syncline.printable import json_text, printable
from syncline.report import Column, Report, Table

from .human import text

__all__ = ["REPORT", "as_json", "as_page", "as_table", "render"]

# Width of lines that are not for a terminal.
_WIDTH = 100

_OVERLAP = "The costs overlap: a wait for a commit that a neighbour makes longer is in both, so a change saves less after another one."

_COLUMNS = (
    ("input", "text", "The input."),
    ("finding", "text", "Name of the finding."),
    ("status", "text", "found, none or not checked."),
    ("seen", "prose", "What was seen."),
    ("syncs", "count", "Number of requests that are evidence."),
    ("of_syncs", "count", "Number of requests with a known start and end."),
    (
        "cost_ns",
        "ns",
        "Wall time that it cost, or the sum over syncs that `how` says. Null if it is not known.",
    ),
    ("sum_ns", "ns", "The same, summed over the requests."),
    (
        "share",
        "share",
        "cost_ns / the wall time in sync, or, if it is a sum over syncs, / the sum of the lengths of all.",
    ),
    ("sync_id", "id", "The costliest of the requests."),
    ("ts_ns", "time", "Its start."),
    ("run", "text", "Its run, if the input holds several."),
    ("how", "prose", "How the cost is computed."),
    ("inferred", "prose", "What no event says."),
    ("instead", "prose", "What people do about it."),
    ("reason", "prose", "Why it was not checked, and what records it."),
    ("page", "text", "Section of the documentation."),
)
REPORT = Report(
    "advise", "Advice", "", tuple(Column(*column) for column in _COLUMNS), "SELECT NULL"
)


def render(
    path: str, found: Sequence[Advice], caveats: Sequence[str], *, can_be_shown: bool
) -> str:
    """Renders the advice on one input as text. `can_be_shown`: whether `syncline open` takes the input."""
    lines = [f"Advice on {printable(path)}"]
    mark = terminal.paint("warning:", "yellow")
    lines += [f"{mark} {printable(caveat)}" for caveat in caveats]
    first = next((one for one in found if one.is_first), None)
    for one in found:
        if one.status == "found":
            lines += ["", *_found(path, one, first, can_be_shown=can_be_shown)]
    if _overlaps(found):
        lines += ["", *_wrapped("", _OVERLAP)]
    if not any(one.status == "found" for one in found):
        lines += ["", "Nothing was found that the program or the server could do otherwise."]
    nothing = [one.finding.name for one in found if one.status == "none"]
    lines += ["", *_wrapped("Checked, not found: ", ", ".join(nothing) or "-")]
    unchecked = [one for one in found if one.status == "not checked"]
    if unchecked:
        lines += ["", "Not checked:"]
        for reason in dict.fromkeys(one.reason for one in unchecked):
            of_reason = [one.finding.name for one in unchecked if one.reason == reason]
            lines += _wrapped(f"  {', '.join(of_reason)}: ", f"{reason}.")
    return "\n".join(lines) + "\n"


def _found(path: str, one: Advice, first: Advice | None, *, can_be_shown: bool) -> list[str]:
    finding = one.finding
    lines = [f"{finding.title.removesuffix('.')}  [{finding.name}]"]
    lines += _wrapped("  seen      ", one.seen)
    lines += _wrapped("  cost      ", _cost(one) + (_after(one, first) if first else ""))
    if finding.inferred:
        lines += _wrapped("  inferred  ", finding.inferred)
    lines += _wrapped("  instead   ", finding.instead)
    for number, row in enumerate(one.shown):
        lines += _wrapped("  evidence  " if not number else "            ", _evidence(row))
    costliest = one.shown[0] if one.shown else {}
    if can_be_shown and costliest.get("sync_id") is not None and not costliest["run"]:
        command = f"syncline open {shlex.quote(path)} --sync {costliest['sync_id']}"
        lines.append(f"  look      {printable(command)}")
    return [*lines, f"  all       {_command(path, finding.name)}", f"  more      {finding.page}"]


def as_page(path: str, found: Sequence[Advice]) -> dict[str, Any]:
    """Returns the advice on one input in words, as the HTML page shows it."""
    first = next((one for one in found if one.is_first), None)
    unchecked: dict[str, list[str]] = {}
    for one in found:
        if one.status == "not checked":
            unchecked.setdefault(str(one.reason), []).append(one.finding.name)
    return {
        "found": [
            {
                "finding": one.finding.name,
                "title": one.finding.title.removesuffix("."),
                "seen": one.seen,
                "cost": _cost(one) + (_after(one, first) if first else ""),
                "inferred": one.finding.inferred or None,
                "instead": one.finding.instead,
                "evidence": [_evidence(row) for row in one.shown],
                "sync_ids": [row["sync_id"] for row in one.shown],
                "command": _command(path, one.finding.name),
            }
            for one in found
            if one.status == "found"
        ],
        "overlap": _OVERLAP if _overlaps(found) else None,
        "none": [one.finding.name for one in found if one.status == "none"],
        "unchecked": [{"findings": names, "reason": reason} for reason, names in unchecked.items()],
    }


def _command(path: str, finding: str) -> str:
    """Returns what lists all evidence of a finding. Standard input cannot be read again, so the command then says INPUT."""
    name = "INPUT" if path == "-" else shlex.quote(path)
    return printable(f"syncline advise {name} --evidence {finding}")


def _overlaps(found: Sequence[Advice]) -> bool:
    return sum(one.share or 0 for one in found) > 1


def _cost(one: Advice) -> str:
    """Returns the cost, and how it is computed."""
    how = one.finding.cost
    if one.cost_ns is None:
        return how
    cost = text(one.cost_ns, "ns")
    if one.share is not None:
        whole = (
            f"{text(one.wall_ns, 'ns')} wall time in sync"
            if one.time_ns is None
            else f"the {text(one.time_ns, 'ns')} that all syncs took"
        )
        cost += f", {text(one.share, 'share')} of {whole}"
    if one.sum_ns is not None and one.sum_ns != one.cost_ns:
        cost += f" ({text(one.sum_ns, 'ns')} summed over the syncs)"
    return f"{cost}: {how}"


def _after(one: Advice, first: Advice) -> str:
    """Says that a cost may be that of another finding, whose cause this change does not touch."""
    if one is first or not one.cost_ns:
        return ""
    return (
        f" Find out first what [{first.finding.name}] is: if the bios are held back in the same way,"
        " this saves less."
    )


def _evidence(row: dict[str, Value]) -> str:
    what = "from" if row["sync_id"] is None else f"sync {row['sync_id']} at"
    run = f" of {row['run']}" if row["run"] else ""
    cost = "" if row["cost_ns"] is None else f", {text(row['cost_ns'], 'ns')}"
    # A note is null if a part of what it says is not recorded.
    note = "" if row["note"] is None else f": {row['note']}"
    return f"{what} {text(row['ts_ns'], 'time')}{run}{cost}{note}"


def _wrapped(first: str, prose: str) -> list[str]:
    """Returns lines no wider than the terminal: `first`, then the prose, whose further lines are indented as much."""
    width = terminal.width() or _WIDTH
    indent = " " * (len(first) if len(first) <= 12 else 4)
    return textwrap.wrap(
        printable(first + prose),
        max(width, 40),
        subsequent_indent=indent,
        drop_whitespace=True,
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_table(found: Sequence[tuple[str, Sequence[Advice]]]) -> Table:
    """Returns a row for each input and finding, with the columns of REPORT."""
    rows = [tuple(_record(path, one).values()) for path, advice in found for one in advice]
    return Table([name for name, _, _ in _COLUMNS], rows)


def as_json(path: str, found: Sequence[Advice]) -> str:
    """Renders one input: one object, with the costliest evidence of each finding."""
    findings = [
        {name: value for name, value in _record(path, one).items() if name != "input"}
        | {"evidence": [*one.shown]}
        for one in found
    ]
    return json_text({"input": path, "findings": findings}, indent=1) + "\n"


def _record(path: str, one: Advice) -> dict[str, Any]:
    first = one.shown[0] if one.shown else {}
    checked = one.status != "not checked"
    values = (
        *(path, one.finding.name, one.status, one.seen or None),
        *((one.syncs, one.of_syncs) if checked else (None, None)),
        *(one.cost_ns, one.sum_ns, one.share),
        *(first.get("sync_id"), first.get("ts_ns"), first.get("run", "")),
        *(one.finding.cost or None, one.finding.inferred or None, one.finding.instead or None),
        one.reason,
        one.finding.page,
    )
    return {name: value for (name, _, _), value in zip(_COLUMNS, values, strict=True)}
