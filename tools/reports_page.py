"""Writes docs/reference/reports.md from the head comments of sql/reports/: `python -m tools.reports_page`."""

from __future__ import annotations

import re
from pathlib import Path

from syncline.report import catalogue
from syncline.report.catalogue import UNITS, Report

from tools.columns import in_cell

# Reports with a page of their own.
MORE = {"groups": "Groups", "phases": "Phases", "slow-writes": "Slow writes"}
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "reports.md"
HEAD = """\
<!-- Generated from sql/reports/ by `python -m tools.reports_page`. -->

# Reports

If the answer of `syncline report INPUT` raises a question, one of these reports has the details: `syncline report INPUT NAME...` prints
them. Each is one SELECT on the [tables](tables.md), in a file of `sql/reports/`, so you can copy one and change it.

A table for people shows a column without its `_ns`, and without underscores: `latency_sum_ns` is `latency sum`. CSV and
JSON have the names below. `-` is unknown, in CSV an empty cell, in JSON null. With `--format json`, several reports are one object with a key for each.

| report | question |
|---|---|
"""


def text() -> str:
    """Returns the page."""
    reports = [catalogue.load(name) for name in catalogue.names()]
    index = "".join(
        f"| [`{one.name}`](#{one.name}) | {_cell(_question(one))} |\n" for one in reports
    )
    units = "".join(f"| {name} | {_cell(meaning)} |\n" for name, meaning in UNITS.items())
    parts = [_section(one) for one in reports]
    return f"{HEAD}{index}\n| unit | meaning |\n|---|---|\n{units}\n" + "\n".join(parts)


def _question(report: Report) -> str:
    """The title without the name of the report."""
    _, _, question = report.title.partition(": ")
    return question[:1].upper() + question[1:]


def _section(report: Report) -> str:
    rows, below = "", ""
    for one in report.columns:
        text, rest = in_cell(one.text)
        rows += f"| {one.name} | {one.unit} | {_cell(text)} |\n"
        below += f"- **{one.name}**: {rest}\n" if rest else ""
    description = f"{_lists(report.description)}\n\n" if report.description else ""
    if title := MORE.get(report.name):
        description += f"More: [{title}]({report.name}.md).\n\n"
    return (
        f"## {report.name}\n\nThis report shows {report.title.partition(': ')[2]}\n\n{description}"
        f"| column | unit | meaning |\n|---|---|---|\n{rows}{below and chr(10)}{below}"
    )


def _lists(description: str) -> str:
    """The description with each list of terms as a list in Markdown, and a line before each list."""
    found: list[str] = []
    for line in description.split("\n"):
        term = re.fullmatch(r"  (\S.*?)  +(\S.*)", line)
        if (term or line.startswith("* ")) and not found[-1].startswith(("* ", "- ", "  ")):
            found.append("")
        found.append(f"- **{term[1]}**: {term[2]}" if term else re.sub(r"^ {3,}", "  ", line))
    return "\n".join(found)


def _cell(value: str) -> str:
    return value.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(text())
