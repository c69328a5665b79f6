"""Reads the marks of `--marks FILE`, and detects marks outside the time span of the log."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from syncline.errors import InputError

__all__ = ["UNITS", "Mark", "complaint", "read_marks"]

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_COLUMNS = ("time", "name", "duration")
_HINT = "a mark is a line such as `41753514022,page 1` or `41753514022,page 1,250000000`"


class Mark(NamedTuple):
    """A mark in ns. Without a duration it lasts until the next mark."""

    ts_ns: int
    name: str
    dur_ns: int | None
    line: int


def read_marks(path: Path, time_unit: str = "ns") -> list[Mark]:
    """Reads a CSV file with time, name[, duration], in the unit of the log or that of the header (`time_ms`).

    Raises:
        InputError: the file cannot be read, or a line is not a mark.
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
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            f"cannot read the marks {path}: {reason}",
            f"name a CSV file with --marks; {_HINT}",
        ) from None
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


def complaint(
    marks: Sequence[Mark], first_ns: int, last_ns: int, path: str | os.PathLike[str]
) -> tuple[str, str] | None:
    """Returns an error message and a hint if marks are outside the log, which spans `first_ns` to `last_ns`.

    A mark that begins before the log may end within it, such as a page load that began before the first
    sync. It counts as outside only if another unit would move its begin into the log.
    """
    in_order = sorted(marks, key=lambda mark: mark.ts_ns)
    ends = [mark.ts_ns for mark in in_order[1:]] + [last_ns]
    outside = []
    for mark, until in zip(in_order, ends, strict=True):
        if first_ns <= mark.ts_ns <= last_ns:
            continue
        end = until if mark.dur_ns is None else mark.ts_ns + mark.dur_ns
        if mark.ts_ns > last_ns or end < first_ns or _other_unit([mark], first_ns, last_ns):
            outside.append(mark)
    if not outside:
        return None
    first = min(outside, key=lambda mark: mark.line)
    others = f", and {len(outside) - 1:,} more of {len(marks):,}," if len(outside) > 1 else ""
    message = (
        f"{path}:{first.line}: the mark '{first.name}' at {first.ts_ns} ns{others}"
        f" {'are' if others else 'is'} outside the log, which spans {first_ns} to {last_ns} ns"
    )
    hint = (
        "marks use the clock of the log (bpftrace's nsecs, CLOCK_BOOTTIME), and the unit of --time-unit"
        " or of the header (time_us)"
    )
    if change := _other_unit(outside, first_ns, last_ns):
        hint += f"; {change} they would be inside"
    return message, hint


def _other_unit(marks: Sequence[Mark], first_ns: int, last_ns: int) -> str:
    """Returns the change of unit that moves most of the marks into the log; "" if there is none."""
    for power in (10**3, 10**6, 10**9):
        for change, scaled in (
            (f"multiplied by {power}", [mark.ts_ns * power for mark in marks]),
            (f"divided by {power}", [mark.ts_ns // power for mark in marks]),
        ):
            # A coarser unit rounds, which may move a mark at the first event before it.
            inside = sum(first_ns - power < ts < last_ns + power for ts in scaled)
            if 2 * inside > len(marks):
                return change
    return ""
