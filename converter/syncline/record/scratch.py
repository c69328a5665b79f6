"""The folder on a server in which a recording waits to be sent. It is in memory, and somebody removes it however the recorder ends."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from syncline.record import tracefs
from syncline.record.errors import RecordError

# In memory on most machines, the best one first.
_PLACES = ("/dev/shm", "/run", "/tmp")
_NAME = "syncline-sending-{}-{}"
_OF = re.compile(r"syncline-sending-(\d+)-(\d+)")
# Less than this is not enough for a recording to wait in.
_LEAST_BYTES = 16 << 20


@contextlib.contextmanager
def folder(places: tuple[str, ...] = _PLACES) -> Iterator[Path]:
    """Creates the folder, which only this user can read, and removes it.

    Raises:
        RecordError: there is no room for it.
    """
    name = _NAME.format(*tracefs.owner())
    path = None
    for place in sorted(filter(os.path.isdir, places), key=lambda place: -_room(place)):
        if _room(place) >= _LEAST_BYTES:
            with contextlib.suppress(OSError):
                Path(place, name).mkdir(mode=0o700)
                path = Path(place, name)
                break
    if path is not None:
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
        return
    raise RecordError(
        f"there is no folder on the server with {_LEAST_BYTES >> 20} MB of room in which a recording could wait to be sent",
        f"free some of {' or '.join(places)}",
    )


def _room(place: str) -> int:
    with contextlib.suppress(OSError):
        return shutil.disk_usage(place).free
    return 0


def remove_dead(places: tuple[str, ...] = _PLACES) -> list[str]:
    """Removes the folders of recorders that were killed, and returns their names."""
    removed = []
    for place in places:
        for path in Path(place).glob(_NAME.format("*", "*")):
            of = _OF.fullmatch(path.name)
            # Everybody may create a folder here.
            if (
                of
                and not tracefs.is_running(int(of[1]), of[2])
                and path.lstat().st_uid == os.geteuid()
            ):
                shutil.rmtree(path, ignore_errors=True)
                removed.append(str(path))
    return removed
