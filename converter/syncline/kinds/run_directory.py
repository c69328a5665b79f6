"""A run directory of `syncline record`: logs of one run, with a manifest that says how they were recorded."""

from __future__ import annotations

import os
import shlex
from functools import cached_property
from pathlib import Path
from typing import Any

from syncline.errors import InputError
from syncline.formats import DEVICES, MANIFEST, is_table_folder
from syncline.recordings import Recording, manifest_facts, read_run_directory

from .kind import Kind
from .log import Log
from .place import Place

__all__ = ["RunDirectory"]


class RunDirectory(Log):
    """A run directory, which is a log of several files."""

    @classmethod
    def recognized(cls, place: Place) -> Kind | None:
        if place.has(MANIFEST):
            return cls(place.path)
        if place.is_folder and os.path.lexists(place.file / MANIFEST):
            raise InputError(
                f"cannot read {place.file / MANIFEST}: it is no file",
                f"name the files of the recording instead: ls {shlex.quote(place.path)}",
            )
        if place.has(DEVICES) and not is_table_folder(place.file):
            raise _unfinished(place.path)
        return None

    @cached_property
    def recording(self) -> Recording:
        return read_run_directory(self.path)

    @cached_property
    def facts(self) -> dict[str, Any]:
        return manifest_facts(self.path)

    def files(self) -> list[Path]:
        return [Path(file) for file in self.recording.files]

    def content(self) -> list[Path]:
        return sorted(file for file in Path(self.path).glob("*") if file.is_file())


def _unfinished(path: str) -> InputError:
    """What to say of a run directory whose recording was killed."""
    names = ("trace.dat", "trace.dat.gz")
    found = next((file for name in names if (file := Path(path, name)).is_file()), None)
    return InputError(
        f"{path} has no {MANIFEST}: its recording was not finished",
        f"name the recording itself: syncline report {shlex.quote(str(found))}"
        if found
        else "record again: syncline record -o DIR -- COMMAND",
    )
