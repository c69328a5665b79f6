"""Finds the runs of a side: an INPUT itself, a stored baseline, the runs in a folder, or the files that a pattern matches."""

from __future__ import annotations

import contextlib
import glob
import shutil
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from syncline.errors import InputError
from syncline.kinds import Dataset, Kind, resolve
from syncline.kinds.folder import is_run, skipped

from . import baseline

__all__ = ["Found", "Named", "runs_of"]


@dataclass
class Found:
    """A run of a side. What it is, is found out when it is read, and once."""

    path: str
    # What `--from` says.
    source: str | None = None
    is_folder: bool = False
    # It can be read only once: standard input, or a pipe.
    is_stream: bool = False
    # The file that is read, if it is a copy.
    copy: str | None = None

    @cached_property
    def is_baseline(self) -> bool:
        """Whether it is a stored baseline."""
        return baseline.is_baseline(Path(self.copy or self.path))

    @cached_property
    def input(self) -> Kind:
        """The run, if it is no stored baseline.

        Raises:
            InputError: it cannot be read.
        """
        return resolve(self.copy or self.path, self.source)

    def files(self) -> list[Path]:
        """Returns the files that an output of the same command must not replace."""
        if self.path == "-":
            return []
        return [Path(self.path)] if self.is_stream or self.is_baseline else self.input.files()

    def keep(self, folder: Path) -> None:
        """Copies what can be read only once into a folder: to find out what it is, it is read."""
        if not self.is_stream:
            return
        name = "standard input" if self.path == "-" else self.path.replace("/", "_")
        copy = folder / name
        with contextlib.ExitStack() as stack:
            is_stdin = self.path == "-"
            stream = (
                sys.stdin.buffer if is_stdin else stack.enter_context(Path(self.path).open("rb"))
            )
            shutil.copyfileobj(stream, stack.enter_context(copy.open("wb")))
        self.copy = str(copy)


@dataclass
class Named:
    """What a side is named by. Its runs are found when they are first asked for, and once."""

    paths: list[str]
    source: str | None = None
    # Which runs of a dataset are read.
    where: str | None = None
    # Notes on what is skipped, and why runs are left out.
    notes: list[str] = field(default_factory=list)

    @cached_property
    def runs(self) -> list[Found]:
        """The runs.

        Raises:
            InputError: there is none.
        """
        return [
            run
            for path in self.paths
            for run in runs_of(path, self.source, self.notes.append, self.where)
        ]


def runs_of(
    path: str,
    source: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    where: str | None = None,
) -> list[Found]:
    """Returns the runs of an INPUT.

    Args:
        source: the format given for all logs.
        say: called with a note on each file that is skipped, and each reason why runs are left out.
        where: which runs of a dataset are read.

    Raises:
        InputError: there is no run.
    """
    if dataset := Dataset.at(path):
        runs, left_out = dataset.selected(where)
        for reason in left_out:
            say(f"warning: {reason}")
        return [_known(run) for run in runs]
    if where is not None:
        raise InputError(
            f"a condition selects runs of a dataset, and {path} is not one",
            f"make one: syncline ingest {path} --into DATASET",
        )
    if path == "-":
        return [Found(path, source, is_stream=True)]
    if not Path(path).exists():
        found = sorted(glob.glob(path)) if glob.has_magic(path) else []  # noqa: PTH207
        if not found:
            raise InputError(
                f"cannot read {path}: no such file or folder",
                "check the name; a quoted pattern names several runs: 'base/*.log'",
            )
        return [run for one in found for run in runs_of(one, source, say)]
    itself = _found(path, source)
    if not itself.is_folder or is_run(Path(path)):
        return [itself]
    members, others = [], []
    for child in sorted(Path(path).iterdir()):
        if child.name.startswith("."):
            continue
        one = _found(str(child), source)
        (members if one.is_baseline or is_run(Path(one.path), source) else others).append(one)
    if not members:
        raise InputError(
            f"{path} is a folder without runs: it has no logs, traces, recordings, tables or baselines",
            f"if the runs are in subfolders, name them: '{path.rstrip('/')}/*/*.log'",
        )
    if others:
        say(f"note: {skipped(path, [Path(other.path).name for other in others])}")
    return members


def _found(path: str, source: str | None) -> Found:
    """Returns a run by its path, with what must be known before it can be read."""
    mode = 0
    with contextlib.suppress(OSError):
        mode = Path(path).stat().st_mode
    is_stream = mode != 0 and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return Found(path, source, stat.S_ISDIR(mode), is_stream)


def _known(run: Kind) -> Found:
    """Returns a run of a dataset, of which the index says what it is."""
    found = Found(run.path)
    found.is_baseline, found.input = False, run
    return found
