"""Mounts tracefs for a recording where nobody has, such as in a minimal guest or a container, and unmounts it afterwards."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from syncline.record import tracefs

__all__ = ["is_left_behind", "mounted", "unmount_left_behind"]

# The kernel makes this folder for it.
_AT = Path("/sys/kernel/tracing")


@contextlib.contextmanager
def mounted(say: Callable[[str], None], root: Path = Path("/")) -> Iterator[None]:
    """Mounts tracefs if root records and it is missing. What somebody else has mounted stays.

    If it cannot be mounted, the routes say what they lack, so here is only why.

    Args:
        say: called with what was done.
        root: the folder that holds /proc; tests use another one.
    """
    if os.geteuid() != 0:
        yield
        return
    if is_left_behind(root):
        say(f"a recording that was killed left tracefs at {_AT}: unmounting it after this one")
    elif tracefs.find() is not None or not _is_known(root) or not _AT.is_dir():
        yield
        return
    elif error := _call("mount", _source(), os.fsencode(_AT), b"tracefs", 0, None):
        say(f"warning: tracefs is not mounted, and cannot be: {error}")
        yield
        return
    else:
        say(f"tracefs was not mounted: mounted it at {_AT} for this recording")
    try:
        yield
    finally:
        if error := _call("umount2", os.fsencode(_AT), 0):
            say(f"warning: tracefs stays mounted at {_AT}: {error}")


def is_left_behind(root: Path = Path("/")) -> bool:
    """Returns whether a recorder that no longer runs has mounted tracefs. The source of the mount names its recorder."""
    try:
        text = (root / "proc/mounts").read_text(errors="surrogateescape")
    except OSError:
        return False
    # Of several mounts at one place, the last is on top.
    tops = re.findall(rf"^(\S+) {re.escape(str(_AT))} ", text, re.M)
    of = re.fullmatch(r"syncline-(\d+)-(\d+)", tops[-1]) if tops else None
    return of is not None and not tracefs.is_running(int(of[1]), of[2])


def unmount_left_behind() -> None:
    """Unmounts what a recorder that no longer runs has mounted. It stays while somebody else uses it."""
    if is_left_behind():
        _call("umount2", os.fsencode(_AT), 0)


def _source() -> bytes:
    pid, start = tracefs.owner()
    return f"syncline-{pid}-{start}".encode()


def _is_known(root: Path) -> bool:
    """Returns whether the kernel has tracefs."""
    try:
        text = (root / "proc/filesystems").read_text()
    except OSError:
        return False
    return re.search(r"\ttracefs$", text, re.M) is not None


def _call(name: str, *arguments: object) -> str | None:
    """Calls a function of the C library, because a container may lack the programs. Returns why it failed; None if it did not."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    return None if function(*arguments) == 0 else os.strerror(ctypes.get_errno()).lower()
