"""Describes an input from the metadata of its runs, `syncline_meta`: facts, clock, time span, events and tables."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from . import covered
from .marks import realtime_offset, span
from .run import run_query
from .tables import SqlEngine

__all__ = [
    "Meta",
    "clock",
    "count_runs",
    "events",
    "facts",
    "missing_tables",
    "other_events",
    "read_meta",
    "shows_syncs",
    "time_span",
    "total",
    "value",
]

_TABLE = re.compile(r"\bsyncline_(\w+)")

# Key -> values, one for each run that has it.
Meta = dict[str, list[str]]


def read_meta(engine: SqlEngine) -> Meta:
    """Reads the values of each key, one for each run that has it."""
    meta: Meta = defaultdict(list)
    for key, text in run_query(engine, "SELECT key, value FROM syncline_meta ORDER BY run").rows:
        if text not in (None, ""):
            meta[str(key)].append(str(text))
    return dict(meta)


def shows_syncs(meta: Meta) -> bool:
    """Returns whether a run has an event of a sync or a sync call. If none has, whether there were syncs is not known."""
    unseen = meta.get("syncs_recorded", []).count("no")
    return not unseen or unseen < len(meta.get("schema_version", []))


def count_runs(engine: SqlEngine) -> int:
    """Returns the number of runs."""
    sql = "SELECT COUNT(DISTINCT run) FROM syncline_meta"
    runs = run_query(engine, sql).rows[0][0]
    return int(runs or 0)


def value(meta: Meta, key: str) -> str | None:
    """Returns the value of a key; all values if the runs differ."""
    values = list(dict.fromkeys(meta.get(key, [])))
    return "; ".join(values) or None


def total(meta: Meta, key: str) -> int | None:
    """Returns the sum of a number over the runs; None if no run has it."""
    return sum(map(int, meta[key])) if key in meta else None


def facts(meta: Meta, manifest: dict[str, Any]) -> dict[str, str]:
    """Returns the known facts about the recorder and the machine."""
    found = {
        key: value(meta, key)
        for key in ("recorder", "kernel", "host", "request_filter", *covered.KEYS)
    }
    found |= {key: str(manifest[key]) for key in ("route", "cannot_see") if key in manifest}
    found["host"] = found["host"] or manifest.get("host")
    found["kernel"] = found["kernel"] or manifest.get("kernel")
    return {key: text for key, text in found.items() if text}


def clock(
    meta: Meta, core: dict[str, Any] | None, manifest: dict[str, Any], runs: int
) -> dict[str, Any]:
    """Describes the clock of the times."""
    offset = _offset(meta, manifest, runs)
    is_recorded = all(one["clock_is_recorded"] for one in core["inputs"]) if core else None
    return {
        "name": value(meta, "clock"),
        # Null for an input that was already converted: the tables do not store it.
        "is_recorded": is_recorded,
        "time_unit": value(meta, "time_unit"),
        "boot_id": value(meta, "boot_id") or manifest.get("boot_id"),
        "realtime_offset_ns": offset,
    }


def _offset(meta: Meta, manifest: dict[str, Any], runs: int) -> int | None:
    """Returns what to add to a time to get ns since 1970."""
    name = value(meta, "clock")
    if runs != 1:
        return None
    offset = realtime_offset(name, value(meta, "realtime_offset_ns"))
    if offset is None and name == "boottime":
        return manifest.get("realtime_offset_ns")
    return offset


def time_span(engine: SqlEngine, meta: Meta, manifest: dict[str, Any], runs: int) -> dict[str, Any]:
    """Describes the time span. Several runs may have different clocks, so they have only a total duration."""
    if runs == 1:
        first, last = span(engine)
        offset = _offset(meta, manifest, runs)
        known = first is not None and last is not None
        return {
            "first_ns": first,
            "last_ns": last,
            "duration_ns": last - first if known else None,  # type: ignore[operator]
            "first_realtime_ns": first + offset if known and offset is not None else None,  # type: ignore[operator]
        }
    ends = [meta.get(key, []) for key in ("first_ts_ns", "last_ts_ns")]
    whole = all(len(values) == runs for values in ends)
    duration = sum(map(int, ends[1])) - sum(map(int, ends[0])) if whole else None
    return {"first_ns": None, "last_ns": None, "duration_ns": duration, "first_realtime_ns": None}


def events(meta: Meta) -> dict[str, int] | None:
    """Returns the number of events of each kind; None if they were not counted."""
    kinds = {
        key.removeprefix("events."): total(meta, key) for key in meta if key.startswith("events.")
    }
    return {key: count for key, count in kinds.items() if count is not None} or None


def other_events(core: dict[str, Any] | None) -> list[dict[str, Any]] | None:
    """Returns the number of events of each name that no report uses."""
    if core is None or core["other_events"] is None:
        return None
    return [{"event": name, "count": count} for name, count in core["other_events"]]


def missing_tables(meta: Meta) -> set[str]:
    """Returns the tables that a run does not have: that they are empty has no meaning."""
    whole = {"sync", "bio", "call", "wait", "journal", "loss", "mark", "meta"}
    return {
        table
        for recorded in meta.get("tables", [])
        for table in whole - set(_TABLE.findall(recorded))
    }
