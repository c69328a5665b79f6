"""Describes an input: its format, its contents, its losses, and which reports it has the data for.

SQL counts the requests, bios and losses in the tables. A column is unknown if it is null in every row to which
it applies. `FILLED_BY` says which route records it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from syncline import _core
from syncline.engine.expanded import expanded

from . import catalogue, failures, metadata, recorded_by
from .run import check_trace, read_failures, run_query
from .tables import SqlEngine

__all__ = [
    "FILLED_BY",
    "INSTEAD",
    "NEEDS",
    "Filler",
    "inspect",
    "statements",
    "uses",
    "why_empty",
]


@dataclass(frozen=True)
class Filler:
    """Columns that are recorded together, and the routes of `syncline record` that record them.

    `text`: what must be recorded for the columns to be known.
    `rest`: why the columns are unknown for some requests, if they are known for others.
    `only_if`: the condition under which the routes record the columns. The input does not show whether it is met.
    """

    columns: tuple[str, ...]
    routes: tuple[str, ...]
    text: str
    rest: str
    only_if: str = ""


ROUTES = ("ring-buffer", "dynamic-events", "bpftrace", "strace")


FILLED_BY = tuple(Filler(*group) for group in recorded_by.GROUPS)

_NO_REQUEST = (
    "it has no sync request: the routes dynamic-events, ring-buffer and bpftrace record requests"
)
_ALL_FILTERED = "no sync request passes the filter"
_NO_SYNC_EVENT = (
    "it has no event of a sync or a sync call, so whether there were syncs is not known:"
    " the routes dynamic-events, ring-buffer and bpftrace record requests"
)
_ONLY_CALLS = (
    "it has sync calls but no request: its recorder does not trace this kind of call or file system;"
    " the routes dynamic-events and ring-buffer trace all"
)
_NO_TABLE = "an input that was converted to requests only does not have it: syncline convert LOG -o DIR/ keeps it"
_NO_MARKS = "it has no marks: --marks FILE"
_NO_DEVICE = "no bio has a known device and completion: the routes dynamic-events, ring-buffer and bpftrace record them"
_NO_FLAGS = "no bio of a sync has known flags: the routes dynamic-events, ring-buffer and bpftrace record them"
_NO_BIO = (
    "no bio of a sync is recorded: the routes dynamic-events, ring-buffer and bpftrace record them"
)
_NO_PHASE = "nothing says what a sync waited for: the routes dynamic-events, ring-buffer and bpftrace record it"
_NO_WHOLE = "no sync with {} has both its start and its end in the recording, and the others may have written more"
_NO_COMPLETE = "no sync with a known amount is complete: each lacks its start, its end, its call, or the submit or completion of a bio"
_NO_COMMIT = "it records no commit: the routes dynamic-events and ring-buffer do"
_NO_WRITE_WAIT = "it has no wait of a write of 1 ms or longer, and none for a page that is read: the route dynamic-events records these"
_NO_WRITE = (
    "no bio of a write is recorded: the routes dynamic-events, ring-buffer and bpftrace record them"
)
_NO_FILE_CHANGE = "no write to a file is recorded: `strace -f -y -T -ttt -e trace=%file,%desc` records them, and `syncline record --files`"
_WRITE_WAITS_UNSEEN = "waits of writes are not recorded: the route dynamic-events records them"

# What pairing takes for granted, because the events of an input do not show it.
_GRANTED = {
    "calls": "No call is recorded, so a sync is taken to begin with its start in the file system, although its thread may have entered a call before.",
    "returns": "No return of a call is recorded, so a call is taken to last as long as its request, and a request that lost its call looks like one"
    " that is made without (io_uring, a durable write).",
    "submits": "Submits to the block layer are not recorded, so bios that only they report, such as those of a journal, have no row.",
    "remaps": "What a device mapper or a partition passes on looks like a bio of its own where its redirect, or the submit to the device above, is"
    " not recorded: it may then count on both devices.",
    "flushes": "Events of a cache flush do not name its queue. If a flush lost its issue and its end, that of another queue looks like the only one, and"
    " its times are taken for those of the bio.",
}

# Report -> groups of columns. A report needs one column of each group. If another column is unknown, it is partial.
NEEDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "amount": (("bytes",),),
    "bystanders": (("start_ns",), ("dur_ns",), ("bios",)),
    "durability": (("start_ns",), ("dur_ns",), ("bios",)),
    "empty": (("bios",),),
    "files": (("path", "ino"),),
    "groups": (("bytes",), ("writeback_ns",), ("dur_ns",)),
    "latency": (("syscall_ns", "writeback_ns"),),
    "neighbours": (("start_ns",), ("dur_ns",), ("bios",)),
    "parallel": (("dur_ns",), ("pid", "comm")),
    "phases": (("start_ns",), ("dur_ns",)),
    "scatter": (("bytes",),),
    "stacks": (("stack",),),
    "threads": (("tid", "pid"),),
    "whose-data": (("bios",),),
}

# (report, column) -> the column that the report uses instead of an unknown one.
INSTEAD = {
    ("bystanders", "cgroup"): "comm",
    ("bystanders", "process"): "comm",
    ("files", "dev"): "path",
    ("files", "ino"): "path",
    ("files", "path"): "ino",
    ("files", "pid"): "tid",
    ("neighbours", "cgroup"): "comm",
    ("neighbours", "pid"): "comm",
    ("neighbours", "process"): "comm",
    ("parallel", "dev"): "path",
    ("parallel", "ino"): "path",
    ("parallel", "path"): "ino",
    ("parallel", "pid"): "comm",
    ("parallel", "process"): "comm",
    # Here, `path` is the path of frames.
    ("stacks", "path"): "stack",
    ("summary", "dev"): "path",
    ("summary", "ino"): "path",
    ("summary", "pid"): "comm",
    ("summary", "process"): "comm",
    ("writeback", "dev"): "path",
    ("writeback", "ino"): "path",
    ("writeback", "path"): "ino",
}

# Columns that are null for requests without a bio.
_OF_BIOS = ("before_submit_ns", "after_complete_ns")
_WORD = re.compile(r"\w+")
_TABLE = re.compile(r"\bsyncline_(\w+)")
_COMMENT = re.compile(r"--[^\n]*")
# A line of sql/commands/inspect/known.sql.
_COUNTED = re.compile(r"\s*COUNT\((\w+)\) AS \w+,")
# Tables that are computed from the requests.
_OF_REQUESTS = {"sync", "parallel", "phase", "stack"}
# Tables that a report can do without.
_OPTIONAL = {"mark", "meta"}


def uses(name: str) -> tuple[set[str], set[str]]:
    """Returns the names of the tables, without `syncline_`, and the columns of FILLED_BY that a report uses."""
    sql = expanded(_COMMENT.sub("", catalogue.load(name).sql), "duckdb")
    words = set(_WORD.findall(sql))
    known = {column for filler in FILLED_BY for column in filler.columns}
    # Its rows and columns are those of the requests.
    tables = {"sync" if table == "sync_call" else table for table in _TABLE.findall(sql)}
    # If the report uses only other tables, these are columns of theirs with the same names, such as `id`.
    return tables, (known & words) if tables & _OF_REQUESTS else set()


def inspect(
    engine: SqlEngine, core: dict[str, Any] | None, manifest: dict[str, Any]
) -> dict[str, Any]:
    """Describes one input.

    Args:
        engine: an engine that has loaded the tables of the input.
        core: the summary of the conversion; None if the input was already converted.
        manifest: the manifest of a run directory; empty for another input.
    """
    check_trace(engine)
    meta = metadata.read_meta(engine)
    runs = metadata.count_runs(engine)
    missing = metadata.missing_tables(meta)
    known = _records(engine, "known")[0]
    counts = _columns(known)
    return {
        "format": metadata.value(meta, "source"),
        "facts": metadata.facts(meta, manifest),
        "inputs_read": core["inputs"] if core else None,
        "runs": runs,
        "clock": metadata.clock(meta, core, manifest, runs),
        "span": metadata.time_span(engine, meta, manifest, runs),
        "lines": metadata.total(meta, "lines"),
        "events": metadata.events(meta),
        "other_events": metadata.other_events(core),
        # Null, not 0, if the input has no event of a sync: it does not show whether there were some.
        "syncs": known["syncs"] if known["syncs"] or metadata.shows_syncs(meta) else None,
        "entities": _entities(engine, missing),
        "attribution": _attribution(engine, missing, counts, metadata.shows_syncs(meta)),
        "losses": None if "loss" in missing else _records(engine, "losses"),
        "hidden_losses": _hidden_losses(core, metadata.value(meta, "source")),
        "granted": _granted(engine, metadata.events(meta) or {}, known["syncs"]),
        "failures": read_failures(engine),
        "unparsed_lines": core["unparsed"] if core else None,
        "columns": [
            {"column": column, "known": count, "of": of} for column, (count, of) in counts.items()
        ],
        "unknown_columns": _unknown_columns(counts),
        "reports": _reports(engine, catalogue.names(), meta, known),
    }


def _hidden_losses(core: dict[str, Any] | None, sources: str | None) -> dict[str, str]:
    """Returns, by format, which losses an input would not show."""
    read = [one["source"] for one in core["inputs"]] if core else (sources or "").split(", ")
    return {one: _core.HIDDEN_LOSSES[one] for one in sorted({*read}) if one in _core.HIDDEN_LOSSES}


def _granted(engine: SqlEngine, events: dict[str, int], syncs: int) -> list[str]:
    """Returns what is taken for granted of an input with these events."""

    def has(*kinds: str) -> bool:
        return any(events.get(kind) for kind in kinds)

    (counts,) = run_query(engine, _SUBMITTED).rows
    devices, flushes = counts[0] or 0, counts[1] or 0
    true = {
        "calls": events and syncs and not has("call_enter", "call_exit"),
        "returns": syncs and has("call_enter") and not has("call_exit"),
        "submits": has("bio_submit")
        and has("block_issue", "block_complete")
        and not has("block_submit", "probe"),
        "remaps": has("block_submit") and (has("block_remap") or devices > 1),
        "flushes": has("block_issue") and flushes,
    }
    return [_GRANTED[name] for name, is_true in true.items() if is_true]


def statements(reports: Iterable[str]) -> list[str]:
    """Returns the SQL that `why_empty` runs for reports."""
    names = [*reports]
    of_reports = [sql for name in names for sql in (_known_for(name), *_rows_for(name))]
    return [_UNMATCHED_CALLS, _MARKS, *of_reports]


def why_empty(engine: SqlEngine, name: str) -> str:
    """Returns why the input gives a report no rows, in sentences; an empty string if it could have given some."""
    known = run_query(engine, _known_for(name)).as_dicts()[0]
    (report,) = _reports(engine, [name], metadata.read_meta(engine), known)
    reason, columns = report["reason"], report["unknown_columns"]
    if reason:
        what, colon, routes = reason.partition(": the route")
        text = f"{what}. The route{routes}." if colon else f"{reason}."
        if tables := report["missing_tables"]:
            text = f"the input lacks {_listed(tables)}: {text}"
        return text if report["answer"] == "no" else f"the input does not record all: {text}"
    if name == "losses":
        return "nothing is known to be lost, and nothing was left out."
    if name == "failures":
        return _no_failure(engine)
    if report["answer"] != "no" or not columns:
        return ""
    one = len(columns) == 1
    text = f"the column{'s' * (not one)} {_listed(columns)} {'is' if one else 'are'} not recorded."
    if routes := report["recorded_by"]:
        many = len(routes) > 1
        text += (
            f" The route{'s' * many} {_listed(routes)} record{'s' * (not many)}"
            f" {'it' if one else 'them'}{''.join(f', {one}' for one in report['conditions'])}."
        )
    return text


def _known_for(name: str) -> str:
    """Returns the SQL of `known` for the columns that decide what is said of a report. To read the others would take time."""
    _, used = uses(name)
    columns = used.union(*NEEDS.get(name, ()))
    columns |= {INSTEAD[name, column] for column in used if (name, column) in INSTEAD}
    lines = catalogue.read_sql("commands/inspect", "known").splitlines()
    return "\n".join(
        line for line in lines if not (counted := _COUNTED.match(line)) or counted[1] in columns
    )


def _no_failure(engine: SqlEngine) -> str:
    kinds = read_failures(engine)
    if not kinds:
        return "the results of syncs, calls and bios are not recorded."
    counts = [failures.counted(kind) for kind in kinds]
    return f"none of {_listed(counts)} is recorded as failed."


def _listed(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _reports(
    engine: SqlEngine, names: list[str], meta: metadata.Meta, known: dict[str, Any]
) -> list[dict[str, Any]]:
    """Describes which of the reports the input has the data for."""
    counts, missing = _columns(known), metadata.missing_tables(meta)
    no_request, marks = _no_request(engine, meta, known["syncs"]), _marks(engine)
    return [
        _report(name, counts, missing, no_request, marks, _refused(engine, meta, name))
        for name in names
    ]


def _records(engine: SqlEngine, name: str) -> list[dict[str, Any]]:
    return run_query(engine, catalogue.read_sql("commands/inspect", name)).as_dicts()


# Column -> (number of requests with a value, number of requests to which it applies).
Counts = dict[str, tuple[int, int]]


def _marks(engine: SqlEngine) -> int:
    return int(run_query(engine, _MARKS).rows[0][0] or 0)


_MARKS = "SELECT COUNT(*) FROM syncline_mark"
_UNMATCHED_CALLS = "SELECT COUNT(*) FROM syncline_call WHERE unmatched"
_SUBMITTED = """
SELECT COUNT(DISTINCT dev), SUM(CASE WHEN direction = 'flush' THEN 1 ELSE 0 END)
FROM syncline_bio WHERE dev IS NOT NULL
"""
_DEVICE_ROWS = ("syncline_bio WHERE dev IS NOT NULL AND dur_ns IS NOT NULL",)
_FLAG_ROWS = (
    "syncline_bio WHERE sync_id IS NOT NULL AND rwbs IS NOT NULL",
    "syncline_wait WHERE wait = 'flush'",
)
_BIO_ROWS = ("syncline_bio WHERE sync_id IS NOT NULL",)
_COMMIT_ROWS = ("syncline_journal", "syncline_wait WHERE wait <> 'flush'")
_WRITE_WAIT_ROWS = ("syncline_write_wait",)
_FILE_CHANGE_ROWS = ("syncline_file_op WHERE op IN ('write', 'truncate', 'allocate')",)
# A residue says that no phase is known.
_PHASE_ROWS = ("syncline_phase WHERE phase <> 'residue'",)
_WHOLE = "(incomplete IS NULL OR incomplete NOT IN ('start', 'end'))"
_SIZED_ROWS = (f"syncline_sync WHERE bytes IS NOT NULL AND {_WHOLE}",)
_COUNTED_ROWS = (f"syncline_sync_call WHERE bios IS NOT NULL AND {_WHOLE}",)
_COMPLETE_ROWS = ("syncline_sync WHERE bytes IS NOT NULL AND incomplete IS NULL",)
# Report -> the rows without which it can say nothing, any of them, and what is said then.
_NEEDED_ROWS = {
    "amount": (_SIZED_ROWS, _NO_WHOLE.format("a known amount")),
    "empty": (_COUNTED_ROWS, _NO_WHOLE.format("a known number of bios")),
    "scatter": (_COMPLETE_ROWS, _NO_COMPLETE),
    "bystanders": (_DEVICE_ROWS, _NO_DEVICE),
    "device": (_DEVICE_ROWS, _NO_DEVICE),
    "durability": (_FLAG_ROWS, _NO_FLAGS),
    "journal": (_COMMIT_ROWS, _NO_COMMIT),
    "neighbours": (_DEVICE_ROWS, _NO_DEVICE),
    "phases": (_PHASE_ROWS, _NO_PHASE),
    "slow-writes": (_WRITE_WAIT_ROWS, _NO_WRITE_WAIT),
    "unsynced": (_FILE_CHANGE_ROWS, _NO_FILE_CHANGE),
    "whose-data": (_BIO_ROWS, _NO_BIO),
    "writeback": (("syncline_bio WHERE direction = 'write'",), _NO_WRITE),
}


def _rows_for(name: str) -> list[str]:
    """Returns a statement for each kind of rows. A report needs a row of any of them."""
    rows, _ = _NEEDED_ROWS.get(name, ((), ""))
    return [f"SELECT 1 FROM {row} LIMIT 1" for row in rows]


def _refused(engine: SqlEngine, meta: metadata.Meta, name: str) -> str:
    """Returns why a report can say nothing: all rows that it needs are missing. An empty string if one is there."""
    statements = _rows_for(name)
    if not statements or any(run_query(engine, sql).rows for sql in statements):
        return ""
    # Waits of writes come from probes. An input that does not count them may have had some.
    if name == "slow-writes" and metadata.total(meta, "events.probe") == 0:
        return _WRITE_WAITS_UNSEEN
    return _NEEDED_ROWS[name][1]


# Kind of entity -> the tables that have it.
_ENTITIES = {
    "operation": {"sync", "call"},
    "thread": {"sync", "call", "bio"},
    "process": {"sync", "call", "bio"},
    "device": {"sync", "bio"},
    "file system": {"sync"},
    "file": {"sync"},
}


def _entities(engine: SqlEngine, missing: set[str]) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in _records(engine, "seen"):
        found[row["what"]].append(row)
    entities = []
    for kind, tables in _ENTITIES.items():
        rows = found[kind]
        entities.append(
            {
                "kind": kind,
                # None if the tables have no row of this kind, because the number is then not known.
                "count": rows[0]["total"] if rows else None,
                "with_syncs": rows[0]["syncing"] if rows else None,
                "top": [
                    {"id": row["number"], "name": row["name"], "syncs": row["syncs"]}
                    | {
                        key: None if table in missing or table not in tables else row[key]
                        for key, table in (
                            ("unmatched_calls", "call"),
                            ("bios", "bio"),
                            ("requests", "bio"),
                        )
                    }
                    for row in rows
                ],
            }
        )
    return entities


def _attribution(
    engine: SqlEngine, missing: set[str], counts: Counts, shows_syncs: bool
) -> list[dict[str, Any]]:
    found: dict[str, dict[str, int]] = {"request": {}, "bio": {}}
    for row in _records(engine, "attribution"):
        found[row["of"]][row["confidence"]] = row["number"]
    # Without a bio and without a request whose number of bios is known, bios were not recorded.
    no_bios = not found["bio"] and _is_null(counts, "bios")
    attribution = []
    for kind, table in (("request", "sync"), ("bio", "bio")):
        total = sum(found[kind].values())
        known = table not in missing and not (kind == "bio" and no_bios) and shows_syncs
        shares = {
            confidence: found[kind].get(confidence, 0) / total if total else None
            for confidence in ("exact", "inferred", "unknown")
        }
        attribution.append({"kind": kind, "count": total if known else None, **shares})
    return attribution


def _columns(known: dict[str, Any]) -> Counts:
    """Returns the counts of the columns that were counted."""
    return {
        column: (known[column], (known["with_bios"] or 0) if column in _OF_BIOS else known["syncs"])
        for filler in FILLED_BY
        for column in filler.columns
        if column in known
    }


def _is_null(counts: Counts, column: str) -> bool:
    known, of = counts[column]
    return known == 0 and of > 0


def _unknown_columns(counts: Counts) -> list[dict[str, Any]]:
    """Lists the columns that are null in some or all rows. Columns with the same counts share an entry."""
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
                    "recorded_by": [] if known else list(filler.routes),
                    "reason": filler.rest if known else filler.text,
                }
            )
    return rows


def _no_request(engine: SqlEngine, meta: metadata.Meta, syncs: int) -> str:
    """Returns why the input has no request, or an empty string if it has one."""
    if syncs:
        return ""
    if not metadata.shows_syncs(meta):
        return _NO_SYNC_EVENT
    if metadata.total(meta, "requests") and metadata.value(meta, "request_filter"):
        return _ALL_FILTERED
    calls = run_query(engine, _UNMATCHED_CALLS).rows[0][0]
    return _ONLY_CALLS if calls else _NO_REQUEST


def _report(
    name: str,
    counts: Counts,
    missing_tables: set[str],
    no_request: str,
    marks: int,
    refused: str,
) -> dict[str, Any]:
    tables, columns = uses(name)
    report: dict[str, Any] = {"report": name, "unknown_columns": [], "missing_tables": []}
    report |= {"recorded_by": [], "conditions": [], "reason": ""}
    if name == "marks" and not marks:
        return report | {"answer": "no", "reason": _NO_MARKS}
    missing = [f"syncline_{table}" for table in sorted((tables & missing_tables) - _OPTIONAL)]
    if missing and tables <= missing_tables:
        return report | {"answer": "no", "missing_tables": missing, "reason": _NO_TABLE}
    no = report | {"answer": "no", "missing_tables": missing}
    no["reason"] = _NO_TABLE if missing else refused
    if refused and name not in NEEDS:
        return no
    if tables & _OF_REQUESTS and no_request:
        # The summary also covers bios, calls and losses.
        others = tables - _OF_REQUESTS - _OPTIONAL - missing_tables
        answer = "part" if others and name not in NEEDS else "no"
        return report | {"answer": answer, "missing_tables": missing, "reason": no_request}
    for group in NEEDS.get(name, ()):
        if all(_is_null(counts, column) for column in group):
            unknown = list(group)
            return report | {"answer": "no", "unknown_columns": unknown, **_recorded_by(unknown)}
    if refused:
        return no
    unknown = [
        column
        for column in counts
        if column in columns
        and _is_null(counts, column)
        and _is_null(counts, INSTEAD.get((name, column), column))
    ]
    report |= {"unknown_columns": unknown, "missing_tables": missing, **_recorded_by(unknown)}
    if unknown or missing:
        return report | {"answer": "part", "reason": _NO_TABLE if missing else ""}
    return report | {"answer": "full"}


def _recorded_by(columns: list[str]) -> dict[str, list[str]]:
    """Returns the routes that record all of these columns, and their conditions."""
    fillers = [filler for filler in FILLED_BY if set(filler.columns) & set(columns)]
    common = [route for route in ROUTES if all(route in filler.routes for filler in fillers)]
    conditions = [filler.only_if for filler in fillers if filler.only_if]
    return {
        "recorded_by": common if fillers else [],
        "conditions": list(dict.fromkeys(conditions)),
    }
