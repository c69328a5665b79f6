"""Writes of a stock kernel's events: `write_enter` and `write_exit` say the place of each, and what was dirty after it.

The core pairs them. Here is decided which calls are used: a call that it could not pair is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncline.errors import InputError
from syncline.recordings import Filter
from syncline.report import read_sql

from .writes import Write, Writes, kind_of_flags

if TYPE_CHECKING:
    import duckdb

__all__ = ["from_table"]

# By the reasons of sql/commands/write_model/outcomes.sql.
_NOT_USED = {
    "loss": "calls during which events were lost",
    "no return": "calls whose return is not in the recording",
    "no start": "returns of calls whose start is not in the recording",
    "doubtful": "calls that begin in another of their thread whose return is not in the recording",
    "late": "starts and returns that the recording has long after later events",
    "failed": "calls that failed, or that ended later (asynchronous I/O)",
    "filter": "calls that the filter left out",
    "other device": "syncs of file systems without a write that is used",
}


def from_table(connection: duckdb.DuckDBPyConnection, chosen: Filter, lost: int) -> Writes:
    """Returns the writes and syncs of the table `writes`, in the order of their starts.

    Args:
        connection: has the table of writes that the core makes, with numbers of its rows.
        chosen: which writes are used, by thread name, path and device.
        lost: how many events the recorder lost.

    Raises:
        InputError: no write is left, or the filter needs what the events do not say.
    """
    if chosen != Filter(comm=chosen.comm, path=chosen.path, device=chosen.device):
        raise InputError(
            "only --comm, --path and --device select writes in the events of a kernel",
            "leave out the other filters",
        )
    connection.execute(
        f"CREATE TEMP TABLE outcomes AS {read_sql('commands/write_model', 'outcomes')}",
        {"comm": chosen.comm, "path": chosen.path, "device": chosen.device},
    )
    unused = connection.execute(read_sql("commands/write_model", "unused")).fetchall()
    notes = [f"not used: {_NOT_USED[reason]} ({number:,})" for reason, number in unused]
    if lost:
        notes.insert(0, f"the recorder lost {lost:,} events, so writes may be missing")
    rows = connection.execute(read_sql("commands/write_model", "used")).fetchall()
    found = [_write(*row) for row in rows]
    if not any(one.kind != "sync" for one in found):
        raise InputError("no write can be used" + (f": {'; '.join(notes)}" if notes else ""), "use another filter, or none")  # fmt: skip
    ((file_systems,),) = connection.execute(
        read_sql("commands/write_model", "file_systems")
    ).fetchall()
    if file_systems > 1:
        notes.append(f"the writes are to {file_systems} file systems, and the model has one device: --device selects one")  # fmt: skip
    ((background, hard),) = connection.execute(
        read_sql("commands/write_model", "limits")
    ).fetchall()
    limits = None if background is None else (background, hard)
    return Writes(found, notes, limits_bytes=limits)


def _write(
    start: int,
    duration: int,
    path: str,
    offset: int,
    size: int,
    dirty: int | None,
    is_sync: bool,
    is_direct: bool,
    is_synchronized: bool,
    file_size: int | None,
    is_datasync: bool,
) -> Write:
    kind = "sync" if is_sync else kind_of_flags(is_direct=is_direct, is_synchronized=is_synchronized)  # fmt: skip
    # The probe of a sync of all is on the function that writes data and inodes. The commit follows it.
    return Write(
        *(start, duration, kind, path, offset, size, dirty),
        file_size=file_size,
        is_datasync=is_datasync,
        is_with_commit=bool(path),
    )
