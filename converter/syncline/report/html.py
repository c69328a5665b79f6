"""`report --html`: what a page needs to know of a run, put into the page that converter/page builds.

A page holds every request of a run up to `REQUESTS`. Of more it holds counts and sums by bin of
time, file and thread, as fine as `CELLS` allow, and some of the requests as a sample. The SQL of
sql/page/ counts; nothing here looks at a request.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncline.engine import Value
from syncline.engine.columns import ColumnsEngine

from . import catalogue
from .run import SqlEngine, Table, caveats, run_query, run_report

__all__ = ["Limits", "PageMissing", "describe", "page", "template"]

SCHEMA = 1
# Where the page takes its data from; the build puts it there.
_DATA = b'"the data of the report"'
# More bins than there are, so that all are one.
_ALL_BINS = 1_000_000
_PARAMETER = re.compile(r":([a-z]+)\b")


class PageMissing(Exception):
    """The page has not been built; the text says how it is."""


@dataclass(frozen=True)
class Limits:
    """How much a page holds."""

    # Up to so many it holds each, in about 60 bytes.
    requests: int = 20_000
    # Counts in the largest of the cubes, which together are about four times as many.
    cells: int = 60_000
    # Of a sample.
    points: int = 4_000
    longest: int = 200
    # Files and threads by name, and how many bins of time are one: the first that is small enough.
    ladder: tuple[tuple[int, int, int], ...] = (
        *((200, 100, 1), (100, 64, 1), (50, 32, 1), (30, 24, 1), (20, 16, 1), (20, 16, 2)),
        *((12, 12, 2), (12, 12, 5), (8, 8, 5), (6, 6, 10), (4, 4, 20), (1, 1, 50)),
    )
    stacks: int = 300
    marks: int = 500


@functools.cache
def template() -> bytes:
    """The page without data.

    Raises:
        PageMissing: it has not been built.
    """
    file = Path(__file__).parent / "page" / "page.html"
    try:
        found = file.read_bytes()
    except FileNotFoundError:
        raise PageMissing(f"the page of --html has not been built: {file} is missing") from None
    if found.count(_DATA) != 1:
        raise PageMissing(
            f"{file} is no page that data can be put into: it is from another version"
        )
    return found


def page(sides: list[dict[str, Any]]) -> bytes:
    """The whole page; with two sides the first is the base that the second is compared to."""
    data = {"schema": SCHEMA, "syncline": importlib.metadata.version("syncline"), "sides": sides}
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    # Text of a log may be any; in a script nothing but its end has a meaning.
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return template().replace(_DATA, text.encode("ascii"))


def describe(engine: SqlEngine, name: str, limits: Limits | None = None) -> dict[str, Any]:
    """All that the page tells of one input.

    Raises:
        EngineError: it cannot be read, or the trace is not Syncline's.
    """
    limits = limits or Limits()
    side: dict[str, Any] = {"name": name, "summary": _table(run_report(engine, "summary"))}
    side["caveats"] = caveats(engine)
    side["losses"] = _table(run_report(engine, "losses"))
    facts = run_query(engine, "SELECT key, value FROM syncline_meta ORDER BY run, key").rows
    # Of many runs those of the last.
    side["facts"] = {str(key): value for key, value in facts if key in _FACTS}
    _materialise(engine)
    shape = _run(engine, "shape")
    side |= dict(zip(shape.columns, shape.rows[0], strict=True))
    side["operations"] = [op for _, op in _run(engine, "operation").rows]
    side["marks"] = _table(_run(engine, "mark", marks=limits.marks))
    side["begun"] = _table(_run(engine, "span"))
    if int(side["requests"] or 0) <= limits.requests:
        return side | _whole(engine, limits)
    return side | _counted(engine, limits, int(side["requests"]))


_FACTS = ("source", "input", "pid_is", "clock", "first_ts_ns", "last_ts_ns", "lines", "events")


def _whole(engine: SqlEngine, limits: Limits) -> dict[str, Any]:
    """Each request."""
    return _names(engine, limits.requests, limits.requests, limits.requests) | {
        "mode": "requests",
        "rows": _table(_run(engine, "row")),
    }


def _counted(engine: SqlEngine, limits: Limits, requests: int) -> dict[str, Any]:
    """Counts and sums, and a sample."""
    for rung in limits.ladder:
        chosen = dict(zip(("files", "threads", "step"), rung, strict=True))
        ((cells,),) = _run(engine, "cells", **chosen).rows
        if int(cells or 0) <= limits.cells:
            break
    every = -(-requests // limits.points)
    cubes = {
        name: _table(_run(engine, name, **chosen))
        for name in ("slot", "syscall", "writeback", "amount", "busy")
    }
    cubes["code"] = _code(engine, chosen | {"stacks": limits.stacks}, limits.cells)
    points = _run(engine, "point", every=every, longest=limits.longest, **chosen)
    return _names(engine, chosen["files"], chosen["threads"], limits.stacks) | {
        "mode": "bins",
        "limits": chosen | {"stacks": limits.stacks, "every": every, "longest": limits.longest},
        "cubes": cubes,
        "points": _table(points),
    }


def _code(engine: SqlEngine, chosen: dict[str, int], most: int) -> dict[str, Any]:
    """Stacks by time, file and thread at once; by each alone where that were too many cells."""
    ((cells,),) = _run(engine, "folded", **chosen).rows
    if int(cells or 0) <= most:
        return {"all": _table(_run(engine, "code", **chosen))}
    alone = {"files": 0, "threads": 0, "step": _ALL_BINS}
    parts = {"time": "step", "file": "files", "thread": "threads"}
    return {
        name: _table(_run(engine, "code", **chosen | alone | {part: chosen[part]}))
        for name, part in parts.items()
    }


def _names(engine: SqlEngine, files: int, threads: int, stacks: int) -> dict[str, Any]:
    """Files and threads as their reports have them, the costliest; and stacks, the most frequent."""
    found = {
        f"{name}_table": _table(_first(engine, name, count))
        for name, count in (("files", files), ("threads", threads))
    }
    return found | {
        "stack_names": [stack for _, stack in _run(engine, "stack", stacks=stacks).rows]
    }


def _first(engine: SqlEngine, report: str, count: int) -> Table:
    # A report ends in its order.
    sql = catalogue.load(report).sql.rstrip().removesuffix(";")
    return run_query(engine, f"{sql}\nLIMIT {count};")


def _sql(name: str, **parameters: int) -> str:
    """The SQL of a file in sql/page/ with numbers for its parameters."""
    text = (catalogue.sql_root() / "page" / f"{name}.sql").read_text(encoding="utf-8")
    body = re.sub(r"^--[^\n]*\n", "", text, flags=re.M)
    return _PARAMETER.sub(lambda match: str(parameters[match[1]]), body)


def _run(engine: SqlEngine, name: str, **parameters: int) -> Table:
    return run_query(engine, _sql(name, **parameters))


def _materialise(engine: SqlEngine) -> None:
    """Makes `_page_request`, on which the others are built."""
    kind = "TABLE" if engine.name == ColumnsEngine.name else "PERFETTO TABLE"
    run_query(engine, f"CREATE OR REPLACE {kind} _page_request AS\n{_sql('request')}")


def _table(table: Table) -> dict[str, list[Value]]:
    """Columns by name, each a list: a page is smaller, and read faster, by columns."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    return {name: list(values) for name, values in zip(table.columns, columns, strict=True)}
