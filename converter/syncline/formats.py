"""Names of files: the endings that choose a format, and the names by which folders of Syncline are recognized."""

from __future__ import annotations

from pathlib import Path

from syncline import _core
from syncline.run_directory import DEVICES, MANIFEST

__all__ = [
    "BASELINE",
    "DATASET",
    "DEVICES",
    "MANIFEST",
    "TABLE_ENDINGS",
    "format_of",
    "holds_tables",
    "is_low_level_log",
    "is_table_file",
    "is_table_folder",
    "runs_in",
    "table_ending",
]

# The first bytes of a stored baseline.
BASELINE = b'{"syncline_baseline":'
# The file that marks a dataset.
DATASET = "syncline_dataset.json"

_ENDINGS = {name: tuple(endings) for name, endings in _core.FORMATS}


def _with_compression(endings: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(ending + packed for ending in endings for packed in ("", ".gz", ".zst"))


# Endings of high-level logs by format. Parquet is compressed inside.
TABLE_ENDINGS = {
    "parquet": _ENDINGS["parquet"],
    "csv": _with_compression(_ENDINGS["csv"]),
    "jsonl": _with_compression(_ENDINGS["jsonl"]),
}
_LOW_LEVEL_ENDINGS = _with_compression(_ENDINGS["events.jsonl"])


def runs_in(folder: Path) -> list[Path]:
    """Returns the folders with tables and the high-level logs in a folder, sorted by name."""
    return sorted(
        child
        for child in folder.iterdir()
        if not child.name.startswith(".") and (holds_tables(child) or is_table_file(child))
    )


def is_table_folder(path: Path) -> bool:
    """Returns whether the folder holds the table of requests."""
    return (path / "syncline_sync.parquet").is_file()


def holds_tables(path: Path) -> bool:
    """Returns whether the folder holds tables of a run, possibly without the table of requests."""
    return any(path.glob("syncline_*.parquet"))


def is_table_file(path: Path) -> bool:
    """Returns whether a file has the name of a high-level log."""
    return table_ending(path) is not None and path.is_file()


def table_ending(path: Path) -> tuple[str, str] | None:
    """Returns the format and the ending of a high-level log by its name; None for another name."""
    name = path.name.lower()
    if is_low_level_log(path):
        return None
    for form, endings in TABLE_ENDINGS.items():
        for ending in endings:
            if name.endswith(ending):
                return form, ending
    return None


def is_low_level_log(path: Path) -> bool:
    """Returns whether a file has the name of a low-level log."""
    return path.name.lower().endswith(_LOW_LEVEL_ENDINGS)


def format_of(output: str) -> str | None:
    """Returns the output format that the core chooses for a name; None if it chooses none."""
    if Path(output).is_dir():
        return "tables"
    chosen = (name for name, endings in _ENDINGS.items() if output.endswith(endings))
    return next(chosen, None)
