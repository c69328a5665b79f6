"""Reads the marks of `--marks FILE`: a CSV file, or the log of an application."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from syncline.errors import InputError

from . import application_log, csv_file, outside
from .csv_file import UNITS
from .mark import Mark

__all__ = ["UNITS", "Mark", "MarksFile", "read_marks"]


@dataclass(frozen=True)
class MarksFile:
    """The marks of a file."""

    path: str
    rows: list[Mark]
    # Their times are in ns since 1970, and those outside the recording are left out. Otherwise they are on the clock of the recording.
    are_times_of_day: bool = False
    # Lines of a log that have no time.
    untimed: int = 0

    def for_core(self) -> list[tuple[int, str, int | None]]:
        return [mark[:3] for mark in self.rows]

    def within(
        self, first_ns: int | None, last_ns: int | None, realtime_offset_ns: int
    ) -> list[tuple[int, str, int | None]]:
        """Returns times of day on the clock of a recording, and only those within it, as the core does when it converts."""
        if first_ns is None or last_ns is None:
            return []
        moved = [mark._replace(ts_ns=mark.ts_ns - realtime_offset_ns) for mark in self.rows]
        return [
            # What began before the machine booted has no time on its clock.
            (max(ts, 0), name, None if dur is None else dur + min(ts, 0))
            for ts, name, dur, _ in moved
            if ts <= last_ns and ts + (dur or 0) >= first_ns
        ]

    def unused(self, used: int) -> str:
        """Says how many lines of an application's log are no marks, and why; "" if all are."""
        others = len(self.rows) - used
        if not self.are_times_of_day or not used or not (others or self.untimed):
            return ""
        said = [f"{others:,} of another time than the recording"] if others else []
        said += [f"{self.untimed:,} without a time"] if self.untimed else []
        return f"{used:,} lines of {self.path} are marks; left out: {', and '.join(said)}"

    def complaint(
        self, used: int, first_ns: int, last_ns: int, realtime_offset_ns: int | None
    ) -> tuple[str, str] | None:
        """Returns what to warn of and a hint, if marks are outside the recording.

        Args:
            used: how many marks the recording has.
            first_ns, last_ns: its first and its last time.
            realtime_offset_ns: what to add to its times for ns since 1970. Only None if the marks have no times of day.
        """
        if not self.are_times_of_day or realtime_offset_ns is None:
            return outside.complaint(self.rows, first_ns, last_ns, self.path)
        if used:
            # An application writes its log for days, so most lines are outside, which `unused` says.
            return None
        span = first_ns + realtime_offset_ns, last_ns + realtime_offset_ns
        return outside.of_log(self.rows, span, self.path)


def read_marks(path: str, time_unit: str = "ns") -> MarksFile:
    """Reads a CSV file, whose times have this unit unless its header names another one, or a log with times of day.

    Raises:
        InputError: the file cannot be read, a line of CSV is not a mark, or it is not known in which zone a time of day is.
    """
    try:
        log = application_log.read(Path(path))
        if log is not None:
            return MarksFile(path, log[0], are_times_of_day=True, untimed=log[1])
        return MarksFile(path, csv_file.read(Path(path), time_unit))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            f"cannot read the marks {path}: {reason}",
            "name a CSV file with --marks, or the log of an application",
        ) from None
