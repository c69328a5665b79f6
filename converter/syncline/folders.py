"""Folders at the top level of the project that the wheel carries as packages: sql, bpf."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path


def folder(name: str, holds: str) -> Path:
    """The folder `name`, of the package or of the checkout, told by a file or folder that it holds.

    Raises:
        FileNotFoundError: it is in neither.
    """
    candidates = [Path(__file__).parents[2] / name]
    # In a checkout the folder is no package; it becomes one in the wheel.
    with contextlib.suppress(ModuleNotFoundError):
        spec = importlib.util.find_spec(f"syncline.{name}")
        candidates[:0] = map(Path, (spec and spec.submodule_search_locations) or ())
    for candidate in candidates:
        if (candidate / holds).exists():
            return candidate
    raise FileNotFoundError(
        f"Syncline's {name} is missing: neither in the package nor beside it. Install it again."
    )
