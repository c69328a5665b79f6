"""The folder of captures: a run directory each, and the limits of their number and size."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncline.record import tracefs
from syncline.record.errors import RecordError
from syncline.run_directory import MANIFEST
from syncline.users import sudo_caller

# What a manifest says of why it was captured.
KEY = "capture"


@dataclass(frozen=True)
class Capture:
    """One that has been saved. The longest sync makes it interesting; without one, that it is new."""

    folder: Path
    size_bytes: int
    longest_ns: int
    saved_at: float


class Captures:
    """The captures in a folder, also those of earlier recordings."""

    def __init__(self, folder: Path, disk_bytes: int) -> None:
        """Creates the folder.

        Raises:
            RecordError: it cannot be created, or is something else.
        """
        self.folder = folder
        self._disk_bytes = disk_bytes
        if (folder / MANIFEST).exists():
            raise RecordError(
                f"{folder} is a recording, and captures need a folder of their own",
                "name another folder with -o",
            )
        try:
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
                # Whoever has called sudo is to read the captures.
                if (caller := sudo_caller()) is not None:
                    os.chown(folder, caller.uid, caller.gid, follow_symlinks=False)
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "it is no folder")
        except OSError as error:
            raise RecordError(f"cannot create {folder}: {error.strerror}") from None

    def remove_left(self, prefix: str) -> None:
        """Removes the folders `PREFIX-PID-START` of recorders that were killed."""
        for folder in self.folder.glob(f"{prefix}-*-*"):
            pid, _, start = folder.name.removeprefix(f"{prefix}-").partition("-")
            if pid.isdigit() and not tracefs.is_running(int(pid), start):
                shutil.rmtree(folder, ignore_errors=True)

    def new_folder(self, what: str) -> Path:
        """Returns a name for the next one that no other has: when it is saved, and what for."""
        base = f"{time.strftime('%Y%m%d-%H%M%S')}-{what}"
        names = (base, *(f"{base}-{number}" for number in range(2, 1_000)))
        return next(self.folder / name for name in names if not (self.folder / name).exists())

    def all(self) -> list[Capture]:
        """Returns those that are whole, in the order of their names."""
        found = []
        for manifest in sorted(self.folder.glob(f"*/{MANIFEST}")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                said: dict[str, Any] = json.loads(manifest.read_text())[KEY]
                size = sum(file.stat().st_size for file in manifest.parent.rglob("*") if file.is_file())  # fmt: skip
                longest = said["slow"]["dur_ns"] if said.get("slow") else 0
                found.append(Capture(manifest.parent, size, int(longest), manifest.stat().st_mtime))
        return found

    def make_room(self) -> list[Capture]:
        """Removes the least interesting ones until the others fit, and returns these. One is always kept."""
        kept = sorted(self.all(), key=lambda one: (one.longest_ns, one.saved_at))
        removed = []
        while len(kept) > 1 and sum(one.size_bytes for one in kept) > self._disk_bytes:
            least = kept.pop(0)
            shutil.rmtree(least.folder, ignore_errors=True)
            removed.append(least)
        return removed
