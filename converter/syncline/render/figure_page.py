"""One HTML page with a table, sentences and charts, as `whatif --html` and `model predict --html` write it."""

from __future__ import annotations

import html
from collections.abc import Sequence

from syncline.printable import printable
from syncline.report import Report, Table

from .chart import Chart, as_svg
from .human import RIGHT, cells, header

__all__ = ["as_page"]

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:960px;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem}svg{width:100%;height:auto;margin-top:1rem}ul{padding-left:1.2rem}
.wide{overflow-x:auto}table{border-collapse:collapse}td,th{padding:.15rem .7rem .15rem 0;text-align:left}td{white-space:nowrap}th{vertical-align:bottom}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}th{font-weight:600;border-bottom:1px solid #d0d7de}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}th{border-color:#3d444d}}
@media print{svg,tr{break-inside:avoid}.wide{overflow:visible}body{font-size:11px}}
"""


def as_page(
    title: str, table: Table, report: Report, said: Sequence[str], charts: Sequence[Chart]
) -> str:
    """Renders the page. It loads nothing, and shows the same without a network.

    Args:
        said: sentences below the table: how far to trust it, what is missing, what is assumed.
    """
    columns, rows = cells(table, report)
    help_of = {one.name: one.text for one in report.columns}
    kinds = [' class="n"' if unit in RIGHT else "" for _, unit in columns]
    heads = "".join(
        f'<th scope="col"{kind} title="{_safe(help_of.get(name, ""))}">{_safe(header(name, unit))}</th>'
        for (name, unit), kind in zip(columns, kinds, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{_safe(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    )  # fmt: skip
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{_safe(title)}</title><style>{_STYLE}</style><main><h1>{_safe(title)}</h1>"
        f"<div class=wide tabindex=0><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
        f"<ul>{''.join(f'<li>{_safe(one)}</li>' for one in said)}</ul>"
        f"{as_svg(charts)}</main></html>\n"
    )


def _safe(value: str) -> str:
    return html.escape(printable(value), quote=True)
