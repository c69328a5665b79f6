"""The description of an input by `syncline inspect`, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from syncline.engine import Value
from syncline.report import Column, Report, Table
from syncline.report.failures import counted, sentence

from . import table
from .human import count, text

__all__ = ["render"]

_FORMATS = {
    "log": "{}",
    "trace": "a trace, of {}",
    "folder": "logs or traces of several runs, of {}",
    "tables": "columns, of {}",
    "dataset": "a dataset, of {}",
    "rows": "{}",
}
_KINDS = {"request": "requests with something to attribute", "bio": "bios of requests"}
# Maximum number of names. --format json has all of them.
_MOST = 3
_OTHERS = 8


def render(described: dict[str, Any]) -> str:
    """Renders one input as several tables."""
    parts = [
        _table(described["input"], [("fact", "text"), ("value", "prose")], _facts(described)),
        _events(described),
        _table(
            "Contents: those with the most syncs first",
            [("kind", "text"), ("count", "count"), ("with_syncs", "count"), ("top", "prose")],
            [
                (one["kind"], one["count"], one["with_syncs"], _top(one))
                for one in described["entities"]
            ],
        ),
        _table(
            "Confidence of the attribution of bios and calls to requests",
            [("kind", "text"), ("count", "count")]
            + [(confidence, "share") for confidence in ("exact", "inferred", "unknown")],
            [
                (_KINDS[one.pop("kind")], *one.values())
                for one in map(dict, described["attribution"])
            ],
        ),
        _losses(described),
        _failures(described),
        _unknown_columns(described),
        _table(
            "Reports",
            [
                ("report", "text"),
                ("answer", "text"),
                ("unknown", "prose"),
                ("recorded_by", "prose"),
            ],
            [_report(one) for one in described["reports"]],
        ),
    ]
    return "\n".join(part for part in parts if part)


def _table(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Value, ...]]
) -> str:
    described = tuple(Column(name, unit, "") for name, unit in columns)
    return table.render(
        Table([name for name, _ in columns], list(rows)),
        Report("inspect", title, "", described, ""),
        elsewhere="--format json",
    )


def _facts(described: dict[str, Any]) -> list[tuple[Value, ...]]:
    clock, span, facts = described["clock"], described["span"], dict(described["facts"])
    rows = [("format", _FORMATS[described["kind"]].format(described["format"] or "not known"))]
    read = described["inputs_read"] or []
    if [one["path"] for one in read] not in ([], [described["input"]]):
        rows.append(("files", ", ".join(f"{one['path']} ({one['source']})" for one in read)))
    if described["runs"] != 1:
        rows.append(("runs", text(described["runs"], "count")))
    rows += [(key.replace("_", " "), value) for key, value in facts.items()]
    rows.append(("clock", _clock(clock)))
    rows.append(("boot id", clock["boot_id"] or "not known"))
    rows.append(("time of day", _time_of_day(clock, span)))
    rows.append(("span", _span(span, described["runs"])))
    rows += [(f"not shown by {one}", text_) for one, text_ in described["hidden_losses"].items()]
    if described["granted"]:
        rows.append(("taken for granted", " ".join(described["granted"])))
    lines = described["lines"]
    # Binary formats have no lines.
    rows.append(("lines", text(lines, "count") if lines else "none" if lines == 0 else "not known"))
    return [tuple(row) for row in rows]


def _clock(clock: dict[str, Any]) -> str:
    name = clock["name"] or "not known"
    unit = f"; times are read as {clock['time_unit']}" if clock["time_unit"] else ""
    if clock["is_recorded"] is False and not name.startswith(("unknown", "not known")):
        return f"{name} by its format, the log does not record it{unit}"
    return f"{name}{unit}"


def _time_of_day(clock: dict[str, Any], span: dict[str, Any]) -> str:
    if clock["realtime_offset_ns"] is None:
        return "not known"
    if span["first_realtime_ns"] is None:
        return f"add {clock['realtime_offset_ns']} to a time to get ns since 1970"
    first = datetime.fromtimestamp(span["first_realtime_ns"] // 10**9, UTC)
    begin = f"begins {first:%Y-%m-%d %H:%M:%S} UTC"
    if clock["realtime_offset_ns"] == 0:
        return begin
    return f"{begin}; add {clock['realtime_offset_ns']} to a time to get ns since 1970"


def _span(span: dict[str, Any], runs: int) -> str:
    if span["duration_ns"] is None:
        return "not known"
    duration = text(span["duration_ns"], "ns")
    if span["first_ns"] is None:
        return f"{duration}, all {runs:,} runs together"
    return f"{duration}, from {text(span['first_ns'], 'time')} to {text(span['last_ns'], 'time')}"


def _events(described: dict[str, Any]) -> str:
    kinds = described["events"]
    if kinds is None:
        return "Events by kind: not known, the input has no events.\n"
    rows: list[tuple[Value, ...]] = [
        (kind, count, "")
        for kind, count in sorted(
            kinds.items(), key=lambda one: (one[0] == "other", -one[1], one[0])
        )
        if count
    ]
    others = described["other_events"]
    if rows and rows[-1][0] == "other":
        rows[-1] = (*rows[-1][:2], _others(others))
    total = sum(kinds.values())
    return _table(
        f"Events by kind: {total:,}",
        [("kind", "text"), ("count", "count"), ("what", "prose")],
        rows,
    )


def _others(others: list[dict[str, Any]] | None) -> str:
    what = "not used by any report"
    if not others:
        return what
    # If there are too many names to count each, the rest has no name.
    named = [
        f"{text(one['event'], 'text') or 'without a name'} {one['count']:,}"
        for one in others[:_OTHERS]
    ]
    rest = f", and {len(others) - _OTHERS:,} more" if len(others) > _OTHERS else ""
    return f"{what}: {', '.join(named)}{rest}"


def _top(one: dict[str, Any]) -> str:
    named = []
    for entity in one["top"][:_MOST]:
        name = entity["name"] or ""
        if entity["id"] is not None:
            name = f"{name} {entity['id']}".strip()
        counts = [
            count(entity[key], noun) + rest
            for key, noun, rest in (
                ("syncs", "sync", ""),
                ("unmatched_calls", "unmatched call", ""),
                ("bios", "bio", ""),
                ("requests", "request", " of the block layer"),
            )
            if entity[key]
        ]
        named.append(f"{text(name, 'text')} ({', '.join(counts)})")
    return ", ".join(named) or "not known"


def _losses(described: dict[str, Any]) -> str:
    if described["losses"] is None:
        return "Losses: not known, the input was converted without them.\n"
    rows = [
        (one["reason"], one["severity"], one["count"], one["example"] or one["meaning"])
        for one in described["losses"]
    ]
    if not rows:
        return "Losses: none recorded.\n"
    columns = [("reason", "text"), ("severity", "text"), ("count", "count"), ("example", "prose")]
    shown = _table(
        "Losses and unused events: `syncline report INPUT losses` explains them",
        columns,
        rows,
    )
    lines = described["unparsed_lines"] or []
    return shown + "".join(f"{text(line, 'text')}\n" for line in lines)


def _failures(described: dict[str, Any]) -> str:
    kinds = described["failures"]
    if not kinds:
        return "Failures: not known, the input holds no result of a sync or a bio.\n"
    failed = [kind for kind in kinds if kind["failed"]]
    if not failed:
        counts = " and ".join(counted(kind) for kind in kinds)
        return f"Failures: none of {counts}.\n"
    return "".join(f"Failures: {sentence(kind)}.\n" for kind in failed)


def _unknown_columns(described: dict[str, Any]) -> str:
    if not described["unknown_columns"] or not described["syncs"]:
        return ""
    rows = [
        (
            ", ".join(one["columns"]),
            one["known"],
            one["of"],
            ", ".join(one["recorded_by"]),
            one["reason"],
        )
        for one in described["unknown_columns"]
    ]
    columns = [
        ("columns", "prose"),
        ("known", "count"),
        ("of_syncs", "count"),
        ("recorded_by", "prose"),
        ("source_or_reason", "prose"),
    ]
    return _table("Columns that are not known for all syncs", columns, rows)


def _report(one: dict[str, Any]) -> tuple[Value, ...]:
    unknown = ", ".join([*one["unknown_columns"], *one["missing_tables"]])
    routes = f"route {' or '.join(one['recorded_by'])}" if one["recorded_by"] else ""
    conditions = ", ".join(one["conditions"])
    recorded_by = "; ".join(
        part for part in (one["reason"], ", ".join(filter(None, (routes, conditions)))) if part
    )
    return (one["report"], one["answer"], unknown, recorded_by)
