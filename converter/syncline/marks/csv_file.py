"""Reads marks from a CSV file: time, name and perhaps duration."""

from __future__ import annotations

import csv
from pathlib import Path

from syncline.errors import InputError

from .mark import Mark

__all__ = ["UNITS", "read"]

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_COLUMNS = ("time", "name", "duration")
_HINT = (
    "a mark is a line such as `41753514022,page 1` or `41753514022,page 1,250000000`; the log of an"
    " application is taken too, if its lines have times of day"
)


def read(path: Path, time_unit: str = "ns") -> list[Mark]:
    """Reads a CSV file with time, name[, duration], in the unit of the log or that of the header (`time_ms`).

    Raises:
        OSError: the file cannot be read.
        InputError: a line is not a mark.
    """
    scale = {"time": UNITS[time_unit], "duration": UNITS[time_unit]}
    columns: list[str] = list(_COLUMNS)
    marks: list[Mark] = []
    try:
        # Spreadsheets write a byte order mark at the start.
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream)
            for row in reader:
                if not row or not "".join(row).strip():
                    continue
                number = reader.line_num
                cells = [cell.strip() for cell in row]
                if number == 1 and not cells[0].lstrip("-").replace(".", "", 1).isdigit():
                    columns = _header(f"{path}:{number}", cells, scale)
                else:
                    marks.append(_mark(f"{path}:{number}", cells, columns, scale, number))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a CSV file of marks: {error}", _HINT) from None
    if not marks:
        raise InputError(f"{path} has no marks", _HINT)
    return marks


def _header(where: str, cells: list[str], scale: dict[str, int]) -> list[str]:
    """Returns the names of the columns, and sets their units in `scale`."""
    columns = []
    for cell in cells:
        name, _, unit = cell.partition("_")
        if name not in _COLUMNS or unit not in ("", *UNITS):
            raise InputError(
                f"{where}: unknown column '{cell}'",
                "the columns are time, name and duration; a suffix names the unit, as in time_ms",
            )
        columns.append(name)
        if unit:
            scale[name] = UNITS[unit]
    return columns


def _mark(
    where: str, cells: list[str], columns: list[str], scale: dict[str, int], number: int
) -> Mark:
    fields = dict(zip(columns, cells, strict=False))
    line = ",".join(cells)[:120]
    try:
        ts = _scaled(fields["time"], scale["time"])
        dur = _scaled(fields["duration"], scale["duration"]) if fields.get("duration") else None
        name = fields["name"]
    except (KeyError, ValueError, OverflowError):
        raise InputError(f"{where}: not a mark: {line}", _HINT) from None
    if ts < 0 or (dur or 0) < 0:
        raise InputError(f"{where}: a negative time: {line}", _HINT)
    if ts + (dur or 0) >= 2**63:
        raise InputError(f"{where}: a time beyond 2^63 ns: {line}", _HINT)
    return Mark(ts, name, dur, number)


def _scaled(text: str, scale: int) -> int:
    """Converts to ns. Integers stay exact: ns since boot exceed the precision of a float."""
    return int(text) * scale if text.isdigit() else round(float(text) * scale)
