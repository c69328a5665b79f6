"""The result of `syncline whatif`: a table with what the model assumes, and a chart of the latencies."""

from __future__ import annotations

import math
from html import escape

from syncline import terminal
from syncline.model.whatif import Outcome, Setting
from syncline.printable import json_text, printable
from syncline.report import Column, Report, Table

from .human import text
from .table import render as render_table

__all__ = ["REPORT", "as_json", "as_svg", "as_table", "render"]

_COLUMNS = (
    ("kind", "text", "measured; check: the replay at the recorded depth; what if: another one."),
    ("setting", "text", "Queue depth, or controller."),
    ("syncs", "count", "Number of syncs."),
    ("avg_ns", "ns", "Average latency of a sync."),
    ("p50_ns", "ns", "Median."),
    ("p90_ns", "ns", "90th percentile."),
    ("p99_ns", "ns", "99th percentile."),
    ("max_ns", "ns", "The slowest."),
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
    said = ["", *([check(outcome), ""] if len(outcome.settings) > 1 else [])]
    said += unknown(outcome)
    said += [f"assumed: {printable(one)}" for one in outcome.assumptions]
    lines += [part for line in said for part in terminal.wrapped(line, terminal.width())]
    return "\n".join(lines) + "\n"


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


# Size of the chart and of its margins, in pixels.
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 900, 420, 60, 50, 20
_LEGEND = 220
# Colours of Okabe and Ito, which colour-blind people distinguish. Measured is black.
_COLOURS = ("#000000", "#999999", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def as_svg(outcome: Outcome) -> str:
    """Draws the share of syncs that are no slower than a latency, one line for each setting. The latency is logarithmic."""
    drawn = [(one, values) for one in outcome.settings if (values := one.latencies_ns)]
    values = [value for _, own in drawn for value in own if value > 0] or [1]
    low, high = math.log10(min(values)), math.log10(max(values))
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    right, bottom = _WIDTH - _LEGEND, _HEIGHT - _BOTTOM

    def x(value: float) -> float:
        return _LEFT + (math.log10(max(value, 1)) - low) / (high - low) * (right - _LEFT)

    def y(share: float) -> float:
        return bottom - share * (bottom - _TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        "<title>Share of syncs that are no slower than a latency</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<path d="M{_LEFT} {y(share):.1f}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{share:.0%}</text>')  # fmt: skip
    for tick in _ticks(low, high):
        parts.append(f'<path d="M{x(tick):.1f} {_TOP}V{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{escape(text(tick, "ns"))}</text>')  # fmt: skip
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 12}" text-anchor="middle">latency of a sync</text>')  # fmt: skip
    for place, (one, own) in enumerate(drawn):
        colour = _COLOURS[place % len(_COLOURS)]
        count = len(own)
        points = "".join(f"H{x(value):.1f}V{y((n + 1) / count):.1f}" for n, value in enumerate(own))
        dash = ' stroke-dasharray="6 3"' if place % 2 else ""
        parts.append(f'<path d="M{x(own[0]):.1f} {bottom}{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')  # fmt: skip
        row = _TOP + 10 + 20 * place
        parts.append(f'<path d="M{right + 12} {row}h24" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{right + 42}" y="{row + 4}">{escape(f"{one.kind}: {one.name}")}</text>')  # fmt: skip
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _ticks(low: float, high: float) -> list[float]:
    """Returns round latencies from low to high, which are logarithms."""
    found = [
        factor * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for factor in (1, 2, 5)
    ]
    inside = [tick for tick in found if low <= math.log10(tick) <= high]
    step = max(1, math.ceil(len(inside) / 8))
    return inside[::step]
