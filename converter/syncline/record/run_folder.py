"""The folder of a recording.

Recorders run as root, and the folder may be in one that another user can write to. So the folder is
created here and nobody else can write to it. Its files are reached through the open folder, because
its name may lead elsewhere at any time.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

from syncline.record.errors import RecordError
from syncline.record.native import open_above
from syncline.run_directory import MANIFEST
from syncline.users import sudo_caller

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RunFolder:
    """An open folder of mode 0700.

    `name` is the name that the user has given. `path` leads to the folder whatever happens to its
    name, in this process and in those that it starts.
    """

    def __init__(self, name: Path, parent: int, last: str, folder: int) -> None:
        self.name = name
        self.path = Path(f"/proc/{os.getpid()}/fd/{folder}")
        self._parent = parent
        self._last = last
        self._folder = folder

    @classmethod
    def create(cls, name: Path, *, replace: bool) -> RunFolder:
        """Creates the folder and those above it. An empty folder of this user is used.

        Args:
            name: the name of the folder.
            replace: whether to replace a recording.

        Raises:
            RecordError: it cannot be created, is not empty, or is in the hands of another user.
        """
        parent = -1
        try:
            parent, last = open_above(name)
            return cls(name, parent, last, _make(name, parent, last, replace))
        except BaseException as error:
            if parent >= 0:
                os.close(parent)
            if isinstance(error, OSError):
                raise RecordError(f"cannot create {name}: {error.strerror}") from None
            raise

    def shown(self, text: str) -> str:
        """Returns a text with the name of the folder instead of its path."""
        return text.replace(str(self.path), str(self.name))

    def has_name(self) -> bool:
        """Returns whether the name still leads to this folder."""
        with contextlib.suppress(OSError):
            return os.path.samestat(self.name.stat(), os.fstat(self._folder))
        return False

    def write(self, name: str, text: str) -> None:
        """Writes a file, whole or not at all."""
        part = self.path / f".{name}.part"
        part.write_text(text)
        part.replace(self.path / name)

    def remove_unless_data(self) -> None:
        """Removes the folder if it holds no data."""
        if not any(path.stat().st_size for path in self.path.iterdir() if path.is_file()):
            self.remove()

    def remove(self) -> None:
        """Removes the folder."""
        _remove_contents(self._folder)
        with contextlib.suppress(OSError):
            os.rmdir(self._last, dir_fd=self._parent)

    def hand_over(self) -> None:
        """Gives the folder to the user who has called sudo. Raises OSError."""
        caller = sudo_caller()
        if caller is None:
            return
        for _, folders, files, folder in os.fwalk(".", dir_fd=self._folder):
            for name in (*folders, *files):
                os.chown(name, caller.uid, caller.gid, dir_fd=folder, follow_symlinks=False)
        # Last, because its owner may change what is in it.
        os.fchown(self._folder, caller.uid, caller.gid)

    def close(self) -> None:
        os.close(self._folder)
        os.close(self._parent)


def _make(name: Path, parent: int, last: str, replace: bool) -> int:
    """Opens the folder `last` in `parent`: a new one, or an old one that only this user can write to."""
    with contextlib.suppress(FileNotFoundError):
        old = os.open(last, _OPEN, dir_fd=parent)
        try:
            _empty(name, old, replace)
            if os.fstat(old).st_uid == os.geteuid():
                return old
        except BaseException:
            os.close(old)
            raise
        os.close(old)
        # The folder of the caller of sudo, who could write to it during the recording.
        os.rmdir(last, dir_fd=parent)
    os.mkdir(last, 0o700, dir_fd=parent)
    folder = os.open(last, _OPEN, dir_fd=parent)
    status = os.fstat(folder)
    # Whoever can write to `parent` may have exchanged it since. Another empty folder of ours is as good.
    if status.st_uid != os.geteuid() or status.st_mode & 0o077 or not _is_empty(folder):
        os.close(folder)
        raise RecordError(
            f"{name} does not have the owner and the mode that it was created with: another user has"
            " replaced it, or its file system does not store them",
            "record to a folder on a local disk, in one of your own: -o DIR",
        )
    return folder


def _empty(name: Path, folder: int, replace: bool) -> None:
    """Removes a recording from a folder.

    Raises:
        RecordError: it is not empty and no recording, or another user can write to it.
    """
    status = os.fstat(folder)
    caller = sudo_caller()
    if status.st_uid not in (os.geteuid(), caller.uid if caller else -1):
        raise RecordError(f"{name} belongs to another user", "name a new folder with -o")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RecordError(
            f"other users can write to {name}",
            f"name a new folder with -o, which Syncline creates; or: chmod go-w {name}",
        )
    if _is_empty(folder):
        return
    if not (replace and _is_file(MANIFEST, folder)):
        raise RecordError(
            f"{name} is not empty",
            "name another folder with -o, or replace a recording with --force",
        )
    _remove_contents(folder)


def _is_empty(folder: int) -> bool:
    return not os.listdir(folder)


def _is_file(name: str, folder: int) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False


def _remove_contents(folder: int) -> None:
    for name in os.listdir(folder):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            # Python 3.11 and later would take the folder as an argument.
            shutil.rmtree(f"/proc/self/fd/{folder}/{name}")
        else:
            os.unlink(name, dir_fd=folder)
