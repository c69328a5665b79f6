"""Writes with their places, sizes and measured costs, as a table in CSV has them."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from syncline.errors import InputError

__all__ = [
    "KINDS",
    "LARGEST_CALL",
    "Cut",
    "Write",
    "Writes",
    "kind_of_flags",
    "of_scenario",
    "read_csv",
]

# sync: a sync call, which writes back what is dirty of a file, or of all files without a path.
KINDS = ("cached", "synchronized", "direct", "direct_synchronized", "library", "sync")
_COLUMNS = ("start_ns", "duration_ns", "kind", "path", "offset_bytes", "size_bytes")
_OPTIONAL = ("dirty_bytes", "scenario", "file_size_bytes", "is_datasync")
_DURABLE = ("synchronized", "direct_synchronized")
_TAKEN = {
    "file_size_bytes": "each file is empty at the start",
    "is_datasync": "synchronized writes are O_SYNC, and syncs are fsync",
}
_EXAMPLE = f"the columns are {', '.join(_COLUMNS)}, and may be {', '.join(_OPTIONAL)}"
_MOST = 1 << 62
# MAX_RW_COUNT: no call of Linux writes more.
LARGEST_CALL = 0x7FFF_F000


@dataclass(frozen=True)
class Write:
    """One call.

    `dirty_bytes`: what was dirty after it, of the whole machine; None if unknown. `file`: which file it is, if its path does not say
    so, because it was renamed or another file had its name. `file_size`: size of the file before it; None if unknown. `is_datasync`: of
    what is durable at its return, that it is data, and what is needed to read it, but no times: O_DSYNC, fdatasync.
    """

    start_ns: int
    duration_ns: int
    kind: str
    path: str
    offset: int
    size: int
    dirty_bytes: int | None = None
    scenario: str | None = None
    file: str | None = None
    file_size: int | None = None
    is_datasync: bool = False
    # A sync of all files whose duration has no commit: that of a function of the kernel which writes data and inodes only.
    is_with_commit: bool = True

    @property
    def is_durable(self) -> bool:
        """Returns whether it is a write whose data is durable at its return."""
        return self.kind in _DURABLE

    @property
    def key(self) -> str:
        """Returns what no two files have in common. It is empty for a sync of all files."""
        return self.file or self.path

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class Cut:
    """A file was cut to a size, or deleted: then the size is 0. `key` is that of its writes."""

    time_ns: int
    key: str
    size: int


@dataclass(frozen=True)
class Writes:
    """The writes of a recording, in the order of their starts, and what was not used, in sentences."""

    writes: Sequence[Write]
    notes: list[str] = field(default_factory=list)
    # Background limit and hard limit of dirty page cache; None if they were not recorded.
    limits_bytes: tuple[int, int] | None = None
    # In the order of their times.
    cuts: Sequence[Cut] = ()
    # Whether a deletion or a call of truncate is in the input.
    has_deletions: bool = False
    # What is taken for granted because the input does not say it, by the column of a table that would.
    taken_for_granted: Mapping[str, str] = field(default_factory=dict)
    # Each duration has the work of the recorder in it, which may be longer than the call.
    has_overhead: bool = False
    # Nothing was measured: durations are 0, and a call begins when the one before and the pause after it end.
    is_plan: bool = False


def read_csv(path: str, text: str) -> Writes:
    """Reads a table.

    Raises:
        InputError: names the line.
    """
    rows = csv.reader(text.splitlines())
    header = next(rows, [])
    columns = [name.strip() for name in header]
    if missing := [name for name in _COLUMNS if name not in columns]:
        raise InputError(f"{path}:1: no column {missing[0]}", _EXAMPLE)
    if unknown := [name for name in columns if name not in (*_COLUMNS, *_OPTIONAL)]:
        raise InputError(f"{path}:1: unknown column '{unknown[0]}'", _EXAMPLE)
    found = []
    for row in rows:
        if not row:
            continue
        where = f"{path}:{rows.line_num}"
        if len(row) != len(columns):
            raise InputError(f"{where}: {len(row)} values for {len(columns)} columns", _EXAMPLE)
        values = dict(zip(columns, (value.strip() for value in row), strict=True))
        if values["kind"] not in KINDS:
            raise InputError(f"{where}: kind '{values['kind']}'", f"write one of: {', '.join(KINDS)}")  # fmt: skip
        start, duration, offset, size = (
            _number(where, name, values[name])
            for name in ("start_ns", "duration_ns", "offset_bytes", "size_bytes")
        )
        dirty, size_before = (
            values.get(name) or None for name in ("dirty_bytes", "file_size_bytes")
        )
        if values["kind"] == "sync" and (offset or size):
            raise InputError(f"{where}: a sync with an offset or a size", "write 0 for both")
        if size > LARGEST_CALL:
            raise InputError(
                f"{where}: size_bytes '{values['size_bytes']}': no call of Linux writes more than {LARGEST_CALL:,} bytes",
                "give each call a line of its own",
            )
        found.append(
            Write(
                *(start, duration, values["kind"], values["path"], offset, size),
                None if dirty is None else _number(where, "dirty_bytes", dirty),
                values.get("scenario") or None,
                file_size=None
                if size_before is None
                else _number(where, "file_size_bytes", size_before),
                is_datasync=_flag(where, "is_datasync", values.get("is_datasync") or "0"),
            )
        )
    if not found:
        raise InputError(f"{path} has no write", _EXAMPLE)
    found.sort(key=lambda one: one.start_ns)
    taken = {name: what for name, what in _TAKEN.items() if name not in columns}
    return Writes(
        _from_empty(found) if "file_size_bytes" in taken else found, taken_for_granted=taken
    )


def _from_empty(writes: Sequence[Write]) -> list[Write]:
    """Returns the writes with the sizes of their files, if all are empty at the start of a scenario."""
    ends: dict[tuple[str | None, str], int] = {}
    found = []
    for one in writes:
        file = one.scenario, one.path
        found.append(replace(one, file_size=ends.get(file, 0)))
        if one.size:
            ends[file] = max(ends.get(file, 0), one.offset + one.size)
    return found


def _number(where: str, name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) >= _MOST:
        raise InputError(f"{where}: {name} '{text}' is not a whole number", "write ns and bytes without a unit")  # fmt: skip
    return int(text)


def _flag(where: str, name: str, text: str) -> bool:
    if text not in ("0", "1"):
        raise InputError(f"{where}: {name} '{text}' is not 0 or 1", "write 1 for O_DSYNC or fdatasync, and else 0")  # fmt: skip
    return text == "1"


def kind_of_flags(*, is_direct: bool, is_synchronized: bool) -> str:
    """Returns the kind of a write by the flags of its file and of its call."""
    if is_direct:
        return "direct_synchronized" if is_synchronized else "direct"
    return "synchronized" if is_synchronized else "cached"


def of_scenario(write: Write) -> str:
    """Returns the name under which a write is summed up: its scenario, or else its kind."""
    return write.scenario or write.kind
