"""Finds the runs of an INPUT: the input itself, the runs in a folder, or the files that a pattern matches."""

from __future__ import annotations

import glob
from collections.abc import Callable
from pathlib import Path

from syncline import _core
from syncline.errors import InputError
from syncline.inputs import kind_of
from syncline.kinds import holds_tables, is_dataset
from syncline.recordings import is_recording

from . import baseline

__all__ = ["runs_of"]

# Endings of runs in a folder. A .txt is a run if its head is of a known format; all other files are named and skipped.
_ENDINGS = (".log", ".pftrace", ".perfetto-trace", ".dat", ".parquet", ".csv", ".jsonl")
_COMPRESSED = (".gz", ".zst")


def runs_of(
    path: str,
    source: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    where: str | None = None,
) -> list[str]:
    """Returns the paths of the runs of an INPUT.

    Args:
        source: the format given for all logs.
        say: called with a note on each file that is skipped, and each reason why runs are left out.
        where: which runs of a dataset are read.

    Raises:
        InputError: there is no run.
    """
    if is_dataset(path):
        from syncline.dataset import index

        runs, left_out = index.runs_of(path, where)
        for reason in left_out:
            say(f"warning: {reason}")
        return runs
    if where is not None:
        raise InputError(
            f"a condition selects runs of a dataset, and {path} is not one",
            f"make one: syncline ingest {path} --into DATASET",
        )
    if path == "-":
        return [path]
    if not Path(path).exists():
        found = sorted(glob.glob(path)) if glob.has_magic(path) else []  # noqa: PTH207
        if not found:
            raise InputError(
                f"cannot read {path}: no such file or folder",
                "check the name; a quoted pattern names several runs: 'base/*.log'",
            )
        return [run for one in found for run in runs_of(one, source, say)]
    if not Path(path).is_dir() or _is_run(Path(path), source):
        return [path]
    runs, others = [], []
    for child in sorted(Path(path).iterdir()):
        if child.name.startswith("."):
            continue
        (runs if _is_run(child, source) else others).append(str(child))
    if not runs:
        raise InputError(
            f"{path} is a folder without runs: it has no logs, traces, recordings, tables or baselines",
            f"if the runs are in subfolders, name them: '{path.rstrip('/')}/*/*.log'",
        )
    for other in others:
        say(f"note: {other} is skipped: it is not a run")
    return runs


def _is_run(path: Path, source: str | None) -> bool:
    if path.is_dir():
        return is_recording(path) or holds_tables(path)
    name = path.name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    if name.endswith(_ENDINGS) or baseline.is_baseline(path):
        return True
    return name.endswith(".txt") and (
        source is not None or kind_of(str(path)) != "log" or _core.detect_format(str(path)) is not None
    )  # fmt: skip
