"""Finds the files of one run or of many: tables that `syncline convert` wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from syncline.formats import is_low_level_log, is_table_folder, runs_in, table_ending

from .errors import EngineError

# The tables that files hold. The engine derives the others.
TABLES = (
    "sync",
    "bio",
    "call",
    "wait",
    "phase",
    "journal",
    "write_wait",
    "file_op",
    "loss",
    "mark",
    "meta",
)

# The hint for an input that is not a result of `syncline convert`.
CONVERT = "Convert the log to a folder of tables: syncline convert LOG -o DIR/"


@dataclass
class RunFiles:
    """The files of one run by table. `log` is set if the run is only a high-level log."""

    name: str
    tables: dict[str, Path] = field(default_factory=dict)
    log: str | None = None


def find_runs(path: Path) -> list[RunFiles]:
    """Returns the runs of a path: a table folder, a high-level log, or a folder of several.

    A single run has an empty name.

    Raises:
        EngineError: the path does not exist or holds no run.
    """
    if path.is_dir():
        return [of_folder(path)] if is_table_folder(path) else of_members(path, runs_in(path))
    if not path.exists():
        raise EngineError(f"{path}: no such file or folder", "Check the path.")
    return [of_file(path)]


def of_members(folder: Path, members: Sequence[Path]) -> list[RunFiles]:
    """Returns the runs of a folder of several: folders of tables and high-level logs.

    Raises:
        EngineError: there is none, or one lacks its requests.
    """
    _check_requests(folder)
    if not members:
        raise EngineError(
            f"{folder}: no syncline_sync.parquet in this folder, and no runs in its folders",
            CONVERT,
        )
    for run in members:
        _check_requests(run)
    stems = Counter(_stem(run) for run in members)
    return [
        of_folder(run, name) if run.is_dir() else of_file(run, name)
        for run in members
        # `a/` and `a.csv` have the same stem, so the full name distinguishes them.
        for name in [_stem(run) if stems[_stem(run)] == 1 else run.name]
    ]


def of_folder(folder: Path, name: str = "") -> RunFiles:
    """Returns the run whose tables are in a folder."""
    files = {table: folder / f"syncline_{table}.parquet" for table in TABLES}
    return RunFiles(name, {table: file for table, file in files.items() if file.is_file()})


def of_file(file: Path, name: str = "") -> RunFiles:
    """Returns the run of a high-level log.

    Raises:
        EngineError: its name does not say in which format it is.
    """
    if is_low_level_log(file):
        raise EngineError(f"{file}: a low-level log holds events, not requests", CONVERT)
    if table_ending(file) is None:
        raise EngineError(f"{file}: not .parquet, .csv or .jsonl, nor a folder of these", CONVERT)
    return RunFiles(name, {"sync": file}, log=str(file))


def _check_requests(path: Path) -> None:
    """Raises EngineError for a folder that holds tables of a run without its requests."""
    others = [table for table in TABLES if (path / f"syncline_{table}.parquet").is_file()]
    if others and "sync" not in others:
        raise EngineError(
            f"{path}: syncline_sync.parquet is missing; the only tables of a run in it are"
            f" {', '.join(others)}",
            CONVERT,
        )


def _stem(path: Path) -> str:
    found = table_ending(path) if path.is_file() else None
    return path.name[: -len(found[1])] if found else path.name
