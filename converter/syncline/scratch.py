"""Temporary folders, which are removed even if a signal arrives while one is created or removed.

What a killed run has left is removed by the next run that needs such a folder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["create", "folder", "remove", "remove_all", "remove_dead"]

_PREFIX = "syncline-tmp-"
# Locked as long as the folder is used.
_LOCK = ".lock"

# The folders of this process, with the descriptors of their locks once they have one.
_live: dict[Path, int | None] = {}


def create(parent: Path | None = None) -> Path:
    """Creates a folder that only this user can open, in `parent`, or else in TMPDIR, /tmp or /var/tmp.

    Raises:
        OSError: it cannot be created.
    """
    parent = parent or _parent()
    remove_dead(parent)
    while True:
        path = parent / (_PREFIX + secrets.token_hex(8))
        # Noted first: a signal may arrive as soon as the folder exists.
        _live[path] = None
        path.mkdir(mode=0o700)
        if _locked(path):
            return path
        remove(path)


def _parent() -> Path:
    """Returns the folder for temporary files. `tempfile` writes a file to find it, which a signal can leave behind."""
    for name in (os.environ.get("TMPDIR"), "/tmp", "/var/tmp"):
        if name and Path(name).is_dir() and os.access(name, os.W_OK | os.X_OK):
            return Path(name)
    raise OSError(errno.EACCES, "no folder for temporary files can be written: set TMPDIR", "/tmp")


def _locked(path: Path) -> bool:
    """Locks a folder. Returns False if another run has removed it before."""
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return False
    _live[path] = lock
    # A file system without locks does not let another run lock it either.
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(lock), (path / _LOCK).stat())
    return False


def remove(path: Path) -> None:
    """Removes a folder of `create` with its contents."""
    shutil.rmtree(path, ignore_errors=True)
    lock = _live.pop(path, None)
    if lock is not None:
        os.close(lock)


@contextmanager
def folder(parent: Path | None = None) -> Iterator[Path]:
    """Yields a new temporary folder, and removes it afterwards. The argument is that of `create`."""
    path = create(parent)
    try:
        yield path
    finally:
        remove(path)


def remove_all() -> None:
    """Removes the folders that still exist, when the process ends."""
    for path in [*_live]:
        remove(path)


def remove_dead(parent: Path) -> None:
    """Removes the folders of killed runs from a folder."""
    with contextlib.suppress(OSError):
        for path in parent.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                _remove_if_dead(path)


def _remove_if_dead(path: Path) -> None:
    """Removes a folder of this user that no process has locked. Raises OSError if one has."""
    if path.lstat().st_uid != os.geteuid():
        return
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # It does not follow a symbolic link.
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)
