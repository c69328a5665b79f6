"""What the kinds of INPUT share: how one is opened for SQL, and what most of them refuse."""

from __future__ import annotations

import contextlib
import shlex
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from syncline import _core
from syncline.errors import InputError
from syncline.input import Input
from syncline.reading import Progress, Reading

from .place import Place

__all__ = ["Kind", "Opening", "of_temporary", "only_requests"]


@dataclass(frozen=True)
class Opening:
    """How an INPUT is opened."""

    reading: Reading
    engine: str = "auto"
    progress: Progress | None = None
    converted: Callable[[dict[str, Any]], None] = lambda summary: None
    allow_files: bool = False
    perfetto: bool = False
    # The tables and columns that will be read; None if they are not known.
    named: frozenset[str] | None = None
    # More arguments of `_core.convert`.
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def contents(self) -> dict[str, Any]:
        """The arguments of the core for tables that are removed after use, and hold only what will be read."""
        return {"is_temporary": True, "needed": self.named}


class Kind(Input):
    """A kind of INPUT. A new one is a file in this folder, and an entry in `KINDS`."""

    # `--where` and a master of Spark select something in it.
    is_dataset: ClassVar[bool] = False
    # Marks are joined while it is converted.
    takes_marks: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def recognized(cls, place: Place) -> Kind | None:
        """Returns the INPUT if what is at a place is of this kind.

        Raises:
            InputError: it is of this kind, and cannot be read.
        """

    @contextmanager
    def open(
        self,
        reading: Reading,
        engine: str = "auto",
        progress: Progress | None = None,
        *,
        converted: Callable[[dict[str, Any]], None] = lambda summary: None,
        allow_files: bool = False,
        perfetto: bool = False,
        statements: Iterable[str] | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        """Yields an engine that has the tables of docs/reference/tables.md.

        DuckDB opens the tables. A log and a trace that Syncline wrote are converted to tables first. Any
        other trace is loaded into a trace processor.

        Args:
            reading: how a log is read.
            engine: `auto`, `duckdb`, or an engine of `syncline.engine.open_trace`. For the latter a
                log is converted to a trace first.
            progress: called while a log is converted.
            converted: called with the summary of the core after a log was converted.
            allow_files: SQL may use all files of the user (DuckDB).
            perfetto: SQL may use Perfetto's own tables, so `auto` loads every trace into a trace
                processor.
            statements: the SQL that will be run. Columns that it does not name need not be read.
                None if it is not known.
            options: more arguments of `_core.convert`.

        Raises:
            InputError, CoreError, EngineError.
        """
        self._check(reading, engine)
        named = None if statements is None else _named(statements)
        how = Opening(reading, engine, progress, converted, allow_files, perfetto, named, options)
        with ExitStack() as stack:
            opened = self._opened(how, stack)
            if reading.marks and not self.takes_marks:
                from syncline.report.marks import use_marks

                use_marks(opened, reading)
            yield opened

    @abstractmethod
    def _opened(self, how: Opening, stack: contextlib.ExitStack) -> Any:
        """Returns the engine, which the stack closes."""

    def _check(self, reading: Reading, engine: str) -> None:
        make = f"make one: syncline ingest {shlex.quote(self.path)} --into DATASET"
        if reading.where is not None and not self.is_dataset:
            raise InputError(f"--where selects runs of a dataset, and {self.path} is not one", make)
        if engine.startswith(("local[", "spark://")) and not self.is_dataset:
            from syncline.engine import EngineError

            raise EngineError(f"Spark reads datasets, and {self.path} is not one", make)

    def write_tables(self, output: str, reading: Reading, progress: Progress | None = None) -> None:
        raise only_requests(self.path)

    def convert(
        self, output: str, reading: Reading, progress: Progress | None = None, **choices: Any
    ) -> dict[str, Any]:
        self.refuse_to_convert(with_others=False)
        raise NotImplementedError

    def refuse_to_convert(self, *, with_others: bool) -> None:
        raise InputError(
            f"{self.path} is already converted",
            "`convert` reads logs, or one trace; use `syncline report` or `syncline open` on this input",
        )

    def refuse_to_show(self) -> None:
        raise InputError(
            f"{self.path} holds tables, and the UI shows traces",
            "open the log, or a trace made from it",
        )


def _named(statements: Iterable[str]) -> frozenset[str]:
    from syncline.report.marks import STATEMENTS
    from syncline.report.tables import named

    return named([*statements, *STATEMENTS])


def of_temporary(error: _core.CoreError, path: str) -> _core.CoreError:
    """Words an error of the tables that are made to open an INPUT."""
    message, hint, kind = error.args
    # A limit of the process has a hint of its own.
    if kind == "output" and "ulimit" not in (hint or ""):
        hint = (
            f"the tables of {path} are temporary: free some space, or name another folder in TMPDIR"
        )
    worded = _core.CoreError(message, hint, kind)
    worded.__dict__.update(error.__dict__)
    return worded


def only_requests(path: str) -> InputError:
    """Returns the error for a high-level log, which is not all of a run."""
    return InputError(
        f"{path} holds only the requests of a run, without bios, calls, waits and losses",
        "ingest the log or the trace that it was made from",
    )
