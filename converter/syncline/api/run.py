"""A recording that is open: its tables, its reports, its answer."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from syncline import _core
from syncline.input import Input
from syncline.kinds import resolve
from syncline.reading import Reading
from syncline.recordings import Filter
from syncline.report import catalogue
from syncline.report.run import caveats, check_trace

from .error import Error, of_user
from .table import Table

if TYPE_CHECKING:
    from .answer import Answer

__all__ = ["Run", "open", "reports"]

_WHAT_IS_CONVERTED = "a filter selects while a log is read, and {path} is already converted: give the log, or select with SQL"


def open(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    pid: int | None = None,
    comm: str | None = None,
    file: str | None = None,
    cgroup: str | None = None,
    where: str | None = None,
    engine: str = "auto",
) -> Run:
    """Opens a log, a run directory, a trace, Parquet, a folder of runs or a dataset.

    A log is read once, now; its tables are temporary and go when the run is closed.

    Args:
        path: the INPUT of the commands.
        format: the format of a log, as `--from` names it; by default it is detected.
        pid, comm, file, cgroup: only requests of this process, of threads with this name, for files whose path begins so, of
            processes in this control group. They select in logs and run directories.
        where: which runs of a dataset: SQL on the columns of syncline_run.
        engine: `auto`, `duckdb`, `embedded`, `native`, or the path of a trace_processor_shell.

    Raises:
        Error: it cannot be read, is no INPUT, or an option would have no effect on it.
    """
    chosen = Filter(pid=pid, comm=comm, path=file, cgroup=cgroup)
    with of_user():
        if format is not None and format not in _core.SOURCES:
            raise Error(f"no format '{format}'", f"the formats are: {', '.join(_core.SOURCES)}")
        found = resolve(os.fspath(path), format)
        if found.is_converted and chosen != Filter():
            raise Error(_WHAT_IS_CONVERTED.format(path=found.path))
        if found.is_converted and format is not None:
            raise Error(
                f"{found.path} is already converted: its format is known", "leave out `format`"
            )
        return Run(found, Reading(source=format, where=where, filter=chosen), engine)


def reports() -> dict[str, str]:
    """Returns the names of the reports, each with the question that it answers."""
    return {name: catalogue.load(name).title for name in catalogue.names()}


class Run:
    """A recording, or several, as tables. Close it, or use it in a `with`; at the latest it closes with the program.

    Its tables are those of docs/reference/tables.md.
    """

    def __init__(self, input: Input, reading: Reading, engine: str) -> None:
        """Opens what `syncline.open` has found. Use that."""
        self._input = input
        # A list and not a method, so that nothing that is opened keeps the run alive.
        said: list[str] = []
        self._said = said
        self._reading = replace(reading, warn=lambda message, hint: said.append(message))
        self._engine_name = engine
        stack = ExitStack()
        try:
            self._engine = stack.enter_context(input.open(self._reading, engine, perfetto=False))
        except BaseException:
            stack.close()
            raise
        self._close = weakref.finalize(self, stack.close)

    @property
    def path(self) -> str:
        """The INPUT, as it was named."""
        return self._input.path

    @property
    def kind(self) -> str:
        """What it is: `log`, `trace`, `run directory`, ..., as `syncline inspect` calls it."""
        return self._input.kind

    @property
    def is_filtered(self) -> bool:
        """Whether it was opened with a filter."""
        return self._reading.filter != Filter()

    @property
    def syncs(self) -> Table:
        """The requests: a row for each pass through the sync function of a file system (syncline_sync)."""
        return self._table("sync")

    @property
    def calls(self) -> Table:
        """The sync calls, as a program makes them (syncline_call)."""
        return self._table("call")

    @property
    def bios(self) -> Table:
        """The I/O of the block layer, with the sync that each belongs to (syncline_bio)."""
        return self._table("bio")

    @property
    def phases(self) -> Table:
        """Where the time of each sync went (syncline_phase)."""
        return self._table("phase")

    @property
    def waits(self) -> Table:
        """What the threads of syncs waited for (syncline_wait)."""
        return self._table("wait")

    @property
    def commits(self) -> Table:
        """The commits of journals (syncline_journal)."""
        return self._table("journal")

    @property
    def marks(self) -> Table:
        """The application's own marks (syncline_mark)."""
        return self._table("mark")

    @property
    def losses(self) -> Table:
        """The losses: events that are missing or were not used, each kind with its reason and count (syncline_loss)."""
        return self._table("loss")

    @property
    def meta(self) -> Table:
        """Keys and values of how it was recorded and converted (syncline_meta)."""
        return self._table("meta")

    def sql(self, query: str) -> Table:
        """Returns the rows of any SELECT on the tables, with the macros of sql/macros/.

        An error of the SQL is raised when the rows are read.
        """
        return Table("sql", self._opened, query, is_of_user=True)

    def report(self, name: str) -> Table:
        """Returns a report. `syncline.reports()` lists them, docs/reference/reports.md describes them.

        Raises:
            Error: there is no report of that name, or it cannot run.
        """
        with of_user():
            try:
                found = catalogue.load(name)
            except catalogue.UnknownReport as error:
                raise Error(str(error)) from None
            rows = None
            with self._opened() as engine:
                check_trace(engine)
                if name == "neighbours":
                    from syncline.report import neighbours

                    # Those whose syncs the filter left out are neighbours too.
                    rows = neighbours.of_filtered(
                        self._input, self._reading, self._engine_name, engine
                    )
        return Table(name, self._opened, found.sql, report=found, rows=rows)

    def answer(self) -> Answer:
        """Returns who waited, for what, for which file, and who else was there: what `syncline report` prints first."""
        from syncline.advice import with_advice
        from syncline.report import answer, neighbours

        from .answer import Answer

        with of_user(), self._opened() as engine:
            check_trace(engine)
            others = neighbours.of_filtered(self._input, self._reading, self._engine_name, engine)
            found = answer.read(engine, others.as_dicts() if others else None)
            return Answer(with_advice(engine, found), self.caveats(), self._input)

    def caveats(self) -> list[str]:
        """Returns the warnings that stand above every report, such as events that were lost. An empty list means that no loss is known."""
        with of_user(), self._opened() as engine:
            return [*self._said, *caveats(engine)]

    def convert(self, out: str | os.PathLike[str]) -> Path:
        """Writes it in another format, which the ending of the name chooses as for `syncline convert`. Returns the path.

        Raises:
            Error: it is no log or trace, or the output cannot be written. No part of an output is left then.
        """
        self._refuse_closed()
        with of_user():
            self._input.refuse_to_convert(with_others=False)
            if any(Path(out).resolve() == file.resolve() for file in self._input.files()):
                raise Error(f"{out} is the input", "name another file")
            self._input.convert(os.fspath(out), self._reading)
        return Path(out)

    def close(self) -> None:
        """Frees its memory and its temporary files. It may be called again."""
        self._close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "" if self._close.alive else ", closed"
        return f"<syncline.Run {self.path}: {self.kind}{state}>"

    def _repr_html_(self) -> str | None:
        # Without it, a notebook shows the text, which says that the run is closed.
        return self.answer()._repr_html_() if self._close.alive else None

    def _table(self, name: str) -> Table:
        return Table(name, self._opened, f"SELECT * FROM syncline_{name}")

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        self._refuse_closed()
        yield self._engine

    def _refuse_closed(self) -> None:
        if not self._close.alive:
            raise Error(f"{self.path} is closed", "open it again: syncline.open(...)")
