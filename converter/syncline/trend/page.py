"""The history of metrics as one HTML page: a chart for each series, in which each run is a link."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from syncline.dataset.layout import Entry
from syncline.printable import printable
from syncline.render.human import text

from .history import Series
from .text import finding_text, last_text, title

__all__ = ["render"]

_WIDTH, _HEIGHT = 900, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 20, 16, 34
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:960px;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.05rem;margin:2rem 0 .3rem}ul{margin:.3rem 0;padding-left:1.2rem}
svg{width:100%;height:auto}svg text{font-size:12px;fill:#57606a}.line{fill:none;stroke:#8c959f;stroke-width:1}
.run{fill:#0969da}.run:hover,a:focus .run{fill:#000}.level{stroke:#1b1f24;stroke-width:2}.axis{stroke:#d0d7de}
.regression{stroke:#b35900}.improvement{stroke:#1a7f37}.change{stroke-width:2;stroke-dasharray:4 3}
.note{color:#57606a}table{border-collapse:collapse}td,th{padding:.15rem .8rem .15rem 0;text-align:left}
td.n{text-align:right;font-variant-numeric:tabular-nums}details{margin:.4rem 0}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}svg text,.note{fill:#9198a1;color:#9198a1}
.level{stroke:#e6edf3}.axis{stroke:#3d444d}.run{fill:#4493f8}a{color:#4493f8}.run:hover,a:focus .run{fill:#fff}}
"""


def render(
    found: Sequence[Series], left_out: Sequence[str], dataset: str, page: Path, root: str | None
) -> str:
    """Renders the page.

    Args:
        dataset: as the user names it.
        page: where the page will be, for relative links.
        root: the folder of the dataset; None if it is in an object store.
    """
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>Trend of {_safe(dataset)}</title><style>{_STYLE}</style>",
        f"<h1>Trend of {_safe(dataset)}</h1>",
    ]
    parts += [f"<p class=note>Warning: {_safe(one)}</p>" for one in left_out]
    for series in found:
        links = [_link(entry, page, root) for entry in series.entries]
        parts += [f"<h2>{_safe(title(series))}</h2>", _said(series, links), _chart(series, links)]
        parts.append(_table(series, links))
    parts.append("</html>\n")
    return "".join(parts)


def _safe(value: str) -> str:
    return html.escape(printable(value), quote=True)


def _link(entry: Entry, page: Path, root: str | None) -> str | None:
    """Returns where a run leads: its fact `url`, or else its partition."""
    url = entry.facts.get("url", "")
    # Another scheme could run a script.
    if url.startswith(("https://", "http://")):
        return html.escape(url, quote=True)
    if root is None:
        return None
    folder = os.path.relpath(Path(root, entry.partition), page.absolute().parent)
    return html.escape(quote(folder) + "/", quote=True)


def _linked(content: str, link: str | None) -> str:
    return f'<a href="{link}">{content}</a>' if link else content


def _said(series: Series, links: list[str | None]) -> str:
    if series.too_few:
        return f"<p class=note>Too few runs to find a change: {_safe(series.too_few)}.</p>"
    items = "".join(
        f"<li>{_linked(_safe(finding_text(series, one)), links[one.start])}</li>"
        for one in series.findings
    )
    last = last_text(series)
    return (
        (f"<ul>{items}</ul>" if items else "<p>No change found.</p>")
        + (f"<p class=note>The {series.skipped:,} oldest runs were not searched.</p>" if series.skipped else "")
        + (f"<p>{_safe(last[:1].upper() + last[1:])}.</p>" if last else "")
    )  # fmt: skip


def _chart(series: Series, links: list[str | None]) -> str:
    values, count = series.values, len(series.values)
    top = max(values) * 1.05 or 1.0
    bottom = min(0.0, min(values) * 1.05)

    def x(index: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (index + 0.5) / count

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (top - value) / (top - bottom)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role=img aria-label="{_safe(title(series))}">']
    for share in (0, 0.5, 1):
        value = bottom + (top - bottom) * share
        parts.append(
            f'<line class=axis x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
            f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor=end>{_safe(text(value, series.unit))}</text>'
        )
    for index, anchor in ((0, "start"), (count - 1, "end")):
        day = series.entries[index].day or ""
        at = _LEFT if anchor == "start" else _WIDTH - _RIGHT
        parts.append(f'<text x="{at}" y="{_HEIGHT - 10}" text-anchor={anchor}>{_safe(day)}</text>')
    points = " ".join(f"{x(index):.1f},{y(value):.1f}" for index, value in enumerate(values))
    parts.append(f'<polyline class=line points="{points}"/>')
    for first, after, left, right in _levels(series):
        parts.append(
            f'<line class=level x1="{x(first - 0.5):.1f}" x2="{x(after - 0.5):.1f}" y1="{y(left):.1f}" y2="{y(right):.1f}"/>'
        )
    for one in series.findings:
        verdict = one.row.verdict if one.row.verdict in ("regression", "improvement") else "axis"
        for place in {one.start, one.end} if one.kind == "episode" else {one.start}:
            border = x(place - 0.5)
            parts.append(
                f'<line class="change {verdict}" x1="{border:.1f}" x2="{border:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
            )
    for index, (entry, value) in enumerate(zip(series.entries, values, strict=True)):
        point = (
            f'<circle class=run cx="{x(index):.1f}" cy="{y(value):.1f}" r="4">'
            f"<title>{_safe(_run_text(series, entry, value))}</title></circle>"
        )
        parts.append(_linked(point, links[index]))
    return "".join([*parts, "</svg>"])


def _levels(series: Series) -> list[tuple[int, int, float, float]]:
    """Returns each level: its first run, the run after its last one, and its height at both."""
    found = [one for one in series.findings if one.row.base is not None and one.row.new is not None]
    if not found:
        mean = sum(series.values) / len(series.values)
        return [(0, len(series.values), mean, mean)]
    lines: list[tuple[int, int, float, float]] = []
    at, level = 0, found[0].row.base or 0.0
    for one in found:
        base, new = one.row.base or 0.0, one.row.new or 0.0
        if one.start > at:
            lines.append((at, one.start, level, level))
        if one.kind == "drift":
            lines.append((one.start, one.end, base, new))
        elif one.kind == "episode":
            lines.append((one.start, one.end, new, new))
        at = one.start if one.kind == "step" else one.end
        level = base if one.kind == "episode" else new
    if at < len(series.values):
        lines.append((at, len(series.values), level, level))
    return lines


def _run_text(series: Series, entry: Entry, value: float) -> str:
    facts = ", ".join(f"{key}={told}" for key, told in sorted(entry.facts.items()) if key != "url")
    return f"{entry.day} {entry.run}: {text(value, series.unit)}" + (f" ({facts})" if facts else "")


def _table(series: Series, links: list[str | None]) -> str:
    rows = []
    for entry, value, link in zip(series.entries, series.values, links, strict=True):
        facts = ", ".join(f"{key}={told}" for key, told in sorted(entry.facts.items()) if key != "url")  # fmt: skip
        rows.append(
            f"<tr><td>{_safe(entry.day or '')}<td>{_linked(_safe(entry.run), link)}"
            f"<td class=n>{_safe(text(value, series.unit))}<td>{_safe(facts)}"
        )
    return (
        f"<details><summary>{len(rows):,} runs</summary><table>"
        f"<tr><th>day<th>run<th>{_safe(series.metric)}<th>facts{''.join(rows)}</table></details>"
    )
