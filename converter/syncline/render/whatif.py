"""The result of `syncline whatif`: a table with what the model assumes, and a chart of the latencies."""

from __future__ import annotations

import math
from html import escape

from syncline import terminal
from syncline.model.device import DISCIPLINES
from syncline.model.whatif import Outcome, Setting
from syncline.printable import json_text, printable
from syncline.report import Column, Report, Table

from .human import text
from .table import render as render_table

__all__ = ["REPORT", "as_json", "as_svg", "as_table", "render"]

_COLUMNS = (
    ("kind", "text", "measured; check: the replay at the recorded depth; what if: another one."),
    ("setting", "text", "Queue depth, or controller."),
    ("syncs", "count", "Number of syncs; of replays, in all draws."),
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
    percentiles = (round(one.percentile_ns(percent)) for percent in (50, 90, 99))
    per_s, elapsed = one.background_per_s, one.background_ns
    return (
        *(one.kind, one.name, len(one.latencies_ns), round(one.average_ns)),
        *(*percentiles, one.latencies_ns[-1], round(one.end_ns)),
        None if per_s is None else round(per_s),
        None if elapsed is None else round(elapsed),
    )


def render(outcome: Outcome) -> str:
    """Renders the table, how well the check agrees, and the assumptions."""
    table = as_table(outcome)
    lines = render_table(table, REPORT).strip("\n").splitlines()[2:]
    said = ["", check(outcome), ""]
    said += [f"assumed: {printable(one)}" for one in outcome.assumptions]
    lines += [part for line in said for part in terminal.wrapped(line, terminal.width())]
    return "\n".join(lines) + "\n"


def check(outcome: Outcome) -> str:
    """Returns a sentence on the error of the replay at the recorded depth."""
    real, again = outcome.settings[:2]
    parts = [f"average {_error(again.average_ns, real.average_ns)}"]
    parts += [
        f"p{percent} {_error(again.percentile_ns(percent), real.percentile_ns(percent))}"
        for percent in (50, 99)
    ]
    said = (
        f"the replay at the recorded {real.name} differs from what was measured by"
        f" {', '.join(parts)}, with {len(real.latencies_ns):,} syncs."
    )
    if outcome.discipline == DISCIPLINES[0]:
        return f"Check: {said}"
    return (
        f"Check, with the dispatch {outcome.discipline}: {said} Where the recording was made with another one, this is not only"
        " the error of the model."
    )


def _error(value: float, real: float) -> str:
    return f"{100 * (value / real - 1):+.1f} %" if real else text(value, "ns")


def as_json(outcome: Outcome) -> str:
    """Renders one object, with the latencies of all syncs."""
    table = as_table(outcome)
    settings = [
        dict(zip(table.columns, row, strict=True)) | {"latencies_ns": one.latencies_ns}
        for row, one in zip(table.rows, outcome.settings, strict=True)
    ]
    model = outcome.model
    head = {
        "device": model.recording.dev,
        "recorded_depth": model.depth,
        "parallelism": model.parallelism,
        "dispatch": outcome.discipline,
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
    values = [value for one in outcome.settings for value in one.latencies_ns if value > 0] or [1]
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
    for place, one in enumerate(outcome.settings):
        colour = _COLOURS[place % len(_COLOURS)]
        count = len(one.latencies_ns)
        points = "".join(f"H{x(value):.1f}V{y((n + 1) / count):.1f}" for n, value in enumerate(one.latencies_ns))  # fmt: skip
        dash = ' stroke-dasharray="6 3"' if place % 2 else ""
        parts.append(f'<path d="M{x(one.latencies_ns[0]):.1f} {bottom}{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')  # fmt: skip
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
