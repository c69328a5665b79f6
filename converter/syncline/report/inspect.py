"""What an input is, what it holds, what was lost, and which reports it can answer.

All figures come from the tables, counted in SQL. A column that is null in every row to which it
applies is not known; `FILLED_BY` says which source would have told it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from . import catalogue
from .marks import span
from .run import SqlEngine, check_trace, run_query

__all__ = ["FILLED_BY", "INSTEAD", "NEEDS", "Filler", "inspect", "uses"]


@dataclass(frozen=True)
class Filler:
    """Columns that are told together, the routes of `syncline record` that tell them, and what that is.

    `rest`: what the requests are of which they are not known, where they are known of some.
    `only_if`: what has to hold for the routes to tell them, which the input does not say.
    """

    columns: tuple[str, ...]
    routes: tuple[str, ...]
    text: str
    rest: str
    only_if: str = ""


ROUTES = ("ring-buffer", "bpftrace", "strace")
_IF_CALLS = "if they are calls: a sync of io_uring and a durable write is none"
_LOST = "an event of the others is missing: see what was lost"

# The same is in docs/inspect.md, which a test compares.
FILLED_BY = (
    Filler(
        ("op", "syscall_ns"),
        ("ring-buffer", "bpftrace", "strace"),
        "entries of the sync syscalls; io_uring's syncs and durable writes have none, but writes have in strace's log",
        "the others have no call: io_uring, a durable write, a kernel thread; or it is missing",
        _IF_CALLS,
    ),
    Filler(
        ("stack",),
        ("ring-buffer", "bpftrace"),
        "user stacks of the sync syscalls: by bpftrace, which has to be there for ring-buffer, too; strace -k",
        "the others have no call, or one without a stack",
        _IF_CALLS,
    ),
    Filler(
        ("tid",),
        ("ring-buffer", "bpftrace", "strace"),
        "a log whose ids are threads (--pid-is)",
        "the others are of a log whose ids are processes",
    ),
    Filler(
        ("comm",),
        ("ring-buffer", "bpftrace"),
        "names of threads; strace -f -Y",
        "the others' threads have no name in the log",
    ),
    Filler(
        ("pid", "process"),
        ("ring-buffer", "bpftrace"),
        "processes of threads, which `syncline record` keeps beside the log",
        "the others' processes had ended before they were looked at",
    ),
    Filler(
        ("path",),
        ("ring-buffer", "bpftrace", "strace"),
        "paths of files; a sync of a whole file system has none, and bpftrace needs a kernel with BTF",
        "the others are of a whole file system, or have no path in the log",
        "if they are of files: a sync of a whole file system has no path",
    ),
    Filler(
        ("start_ns", "datasync", "dev", "ino", "fs"),
        ("ring-buffer", "bpftrace"),
        "starts of the file system's sync function",
        _LOST + "; or only their call is known, or their tracepoint has no such field",
    ),
    Filler(
        ("id", "folios", "ranges"),
        ("ring-buffer", "bpftrace"),
        "page cache as it joins a bio: on a patched kernel, or by bpftrace on one with BTF",
        _LOST + "; or they have no id",
    ),
    Filler(
        ("bytes", "bios", "writeback_ns", "before_submit_ns", "after_complete_ns"),
        ("ring-buffer", "bpftrace"),
        "bios from submit to completion",
        _LOST + "; or only their call is known",
    ),
    Filler(
        ("dur_ns", "ret"),
        ("ring-buffer", "bpftrace", "strace"),
        "ends of requests",
        _LOST,
    ),
    Filler(
        ("journal_ns", "flush_ns", "residue_ns"),
        ("ring-buffer",),
        "waits for journal and flush: on a patched kernel alone; not of btrfs, nor of xfs for sync and syncfs",
        "the others' file system does not tell, or one end of a wait or bio is missing",
        "on a patched kernel, and not of btrfs",
    ),
)

_NO_REQUEST = "it holds no sync request: the routes ring-buffer and bpftrace tell them"
_CALLS_ALONE = (
    "it holds sync calls, and no request: they are of a kind or a file system that its recorder does not"
    " follow; the route ring-buffer follows all"
)
_NO_TABLE = (
    "what has been converted to requests alone lacks it: syncline convert LOG -o DIR/ keeps it"
)
_NO_MARKS = "it has no marks: --marks FILE"

# Without one of each group a report has nothing to say; other columns are one part of it.
NEEDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "amount": (("bytes",),),
    "empty": (("bios",),),
    "files": (("path",),),
    "latency": (("syscall_ns", "writeback_ns"),),
    "phases": (("start_ns",), ("dur_ns",), ("writeback_ns",)),
    "scatter": (("bytes",),),
    "stacks": (("stack",),),
    "threads": (("tid", "pid"),),
}

# (report, column): what it takes where the column is not known, so that nothing in it is null.
INSTEAD = {
    ("files", "pid"): "tid",
    # A path of frames.
    ("stacks", "path"): "stack",
    ("summary", "dev"): "path",
    ("summary", "ino"): "path",
    ("summary", "pid"): "comm",
    ("summary", "process"): "comm",
}

# Null where there is no bio.
_OF_BIOS = ("before_submit_ns", "after_complete_ns")
_WORD = re.compile(r"\w+")
_TABLE = re.compile(r"\bsyncline_(\w+)")
_COMMENT = re.compile(r"--[^\n]*")
# What the engine derives of the requests.
_OF_REQUESTS = {"sync", "parallel", "stack"}
# A run without marks has none to sum over.
_OPTIONAL = {"mark", "meta"}


def uses(name: str) -> tuple[set[str], set[str]]:
    """The tables, without `syncline_`, and the columns of FILLED_BY that the SQL of a report names."""
    sql = _COMMENT.sub("", catalogue.load(name).sql)
    words = set(_WORD.findall(sql))
    known = {column for filler in FILLED_BY for column in filler.columns}
    tables = set(_TABLE.findall(sql))
    # `id` and the like are words of other tables, too.
    return tables, (known & words) if tables & _OF_REQUESTS else set()


def inspect(
    engine: SqlEngine, core: dict[str, Any] | None, beside: dict[str, Any]
) -> dict[str, Any]:
    """All that is known of one input.

    Args:
        core: what the core told when it converted the input; None if it was converted before.
        beside: what the manifest of a recording tells.
    """
    check_trace(engine)
    meta = _meta(engine)
    runs = _runs(engine)
    lacks = _lacking_tables(meta)
    known = _records(engine, "known")[0]
    counts = _columns(known)
    no_request, marks = _no_request(engine, known["syncs"]), _marks(engine)
    return {
        "format": _format(meta),
        "facts": _facts(meta, beside),
        "inputs_read": core["inputs"] if core else None,
        "runs": runs,
        "clock": _clock(meta, core, beside, runs),
        "span": _span(engine, meta, beside, runs),
        "lines": _sum(meta, "lines"),
        "events": _events(meta),
        "other_events": _others(core),
        "syncs": known["syncs"],
        "seen": _seen(engine, lacks),
        "attribution": _attribution(engine, lacks, counts),
        "losses": None if "loss" in lacks else _records(engine, "losses"),
        "unparsed": core["unparsed"] if core else None,
        "columns": [
            {"column": column, "known": count, "of": of} for column, (count, of) in counts.items()
        ],
        "unknown": _unknown(counts),
        "reports": [_answer(name, counts, lacks, no_request, marks) for name in catalogue.names()],
    }


def _records(engine: SqlEngine, name: str) -> list[dict[str, Any]]:
    sql = (catalogue.sql_root() / "inspect" / f"{name}.sql").read_text(encoding="utf-8")
    table = run_query(engine, sql)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


# Values by key, one a run.
Meta = dict[str, list[str]]
# Of columns how many requests have one, and how many could.
Counts = dict[str, tuple[int, int]]


def _meta(engine: SqlEngine) -> Meta:
    """The values of each key, a run each; of several runs the same fact may be told several times."""
    meta: Meta = defaultdict(list)
    for key, value in run_query(engine, "SELECT key, value FROM syncline_meta ORDER BY run").rows:
        if value not in (None, ""):
            meta[str(key)].append(str(value))
    return dict(meta)


def _runs(engine: SqlEngine) -> int:
    sql = "SELECT COUNT(DISTINCT run) FROM syncline_meta"
    runs = run_query(engine, sql).rows[0][0]
    return int(runs or 0)


def _marks(engine: SqlEngine) -> int:
    return int(run_query(engine, "SELECT COUNT(*) FROM syncline_mark").rows[0][0] or 0)


def _one(meta: Meta, key: str) -> str | None:
    """What all runs say alike, or all that they say."""
    values = list(dict.fromkeys(meta.get(key, [])))
    return "; ".join(values) or None


def _sum(meta: Meta, key: str) -> int | None:
    return sum(map(int, meta[key])) if key in meta else None


def _format(meta: Meta) -> str | None:
    return _one(meta, "source")


def _facts(meta: Meta, beside: dict[str, Any]) -> dict[str, str]:
    found = {key: _one(meta, key) for key in ("recorder", "kernel", "host", "request_filter")}
    found |= {key: str(beside[key]) for key in ("route", "cannot_see") if key in beside}
    found["host"] = found["host"] or beside.get("host")
    found["kernel"] = found["kernel"] or beside.get("kernel")
    return {key: value for key, value in found.items() if value}


def _clock(
    meta: Meta, core: dict[str, Any] | None, beside: dict[str, Any], runs: int
) -> dict[str, Any]:
    offset = _offset(meta, beside, runs)
    told = all(one["clock_is_recorded"] for one in core["inputs"]) if core else None
    return {
        "name": _one(meta, "clock"),
        # Null of what was converted before: the tables do not keep it.
        "is_told": told,
        "unit": _one(meta, "time_unit"),
        "boot_id": _one(meta, "boot_id") or beside.get("boot_id"),
        "realtime_offset_ns": offset,
    }


def _offset(meta: Meta, beside: dict[str, Any], runs: int) -> int | None:
    """What to add to a time for ns since 1970."""
    clock = _one(meta, "clock")
    if runs != 1:
        return None
    if clock == "realtime":
        return 0
    told = _one(meta, "realtime_offset_ns")
    if told is not None:
        return int(told)
    return beside.get("realtime_offset_ns") if clock == "boottime" else None


def _span(engine: SqlEngine, meta: Meta, beside: dict[str, Any], runs: int) -> dict[str, Any]:
    """Of several runs, which need not be of one clock, the length is that of all together."""
    if runs == 1:
        first, last = span(engine)
        offset = _offset(meta, beside, runs)
        known = first is not None and last is not None
        return {
            "first_ns": first,
            "last_ns": last,
            "length_ns": last - first if known else None,  # type: ignore[operator]
            "first_realtime_ns": first + offset if known and offset is not None else None,  # type: ignore[operator]
        }
    ends = [meta.get(key, []) for key in ("first_ts_ns", "last_ts_ns")]
    whole = all(len(values) == runs for values in ends)
    length = sum(map(int, ends[1])) - sum(map(int, ends[0])) if whole else None
    return {"first_ns": None, "last_ns": None, "length_ns": length, "first_realtime_ns": None}


def _events(meta: Meta) -> dict[str, int] | None:
    kinds = {
        key.removeprefix("events."): _sum(meta, key) for key in meta if key.startswith("events.")
    }
    return {key: count for key, count in kinds.items() if count is not None} or None


def _others(core: dict[str, Any] | None) -> list[dict[str, Any]] | None:
    if core is None or core["other_events"] is None:
        return None
    return [{"event": name, "count": count} for name, count in core["other_events"]]


def _lacking_tables(meta: Meta) -> set[str]:
    """The tables that a run does not have; their emptiness says nothing."""
    whole = {"sync", "bio", "call", "wait", "loss", "mark", "meta"}
    return {table for told in meta.get("tables", []) for table in whole - set(_TABLE.findall(told))}


# What is counted, and the tables that tell of it.
_THINGS = {
    "operation": {"sync", "call"},
    "thread": {"sync", "call", "bio"},
    "process": {"sync", "call", "bio"},
    "device": {"sync", "bio"},
    "file system": {"sync"},
    "file": {"sync"},
}


def _seen(engine: SqlEngine, lacks: set[str]) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in _records(engine, "seen"):
        found[row["what"]].append(row)
    seen = []
    for what, tables in _THINGS.items():
        rows = found[what]
        seen.append(
            {
                "what": what,
                # Where nothing tells of them, there may be any number.
                "count": rows[0]["things"] if rows else None,
                "syncing": rows[0]["syncing"] if rows else None,
                "most": [
                    {key: row[key] for key in ("number", "name", "syncs")}
                    | {
                        key: None if table in lacks or table not in tables else row[key]
                        for key, table in (("unmatched_calls", "call"), ("bios", "bio"))
                    }
                    for row in rows
                ],
            }
        )
    return seen


def _attribution(engine: SqlEngine, lacks: set[str], counts: Counts) -> list[dict[str, Any]]:
    found: dict[str, dict[str, int]] = {"request": {}, "bio": {}}
    for row in _records(engine, "attribution"):
        found[row["of"]][row["confidence"]] = row["number"]
    # Where no request tells its bios, no source has looked for any.
    unseen = not found["bio"] and _is_null(counts, "bios")
    told = []
    for of, table in (("request", "sync"), ("bio", "bio")):
        total = sum(found[of].values())
        known = table not in lacks and not (of == "bio" and unseen)
        shares = {
            word: found[of].get(word, 0) / total if total else None
            for word in ("exact", "inferred", "unknown")
        }
        told.append({"of": of, "number": total if known else None, **shares})
    return told


def _columns(known: dict[str, Any]) -> Counts:
    return {
        column: (known[column], (known["with_bios"] or 0) if column in _OF_BIOS else known["syncs"])
        for filler in FILLED_BY
        for column in filler.columns
    }


def _is_null(counts: Counts, column: str) -> bool:
    known, of = counts[column]
    return known == 0 and of > 0


def _unknown(counts: Counts) -> list[dict[str, Any]]:
    """Columns that are null in some rows or all, those that are told together in one row."""
    rows = []
    for filler in FILLED_BY:
        groups: dict[tuple[int, int], list[str]] = defaultdict(list)
        for column in filler.columns:
            known, of = counts[column]
            if known < of:
                groups[known, of].append(column)
        for (known, of), columns in groups.items():
            rows.append(
                {
                    "columns": columns,
                    "known": known,
                    "of": of,
                    "routes": [] if known else list(filler.routes),
                    "why": filler.rest if known else filler.text,
                }
            )
    return rows


def _no_request(engine: SqlEngine, syncs: int) -> str:
    """Why it holds no request; empty if it holds some."""
    if syncs:
        return ""
    calls = run_query(engine, "SELECT COUNT(*) FROM syncline_call WHERE unmatched").rows[0][0]
    return _CALLS_ALONE if calls else _NO_REQUEST


def _answer(
    name: str, counts: Counts, lacks: set[str], no_request: str, marks: int
) -> dict[str, Any]:
    tables, columns = uses(name)
    told: dict[str, Any] = {"report": name, "null": [], "tables": [], "routes": [], "only_if": []}
    told["why"] = ""
    if name == "marks" and not marks:
        return told | {"answer": "no", "why": _NO_MARKS}
    missing = [f"syncline_{table}" for table in sorted((tables & lacks) - _OPTIONAL)]
    if missing and tables <= lacks:
        return told | {"answer": "no", "tables": missing, "why": _NO_TABLE}
    if tables & _OF_REQUESTS and no_request:
        # Beside the requests the summary has bios, calls and losses.
        others = tables - _OF_REQUESTS - _OPTIONAL - lacks
        answer = "part" if others else "no"
        return told | {"answer": answer, "tables": missing, "why": no_request}
    for group in NEEDS.get(name, ()):
        if all(_is_null(counts, column) for column in group):
            null = list(group)
            return told | {"answer": "no", "null": null, **_told_by(null)}
    null = [
        column
        for column in counts
        if column in columns
        and _is_null(counts, column)
        and _is_null(counts, INSTEAD.get((name, column), column))
    ]
    told |= {"null": null, "tables": missing, **_told_by(null)}
    if null or missing:
        return told | {"answer": "part", "why": _NO_TABLE if missing else ""}
    return told | {"answer": "full"}


def _told_by(null: list[str]) -> dict[str, list[str]]:
    """The routes that tell all of these columns, and on which conditions."""
    fillers = [filler for filler in FILLED_BY if set(filler.columns) & set(null)]
    common = [route for route in ROUTES if all(route in filler.routes for filler in fillers)]
    conditions = [filler.only_if for filler in fillers if filler.only_if]
    return {
        "routes": common if fillers else [],
        "only_if": list(dict.fromkeys(conditions)),
    }
