"""A folder of logs, traces and run directories, which are runs to be read together. Any other folder says what could be meant."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from syncline import _core, scratch
from syncline.errors import InputError
from syncline.formats import MANIFEST, holds_tables
from syncline.input import Input
from syncline.recordings import LEFT, Filter

from .kind import Kind, Opening
from .place import Place

__all__ = ["Folder", "is_run"]

# Endings of runs in a folder. A .txt is a run if its head is of a known format; all other files are named and skipped.
_ENDINGS = (".log", ".pftrace", ".perfetto-trace", ".dat", ".parquet", ".csv", ".jsonl")
_COMPRESSED = (".gz", ".zst")


def is_run(path: Path, source: str | None = None) -> bool:
    """Returns whether a member of a folder is a run of its own, by its name and its content.

    Args:
        source: the format given for all logs.
    """
    if path.is_dir():
        return (path / MANIFEST).is_file() or holds_tables(path)
    name = path.name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    if name.endswith(_ENDINGS):
        return True
    if not name.endswith(".txt"):
        return False
    if source is not None or _core.detect_format(str(path)) is not None:
        return True
    from . import resolve

    return not resolve(str(path)).is_log


class Folder(Kind):
    """A folder that holds no tables."""

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

    def _opened(self, how: Opening, stack: contextlib.ExitStack) -> Any:
        from . import resolve
        from .tables import Tables

        members, others = [], []
        for child in sorted(Path(self.path).iterdir()):
            if not child.name.startswith("."):
                (members if is_run(child, how.reading.source) else others).append(child)
        if not members:
            raise _no_runs(self.path)
        runs = [resolve(str(member), how.reading.source) for member in members]
        if how.reading.filter != Filter() and (made := [one for one in runs if one.is_converted]):
            raise InputError(
                f"{made[0].path} is already converted, and a filter selects while a log is read",
                "leave the filter out, or name a folder of logs only",
            )
        # Which of them is meant is known only to who made the folder.
        if others:
            how.reading.warn(skipped(self.path, [other.name for other in others]), None)
        folder = Path(stack.enter_context(scratch.folder())) / "runs"
        folder.mkdir()
        for run in runs:
            run.write_tables(f"{folder / Path(run.path).name}/", how.reading, how.progress)
        # One converted run is read as what it is, without a name.
        shown = Tables.recognized(Place(str(folder)))
        assert shown is not None
        opened = stack.enter_context(
            shown.open(
                replace(how.reading, filter=Filter()), how.engine, allow_files=how.allow_files
            )
        )
        opened.path = Path(self.path)
        return opened


def skipped(folder: str, names: list[str]) -> str:
    """Says in one line which files of a folder are not runs, because a folder may have many."""
    if len(names) == 1:
        return f"{Path(folder) / names[0]} is skipped: it is not a run"
    return (
        f"{len(names)} files of {folder} are skipped, because they are not runs: {', '.join(names)}"
    )


def _no_runs(folder: str) -> InputError:
    members = sorted(Path(folder).iterdir())
    if Path(folder, LEFT).is_file():
        return InputError(
            f"{folder} is no recording yet: its recorder runs, or was killed",
            f"make one of what it has left: syncline record --resume -o {shlex.quote(folder)}",
        )
    if not members:
        return InputError(f"{folder} is an empty folder", "name a log, or a folder of runs")
    return InputError(
        f"{folder} is a folder without runs: it holds no logs (.log, .txt, .dat), traces, run directories or tables",
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
