"""Mounts tracefs for a recording where nobody has, such as in a minimal guest or a container, and unmounts it afterwards."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from syncline.record import tracefs

__all__ = ["mounted"]

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
    if os.geteuid() != 0 or tracefs.find() is not None or not _is_known(root) or not _AT.is_dir():
        yield
        return
    if error := _call("mount", b"nodev", os.fsencode(_AT), b"tracefs", 0, None):
        say(f"warning: tracefs is not mounted, and cannot be: {error}")
        yield
        return
    say(f"tracefs was not mounted: mounted it at {_AT} for this recording")
    try:
        yield
    finally:
        if error := _call("umount2", os.fsencode(_AT), 0):
            say(f"warning: tracefs stays mounted at {_AT}: {error}")


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
