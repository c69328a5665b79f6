"""What the tests of the core share: its tables as rows, and the fixtures."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
from syncline import _core

from tests.reference import thesis

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data" / "thesis"
RECORDINGS = sorted(path.name for path in DATA.glob("*.log*"))
# Quick enough for what is done several times over.
SMALL = [name for name in RECORDINGS if name != "bg.log.gz"]
KEYS = {"sync": "sync_id", "bio": "bio_id", "call": "call_id", "loss": "reason"}

Rows = list[dict[str, Any]]


@cache
def recording(name: str) -> bytes:
    """A recording's bytes, unpacked."""
    data = (DATA / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


def tables(folder: Path) -> dict[str, Rows]:
    """The tables of a folder that the core wrote."""
    found = {}
    with duckdb.connect() as db:
        for table in (*KEYS, "wait", "mark", "meta"):
            cursor = db.execute(f"SELECT * FROM '{folder}/syncline_{table}.parquet'")
            columns = [column[0] for column in cursor.description]
            found[table] = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    return found


def convert(
    folder: Path, log: bytes, to: str = "out/", name: str = "in.log", **options: Any
) -> Path:
    """Converts a log with the core."""
    source = folder / name
    source.write_bytes(log)
    out = f"{folder}/{to}"
    _core.convert([str(source)], out, **options)
    return Path(out)


def core(folder: Path, log: bytes, **options: Any) -> dict[str, Rows]:
    """A log's tables as the core makes them."""
    return tables(convert(folder, log, **options))


def assert_same(reference: thesis.Tables, made: dict[str, Rows]) -> None:
    """Every column of every row; examples and meanings are for people."""
    for table, key in KEYS.items():
        want = {row[key]: row for row in getattr(reference, table)}
        have = {row[key]: row for row in made[table]}
        assert have.keys() == want.keys(), table
        for number, row in want.items():
            for column, value in row.items():
                if column not in ("example", "meaning"):
                    assert have[number][column] == value, (table, number, column)
