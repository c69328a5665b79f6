"""What INPUT is: a log, a trace, Parquet, a high-level log; and how each is opened for SQL."""

from __future__ import annotations

import contextlib
import gzip
import shlex
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from syncline import _core
from syncline.engine import EngineError
from syncline.engine.columns import is_columns
from syncline.errors import InputError
from syncline.marks import Mark, complaint, read_marks
from syncline.recordings import (
    Beside,
    Filter,
    Recording,
    clocks_beside,
    is_recording,
    joined,
    recording_of,
)

# How a stored baseline begins.
BASELINE = b'{"syncline_baseline":'
# NTP makes a clock go faster or slower by a two-thousandth at most.
_CLOCK_SET_NS = 10**9

# Columns of requests, and how many of them no other file's first line has.
_COLUMNS = {b"ts_ns", b"sync_id", b"syscall_ns", b"writeback_ns", b"bytes", b"bios", b"dur_ns"}
_COLUMNS_ENOUGH = 3

Kind = Literal["trace", "tables", "rows", "log"]
Progress = Callable[[int, int | None, int], None]
Warn = Callable[[str, str], None]


@dataclass(frozen=True)
class Reading:
    """How a log is read; see `syncline convert --help`."""

    source: str | None = None
    time_unit: str = "ns"
    pid_is: str = "thread"
    window_ns: int | None = None
    max_loss: str | None = None
    marks: str | None = None
    filter: Filter = field(default_factory=Filter)
    # What is to be added to the times of inputs, in ns.
    offsets: tuple[tuple[str, int], ...] = ()
    # Fields that the user has said something of.
    given: frozenset[str] = frozenset()
    warn: Warn = lambda message, hint: None

    def mark_rows(self) -> list[Mark]:
        """The marks of the file that `--marks` names."""
        return read_marks(Path(self.marks), self.time_unit) if self.marks else []

    def convert(
        self,
        inputs: list[str],
        output: str,
        *,
        progress: Progress | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Converts logs and run directories with the core.

        Raises:
            InputError, CoreError.
        """
        marks = self.mark_rows()
        recordings = [recording_of(path) for path in inputs]
        recording = joined(recordings)
        summary: dict[str, Any] = _core.convert(
            recording.files,
            output,
            source=self.source,
            time_unit=self.time_unit,
            pid_is=self.pid_is,
            window_ns=self.window_ns,
            hints=self.beside(recording, self.offsets_of(inputs, recordings)),
            max_loss=self.max_loss,
            marks=[mark[:3] for mark in marks],
            filter=self.filter.over(recording.filter).for_core(),
            processes=recording.threads,
            process_names=recording.processes,
            frames=recording.frames,
            progress=progress,
            **options,
        )
        self.check_marks(marks, summary["first_ts_ns"], summary["last_ts_ns"])
        return summary

    def beside(self, recording: Recording, offsets: dict[str, int]) -> dict[str, Beside]:
        """What is known of files and does not stand in them, `offsets` among it.

        strace has times of day; the rest of a recording, and of the boot, is on CLOCK_BOOTTIME.
        """
        found = {}
        for log in recording.files:
            clocks = clocks_beside(log) if log != "-" else None
            known = recording.beside.get(log, Beside())
            found[log] = known._replace(clocks=clocks, offset_ns=offsets.get(log))
            if clocks is None:
                continue
            set_by = (clocks[3] - clocks[2]) - (clocks[1] - clocks[0])
            if abs(set_by) > _CLOCK_SET_NS:
                self.warn(
                    f"the time of day was set by {-set_by / 1e9:.3f} s during the recording of {log}",
                    "its times are spread over that, and are not those of other recordings",
                )
        return found

    def offsets_of(self, inputs: list[str], recordings: list[Recording]) -> dict[str, int]:
        """What `--offset` says of files: a run directory's is that of its files, but of those that are named themselves."""
        named = dict(self.offsets)
        of_runs = {
            file: named[path]
            for path, recording in zip(inputs, recordings, strict=True)
            for file in recording.files
            if path in named
        }
        return of_runs | {path: named[path] for path in inputs if path in named}

    def check_marks(self, marks: list[Mark], first_ns: int | None, last_ns: int | None) -> None:
        """Warns of marks outside the log, whose times may have another unit or clock."""
        if not marks or first_ns is None or last_ns is None:
            return
        wrong = complaint(marks, first_ns, last_ns, str(self.marks))
        if wrong:
            self.warn(*wrong)


def kind_of(path: str, source: str | None = None) -> Kind:
    """Tells by content what an INPUT is; a file whose `source` is named is a log.

    Raises:
        InputError: no such file, or none that can be read.
    """
    if path == "-":
        return "log"
    file = Path(path)
    if not file.exists():
        raise InputError(
            f"cannot read {path}: no such file or folder",
            "check the name; `-` reads standard input",
        )
    if file.is_dir():
        return "log" if is_recording(file) else "tables"
    # What is read from a pipe to look at it is gone for whoever reads it next.
    if source or not file.is_file():
        return "log"
    try:
        head = _head(file)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot read {path}: {reason}", f"try: ls -l {path}") from None
    if head.startswith(BASELINE):
        raise InputError(
            f"{path} is a stored baseline, which holds no run to look at",
            f"it is a side of a diff: syncline diff {shlex.quote(path)} NEW",
        )
    if head[:4] == b"PAR1" or _is_rows(head):
        return "rows"
    # The first packet of a trace; a log may begin with an empty line.
    if head[:1] == b"\x0a" and not _is_text(head[:256]) and _is_packet(head):
        return "trace"
    return "log"


def _head(file: Path) -> bytes:
    with file.open("rb") as stream:
        head = stream.read(4096)
        if head[:2] != b"\x1f\x8b":
            return head
        stream.seek(0)
        try:
            with gzip.open(stream) as unpacked:
                return unpacked.read(4096)
        except (OSError, EOFError, zlib.error):
            return b""


def _is_rows(head: bytes) -> bool:
    """Whether it is a high-level log, though a column be missing; which one, the engine says."""
    first = head.split(b"\n", 1)[0].strip()
    if first.startswith(b"{"):
        # So begins a line of the low-level log, too.
        return first.startswith(b'{"ts_ns":') and b'"sync_id":' in first
    return len(_COLUMNS & {*first.replace(b'"', b"").split(b",")}) >= _COLUMNS_ENOUGH


def _is_text(head: bytes) -> bool:
    """Whether no byte is one that only binary data has; a character may be cut off at the end."""
    text = head.decode("utf-8", "ignore")
    is_utf8 = len(head) - len(text.encode()) < 4
    return is_utf8 and all(char.isprintable() or char.isspace() for char in text)


def _is_packet(head: bytes) -> bool:
    """Whether field 1 of a `Trace` with a sane length comes first, and a field of a packet in it."""
    length, shift, at = 0, 0, 1
    while at < len(head) and at < 6:
        length |= (head[at] & 0x7F) << shift
        shift += 7
        at += 1
        if head[at - 1] < 0x80:
            break
    return length > 0 and at < len(head) and head[at] & 7 in (0, 1, 2, 5) and head[at] >> 3 > 0


def no_runs(folder: str) -> InputError:
    """What to say of a folder that holds no run."""
    if not any(Path(folder).iterdir()):
        return InputError(f"{folder} is an empty folder", "name a log, or a folder of runs")
    quoted = shlex.quote(folder.rstrip("/"))
    return InputError(
        f"{folder} is a folder without runs: it holds neither syncline_sync.parquet"
        " nor .parquet, .csv or .jsonl files or folders that do",
        "logs in a folder have to be converted first (those of one run by several recorders together),"
        " traces are read one at a time. Type:"
        f" mkdir runs; for log in {quoted}/*; do"
        ' syncline convert "$log" -o "runs/$(basename "$log")/"; done; syncline report runs',
    )


@contextmanager
def opened(
    path: str,
    reading: Reading,
    engine: str = "auto",
    progress: Progress | None = None,
    *,
    converted: Callable[[dict[str, Any]], None] = lambda summary: None,
    **options: Any,
) -> Iterator[Any]:
    """An engine with the tables of docs/tables.md for any INPUT.

    A trace goes to a trace processor; anything else to DuckDB, by way of columns. `engine` may
    force one: `duckdb`, or one of `syncline.engine.open_trace`, for which a log is first converted
    to a trace. `converted` is told what the core says of a log, which is converted with `options`.

    Raises:
        InputError, CoreError, EngineError.
    """
    kind = kind_of(path, reading.source)
    if kind == "tables" and not is_columns(path):
        raise no_runs(path)
    with contextlib.ExitStack() as stack:
        if kind == "log":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="syncline-"))
            if engine in ("auto", "duckdb"):
                converted(reading.convert([path], f"{folder}/", progress=progress, **options))
                made = stack.enter_context(_columns(folder))
            else:
                converted(
                    reading.convert([path], f"{folder}/trace.pftrace", progress=progress, **options)
                )
                made = stack.enter_context(_trace(f"{folder}/trace.pftrace", engine))
            # Messages name what the user gave, not where it is kept meanwhile.
            made.path = Path(path)
            yield made
            return
        if kind == "trace":
            if engine == "duckdb":
                raise EngineError(
                    f"{path} is a trace, which DuckDB cannot read",
                    "Leave out --engine, or give the log.",
                )
            made = stack.enter_context(_trace(path, engine))
        else:
            if engine not in ("auto", "duckdb"):
                raise EngineError(
                    f"{path} is no trace", "Leave out --engine, or give a trace or a log."
                )
            made = stack.enter_context(_columns(path))
        if reading.marks:
            from syncline.report.marks import replace_marks, span

            marks = reading.mark_rows()
            replace_marks(made, [mark[:3] for mark in marks])
            reading.check_marks(marks, *span(made))
        yield made


def _trace(path: str, engine: str) -> Any:
    from syncline.engine import open_trace
    from syncline.report.catalogue import sql_root
    from syncline.report.run import NAMESPACE

    return open_trace(path, engine=engine, packages=[(NAMESPACE, sql_root() / "perfetto")])


def _columns(path: str) -> Any:
    from syncline.engine.columns import open_columns
    from syncline.report.catalogue import sql_root

    return open_columns(path, sql=sql_root() / "duckdb")
