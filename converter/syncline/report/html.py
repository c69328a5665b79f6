"""`report --html`: collects the data of a run and inserts it into the page that converter/page builds.

A page holds every request of a run with up to `Limits.requests` requests. For a larger run it holds counts and
sums by bin of time, file and thread, as fine as `Limits.cells` allows, and a sample of the requests. The SQL of
sql/views/page/ computes all of it; this module does not loop over requests.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from syncline.engine import Value
from syncline.frames import comparable_stacks, is_nameless, readable_stacks
from syncline.printable import printable

from . import answer as answers
from . import catalogue, failures
from .answer import Answer
from .inspect import why_empty
from .run import Table, caveats, keep, read_failures, run_query, run_report
from .tables import SqlEngine

__all__ = ["Limits", "PageMissing", "describe", "page", "template"]

SCHEMA = 1
# The placeholder for the data, which the build of the page inserts.
_DATA = b'"the data of the report"'
# More bins than a page has, so that all become one.
_ALL_BINS = 1_000_000
_PARAMETER = re.compile(r":([a-z]+)\b")


class PageMissing(Exception):
    """The page has not been built; the message says which file is missing."""


@dataclass(frozen=True)
class Limits:
    """How much a page holds."""

    # A page holds each of up to this many requests, in about 60 bytes.
    requests: int = 20_000
    # Counts in the largest of the cubes. All cubes together have about four times as many.
    cells: int = 60_000
    # Requests in a sample, and how many of them are the longest.
    points: int = 4_000
    longest: int = 200
    # (files by name, threads by name, bins of time that are merged into one). The first that is small enough is used.
    ladder: tuple[tuple[int, int, int], ...] = (
        *((200, 100, 1), (100, 64, 1), (50, 32, 1), (30, 24, 1), (20, 16, 1), (20, 16, 2)),
        *((12, 12, 2), (12, 12, 5), (8, 8, 5), (6, 6, 10), (4, 4, 20), (1, 1, 50)),
    )
    stacks: int = 300
    marks: int = 500


@functools.cache
def template() -> bytes:
    """Returns the page without data.

    Raises:
        PageMissing: the page has not been built.
    """
    file = Path(__file__).parent / "page" / "page.html"
    try:
        found = file.read_bytes()
    except FileNotFoundError:
        raise PageMissing(f"the page of --html has not been built: {file} is missing") from None
    if found.count(_DATA) != 1:
        raise PageMissing(f"{file} has no placeholder for the data: it is from another version")
    return found


def page(
    sides: list[dict[str, Any]],
    warnings: Sequence[str] = (),
    answer: Mapping[str, Any] | None = None,
) -> bytes:
    """Returns the whole page.

    Args:
        sides: one run, or the base and the run that is compared with it.
        warnings: other differences between the sides.
        answer: of a comparison, its `sentences`, and the `phases` of both sides.
    """
    data = {"schema": SCHEMA, "syncline": importlib.metadata.version("syncline")}
    data |= {"warnings": [*warnings], "answer": answer, "sides": sides}
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    # Text of a log may contain anything. Escaping these characters keeps it from ending the script element.
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return template().replace(_DATA, text.encode("ascii"))


def describe(
    engine: SqlEngine,
    name: str,
    limits: Limits | None = None,
    *,
    compared: bool = False,
    answer: Answer | None = None,
    sentences: Callable[[Answer], Mapping[str, Any]] | None = None,
    advice: Mapping[str, Any] | None = None,
    typed: str | None = None,
    can_be_shown: bool = True,
) -> dict[str, Any]:
    """Collects the data of one input.

    Args:
        compared: the page compares the input with another one, so stacks are made comparable between processes.
        answer: what was waited for, with what others cost and what the program could do better. By default it is read
            here, without both.
        sentences: says the answer in words. Without it, the page has the answer's figures only.
        advice: what `advise` finds, in words; None if it was not looked for.
        typed: how a command names the input; by default its name.
        can_be_shown: whether `syncline open` takes the input.

    Raises:
        EngineError: the input cannot be read, or the trace was not written by Syncline.
    """
    limits = limits or Limits()
    side: dict[str, Any] = {"name": name, "typed": typed or shlex.quote(printable(name))}
    side["can_be_shown"] = can_be_shown
    side |= {"summary": _table(run_report(engine, "summary"))}
    side["caveats"] = caveats(engine, says_failures=False)
    failed = [f"{failures.sentence(kind)}." for kind in read_failures(engine) if kind["failed"]]
    side["failures"] = _failures(engine) if failed else None
    side["advice"] = advice
    side["losses"] = _table(run_report(engine, "losses"))
    bystanders = run_report(engine, "bystanders")
    side["bystanders"] = _table(Table(bystanders.columns, bystanders.rows[:_BYSTANDERS]))
    side["why"] = {} if bystanders.rows else {"bystanders": why_empty(engine, "bystanders")}
    side["slow_writes"] = _slow_writes(engine)
    answer = answer or answers.read(engine)
    said = sentences(answer) if sentences else None
    side["answer"] = asdict(answer) | {"sentences": said}
    # The words of the answer also name syncs that succeeded although data of their file were lost before.
    side["failed"] = said.get("failed", []) if said else failed
    facts = run_query(engine, "SELECT key, value FROM syncline_meta ORDER BY run, key").rows
    # The last run wins, because the page has room for one set of facts.
    side["facts"] = {str(key): value for key, value in facts if key in _FACTS}
    stacks = _number_stacks(engine, limits, compared=compared)
    _materialise(engine, "_page_request", "request")
    shape = _run(engine, "shape")
    side |= dict(zip(shape.columns, shape.rows[0], strict=True))
    side["operations"] = [op for _, op in _run(engine, "operation").rows]
    side["marks"] = _table(_run(engine, "mark", marks=limits.marks))
    side["begun"] = _table(_run(engine, "span"))
    _materialise(engine, "_page_phase", "phase-name")
    names = run_query(engine, "SELECT phase FROM _page_phase ORDER BY place")
    side["phase_names"] = [name for (name,) in names.rows]
    if not names.rows:
        side["why"]["phases"] = why_empty(engine, "phases")
    side["bios"] = None if side["requests"] else _bios(engine)
    side["disk"] = _disk(engine, side["width_ns"]) if side["requests"] else None
    waits = {"journal": int(side["journals"] or 0), "flush": int(side["flushes"] or 0)}
    unknown = tuple(name for name, known in waits.items() if not known)
    if int(side["requests"] or 0) <= limits.requests:
        side |= _whole(engine, limits, unknown)
        side["stack_names"] = stacks
    else:
        side |= _counted(engine, limits, side, unknown)
        side["stack_names"] = stacks[: limits.stacks]
    if compared:
        # In the other run these frames may have a name, so the page compares them with care.
        frames = {frame for stack in side["stack_names"] for frame in stack.split(";")}
        side["nameless"] = sorted(filter(is_nameless, frames))
    return side


def _bios(engine: SqlEngine) -> dict[str, Any] | None:
    """Returns the bios of an input without requests over time and by device, and the slowest ones; None without bios."""
    shape = _run(engine, "bio-shape")
    whole = dict(zip(shape.columns, shape.rows[0], strict=True))
    if not whole["bios"]:
        return None
    return {
        **whole,
        "devices": _table(run_report(engine, "device")),
        "slots": _table(_run(engine, "bio-slot", width=whole["width_ns"])),
        "slowest": _table(_run(engine, "bio-slowest", bios=_SLOWEST_BIOS)),
    }


def _disk(engine: SqlEngine, width_ns: int) -> dict[str, Any] | None:
    """Returns who used the devices during the syncs, in all and over time; None if it is not known of any bio."""
    _materialise(engine, "_page_disk", "disk", users=_USERS)
    users = _run(engine, "disk-user")
    if not users.rows:
        return None
    slots = _run(engine, "disk-slot", width=width_ns)
    return {"users": _table(users), "slots": _table(slots)}


def _failures(engine: SqlEngine) -> dict[str, Any]:
    """Returns the first rows of the report, and how many more there are."""
    report = run_report(engine, "failures")
    rows = _table(Table(report.columns, report.rows[:_FAILURES]))
    return {"rows": rows, "more": max(0, len(report.rows) - _FAILURES)}


def _slow_writes(engine: SqlEngine) -> dict[str, Any] | None:
    """Returns the first rows of the report, the row with the longest wait, and sums of all rows; None without rows."""
    report = run_report(engine, "slow-writes")
    rows = report.as_dicts()
    if not rows:
        return None
    return {
        "rows": _table(Table(report.columns, report.rows[:_SLOW_WRITES])),
        "groups": len(rows),
        "waits": sum(row["waits"] for row in rows),
        "total_ns": sum(row["total_ns"] for row in rows),
        "longest": max(rows, key=lambda row: row["max_ns"]),
    }


_BYSTANDERS = 40
_FAILURES = 10
# Who used the devices is drawn in so many colours. The others share one more.
_USERS = 6
_SLOW_WRITES = 100
_SLOWEST_BIOS = 20
_FACTS = ("source", "input", "pid_is", "clock", "first_ts_ns", "last_ts_ns", "lines", "events")


def _whole(engine: SqlEngine, limits: Limits, unknown: tuple[str, ...]) -> dict[str, Any]:
    """Returns each request, without the waits that were not recorded."""
    return _names(engine, limits.requests, limits.requests) | {
        "mode": "requests",
        "rows": _table(_run(engine, "row"), unknown),
        "phases": _table(_run(engine, "phase-row")),
    }


def _counted(
    engine: SqlEngine, limits: Limits, shape: Mapping[str, Any], unknown: tuple[str, ...]
) -> dict[str, Any]:
    """Returns counts and sums, and a sample, without the waits that were not recorded.

    Args:
        shape: the row of shape.sql.
    """
    for rung in limits.ladder:
        chosen = dict(zip(("files", "threads", "step"), rung, strict=True))
        ((cells,),) = _run(engine, "cells", **chosen).rows
        if int(cells or 0) <= limits.cells:
            break
    every = -(-int(shape["requests"]) // limits.points)
    cubes: dict[str, Any] = {
        "slot": _table(_run(engine, "slot", **chosen), unknown),
        "busy": _table(_run(engine, "busy", width=shape["width_ns"], **chosen)),
    }
    cubes |= {
        name: _table(_run(engine, "bucket", column=f"{name}_bucket", **chosen))
        for name in ("syscall", "writeback", "journal", "amount")
        if name not in unknown
    }
    stacks = chosen | {"stacks": limits.stacks}
    cubes["code"] = _cube(engine, "code", stacks, limits.cells, unknown)
    cubes["phase"] = _cube(engine, "phase", chosen, limits.cells)
    points = _run(engine, "point", every=every, longest=limits.longest, **chosen)
    return _names(engine, chosen["files"], chosen["threads"]) | {
        "mode": "bins",
        "limits": chosen | {"stacks": limits.stacks, "every": every, "longest": limits.longest},
        "cubes": cubes,
        "points": _table(points),
        "phases": _table(_run(engine, "point-phase", longest=limits.longest)),
        "names": _table(_run(engine, "point-name", longest=limits.longest, **chosen)),
    }


def _cube(
    engine: SqlEngine,
    name: str,
    chosen: dict[str, int],
    max_cells: int,
    unknown: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Returns a cube by time, file and thread together; separately by each if that would be too many cells."""
    rows = _sql(name, **chosen).rstrip().removesuffix(";")
    ((cells,),) = run_query(engine, f"SELECT COUNT(*) FROM ({rows}) AS cell").rows
    if int(cells or 0) <= max_cells:
        return {"all": _table(_run(engine, name, **chosen), unknown)}
    merged = {"files": 0, "threads": 0, "step": _ALL_BINS}
    parts = {"time": "step", "file": "files", "thread": "threads"}
    return {
        by: _table(_run(engine, name, **chosen | merged | {part: chosen[part]}), unknown)
        for by, part in parts.items()
    }


def _names(engine: SqlEngine, files: int, threads: int) -> dict[str, Any]:
    """Returns the costliest files and threads, as the reports list them."""
    return {
        f"{name}_table": _table(_first(engine, name, count))
        for name, count in (("files", files), ("threads", threads))
    }


def _number_stacks(engine: SqlEngine, limits: Limits, *, compared: bool) -> list[str]:
    """Creates `_page_stack`, which numbers the stacks. Returns their names, at most as many as a page may hold."""
    if not compared:
        _materialise(engine, "_page_stack", "stack")
        named = _run(engine, "name", stacks=max(limits.requests, limits.stacks)).rows
        names = readable_stacks(str(stack) for _, stack in named)
        return [names[str(stack)] for _, stack in named]
    _materialise(engine, "_page_raw_stack", "stack")
    rows = [(str(stack), int(syncs or 0)) for stack, syncs, _ in _run(engine, "raw-stack").rows]
    names = comparable_stacks(stack for stack, _ in rows)
    counts: Counter[str] = Counter()
    for stack, syncs in rows:
        counts[names[stack]] += syncs
    order = sorted(counts, key=lambda name: (-counts[name], name))
    numbers = {name: number for number, name in enumerate(order)}
    pairs = [f"{place}, {numbers[names[stack]]}" for place, (stack, _) in enumerate(rows)]
    # The table must not be empty: without stacks it gets a row that matches none.
    _materialise(engine, "_page_stack", "fold", folds="), (".join(pairs) or "-1, -1")
    return order


def _first(engine: SqlEngine, report: str, count: int) -> Table:
    # A report ends with its ORDER BY, so a LIMIT can be appended.
    sql = catalogue.load(report).sql.rstrip().removesuffix(";")
    return run_query(engine, f"{sql}\nLIMIT {count};")


def _sql(name: str, **parameters: int | str) -> str:
    """Returns the SQL of a file in sql/views/page/ with its parameters filled in: numbers, pairs of numbers, or a column."""
    body = re.sub(r"^--[^\n]*\n", "", catalogue.read_sql("views/page", name), flags=re.M)
    return _PARAMETER.sub(lambda match: str(parameters[match[1]]), body)


def _run(engine: SqlEngine, name: str, **parameters: int | str) -> Table:
    return run_query(engine, _sql(name, **parameters))


def _materialise(engine: SqlEngine, table: str, name: str, **parameters: int | str) -> None:
    """Creates a table with the result of a file in sql/views/page/."""
    keep(engine, table, _sql(name, **parameters))


def _table(table: Table, without: tuple[str, ...] = ()) -> dict[str, list[Value]]:
    """Returns columns by name, each a list: columns make the page smaller and faster to load than rows.

    Args:
        without: prefixes of the names of columns that are left out.
    """
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    named = zip(table.columns, columns, strict=True)
    return {name: list(values) for name, values in named if not name.startswith(without)}
