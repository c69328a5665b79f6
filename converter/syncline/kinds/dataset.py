"""A dataset: an index of runs and their tables, in a folder or an object store; or one of its partitions in an object store."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import Any

from syncline.errors import InputError
from syncline.formats import DATASET
from syncline.input import Input

from .kind import Kind, Opening
from .place import OBJECT_STORE, Place
from .tables import Tables

__all__ = ["Dataset"]


class Dataset(Kind):
    """A dataset."""

    kind = "dataset"
    is_dataset = True

    @classmethod
    def recognized(cls, place: Place) -> Kind | None:
        # An object store is not asked: it can hold nothing else.
        return cls(place.path) if place.is_url or place.has(DATASET) else None

    @staticmethod
    def at(path: str) -> Dataset | None:
        """Returns the dataset at a path. For a command that reads nothing else, to which a missing file is no dataset either."""
        is_dataset = path.startswith(OBJECT_STORE) or Path(path, DATASET).is_file()
        return Dataset(path) if is_dataset else None

    def files(self) -> list[Path]:
        return [] if self.path.startswith(OBJECT_STORE) else [*Path(self.path).glob("*.parquet")]

    def runs(self, source: str | None = None) -> list[Input]:
        raise InputError(
            f"{self.path} is a dataset",
            f"name its partitions: syncline ingest {shlex.quote(self.path.rstrip('/'))}/host=*/day=*/run=* --into OTHER",
        )

    def selected(self, where: str | None) -> tuple[list[Kind], list[str]]:
        """Returns the runs that pass `where`, each an INPUT, and why others are left out.

        Raises:
            InputError: no run passes, or the store does not answer.
        """
        from syncline.dataset import index

        paths, left_out = index.runs_of(self.path, where)
        is_url = self.path.startswith(OBJECT_STORE)
        return [Dataset(path) if is_url else Tables(path) for path in paths], left_out

    def _opened(self, how: Opening, stack: contextlib.ExitStack) -> Any:
        from syncline.dataset.spark import is_master, open_spark
        from syncline.dataset.tables import open_dataset
        from syncline.engine import EngineError

        where = how.reading.where
        if is_master(how.engine):
            return stack.enter_context(open_spark(self.path, where, how.engine))
        if how.engine not in ("auto", "duckdb"):
            raise EngineError(
                f"{self.path} is not a trace",
                "Leave out --engine: DuckDB reads datasets. Or name a Spark master: --engine spark://HOST:PORT",
            )
        return stack.enter_context(open_dataset(self.path, where, allow_files=how.allow_files))
