"""How the recorder starts itself once more: as a module, or as the one file in which it travels."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_loader = globals().get("__loader__")
# The file in which it travels, whatever folder is the current one later. None if it is installed.
_ARCHIVE = str(Path(_loader.archive).absolute()) if hasattr(_loader, "archive") else None
_OPEN_FILE = re.compile(r"/proc/self/fd/(\d+)")


def command(module: str, *arguments: str) -> tuple[list[str], tuple[int, ...]]:
    """Returns the command that runs a module of `syncline.record`, and the open files that it must inherit."""
    if _ARCHIVE is None:
        return [sys.executable, "-m", f"syncline.record.{module}", *arguments], ()
    found = _OPEN_FILE.fullmatch(_ARCHIVE)
    inherited = (int(found[1]),) if found else ()
    return [sys.executable, "-I", "-S", _ARCHIVE, f"--{module}", *arguments], inherited
