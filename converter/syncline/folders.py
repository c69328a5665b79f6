"""Folders at the top level of the project that the wheel carries as packages: sql, bpf."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path


def folder(name: str, holds: str) -> Path:
    """Returns the folder `name` of the package or of the checkout. It is recognized by the file or folder `holds` in it.

    Raises:
        FileNotFoundError: neither the package nor the checkout has it.
    """
    candidates = [Path(__file__).parents[2] / name]
    # In the wheel the folder is a package; in a checkout it is not.
    with contextlib.suppress(ModuleNotFoundError):
        spec = importlib.util.find_spec(f"syncline.{name}")
        candidates[:0] = map(Path, (spec and spec.submodule_search_locations) or ())
    for candidate in candidates:
        if (candidate / holds).exists():
            return candidate
    raise FileNotFoundError(
        f"Syncline's {name} folder is missing: it is neither in the package nor next to it. Install Syncline again."
    )
