"""Temporary folders. What a killed run has left is removed by the next run that needs such a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["scratch_folder"]

_PREFIX = "syncline-tmp-"
# Locked as long as the folder is used.
_LOCK = ".lock"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yields a new folder that only this user can open, and removes it."""
    _remove_dead(Path(tempfile.gettempdir()))
    folder, lock = _create()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _create() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # A file system without locks does not let another run lock it either.
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another run may have removed it before it was locked.
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(lock), (folder / _LOCK).stat()):
                return folder, lock
        os.close(lock)


def _remove_dead(parent: Path) -> None:
    with contextlib.suppress(OSError):
        for folder in parent.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                _remove_if_dead(folder)


def _remove_if_dead(folder: Path) -> None:
    """Removes a folder of this user that no process has locked. Raises OSError if one has."""
    status = folder.lstat()
    if status.st_uid != os.geteuid():
        return
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # It does not follow a symbolic link.
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
