"""A cache on disk of the compiled trace processor."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging
import mmap
import os
import platform
import stat
import threading
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from syncline import _core

if TYPE_CHECKING:
    import wasmtime

log = logging.getLogger(__name__)

# Older files are removed when a new one is written.
_CACHE_DAYS = 90

_modules: dict[tuple[Path, int], tuple[wasmtime.Engine, wasmtime.Module]] = {}
_modules_lock = threading.Lock()


def compiled_module(wasm: Path, reservation: int) -> tuple[wasmtime.Engine, wasmtime.Module]:
    """Returns the compiled module. It is loaded or compiled once per process."""
    import wasmtime

    with _modules_lock:
        if (wasm, reservation) not in _modules:
            config = wasmtime.Config()
            config.memory_reservation = reservation
            if not reservation:
                config.memory_reservation_for_growth = 64 << 20
            engine = wasmtime.Engine(config)
            _modules[wasm, reservation] = engine, _load_module(engine, wasm, reservation)
        return _modules[wasm, reservation]


@atexit.register
def _close_modules() -> None:
    """Frees the modules before the interpreter unloads `wasmtime`."""
    with _modules_lock:
        for engine, module in _modules.values():
            module.close()
            engine.close()
        _modules.clear()


def _load_module(engine: wasmtime.Engine, wasm: Path, reservation: int) -> wasmtime.Module:
    import wasmtime

    code = wasm.read_bytes()
    key = hashlib.sha256(code)
    for part in (metadata.version("wasmtime"), platform.machine(), f"reservation={reservation}"):
        key.update(b"\0" + part.encode())
    cache = _private_folder(cache_dir())
    name = f"{wasm.stem}-{key.hexdigest()[:32]}"
    for file in sorted(cache.glob(f"{name}.*.cwasm")) if cache else ():
        module = _read_cached(engine, file)
        if module is not None:
            return module
    log.info("compiling the trace processor (a few seconds, once)")
    module = wasmtime.Module(engine, code)
    if cache:
        _write_cached(cache, name, bytes(module.serialize()))
    return module


def cache_dir() -> Path | None:
    """Returns SYNCLINE_CACHE_DIR, else `syncline` in the user's cache folder; None without a home."""
    named = os.environ.get("SYNCLINE_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "syncline"
    except RuntimeError:
        return None


def _private_folder(folder: Path | None) -> Path | None:
    """Creates the folder of the cache. Returns None if it cannot be used, or another user can write to it."""
    if folder is None:
        return None
    try:
        above = next(path for path in folder.parents if path.exists())
        # As root with the home of a user, it would be a folder that this user cannot use.
        if not folder.exists() and _owned(above.stat(), or_by_root=True):
            _make(folder)
        status = folder.stat()
    except (OSError, _core.CoreError) as error:
        log.info("the compiled trace processor is not cached: %s", error)
        return None
    # Who can write to the folder can exchange its files.
    if _trusted(status):
        return folder
    log.warning("%s: other users own it or can write to it: not used", folder)
    return None


def _make(folder: Path) -> None:
    """Creates a folder and those above it, through no link that another user may have made."""
    above, name = _core.open_above(str(folder))
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=above)
    finally:
        os.close(above)


def _digest(data: bytes | mmap.mmap) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _read_cached(engine: wasmtime.Engine, file: Path) -> wasmtime.Module | None:
    """Loads a module from the cache.

    Returns None if the file is damaged, not a module of this wasmtime, or not trusted. A damaged
    file is removed.
    """
    import wasmtime

    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            # The file is machine code. Do not run it if another user may have written it.
            if not _trusted(status):
                log.warning("%s: other users can write it: not used", file)
                return None
            # wasmtime checks only a part of the file. The digest in the name covers all of it.
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
                if file.name.split(".")[1] == _digest(data):
                    return _deserialize(engine, opened.fileno(), data)
        log.warning("%s is damaged: compiling again", file)
    except (OSError, ValueError, wasmtime.WasmtimeError) as error:
        log.warning("%s: %s: compiling again", file, error)
    _remove(file)
    return None


def _deserialize(engine: wasmtime.Engine, descriptor: int, data: mmap.mmap) -> wasmtime.Module:
    """Loads a module from an open file: the one that was checked, whatever has its name now."""
    import wasmtime

    # wasmtime maps a file, and copies bytes.
    opened = Path(f"/proc/self/fd/{descriptor}")
    if opened.exists():
        return wasmtime.Module.deserialize_file(engine, str(opened))
    return wasmtime.Module.deserialize(engine, bytes(data))


def _trusted(status: os.stat_result) -> bool:
    """Returns whether only this user can write to a file or folder."""
    return _owned(status) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _owned(status: os.stat_result, *, or_by_root: bool = False) -> bool:
    return status.st_uid == os.geteuid() or (or_by_root and status.st_uid == 0)


def _write_cached(cache: Path, name: str, code: bytes) -> None:
    """Writes a module, and removes old ones."""
    try:
        _core.write(cache / f"{name}.{_digest(code)}.cwasm", code, private=True)
        oldest = time.time() - _CACHE_DAYS * 86400
        for old in cache.glob("*.cwasm"):
            if old.stat().st_mtime < oldest:
                _remove(old)
    except (OSError, _core.CoreError) as error:
        log.info("the compiled trace processor is not cached: %s", error.args[0])


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink()
