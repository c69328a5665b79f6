"""The two WebAssembly modules, and the functions that they import from their host."""

from __future__ import annotations

import calendar
import ctypes
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import wasmtime

_PAGE = 1 << 16
# errno values of WASI, which emscripten uses.
_ENOENT, _EBADF, _ENOSYS, _ENOTTY = 44, 8, 52, 59


@dataclass(frozen=True)
class Variant:
    """A WebAssembly module: 32-bit or 64-bit pointers. Sizes are in bytes."""

    bits: int
    file: str
    limit: int
    # Address space that is reserved for the memory. With less, growing copies the whole memory.
    reservation: int

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1


VARIANTS = {
    32: Variant(32, "trace_processor.wasm", 4 << 30, 4 << 30),
    64: Variant(64, "trace_processor_memory64.wasm", 16 << 30, 17 << 30),
}


class Abort(Exception):
    """Leaves the module. wasmtime passes the exception on to the caller."""


@dataclass
class Host:
    """The imports of a module. It must not refer to the store, because the store refers to it."""

    variant: Variant
    memory: Any = None
    replies: list[bytes] = field(default_factory=list)
    out_of_memory: bool = False
    cancelled: bool = False
    stderr: bytes = b""

    def function(self, name: str) -> Callable[..., Any]:
        """Returns the import of that name. An unknown one aborts the module when it is called."""
        handler = getattr(self, name.lstrip("_"), None)
        if handler is not None:
            return handler
        if name.startswith("__syscall_"):
            return lambda *_: -_ENOENT
        if name.startswith("fd_"):
            return lambda *_: _EBADF

        def missing(*_: Any) -> None:
            raise Abort(f"the module calls '{name}', which Syncline does not implement")

        return missing

    def _address(self, caller: Any, pointer: int, size: int) -> int:
        if self.cancelled:
            raise Abort("interrupted")
        pointer &= self.variant.mask
        if pointer + size > self.memory.data_len(caller):
            raise Abort("a pointer is outside the memory")
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

    def emscripten_resize_heap(self, caller: Any, size: int) -> int:
        current = self.memory.data_len(caller)
        size &= self.variant.mask
        # A fifth more, as emscripten does, so that the memory grows less often.
        roomy = min(size + min(size // 5, 96 << 20), self.variant.limit)
        for target in (roomy, size):
            if current < target <= self.variant.limit:
                try:
                    self.memory.grow(caller, -(-(target - current) // _PAGE))
                    return 1
                except wasmtime.WasmtimeError:
                    continue
        # The module handles it: SQLite reports an error, other code prints a line and aborts.
        self.out_of_memory = True
        return 0

    def emscripten_get_heap_max(self, _caller: Any) -> int:
        limit = self.variant.limit - _PAGE
        return limit if self.variant.bits == 64 else limit - (1 << 32)

    def fd_write(self, caller: Any, fd: int, vectors: int, count: int, written: int) -> int:
        """Collects what the module prints: progress ("Loading trace 1.2 MB") and error messages."""
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
        raise Abort("abort")

    def assert_fail(
        self, caller: Any, condition: int, file: int, line: int, _function: int
    ) -> None:
        texts = [ctypes.string_at(self._address(caller, text, 1)) for text in (condition, file)]
        self._log(b"assertion failed: %s, %s:%d" % (*texts, line))
        raise Abort("assertion failed")

    def environ_sizes_get(self, caller: Any, count: int, size: int) -> int:
        # The environment is empty. A size_t has 4 or 8 bytes.
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
            raise Abort("interrupted")
        return time.perf_counter() * 1e3

    def emscripten_date_now(self, _caller: Any) -> float:
        return time.time() * 1e3

    def clock_time_get(self, caller: Any, clock: int, _precision: int, result: int) -> int:
        now = time.time_ns() if clock == 0 else time.perf_counter_ns()
        self._write(caller, result, struct.pack("<q", now))
        return 0

    def tzset_js(self, *_: Any) -> None:
        """Leaves the time zone at UTC, with which the memory is initialised."""

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
