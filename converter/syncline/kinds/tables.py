"""A folder of Parquet tables of a run, or a folder that holds several runs as tables and high-level logs."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncline import interruptible
from syncline.formats import is_table_folder, runs_in
from syncline.input import Input
from syncline.reading import Progress, Reading

from .kind import Kind, Opening, only_requests
from .place import Place

if TYPE_CHECKING:
    from syncline.engine.run_files import RunFiles

__all__ = ["Tables", "open_converted"]


@dataclass(frozen=True)
class Tables(Kind):
    """A folder of tables."""

    # The folders and files of its runs; none if the tables in it are those of one run.
    members: tuple[Path, ...] = ()

    kind = "tables"

    @classmethod
    def recognized(cls, place: Place) -> Kind | None:
        if not place.is_folder:
            return None
        if is_table_folder(place.file):
            return cls(place.path)
        members = runs_in(place.file)
        return cls(place.path, tuple(members)) if members else None

    def files(self) -> list[Path]:
        return [*Path(self.path).glob("*.parquet")]

    def content(self) -> list[Path]:
        return sorted(file for file in Path(self.path).glob("syncline_*.parquet") if file.is_file())

    def absolute(self) -> Input:
        members = tuple(one.absolute() for one in self.members)
        return replace(self, path=str(Path(self.path).absolute()), members=members)

    def runs(self, source: str | None = None) -> list[Input]:
        if file := next((one for one in self.members if one.is_file()), None):
            raise only_requests(str(file))
        from . import resolve

        return [resolve(str(one)) for one in self.members] or [self]

    def write_tables(self, output: str, reading: Reading, progress: Progress | None = None) -> None:
        from syncline.engine.attach import check_damage
        from syncline.engine.run_files import of_folder

        tables = of_folder(Path(self.path)).tables
        if "sync" not in tables:
            raise only_requests(self.path)
        Path(output).mkdir()
        check_damage(tables.values())
        for file in tables.values():
            interruptible.call(lambda file=file: shutil.copy(file, output))

    def _opened(self, how: Opening, stack: contextlib.ExitStack) -> Any:
        from syncline.engine.run_files import of_folder, of_members

        folder = Path(self.path)

        def runs() -> list[RunFiles]:
            return of_members(folder, self.members) if self.members else [of_folder(folder)]

        return stack.enter_context(open_converted(self.path, how, runs))


def open_converted(
    path: str, how: Opening, runs: Callable[[], list[RunFiles]]
) -> AbstractContextManager[Any]:
    """Opens the files of runs.

    Raises:
        EngineError: the engine that is wanted reads only traces.
    """
    from syncline.engine import EngineError
    from syncline.report.opening import open_tables

    if how.engine not in ("auto", "duckdb"):
        raise EngineError(f"{path} is not a trace", "Leave out --engine, or give a trace or a log.")
    return open_tables(path, allow_files=how.allow_files, runs=runs())
