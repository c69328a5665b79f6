"""What is at the path of an INPUT, as far as it says which kind the INPUT is. The file system is asked once."""

from __future__ import annotations

import errno
import gzip
import stat
import zlib
from functools import cached_property
from pathlib import Path

from syncline.errors import InputError

__all__ = ["OBJECT_STORE", "Place"]

# How the URL of a dataset in an object store begins.
OBJECT_STORE = "s3://"

_HEAD = 4096
# Errors that say that there is no such file.
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP)


class Place:
    """A path, and what is there."""

    def __init__(self, path: str, source: str | None = None) -> None:
        """Looks at a path.

        Args:
            source: what `--from` says, with which a file is a log.

        Raises:
            InputError: nothing is there.
        """
        self.path = path
        self.source = source
        self.file = Path(path)
        # Neither standard input nor an object store is asked before it is read.
        self.is_url = path.startswith(OBJECT_STORE)
        mode = 0 if path == "-" or self.is_url else _mode(path)
        self.is_folder = stat.S_ISDIR(mode)
        self._is_file = stat.S_ISREG(mode)

    def has(self, name: str) -> bool:
        """Returns whether it is a folder with a file of that name."""
        return self.is_folder and (self.file / name).is_file()

    @cached_property
    def head(self) -> bytes:
        """The first bytes of a file, decompressed. Empty with `--from`, and for what can be read only once.

        Raises:
            InputError: the file cannot be read.
        """
        if self.source or not self._is_file:
            return b""
        if self.start[:2] != b"\x1f\x8b":
            return self.start
        try:
            with gzip.open(self.file) as unpacked:
                return unpacked.read(_HEAD)
        except (OSError, EOFError, zlib.error):
            return b""

    @cached_property
    def start(self) -> bytes:
        """The first bytes of a file as they are stored.

        Raises:
            InputError: the file cannot be read.
        """
        if not self._is_file:
            return b""
        try:
            with self.file.open("rb") as stream:
                return stream.read(_HEAD)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(
                f"cannot read {self.path}: {reason}", f"try: ls -l {self.path}"
            ) from None


def _mode(path: str) -> int:
    """Returns the mode of a file.

    Raises:
        InputError: it cannot be reached.
    """
    try:
        if path:
            return Path(path).stat().st_mode
    except ValueError:
        pass
    except OSError as error:
        if error.errno not in _MISSING:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"cannot read {path}: {reason}", "check the name") from None
    raise InputError(
        f"cannot read {path}: no such file or folder",
        "check the name; `-` is standard input",
    )
