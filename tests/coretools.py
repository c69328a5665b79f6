"""Shared by the tests of the core: recorded logs, and the tables of the core as rows."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from syncline import _core

from tests import once
from tests.reference import thesis

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data" / "thesis"
RECORDINGS = sorted(path.name for path in DATA.glob("*.log*"))
# Small enough for tests that convert a log several times.
SMALL = [name for name in RECORDINGS if name != "bg.log.gz"]
KEYS = {"sync": "sync_id", "bio": "bio_id", "call": "call_id", "loss": "reason"}

Rows = list[dict[str, Any]]


@cache
def recording(name: str) -> bytes:
    """The decompressed bytes of a recording."""
    data = (DATA / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


def tables(folder: Path) -> dict[str, Rows]:
    """Reads the tables that the core wrote to a folder."""
    names = (*KEYS, "wait", "phase", "journal", "write_wait", "file_op", "mark", "meta")
    return {name: once.read_rows(folder / f"syncline_{name}.parquet") for name in names}


def convert(
    folder: Path, log: bytes, to: str = "out/", name: str = "in.log", **options: Any
) -> Path:
    """Converts a log with the core. Returns the output path."""
    source = folder / name
    source.write_bytes(log)
    out = f"{folder}/{to}"
    _core.convert([str(source)], out, **options)
    return Path(out)


def core(folder: Path, log: bytes, **options: Any) -> dict[str, Rows]:
    """Converts a log with the core. Returns its tables."""
    # Compression takes half of the time. `convert` alone compresses, so the tests of files and engines read what users have.
    return tables(convert(folder, log, **{"is_temporary": True, **options}))


def syncs(folder: Path, log: bytes, **options: Any) -> Rows:
    """Converts a log with the core. Returns the rows of its requests alone, in a tenth of the time of all tables: for tests of many inputs."""
    out = convert(folder, log, "out.jsonl", **{"is_temporary": True, **options})
    return [json.loads(line) for line in out.read_bytes().splitlines()]


def assert_same(reference: thesis.Tables, converted: dict[str, Rows]) -> None:
    """Compares all columns of all rows, except the texts `example` and `meaning`."""
    for table, key in KEYS.items():
        expected = {row[key]: row for row in getattr(reference, table)}
        actual = {row[key]: row for row in converted[table]}
        assert actual.keys() == expected.keys(), table
        for number, row in expected.items():
            for column, value in row.items():
                if column not in ("example", "meaning"):
                    assert actual[number][column] == value, (table, number, column)


def file_name(request: dict[str, Any]) -> str:
    """The name that reports give to the file of a request."""
    if request["path"]:
        return str(request["path"])
    ino, dev = request.get("ino"), request.get("dev")
    return "[unknown file]" if None in (ino, dev) else f"inode {ino} on {dev}"
