"""A folder that is no INPUT: it says what could be meant."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import Any, NoReturn

from syncline import _core
from syncline.errors import InputError
from syncline.formats import MANIFEST
from syncline.input import Input
from syncline.reading import Reading

from .kind import Kind, Opening
from .place import Place

__all__ = ["Folder"]


class Folder(Kind):
    """Any other folder."""

    kind = "folder"
    # What is wrong with it is more than an option without effect.
    is_converted = False

    @classmethod
    def recognized(cls, place: Place) -> Kind | None:
        return cls(place.path) if place.is_folder else None

    def files(self) -> list[Path]:
        return [*Path(self.path).glob("*.parquet")]

    def content(self) -> list[Path]:
        return []

    def runs(self, source: str | None = None) -> list[Input]:
        raise InputError(
            f"{self.path} is a folder and not a run",
            f"name its files: {shlex.quote(self.path)}/*",
        )

    def refuse_to_convert(self, *, with_others: bool) -> NoReturn:
        raise InputError(
            f"{self.path} is a folder, and `convert` reads logs",
            "name the logs in it that are of one run:"
            f" syncline convert {shlex.quote(self.path.rstrip('/'))}/* -o OUT",
        )

    def refuse_to_show(self) -> NoReturn:
        raise InputError(
            f"{self.path} is a folder, and the UI shows one trace", "name a log or a trace"
        )

    def _check(self, reading: Reading, engine: str) -> None:
        super()._check(reading, engine)
        raise _no_runs(self.path)

    def _opened(self, how: Opening, stack: contextlib.ExitStack) -> Any:
        raise _no_runs(self.path)


def _no_runs(folder: str) -> InputError:
    members = sorted(Path(folder).iterdir())
    if not members:
        return InputError(f"{folder} is an empty folder", "name a log, or a folder of runs")
    recordings = [str(one) for one in members if (one / MANIFEST).is_file()]
    if recordings:
        number = "1 run directory" if len(recordings) == 1 else f"{len(recordings):,} run directories"  # fmt: skip
        return InputError(
            f"{folder} holds {number}, and this command reads one input",
            f"name one: {shlex.quote(recordings[0])}; or make a dataset of all: syncline ingest {shlex.quote(folder.rstrip('/'))}/* --into DATASET",
        )
    return InputError(
        f"{folder} is a folder without runs: it holds neither syncline_sync.parquet"
        " nor .parquet, .csv or .jsonl files nor folders of tables",
        "convert logs first (logs of one run by several recorders together); open traces one at a"
        " time. Type:"
        f" mkdir runs; for log in {_logs_in(folder, members)}; do"
        ' syncline convert "$log" -o "runs/$(basename "$log")/"; done; syncline report runs',
    )


def _logs_in(folder: str, members: list[Path]) -> str:
    """Returns words of a shell for the logs in a folder, one of the files that are read together."""
    files = [str(file) for file in members]
    first = [_core.first_part(file) or file for file in files]
    if first == files:
        return f"{shlex.quote(folder.rstrip('/'))}/*"
    return shlex.join(dict.fromkeys(first))
