"""One instance of the WebAssembly module, as a transport of the RPC.

The module exports the byte-stream RPC of `trace_processor.proto` (`TraceProcessorRpcStream`) by a
request buffer and a callback. See Perfetto's src/trace_processor/rpc/wasm_bridge.cc and
ui/src/engine/wasm_bridge.ts.
"""

from __future__ import annotations

import ctypes
import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path

import wasmtime

from .errors import EngineError, OutOfMemory
from .module_cache import compiled_module
from .wasm_host import Abort, Host, Variant

log = logging.getLogger(__name__)

# As large as in the UI. A request of at most this size reaches the module without another copy.
_REQUEST_BUFFER = 32 << 20
# The default stack of a thread may be smaller than the stack that wasmtime lets the module use.
_THREAD_STACK = 8 << 20


class WasmTransport:
    """An instance of the module: `send` a request, then `read` the reply. Not thread-safe."""

    def __init__(self, web_dist: Path, variant: Variant) -> None:
        self._variant = variant
        self._host = Host(variant)
        self._stopped = ""
        self._unread = memoryview(b"")
        self._store: wasmtime.Store | None = None
        # Protects the closing of the store: an abandoned worker closes it instead of `close`.
        self._closing = threading.Lock()
        self._working = False
        self._run(lambda: self._start(web_dist))

    def _start(self, web_dist: Path) -> None:
        bits = self._variant.bits
        try:
            exports = self._instantiate(web_dist, self._variant.reservation)
        except wasmtime.WasmtimeError as error:
            # If address space is limited (ulimit -v), use a memory that is moved when it grows.
            log.info("%s; reserving no address space", error)
            exports = self._instantiate(web_dist, 0)
        pointer = getattr(wasmtime.ValType, f"i{bits}")()
        reply = wasmtime.Func(
            self._store,
            wasmtime.FuncType([pointer, wasmtime.ValType.i32()], []),
            self._host.on_reply,
            access_caller=True,
        )
        # A C function pointer is an index into this table.
        callback = exports["__indirect_function_table"].grow(self._store, 1, reply)
        exports["emscripten_stack_init"](self._store)
        exports["__wasm_call_ctors"](self._store)
        address = exports["trace_processor_rpc_init"](self._store, callback, _REQUEST_BUFFER)
        self._buffer = address & self._variant.mask
        self._on_request = exports["trace_processor_on_rpc_request"]

    def _instantiate(self, web_dist: Path, reservation: int) -> wasmtime.InstanceExports:
        engine, module = compiled_module(web_dist / self._variant.file, reservation)
        store = wasmtime.Store(engine)
        try:
            imports = [
                wasmtime.Func(
                    store, entry.type, self._host.function(entry.name), access_caller=True
                )
                for entry in module.imports
            ]
            exports = wasmtime.Instance(store, module, imports).exports(store)
        except BaseException:
            store.close()
            raise
        self._store = store
        self._host.memory = exports["memory"]
        return exports

    def send(self, data: bytes) -> None:
        """Runs one request. Its whole reply can be read afterwards."""
        if self._stopped:
            raise EngineError(self._stopped, "Open the trace again.")
        self._host.replies.clear()
        self._run(lambda: self._request(data))
        self._unread = memoryview(b"".join(self._host.replies))

    def _request(self, data: bytes) -> None:
        for start in range(0, len(data), _REQUEST_BUFFER):
            part = data[start : start + _REQUEST_BUFFER]
            # The memory may have moved since the last part.
            base = ctypes.addressof(self._host.memory.data_ptr(self._store).contents)
            ctypes.memmove(base + self._buffer, part, len(part))
            self._on_request(self._store, len(part))

    def _run(self, work: Callable[[], None]) -> None:
        """Runs the module in a thread of its own, because of the stack size and of Ctrl-C.

        Python raises KeyboardInterrupt in the main thread only. If it were raised at the start of
        a callback, the module would get no result, which crashes the process. While the module
        computes, it would not be raised at all.
        """
        failures: list[BaseException] = []
        # Not Thread.join: if it is interrupted, it regards a running thread as finished (bpo-45274).
        done = threading.Event()

        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)
            with self._closing:
                self._working = False
                if self._host.cancelled:
                    self._close_store()
            done.set()

        # A daemon, so that an interrupted program exits without waiting for it.
        thread = threading.Thread(target=guarded, name="trace processor", daemon=True)
        self._working = True
        try:
            _start_with_stack(thread, _THREAD_STACK)
            done.wait()
        except BaseException:
            self._stopped = "the trace processor was interrupted"
            self._host.cancelled = True
            self.close()
            raise
        if failures:
            self._stopped = "the trace processor has stopped"
            self.close()
            if isinstance(failures[0], wasmtime.Trap | wasmtime.WasmtimeError | Abort):
                raise self._failure(failures[0]) from failures[0]
            raise failures[0]

    def _failure(self, error: Exception) -> EngineError:
        bits, limit = self._variant.bits, self._variant.limit >> 30
        if self._host.out_of_memory:
            return OutOfMemory(
                f"the {bits}-bit trace processor ran out of memory (its limit is {limit} GB)",
                "Use the 64-bit one: type the command again after: export SYNCLINE_EMBEDDED_BITS=64"
                if bits == 32
                else "Use a native trace_processor_shell (SYNCLINE_TRACE_PROCESSOR).",
            )
        reason = str(error).strip().splitlines()[-1:]
        if isinstance(error, Abort):
            # The module prints the reason before it aborts.
            lines = re.split(r"[\r\n]+", self._host.stderr.decode("utf-8", "replace").strip())
            chatter = ("Loading trace", "warning: unsupported syscall")
            reason = [line for line in lines if line and not line.startswith(chatter)][
                -1:
            ] or reason
        return EngineError(
            f"the trace processor failed: {''.join(reason).strip()}",
            "Use a native trace_processor_shell (SYNCLINE_TRACE_PROCESSOR).",
        )

    def read(self, size: int) -> bytes:
        part, self._unread = self._unread[:size], self._unread[size:]
        if len(part) < size:
            raise EngineError("the trace processor did not reply")
        return bytes(part)

    def close(self) -> None:
        self._stopped = self._stopped or "the engine is closed"
        self._unread = memoryview(b"")
        with self._closing:
            if not self._working:
                self._close_store()

    def _close_store(self) -> None:
        # wasmtime's table of callbacks would keep an instance alive that is not closed.
        self._host.replies.clear()
        if self._store is not None:
            self._store.close()


_stack_size_lock = threading.Lock()


def _start_with_stack(thread: threading.Thread, size: int) -> None:
    with _stack_size_lock:
        before = threading.stack_size(size)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
