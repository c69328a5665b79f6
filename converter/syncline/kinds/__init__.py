"""The door, where an INPUT becomes a value, and the kinds of INPUT. The list is the only place that knows all of them.

A kind recognizes what is at a path by its content, and a folder by the files in it. A new one is a file in this
folder, and a line here: at its place in the order of detection.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from syncline.errors import InputError
from syncline.formats import BASELINE

from .archive import Archive
from .dataset import Dataset
from .folder import Folder
from .kind import Kind
from .log import Log, Together
from .packed import Packed
from .place import Place
from .rows import Rows
from .run_directory import RunDirectory
from .tables import Tables
from .trace import Trace

__all__ = ["KINDS", "Archive", "Dataset", "Folder", "Kind", "Log", "Packed", "Place", "Rows", "RunDirectory", "Tables", "Together", "Trace", "resolve", "together"]  # fmt: skip

# The first one that recognizes a place decides. A folder that no other knows is a Folder, and all else a Log.
KINDS: tuple[type[Kind], ...] = (
    Dataset,
    RunDirectory,
    Tables,
    Folder,
    Rows,
    Trace,
    Packed,
    Archive,
    Log,
)


def resolve(path: str, source: str | None = None) -> Kind:
    """Finds out what an INPUT is, by its content. With `source` (`--from`), a file is a log.

    A command does this once for each INPUT, and passes the value down.

    Raises:
        InputError: it does not exist or cannot be read, or it is a stored baseline.
    """
    place = Place(path, source)
    if place.head.startswith(BASELINE):
        raise InputError(
            f"{path} is a stored baseline, which holds figures but no run",
            f"use it as a side of a diff: syncline diff {shlex.quote(path)} NEW",
        )
    found = (kind.recognized(place) for kind in KINDS)
    return next(one for one in found if one is not None)


def together(paths: Sequence[str], source: str | None = None) -> Kind:
    """Finds out what several INPUTs of one run are. They are one INPUT for the commands that read one.

    Raises:
        InputError: one does not exist or cannot be read, or is no log.
    """
    parts = [resolve(path, source) for path in paths]
    for part in parts:
        part.refuse_to_convert(with_others=True)
    return Together(" and ".join(paths), tuple(parts))
