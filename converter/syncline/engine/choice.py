"""Chooses a trace processor and loads a trace into it."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from .errors import EngineError, OutOfMemory
from .package import read_package
from .processor import Engine
from .trace_file import TraceFile

log = logging.getLogger(__name__)

# Larger traces (in bytes) may need more than the 4 GB of the 32-bit module, which is the faster one.
LIMIT_32_BIT = 350_000_000
# Forces one of the two modules: 32 or 64.
BITS_VARIABLE = "SYNCLINE_EMBEDDED_BITS"


def open_trace(
    path: Path | str,
    *,
    engine: str | Path = "auto",
    packages: Sequence[tuple[str, Path | str]] = (),
) -> Engine:
    """Loads a trace (proto, gzip, zstd, or another format that Perfetto reads).

    Args:
        path: the trace.
        engine: `embedded`, `native` (the one that SYNCLINE_TRACE_PROCESSOR names, else one on
            PATH), the path of a trace_processor_shell, or `auto`: native if there is one, else
            embedded.
        packages: (namespace, folder) of each SQL package to register.

    Raises:
        EngineError: the trace does not exist, is not a trace or is truncated; or the engine does
            not exist.
    """
    engine = str(engine)
    source = TraceFile(Path(path))
    modules = [(name, read_package(name, Path(folder))) for name, folder in packages]

    if engine == "embedded":
        return _open_embedded(source, modules)
    if engine not in ("auto", "native") and not is_program(engine):
        raise EngineError(
            f"unknown engine '{engine}'",
            "Use auto, embedded, native or the path of a trace_processor_shell.",
        )

    from . import native

    shell = native.find(None if engine in ("auto", "native") else engine)
    if shell is None and engine == "native":
        raise EngineError(
            "no native trace processor: neither trace_processor_shell nor trace_processor is on"
            " PATH",
            "Name one in SYNCLINE_TRACE_PROCESSOR, or use the embedded engine.",
        )
    if shell is None:
        return _open_embedded(source, modules)
    return native.open_native(source, shell, modules)


def is_program(engine: str) -> bool:
    """Returns whether `engine` names a program: a path, an existing file, or a command on PATH."""
    return os.sep in engine or Path(engine).exists() or shutil.which(engine) is not None


def _open_embedded(source: TraceFile, modules: list[tuple[str, dict[str, str]]]) -> Engine:
    from .embedded import open_embedded

    forced = os.environ.get(BITS_VARIABLE)
    if forced in ("32", "64"):
        return open_embedded(source, modules, bits=int(forced))
    if source.uncompressed_size() <= LIMIT_32_BIT:
        try:
            return open_embedded(source, modules, bits=32)
        except OutOfMemory:
            log.info("%s: needs more memory than the 32-bit engine has; using 64-bit", source)
    return open_embedded(source, modules, bits=64)
