"""The result of `syncline whatif`: a table, how well the model agrees with the recording, and what it assumes."""

from __future__ import annotations

import math

from syncline import terminal
from syncline.model.whatif import Outcome, Setting
from syncline.printable import json_text, printable
from syncline.report import Column, Report, Table

from .human import text
from .table import render as render_table

__all__ = ["REPORT", "as_json", "as_table", "remarks", "render", "unknown"]

_COLUMNS = (
    ("kind", "text", "measured; check: the replay at the recorded depth; what if: another one."),
    ("setting", "text", "Queue depth, or controller."),
    ("syncs", "count", "Number of syncs."),
    ("avg_ns", "ns", "Average latency of a sync."),
    ("p50_ns", "ns", "Median."),
    ("p90_ns", "ns", "90th percentile."),
    ("p99_ns", "ns", "99th percentile."),
    ("max_ns", "ns", "The slowest. All figures of a replay are means over its draws."),
    ("elapsed_ns", "ns", "From the start to the end of the last sync."),
    (
        "background_bytes_per_s",
        "bytes",
        "What threads without a sync wrote in a second of that time.",
    ),
    (
        "background_elapsed_ns",
        "ns",
        "Time in which they write what they wrote in the recording.",
    ),
)
REPORT = Report(
    "whatif", "What if", "", tuple(Column(*column) for column in _COLUMNS), "SELECT NULL"
)


def as_table(outcome: Outcome) -> Table:
    """Returns a row for each setting, with the columns of REPORT."""
    return Table([name for name, _, _ in _COLUMNS], [_row(one) for one in outcome.settings])


def _row(one: Setting) -> tuple[str | int | float | None, ...]:
    if one.unknown is not None:
        return (one.kind, one.name, *[None] * (len(_COLUMNS) - 2))
    percentiles = (round(one.percentile_ns(percent)) for percent in (50, 90, 99))
    per_s, elapsed = one.background_per_s, one.background_ns
    return (
        *(one.kind, one.name, len(one.draws_ns[0]), round(one.average_ns)),
        *(*percentiles, round(one.max_ns), round(one.end_ns)),
        None if per_s is None else round(per_s),
        None if elapsed is None else round(elapsed),
    )


def render(outcome: Outcome) -> str:
    """Renders the table, how well the check agrees, and the assumptions."""
    table = as_table(outcome)
    lines = render_table(table, REPORT).strip("\n").splitlines()[2:]
    agrees, *others = remarks(outcome) if len(outcome.settings) > 1 else ["", *remarks(outcome)]
    said = ["", *([agrees, ""] if agrees else []), *others]
    lines += [part for line in said for part in terminal.wrapped(line, terminal.width())]
    return "\n".join(lines) + "\n"


def remarks(outcome: Outcome) -> list[str]:
    """Returns how well the check agrees, if there is one, a line for each figure that is missing, and one for each assumption."""
    said = [check(outcome)] if len(outcome.settings) > 1 else []
    said += unknown(outcome)
    return said + [f"assumed: {printable(one)}" for one in outcome.assumptions]


def unknown(outcome: Outcome) -> list[str]:
    """Returns a line for each figure that is missing, and for what to do."""
    lines = [
        f"can't tell: {one.name}: {one.unknown}"
        for one in outcome.settings
        if one.unknown is not None
    ]
    if outcome.unknown is not None:
        said, hint = outcome.unknown
        lines += [f"can't tell: {said}", f"next: {hint}"]
    return lines


def check(outcome: Outcome) -> str:
    """Returns a sentence on the errors of the model of the device, and of the replay at the recorded depth."""
    real, again = outcome.settings[:2]
    device = outcome.model.device
    parts = [f"average {_error(again.average_ns, real.average_ns)}"]
    parts += [
        f"p{percent} {_error(again.percentile_ns(percent), real.percentile_ns(percent))}"
        for percent in (50, 99)
    ]
    return (
        f"Check, out of sample: {device.name} predicts how long requests at other depths, and in the other half of the time, are served"
        f" to {100 * (device.error or 0.0):.1f} % or better. With service times from the other half of the time, the replay at the"
        f" recorded {real.name} differs from what was measured by {', '.join(parts)}, with {len(real.draws_ns[0]):,} syncs."
    )


def _error(value: float, real: float) -> str:
    return f"{100 * (value / real - 1):+.1f} %" if real else text(value, "ns")


def as_json(outcome: Outcome) -> str:
    """Renders one object, with the latencies of all syncs."""
    table = as_table(outcome)
    settings = [
        dict(zip(table.columns, row, strict=True))
        | {"unknown": one.unknown, "latencies_ns": one.latencies_ns}
        for row, one in zip(table.rows, outcome.settings, strict=True)
    ]
    model = outcome.model
    head = {
        "device": model.recording.dev,
        "recorded_depth": model.depth,
        "covered_depths": model.covered,
        "device_models": [
            {
                "name": one.name,
                "kind": one.kind,
                "parallelism": one.parallelism,
                "error": None if one.error == math.inf else one.error,
                "contradicted": one.contradicted,
                "is_used": outcome.unknown is None and one is model.device,
            }
            for one in model.explanations
        ],
        "dispatch": outcome.discipline,
        "unknown": None if outcome.unknown is None else outcome.unknown[0],
        "next_step": None if outcome.unknown is None else outcome.unknown[1],
        "assumptions": outcome.assumptions,
        "settings": settings,
    }
    return json_text(head, indent=1) + "\n"
