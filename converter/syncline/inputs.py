"""What INPUT is: a log, a trace, Parquet, a high-level log; and how each is opened for SQL."""

from __future__ import annotations

import contextlib
import csv
import gzip
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from syncline import _core
from syncline.engine import EngineError

Kind = Literal["trace", "tables", "rows", "log"]
Mark = tuple[int, str, int | None]
Progress = Callable[[int, int | None, int], None]


class InputError(Exception):
    """`args`: what is wrong and where, what to type next."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Reading:
    """How a log is read; see `syncline convert --help`."""

    source: str | None = None
    time_unit: str = "ns"
    pid_is: str = "thread"
    window_ns: int | None = None
    max_loss: str | None = None
    marks: str | None = None

    def mark_rows(self) -> list[Mark]:
        """The marks of the file that `--marks` names."""
        return read_marks(Path(self.marks), self.time_unit) if self.marks else []

    def convert(
        self,
        logs: list[str],
        output: str,
        *,
        progress: Progress | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Converts logs with the core; its errors are `CoreError`."""
        return _core.convert(
            logs,
            output,
            source=self.source,
            time_unit=self.time_unit,
            pid_is=self.pid_is,
            window_ns=self.window_ns,
            max_loss=self.max_loss,
            marks=self.mark_rows(),
            progress=progress,
            **options,
        )


def kind_of(path: str) -> Kind:
    """Tells by content what an INPUT is.

    Raises:
        InputError: no such file.
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
        return "tables"
    head = _head(file)
    if head[:4] == b"PAR1" or (head.startswith((b"ts_ns,", b'{"ts_ns":')) and _is_rows(head)):
        return "rows"
    # The first packet of a trace; a log never begins with a line end and a length.
    if head[:1] == b"\x0a" and not head[:64].isspace() and _is_packet(head):
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
        except (OSError, EOFError):
            return b""


def _is_rows(head: bytes) -> bool:
    first = head.split(b"\n", 1)[0]
    return b"syscall_ns" in first and b"sync_id" in first


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


def read_marks(path: Path, time_unit: str = "ns") -> list[Mark]:
    """Marks of a CSV file: time, name[, duration], in the log's unit or in that of the header (`time_ms`).

    Raises:
        InputError: not such a file; names the line.
    """
    units = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
    scale = {"time": units[time_unit], "duration": units[time_unit]}
    columns = ["time", "name", "duration"]
    marks: list[Mark] = []
    hint = "a mark is a line such as `41753514022,page 1` or `41753514022,page 1,250000000`"
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            for number, row in enumerate(csv.reader(stream), 1):
                if not row or not "".join(row).strip():
                    continue
                cells = [cell.strip() for cell in row]
                if number == 1 and not cells[0].lstrip("-").replace(".", "", 1).isdigit():
                    columns = []
                    for cell in cells:
                        name, _, unit = cell.partition("_")
                        if name not in ("time", "name", "duration") or unit not in ("", *units):
                            raise InputError(
                                f"{path}:{number}: unknown column '{cell}'",
                                "the columns are time, name and duration; time_ms and the like name the unit",
                            )
                        columns.append(name)
                        if unit:
                            scale[name] = units[unit]
                    continue
                fields = dict(zip(columns, cells, strict=False))
                try:
                    ts = _scaled(fields["time"], scale["time"])
                    dur = (
                        _scaled(fields["duration"], scale["duration"])
                        if fields.get("duration")
                        else None
                    )
                    name = fields["name"]
                except (KeyError, ValueError):
                    raise InputError(
                        f"{path}:{number}: not a mark: {','.join(row)[:120]}", hint
                    ) from None
                if ts < 0 or (dur or 0) < 0:
                    raise InputError(
                        f"{path}:{number}: a negative time: {','.join(row)[:120]}", hint
                    )
                marks.append((ts, name, dur))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}", hint) from None
    if not marks:
        raise InputError(f"{path} has no marks", hint)
    return marks


def _scaled(text: str, scale: int) -> int:
    """Whole numbers exactly: ns since boot do not fit a float."""
    return int(text) * scale if text.isdigit() else round(float(text) * scale)


@contextmanager
def opened(
    path: str, reading: Reading, engine: str = "auto", progress: Progress | None = None
) -> Iterator[Any]:
    """An engine with the tables of docs/tables.md for any INPUT.

    A trace goes to a trace processor; anything else to DuckDB, by way of columns. `engine` may
    force one: `duckdb`, or one of `syncline.engine.open_trace`, for which a log is first converted
    to a trace.

    Raises:
        InputError, CoreError, EngineError.
    """
    kind = kind_of(path)
    with contextlib.ExitStack() as stack:
        if kind == "log":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="syncline-"))
            if engine in ("auto", "duckdb"):
                reading.convert([path], f"{folder}/", progress=progress)
                yield stack.enter_context(_columns(folder))
            else:
                reading.convert([path], f"{folder}/trace.pftrace", progress=progress)
                yield stack.enter_context(_trace(f"{folder}/trace.pftrace", engine))
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
            from syncline.report.marks import replace_marks

            replace_marks(made, reading.mark_rows())
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
