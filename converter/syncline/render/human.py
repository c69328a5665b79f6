"""Formats values for people: 1.23 ms, 68.2 KiB, 12.3 %."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from syncline.printable import printable

if TYPE_CHECKING:
    # A conversion prints numbers, and does not load the reports.
    from syncline.engine import Value
    from syncline.report import Report, Table

__all__ = ["MISSING", "RIGHT", "cells", "count", "header", "no_rows", "text"]

# Units whose values are right-aligned and never shortened. A bar is already aligned.
RIGHT = {"id", "count", "ns", "time", "bytes", "share", "ratio", "unit"}
MISSING = "-"
# A time from here on, in ns, is a wall clock time: 2001-09-09. No machine has counted that long since it booted.
_WALL_CLOCK = 10**18
_BAR = 20


def cells(table: Table, report: Report | None) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Returns columns as (name, unit) and rows of text, without columns that have no information for people."""
    units = [report.unit(name) if report else "" for name in table.columns]
    keep = [
        index
        for index, (name, unit) in enumerate(zip(table.columns, units, strict=True))
        # A single run has no name, and a value is shown with its unit.
        if not (report and name == "run" and all(row[index] == "" for row in table.rows))
        and not (name == "unit" and "unit" in units)
    ]
    rows = []
    for row in table.rows:
        record = dict(zip(table.columns, row, strict=True))
        rows.append([_cell(row[index], units[index], record) for index in keep])
    return [(table.columns[index], units[index]) for index in keep], rows


def header(name: str, unit: str) -> str:
    """Returns the heading of a column, without its unit, which the cells have."""
    name = printable(name)
    if not unit:
        return name
    return (name.removesuffix("_ns") if unit in ("ns", "time") else name).replace("_", " ")


def no_rows(table: Table) -> str:
    """Returns the line that takes the place of the rows, with the reason if it is known."""
    return f"No rows: {table.why_empty}" if table.why_empty else "No rows."


def _cell(value: Value, unit: str, record: dict[str, Value]) -> str:
    if unit == "unit":
        unit = str(record["unit"])
    if unit == "tree":
        return " " * int(record.get("depth") or 0) + text(value, "text")
    return text(value, unit)


def text(value: Value, unit: str) -> str:
    """Formats a value; without a unit it is not scaled."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str):
        return printable(value)
    if unit == "ns":
        return _scaled(value, ("ns", "µs", "ms", "s"), 1000)
    if unit == "bytes":
        return _scaled(value, ("B", "KiB", "MiB", "GiB", "TiB"), 1024)
    if unit == "time":
        return _time(int(value))
    if unit in ("share", "bar"):
        percent = f"{100 * value:.1f} %"
        return f"{percent:>7} {'#' * round(_BAR * value):<{_BAR}}" if unit == "bar" else percent
    if unit in ("count", "ratio"):
        return f"{value:,}" if isinstance(value, int) else _figure(value, unit)
    return str(value)


def _time(ns: int) -> str:
    """Formats a time: seconds of a clock that counts from some start, or the date of a wall clock."""
    if ns < _WALL_CLOCK:
        return f"{ns / 1e9:,.6f} s"
    second, micros = divmod(round(ns / 1000), 10**6)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%d %H:%M:%S}.{micros:06d} UTC"


def count(number: int, thing: str, plural: str = "s") -> str:
    """Returns a number and its noun, whose plural ends in `plural`."""
    return f"{number:,} {thing}{'' if number == 1 else plural}"


def _figure(value: float, unit: str) -> str:
    return f"{value:,.0f}" if unit == "count" and value == int(value) else f"{value:,.2f}"


def _scaled(value: float, units: tuple[str, ...], step: int) -> str:
    """Formats up to three significant digits, without trailing zeros: 4 KiB, 1.23 ms, 999 µs, 1 s."""
    size, last = float(abs(value)), len(units) - 1
    index = 0
    # Compares the rounded size, because 999.9 µs would become 1000 µs.
    while index < last and round(size, 2 if size < 10 else 1 if size < 100 else 0) >= step:
        size /= step
        index += 1
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    number = f"{size:,.{digits}f}"
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{'-' if value < 0 else ''}{number} {units[index]}"
