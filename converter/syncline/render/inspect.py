"""What `syncline inspect` tells of an input, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from syncline.engine import Value
from syncline.report import Column, Report, Table

from . import table
from .human import text

__all__ = ["render"]

_FORMATS = {
    "log": "{}",
    "trace": "a trace, of {}",
    "tables": "columns, of {}",
    "rows": "{}",
}
_EDGES = {"request": "requests", "bio": "bios of requests"}
# Shown by name; all are in --format json.
_MOST = 3
_OTHERS = 8


def render(told: dict[str, Any]) -> str:
    """One input: a table a question."""
    parts = [
        _table(told["input"], [("what", "text"), ("told", "prose")], _facts(told)),
        _events(told),
        _table(
            "What is in it: those with the most syncs first",
            [("what", "text"), ("number", "count"), ("that_sync", "count"), ("most", "prose")],
            [(one["what"], one["count"], one["syncing"], _most(one)) for one in told["seen"]],
        ),
        _table(
            "How surely bios and calls belong to requests",
            [("of", "text"), ("number", "count")]
            + [(word, "share") for word in ("exact", "inferred", "unknown")],
            [(_EDGES[one.pop("of")], *one.values()) for one in map(dict, told["attribution"])],
        ),
        _losses(told),
        _unknown(told),
        _table(
            "What the reports can tell of it",
            [
                ("report", "text"),
                ("answer", "text"),
                ("null", "prose"),
                ("what_would_tell_it", "prose"),
            ],
            [_answer(one) for one in told["reports"]],
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


def _facts(told: dict[str, Any]) -> list[tuple[Value, ...]]:
    clock, span, facts = told["clock"], told["span"], dict(told["facts"])
    rows = [("format", _FORMATS[told["kind"]].format(told["format"] or "not known"))]
    read = told["inputs_read"] or []
    if [one["path"] for one in read] not in ([], [told["input"]]):
        rows.append(("files", ", ".join(f"{one['path']} ({one['source']})" for one in read)))
    if told["runs"] != 1:
        rows.append(("runs", text(told["runs"], "count")))
    rows += [(key.replace("_", " "), value) for key, value in facts.items()]
    rows.append(("clock", _clock(clock)))
    rows.append(("boot id", clock["boot_id"] or "not known"))
    rows.append(("time of day", _time_of_day(clock, span)))
    rows.append(("span", _span(span, told["runs"])))
    lines = told["lines"]
    # Binary formats have none.
    rows.append(("lines", text(lines, "count") if lines else "none" if lines == 0 else "not known"))
    return [tuple(row) for row in rows]


def _clock(clock: dict[str, Any]) -> str:
    name = clock["name"] or "not known"
    unit = f"; times are read as {clock['unit']}" if clock["unit"] else ""
    if clock["is_told"] is False and not name.startswith(("unknown", "not known")):
        return f"{name} by its format, the log itself does not say{unit}"
    return f"{name}{unit}"


def _time_of_day(clock: dict[str, Any], span: dict[str, Any]) -> str:
    if clock["realtime_offset_ns"] is None:
        return "not known"
    if span["first_realtime_ns"] is None:
        return f"add {clock['realtime_offset_ns']} to a time for ns since 1970"
    first = datetime.fromtimestamp(span["first_realtime_ns"] // 10**9, UTC)
    told = f"begins {first:%Y-%m-%d %H:%M:%S} UTC"
    if clock["realtime_offset_ns"] == 0:
        return told
    return f"{told}; add {clock['realtime_offset_ns']} to a time for ns since 1970"


def _span(span: dict[str, Any], runs: int) -> str:
    if span["length_ns"] is None:
        return "not known"
    length = text(span["length_ns"], "ns")
    if span["first_ns"] is None:
        return f"{length}, all {runs:,} runs together"
    return f"{length}, from {text(span['first_ns'], 'time')} to {text(span['last_ns'], 'time')}"


def _events(told: dict[str, Any]) -> str:
    kinds = told["events"]
    if kinds is None:
        return "Events by kind: not known, it holds none.\n"
    rows: list[tuple[Value, ...]] = [
        (kind, count, "")
        for kind, count in sorted(
            kinds.items(), key=lambda one: (one[0] == "other", -one[1], one[0])
        )
        if count
    ]
    others = told["other_events"]
    if rows and rows[-1][0] == "other":
        rows[-1] = (*rows[-1][:2], _others(others))
    total = sum(kinds.values())
    return _table(
        f"Events by kind: {total:,}",
        [("kind", "text"), ("count", "count"), ("what", "prose")],
        rows,
    )


def _others(others: list[dict[str, Any]] | None) -> str:
    what = "that no report uses"
    if not others:
        return what
    # What were too many names to keep apart has none.
    named = [
        f"{text(one['event'], 'text') or 'without a name'} {one['count']:,}"
        for one in others[:_OTHERS]
    ]
    rest = f", and {len(others) - _OTHERS:,} more" if len(others) > _OTHERS else ""
    return f"{what}: {', '.join(named)}{rest}"


def _most(one: dict[str, Any]) -> str:
    named = []
    for thing in one["most"][:_MOST]:
        name = thing["name"] or ""
        if thing["number"] is not None:
            name = f"{name} {thing['number']}".strip()
        counts = [
            f"{thing[key]:,} {noun}{'s' * (thing[key] > 1)}"
            for key, noun in (("syncs", "sync"), ("unmatched_calls", "lone call"), ("bios", "bio"))
            if thing[key]
        ]
        named.append(f"{text(name, 'text')} ({', '.join(counts)})")
    return ", ".join(named) or "not told"


def _losses(told: dict[str, Any]) -> str:
    if told["losses"] is None:
        return "What was lost: not known, it was converted without its losses.\n"
    rows = [
        (one["reason"], one["severity"], one["count"], one["example"] or one["meaning"])
        for one in told["losses"]
    ]
    if not rows:
        return "What was lost: nothing that is known of.\n"
    columns = [("reason", "text"), ("severity", "text"), ("count", "count"), ("example", "prose")]
    shown = _table(
        "What was lost or not used: `syncline report INPUT losses` says what it means",
        columns,
        rows,
    )
    lines = told["unparsed"] or []
    return shown + "".join(f"{text(line, 'text')}\n" for line in lines)


def _unknown(told: dict[str, Any]) -> str:
    if not told["unknown"] or not told["syncs"]:
        return ""
    rows = [
        (", ".join(one["columns"]), one["known"], one["of"], ", ".join(one["routes"]), one["why"])
        for one in told["unknown"]
    ]
    columns = [
        ("columns", "prose"),
        ("known", "count"),
        ("of_syncs", "count"),
        ("routes_that_tell_it", "prose"),
        ("by", "prose"),
    ]
    return _table("What is not known of all syncs", columns, rows)


def _answer(one: dict[str, Any]) -> tuple[Value, ...]:
    null = ", ".join([*one["null"], *one["tables"]])
    routes = f"route {' or '.join(one['routes'])}" if one["routes"] else ""
    conditions = ", and ".join(one["only_if"])
    told = "; ".join(
        part for part in (one["why"], ", ".join(filter(None, (routes, conditions)))) if part
    )
    return (one["report"], one["answer"], null, told)
