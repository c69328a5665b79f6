"""An engine that is a trace processor, embedded or native."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .errors import EngineError, SqlError
from .expanded import expanded
from .package import read_package
from .result import Result, decode

if TYPE_CHECKING:
    from perfetto.trace_processor import TraceProcessor


class Engine:
    """A trace processor that has loaded one trace. Close it, or use it in a `with`.

    `trace_processor` is the object of the package `perfetto`. Use it for functions that this class
    does not have, such as `trace_summary`.
    """

    is_dataset = False

    def __init__(
        self, trace_processor: TraceProcessor, backend: Any, *, name: str, version: str, path: Path
    ) -> None:
        self.trace_processor = trace_processor
        self.name = name
        self.version = version
        self.path = path
        self._backend = backend
        self._lock = threading.Lock()
        self._closed = False

    def query(self, sql: str) -> Result:
        """Runs one or more statements and returns the rows of the last one.

        Raises:
            SqlError: the SQL is wrong. The message is Perfetto's own.
            EngineError: the engine is closed.
            OutOfMemory: the engine ran out of memory and has stopped.
        """
        sql = expanded(sql, "perfetto")
        with self._lock:
            if self._closed:
                raise EngineError(
                    f"{self.path}: the engine is closed", "Query inside the `with` block."
                )
            try:
                reply = self._backend.execute_query(sql)
            except EngineError as error:
                raise error.with_path(self.path) from error.__cause__
        if reply.error:
            raise SqlError(_sql_reason(reply.error.strip()))
        return decode(reply)

    def stats(self) -> list[tuple[str, str, int]]:
        """Returns what Perfetto could not import: (name, severity, count).

        The severity is `error` or `data_loss`. Indexed stats (per CPU, per sequence) are summed.
        """
        return self.query(  # type: ignore[return-value]
            "SELECT name, severity, SUM(value) FROM stats"
            " WHERE severity IN ('error', 'data_loss') AND value > 0"
            " GROUP BY name, severity ORDER BY name"
        ).rows

    def register_package(self, namespace: str, folder: Path | str) -> None:
        """Registers the SQL files of `folder`: `x/y.sql` is the module `namespace.x.y`.

        Raises:
            EngineError: the folder does not exist or holds no SQL, or Perfetto rejects the name.
        """
        modules = read_package(namespace, Path(folder))
        with self._lock:
            self._backend.register_package(namespace, modules)

    def close(self) -> None:
        """Stops the engine and frees its memory. May be called more than once."""
        with self._lock:
            self._closed = True
            self.trace_processor.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# Perfetto's message has a file, a position and the SQL there for each frame. The reason follows.
_SQL_FRAMES = re.compile(r"Traceback \(most recent call last\):\n((?:  .*\n)+)(.*)", re.S)
_SQL_FRAME = re.compile(r'^  File "(.*)" line (\d+) col (\d+)\n', re.M)


def _sql_reason(error: str) -> str:
    """Puts the reason of Perfetto's message first, followed by the innermost frame only."""
    frames = _SQL_FRAMES.fullmatch(error)
    if not frames:
        return error
    *_, frame = _SQL_FRAME.finditer(frames[1])
    file = "" if frame[1] == "stdin" else f"{frame[1]}, "
    return f"{frames[2]}\n  {file}line {frame[2]}, column {frame[3]}:\n{frames[1][frame.end() :].rstrip()}"
