"""Charts in SVG: lines, steps and dots over two axes, as `whatif` and `model predict` draw them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from syncline.printable import printable

from .human import text

__all__ = ["Axis", "Chart", "Line", "as_svg"]

# Sizes in pixels. The legend stands to the right of the chart, and the title above it.
_WIDTH, _HEIGHT = 900, 340
_LEFT, _TOP, _BOTTOM, _LEGEND = 80, 34, 46, 250
# A letter of the legend is this wide. A longer name is cut, and whole in the tooltip.
_LETTER, _ROW = 6.4, 20
# Colours of Okabe and Ito, which colour-blind people distinguish. Neighbours also differ in their dashes.
_COLOURS = ("#000000", "#999999", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DASHES = (("", "6 3"), ("12 3 2 3", "1 2"))
# So many points are marked by themselves.
_MOST_LARGE = 40
# A share of the axis that stays free beyond the values, so that no dot lies on the frame.
_ROOM = 0.03
# A scale with fewer labels cannot be read.
_FEW = 3
# Values that differ by less are one: no unit has such fractions, and ticks between them would all have one label.
_SMALLEST = 1e-6
# More points of a line than these are thinned out, with the extremes kept: nobody sees the difference.
_MOST_POINTS = 2_000

Scale = Callable[[float], float]


@dataclass(frozen=True)
class Axis:
    """What an axis shows. `unit` is one of `human.text`. `ticks`: where the labels are; None for round values.

    A logarithmic axis leaves out what is not above 0.
    """

    name: str
    unit: str
    scale: Literal["linear", "log"] = "linear"
    ticks: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Line:
    """Points in the order of x, drawn as a line, as steps (a value holds until the next point), as dots, or as a level across the chart.

    A point whose y is None breaks a line: what is between its neighbours is not known.
    """

    name: str
    points: Sequence[tuple[float, float | None]]
    shape: Literal["line", "steps", "dots", "level"] = "line"


@dataclass(frozen=True)
class Chart:
    """Lines over two axes. `notes` are sentences below the title."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    notes: Sequence[str] = ()


def as_svg(charts: Sequence[Chart]) -> str:
    """Draws charts below each other, as one picture. A chart without any point says so."""
    parts = []
    top = 0
    for one in charts:
        drawn, height = _chart(one)
        parts += [f'<g transform="translate(0 {top})">', *drawn, "</g>"]
        top += height
    names = "; ".join(one.title for one in charts)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" role="img"'
            ' font-family="sans-serif" font-size="12">',
            f"<title>{_safe(names)}</title>",
            f'<rect width="{_WIDTH}" height="{top}" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _safe(value: str) -> str:
    return escape(printable(value))


def _chart(chart: Chart) -> tuple[list[str], int]:
    """Returns the elements of a chart, and its height."""
    lines = [_inside(chart, one) for one in chart.lines]
    points = [point for one in lines for point in _known(one.points)]
    top = _TOP + _ROW * len(chart.notes)
    height = max(_HEIGHT + _ROW * len(chart.notes), top + _ROW * (len(lines) + 1))
    right, bottom = _WIDTH - _LEGEND, height - _BOTTOM
    parts = [f'<text x="{_LEFT}" y="20" font-size="14" font-weight="bold">{_safe(chart.title)}</text>']  # fmt: skip
    for row, note in enumerate(chart.notes):
        parts.append(f'<text x="{_LEFT}" y="{38 + _ROW * row}" fill="#555">{_safe(note)}</text>')
    if not points:
        parts.append(f'<text x="{_LEFT}" y="{top + 20}">There is nothing to draw.</text>')
        return parts, top + 40
    across = [x for one in lines if one.shape != "level" for x, _ in _known(one.points)] or [1.0]
    x, x_ticks = _scaled(chart.x, across, _LEFT, right)
    y, y_ticks = _scaled(chart.y, [y for _, y in points], bottom, top)
    for tick in y_ticks:
        parts.append(f'<path d="M{_LEFT} {y(tick):.1f}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{_label(tick, chart.y)}</text>')  # fmt: skip
    for tick in x_ticks:
        parts.append(f'<path d="M{x(tick):.1f} {top}V{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{_label(tick, chart.x)}</text>')  # fmt: skip
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{bottom + 36}" text-anchor="middle">{_safe(chart.x.name)}</text>')  # fmt: skip
    middle = (top + bottom) / 2
    parts.append(f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{_safe(chart.y.name)}</text>')  # fmt: skip
    for place, one in enumerate(lines):
        parts += _drawn(one, place, x, y, right)
        parts += _named(one, place, right + 12, top + 10 + _ROW * place)
    return parts, height


def _inside(chart: Chart, line: Line) -> Line:
    """Leaves out the points that a logarithmic axis does not have."""
    return Line(
        line.name,
        [
            (x, y)
            for x, y in line.points
            if (x > _SMALLEST or chart.x.scale != "log" or line.shape == "level")
            and (y is None or y > _SMALLEST or chart.y.scale != "log")
        ],
        line.shape,
    )


def _scaled(axis: Axis, values: Sequence[float], begin: float, end: float) -> tuple[Scale, list[float]]:  # fmt: skip
    """Returns where a value is between two pixels, and the ticks."""
    is_log = axis.scale == "log"
    low, high = min(values), max(values)
    if is_log:
        low, high = math.log10(low), math.log10(high)
        room = 0.5 if high - low < _SMALLEST else (high - low) * _ROOM
        low, high = low - room, high + room
    else:
        low, high = min(low, 0.0), max(high, 0.0)
        high = low + 1 if high - low < _SMALLEST else high + (high - low) * _ROOM

    def place(value: float) -> float:
        at = math.log10(value) if is_log else value
        return begin + (at - low) / (high - low) * (end - begin)

    if axis.ticks is not None:
        return place, list(axis.ticks)
    return place, _log_ticks(low, high) if is_log else _ticks(low, high, axis.unit)


def _log_ticks(low: float, high: float) -> list[float]:
    """Returns round values from low to high, which are logarithms."""
    found = [
        factor * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for factor in (1, 2, 5)
    ]
    inside = [tick for tick in found if low <= math.log10(tick) <= high]
    if len(inside) < _FEW:
        # Within less than a decade, equal steps are rounder.
        return [tick for tick in _ticks(10.0**low, 10.0**high, "") if tick > 0]
    return inside[:: max(1, math.ceil(len(inside) / 8))]


def _ticks(low: float, high: float, unit: str) -> list[float]:
    """Returns about five round values from low to high. Bytes are round as multiples of a power of 1024."""
    whole = 1.0
    if unit == "bytes":
        while high - low > 1024 * whole:
            whole *= 1024
    rough = (high - low) / whole / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = whole * next(one * power for one in (1, 2, 5, 10) if one * power >= rough)
    if unit == "count":
        step = max(step, 1.0)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _label(value: float, axis: Axis) -> str:
    if axis.unit == "share":
        return f"{value:.0%}"
    return _safe(text(round(value) if value == round(value) else value, axis.unit))


def _drawn(line: Line, place: int, x: Scale, y: Scale, right: float) -> Iterable[str]:
    style, colour = _style(line, place), _COLOURS[place % len(_COLOURS)]
    if line.shape == "level":
        for _, b in _known(line.points):
            yield f'<path d="M{_LEFT} {y(b):.1f}H{right}" {style}/>'
        return
    parts = [[(x(a), y(b)) for a, b in part] for part in _unbroken(line.points)]
    has_few = sum(map(len, parts)) <= _MOST_LARGE
    for part in parts:
        if line.shape == "dots":
            # Rings, so that a dot on a point of another line hides nothing.
            look = f'r="4.5" fill="none" stroke="{colour}" stroke-width="2"' if has_few else f'r="2.5" fill="{colour}" fill-opacity="0.6"'  # fmt: skip
            for a, b in _thinned(part):
                yield f'<circle cx="{a:.1f}" cy="{b:.1f}" {look}/>'
            continue
        (first_x, first_y), *rest = _thinned(part)
        how = "H{0:.1f}V{1:.1f}" if line.shape == "steps" else "L{0:.1f} {1:.1f}"
        path = "".join(how.format(a, b) for a, b in rest)
        yield f'<path d="M{first_x:.1f} {first_y:.1f}{path}" {style}/>'
        if line.shape == "line" and has_few:
            for a, b in part:
                yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>'


def _known(points: Iterable[tuple[float, float | None]]) -> list[tuple[float, float]]:
    return [(a, b) for a, b in points if b is not None]


def _unbroken(points: Iterable[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Divides points where one has no y."""
    parts: list[list[tuple[float, float]]] = [[]]
    for a, b in points:
        if b is None:
            parts.append([])
        else:
            parts[-1].append((a, b))
    return [part for part in parts if part]


def _style(line: Line, place: int) -> str:
    # From the ninth line on, a colour comes again.
    usual = _DASHES[min(place // len(_COLOURS), 1)][place % 2]
    dash = "2 3" if line.shape == "level" else usual
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'fill="none" stroke="{_COLOURS[place % len(_COLOURS)]}" stroke-width="2"{dashes}'


def _named(line: Line, place: int, left: float, middle: float) -> Iterable[str]:
    """The line of the legend."""
    if line.shape == "dots":
        yield f'<circle cx="{left + 12}" cy="{middle}" r="3" fill="{_COLOURS[place % len(_COLOURS)]}"/>'
    else:
        yield f'<path d="M{left} {middle}h24" {_style(line, place)}/>'
    room = int((_LEGEND - 12 - 42) / _LETTER)
    name = printable(line.name)
    short = name if len(name) <= room else f"{name[: room - 1]}…"
    yield f'<text x="{left + 30}" y="{middle + 4}">{escape(short)}<title>{escape(name)}</title></text>'


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Returns the first, the last, the lowest and the highest point of each column of pixels, which look like all of them."""
    if len(points) <= _MOST_POINTS:
        return list(points)
    columns: dict[int, list[int]] = {}
    left, right = points[0][0], points[-1][0]
    width = max((right - left) / (_MOST_POINTS / 4), 1e-9)
    for number, (a, b) in enumerate(points):
        kept = columns.setdefault(int((a - left) / width), [number] * 4)
        kept[3] = number
        if b < points[kept[1]][1]:
            kept[1] = number
        if b > points[kept[2]][1]:
            kept[2] = number
    return [points[number] for kept in columns.values() for number in sorted({*kept})]
