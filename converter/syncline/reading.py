"""How logs are read: the options that all commands share, applied to the core."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from syncline import _core, interruptible
from syncline.errors import InputError
from syncline.marks import MarksFile, read_marks
from syncline.recordings import (
    Filter,
    InputHints,
    Recording,
    join_recordings,
    read_recording,
)
from syncline.unread import named

__all__ = ["Progress", "Reading", "Warn", "convert_trace", "verify_trace"]

# NTP adjusts the rate of a clock by at most 500 ppm. A larger change means that the clock was set.
_CLOCK_SET_NS = 10**9

# The clock of a log of strace without times.
_LINE_ORDER = "line_order"

# Called with (bytes read, bytes in total or None, events).
Progress = Callable[[int, int | None, int], None]
# Called with (message, hint).
Warn = Callable[[str, str], None]
# Called with what is worth a line and needs nothing done.
Note = Callable[[str], None]


@dataclass(frozen=True)
class Reading:
    """How a log is read. The fields are the options of `syncline convert --help`."""

    source: str | None = None
    time_unit: str = "ns"
    pid_is: str = "thread"
    window_ns: int | None = None
    max_loss: str | None = None
    marks: str | None = None
    # Which runs of a dataset are read: SQL on the columns of syncline_run.
    where: str | None = None
    filter: Filter = field(default_factory=Filter)
    # Without a filter, also without that of the recording.
    is_whole: bool = False
    # (input, ns to add to its times)
    offsets: tuple[tuple[str, int], ...] = ()
    # Names of the options that the user has given.
    given: frozenset[str] = frozenset()
    warn: Warn = lambda message, hint: None
    note: Note = lambda message: None

    def marks_file(self) -> MarksFile | None:
        """Reads the marks of `--marks`."""
        return read_marks(self.marks, self.time_unit) if self.marks else None

    def convert(
        self,
        inputs: Sequence[Recording | str],
        output: str,
        *,
        progress: Progress | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Converts logs and run directories. Returns the summary of the core.

        Args:
            inputs: what is read. A path is that of a log or a run directory.

        Raises:
            InputError, CoreError.
        """
        if self.where is not None:
            raise InputError(
                "--where selects runs of a dataset, and a log is one run", "leave --where out"
            )
        marks = self.marks_file()
        recordings = [read_recording(one) if isinstance(one, str) else one for one in inputs]
        recording = join_recordings(recordings)
        options |= {
            "source": self.source,
            "time_unit": self.time_unit,
            "pid_is": self.pid_is,
            "window_ns": self.window_ns,
            "hints": self._hints(recording, self._offset_of_file(recordings)),
            "max_loss": self.max_loss,
            "marks": marks.for_core() if marks else [],
            "marks_are_times_of_day": marks is not None and marks.are_times_of_day,
            "filter": None
            if self.is_whole
            else self.filter.over(recording.filter).for_core(recording.cgroups),
            "processes": recording.threads,
            "process_names": recording.processes,
            "cgroups": recording.cgroups,
            "frames": recording.frames,
            "device_names": recording.device_names,
            "devices_below": recording.devices_below,
            "write_caches": recording.write_caches,
            "limits": recording.limits,
            "file_tables": recording.file_tables,
            "writer_tables": recording.writer_tables,
        }
        for file in recording.unread:
            self.warn(
                f"{file} is not read: this version does not know its format",
                "read the recording with the version of Syncline that made it, or a newer one",
            )
        summary = _interruptible(
            lambda report: _core.convert(recording.files, output, progress=report, **options),
            progress,
        )
        if marks:
            span = summary["first_ts_ns"], summary["last_ts_ns"]
            self.check_marks(marks, summary["marks"], span, summary["realtime_offset_ns"])
        for path, text in summary.pop("other_texts"):
            if others := named(text):
                self.note(f"beside its own lines, {path} has " + ", and ".join(others))
        for one in summary["inputs"]:
            if one["clock"] == _LINE_ORDER:
                self.warn(
                    f"{one['path']} has no times: its timeline is made of the order of its lines and the"
                    " durations of its calls, so times between calls, rates and overlaps mean nothing",
                    "record with times: strace -f -ttt -T -yy -o FILE COMMAND",
                )
        return summary

    def _hints(self, recording: Recording, offset_of: dict[str, int]) -> dict[str, InputHints]:
        """Adds offsets to the hints of each file, and warns of clocks that were set.

        strace records times of day. All other logs of a run use CLOCK_BOOTTIME.
        """
        found = {}
        for log in recording.files:
            known = recording.hints.get(log, InputHints())
            found[log] = known._replace(offset_ns=offset_of.get(log))
            if (clocks := known.clocks) is None:
                continue
            change = (clocks[3] - clocks[2]) - (clocks[1] - clocks[0])
            if abs(change) > _CLOCK_SET_NS:
                self.warn(
                    f"the time of day was set by {-change / 1e9:.3f} s during the recording of {log}",
                    "its times are interpolated over this change and do not match those of other"
                    " recordings",
                )
        return found

    def _offset_of_file(self, recordings: list[Recording]) -> dict[str, int]:
        """Returns the `--offset` of each file.

        The offset of a run directory applies to its files, except for those with their own.
        """
        named = dict(self.offsets)
        of_runs = {
            file: named[recording.path]
            for recording in recordings
            for file in recording.files
            if recording.path in named
        }
        paths = [recording.path for recording in recordings]
        return of_runs | {path: named[path] for path in paths if path in named}

    def check_marks(
        self,
        marks: MarksFile,
        used: int,
        span_ns: tuple[int | None, int | None],
        realtime_offset_ns: int | None,
    ) -> None:
        """Warns of marks outside the recording, whose times may have another unit, clock or zone."""
        first, last = span_ns
        if first is None or last is None:
            return
        wrong = marks.complaint(used, first, last, realtime_offset_ns)
        if wrong:
            self.warn(*wrong)
        if unused := marks.unused(used):
            self.note(unused)


def convert_trace(
    trace: str, output: str, *, progress: Progress | None = None, **options: Any
) -> dict[str, Any]:
    """Converts a trace that Syncline wrote. Returns the summary of the core.

    Raises:
        CoreError: its class is `foreign` if the core cannot read the rows of the trace.
    """
    return _interruptible(
        lambda report: _core.convert_trace(trace, output, progress=report, **options), progress
    )


def verify_trace(trace: str) -> None:
    """Compares a trace with the checksum that it holds, if it is whole and Syncline wrote it.

    Raises:
        CoreError: the trace is damaged.
    """
    _core.verify_trace(trace)


def _interruptible(
    convert: Callable[[Progress], dict[str, Any]], progress: Progress | None
) -> dict[str, Any]:
    """Runs the core so that a signal ends it, even while it waits for a pipe."""
    stop = threading.Event()

    def report(read: int, total: int | None, events: int) -> None:
        if stop.is_set():
            # Any exception stops the core, which removes its files.
            raise InterruptedError
        if progress is not None:
            progress(read, total, events)

    return interruptible.call(lambda: convert(report), cancel=stop.set)
