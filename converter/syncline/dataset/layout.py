"""The files of a dataset, and the entry that its index has for each run.

    DATASET/
      syncline_dataset.json               the version of this layout
      _runs/RUN.INPUT.json                the entry of a run: facts, files, figures. It is written last.
      _staging/                           partitions that are being written
      _claims/NAME.TOKEN                  in an object store: what a command is changing
      host=HOST/day=DAY/run=RUN/          a partition: the tables of a run, and a copy of its entry

A run is in the dataset if it has an entry. docs/reference/datasets.md describes the format.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

from syncline.formats import DATASET as MARKER
from syncline.structured import parse_json, text, whole_number

__all__ = [
    "CLAIMS",
    "ENTRIES",
    "ENTRY",
    "FACT",
    "MARKER",
    "STAGING",
    "TAKEN",
    "VERSION",
    "Entry",
    "TableFile",
    "check_marker",
    "identities",
    "identity",
    "marker",
    "parse",
    "rows_of",
    "run_id",
    "run_of",
    "serialized",
    "table_name",
]

# Increases whenever an older Syncline would misread a dataset.
VERSION = 1

ENTRIES = "_runs"
STAGING = "_staging"
CLAIMS = "_claims"
# The copy of the entry in the partition. Readers of Parquet folders skip names that begin with `_`.
ENTRY = "_run.json"

# The name that Hive, Spark and DuckDB read as null.
_UNKNOWN = "__HIVE_DEFAULT_PARTITION__"
_DIGITS = 12
# Bytes. A file name has at most 255.
_LONGEST_NAME = 60
_LONGEST_HOST = 200
_INT = 2**63
# Tables whose rows differ between runs, and are the same in all forms of one run.
_OF_ROWS = ("sync", "bio", "call", "wait", "phase", "journal", "write_wait", "file_op", "mark")

# Columns of sql/commands/dataset/run.sql.
TAKEN = frozenset(
    (
        *("run", "name", "host", "day", "started_ns", "duration_ns", "source", "recorder"),
        *("kernel", "request_filter", "requests", "events", "lost", "bytes"),
        *("schema_version", "syncline_version"),
    )
)
# The name of a fact: one of SQL that needs no quotes.
FACT = re.compile(r"[a-z_][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class TableFile:
    """A Parquet file of a partition."""

    bytes: int
    rows: int
    sha256: str
    # Name -> type of DuckDB, in the order of the file.
    columns: dict[str, str]


@dataclass(frozen=True)
class Entry:
    """What the index knows of a run."""

    run: str
    # The input's name.
    name: str
    host: str | None
    # ns since 1970, of the first event.
    started_ns: int | None
    # In UTC, as 2026-11-24.
    day: str | None
    duration_ns: int | None
    schema_version: int
    syncline_version: str
    # What the recording says: source, recorder, kernel, request_filter.
    recorded: dict[str, str]
    # What the user says.
    facts: dict[str, str]
    events: int | None
    # None if the input records no losses.
    lost: int | None
    # Identifies the rows, and the bytes of the input.
    rows_id: str
    input_id: str
    tables: dict[str, TableFile]
    # Rows of the report `summary`: metric, scope, value, unit, known, syncs.
    figures: list[list[Any]] = field(default_factory=list)
    # Names of entries that this one replaces.
    replaces: list[str] = field(default_factory=list)

    @property
    def partition(self) -> str:
        """The folder of the tables, below the dataset."""
        host = _UNKNOWN if self.host is None else quote(self.host, safe="")
        return f"host={host}/day={self.day or _UNKNOWN}/run={self.run}"

    @property
    def file(self) -> str:
        """The name of the entry in the index."""
        return entry_name(self.run, self.input_id)

    @property
    def requests(self) -> int:
        return self.tables["sync"].rows

    @property
    def bytes(self) -> int:
        return sum(table.bytes for table in self.tables.values())


# The name of a run ends with the identity of its rows.
_ENTRY_NAME = re.compile(
    rf".*-(?P<rows>[0-9a-f]{{{_DIGITS}}})\.(?P<input>[0-9a-f]{{{_DIGITS}}})\.json", re.DOTALL
)


def entry_name(run: str, input_id: str) -> str:
    """Returns the name of an entry. Both parts can be found in a listing, without reading the entries."""
    return f"{run}.{input_id[:_DIGITS]}.json"


def identities(name: str) -> set[str]:
    """Returns the identities of the rows and of the input in the name of an entry; none if it has another form."""
    found = _ENTRY_NAME.fullmatch(name)
    return {f"rows-{found['rows']}", f"input-{found['input']}"} if found else set()


def run_of(entry: str) -> str:
    """Returns the key of the run in the name of an entry, which need not be readable."""
    return entry.removesuffix(".json").rpartition(".")[0]


def rows_of(run: str) -> str:
    """Returns the part of the identity of its rows with which the key of a run ends."""
    return run[-_DIGITS:]


def run_id(name: str, rows_id: str) -> str:
    """Returns the key of a run in a dataset: the name of its input, and a part of the identity of its rows."""
    clean = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_LONGEST_NAME]
    return f"{clean or 'run'}-{rows_id[:_DIGITS]}"


def identity(checksums: str, tables: Sequence[str], rows: dict[str, int]) -> str:
    """Identifies the rows of a run: equal for its log, its trace and its tables.

    Args:
        checksums: of the rows of each table, as the tables hold them.
        tables: the names of the tables, in the order of the checksums.
        rows: number of rows of each table.
    """
    found = dict(zip(tables, checksums.split(), strict=False))
    parts = [f"{table} {found.get(table)} {rows.get(table, 0)}" for table in _OF_ROWS]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def table_name(table: str) -> str:
    """Returns the file name of a table."""
    return f"syncline_{table}.parquet"


def check_host(host: str) -> None:
    """Raises ValueError if the name of a host cannot be one of a folder."""
    if not host or len(quote(host, safe="")) > _LONGEST_HOST:
        raise ValueError(f"a host's name has 1 to {_LONGEST_HOST} characters")


def marker() -> bytes:
    """Returns the content of the file that marks a dataset."""
    return json.dumps({"syncline_dataset": VERSION}).encode() + b"\n"


def check_marker(data: bytes) -> int:
    """Returns the version of a dataset.

    Raises:
        ValueError: it is not the file that marks a dataset.
    """
    try:
        return whole_number(parse_json(data)["syncline_dataset"], 2**31, least=1)
    except (KeyError, TypeError) as error:
        raise ValueError(f"no key {error}") from None


def serialized(entry: Entry) -> bytes:
    """Returns an entry as a file."""
    data = {"syncline_run": VERSION, **asdict(entry)}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def parse(data: bytes) -> Entry:
    """Parses the file of an entry.

    Raises:
        ValueError: it is not one, or it was edited to something that this version does not write.
    """
    try:
        return _parsed(parse_json(data))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _parsed(data: dict[str, Any]) -> Entry:
    if data["syncline_run"] != VERSION:
        raise ValueError(f"version {data['syncline_run']!r}, and this Syncline reads {VERSION}")
    tables = {
        text(name): TableFile(
            whole_number(one["bytes"], _INT),
            whole_number(one["rows"], _INT),
            text(one["sha256"]),
            {text(column): _type(kind) for column, kind in one["columns"].items()},
        )
        for name, one in data["tables"].items()
    }
    if "sync" not in tables:
        raise ValueError("no table sync")
    run, day = text(data["run"]), _optional(text, data["day"])
    # Names of folders.
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,90}", run):
        raise ValueError(f"run {run!r}")
    if day is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
        raise ValueError(f"day {day!r}")
    host = _optional(text, data["host"])
    if host is not None:
        check_host(host)
    for name in tables:
        if not re.fullmatch(r"[a-z_]{1,40}", name):
            raise ValueError(f"table {name!r}")
    return Entry(
        run=run,
        name=text(data["name"]),
        host=host,
        started_ns=_optional(_number, data["started_ns"]),
        day=day,
        duration_ns=_optional(_number, data["duration_ns"]),
        schema_version=whole_number(data["schema_version"], 2**31),
        syncline_version=text(data["syncline_version"]),
        recorded=_texts(data["recorded"]),
        facts=_facts(data["facts"]),
        events=_optional(_number, data["events"]),
        lost=_optional(_number, data["lost"]),
        rows_id=_hash(data["rows_id"]),
        input_id=_hash(data["input_id"]),
        tables=tables,
        figures=[_figure(row) for row in data["figures"]],
        replaces=[text(name) for name in data["replaces"]],
    )


def _hash(value: object) -> str:
    """Returns a SHA-256. A part of it becomes a part of a file's name."""
    digits = text(value)
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        raise ValueError(f"{digits!r} is not a SHA-256")
    return digits


def _number(value: object) -> int:
    return whole_number(value, _INT, least=-_INT)


def _optional(check: Any, value: object) -> Any:
    return None if value is None else check(value)


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {text(key): text(value) for key, value in values.items()}


def _facts(values: dict[str, Any]) -> dict[str, str]:
    for key in values:
        if not FACT.fullmatch(key) or key in TAKEN:
            raise ValueError(f"fact {key!r}")
    return _texts(values)


def _type(value: object) -> str:
    """Returns a type of DuckDB, which becomes a part of SQL."""
    kind = text(value)
    if not re.fullmatch(r"[A-Z0-9_ (),]{1,40}", kind):
        raise ValueError(f"type {kind!r}")
    return kind


def _figure(row: list[Any]) -> list[Any]:
    metric, scope, value, unit, known, syncs = row
    for one in (value, known, syncs):
        if one is not None and (not isinstance(one, int | float) or isinstance(one, bool)):
            raise ValueError(f"{one!r} is not a number")
    return [text(metric), text(scope), value, text(unit), known, syncs]
