"""Opens a file by its inode number and generation (open_by_handle_at), to learn its path."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from pathlib import Path

from syncline.record.mounts import Mount

_INO32_GEN, _XFS_INO64_GEN, _BTRFS = 1, 0x81, 0x4D
# File systems with handles of inode number and generation.
_WITH_INO32 = {"ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "xfs"}
_DELETED = " (deleted)"


class NoPath(Exception):
    """The path of a file is unknown. The text says why."""


def path_of(mount: Mount, folder: str, ino: int, generation: int) -> str:
    """Returns the path of a file as seen through a mount.

    Args:
        mount: a mount of the file's file system.
        folder: where it can be opened. That differs from its mount point in another mount namespace.
        ino: the inode number.
        generation: the generation of the inode.

    Raises:
        NoPath: it is unknown.
    """
    kind, handle = _handle(mount, ino, generation)
    try:
        inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise NoPath(f"{folder} cannot be opened: {error.strerror}") from None
    try:
        file = _open(inside, kind, handle)
    except OSError as error:
        if error.errno == errno.ESTALE:
            raise NoPath("the file was deleted before its path could be read") from None
        raise NoPath(f"its file handle cannot be opened: {error.strerror}") from None
    finally:
        os.close(inside)
    try:
        status = os.fstat(file)
        path = str(Path(f"/proc/self/fd/{file}").readlink())
    except OSError as error:
        raise NoPath(f"its path cannot be read: {error.strerror}") from None
    finally:
        os.close(file)
    if status.st_ino != ino:
        raise NoPath("its file handle is that of another file")
    if status.st_nlink == 0 and path.endswith(_DELETED):
        return path.removesuffix(_DELETED)
    if not path.startswith("/") or path == "/" or not _is(path, status):
        # The kernel had only the inode in memory, and no name of it.
        raise NoPath("the kernel did not have its path in memory")
    return path


def _is(path: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(Path(path).lstat(), status)
    except OSError:
        # It is in another mount namespace, or was renamed just now.
        return True


def _handle(mount: Mount, ino: int, generation: int) -> tuple[int, bytes]:
    if mount.kind == "btrfs":
        if mount.subvolume is None:
            raise NoPath("the subvolume is unknown")
        return _BTRFS, struct.pack("=QQI", ino, mount.subvolume, generation)
    if mount.kind not in _WITH_INO32:
        raise NoPath(f"files of {mount.kind} cannot be opened by their number")
    if ino < 2**32:
        return _INO32_GEN, struct.pack("=II", ino, generation)
    if mount.kind == "xfs":
        return _XFS_INO64_GEN, struct.pack("=QI", ino, generation)
    raise NoPath("its inode number is too large for a file handle")


def _open(folder: int, kind: int, handle: bytes) -> int:
    data = ctypes.create_string_buffer(struct.pack("=Ii", len(handle), kind) + handle)
    libc = ctypes.CDLL(None, use_errno=True)
    file = libc.open_by_handle_at(folder, data, os.O_PATH | os.O_CLOEXEC)
    if file < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(file)
