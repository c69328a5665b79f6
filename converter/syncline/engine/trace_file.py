"""Reads a trace file in chunks and decompresses it."""

from __future__ import annotations

import importlib
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .errors import DAMAGED, EngineError

# Well below the request buffer of the embedded engine, so that each chunk fits one request.
_CHUNK = 8 << 20
# Small, because data may grow a thousandfold when they are decompressed.
_COMPRESSED_CHUNK = 1 << 17
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class TraceFile:
    """A trace file. The engines read it in decompressed chunks."""

    def __init__(self, path: Path) -> None:
        """Reads the first bytes.

        Raises:
            EngineError: the file cannot be read, or is empty.
        """
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
        """Estimates the decompressed size in bytes, to choose the 32-bit or the 64-bit engine."""
        if self._magic.startswith(_GZIP):
            with self.path.open("rb") as file:
                file.seek(max(self._size - 4, 0))
                last_member = int.from_bytes(file.read(4), "little")
            # The trailer has the size of the last member only, modulo 4 GiB.
            return max(last_member, 4 * self._size)
        return 8 * self._size if self._magic == _ZSTD else self._size

    def chunks(self) -> Iterator[bytes]:
        """Yields the trace, then a probe by which the trace processor detects a truncated trace.

        `probing` is true while the trace processor parses the probe. An error at that time means
        that the trace is truncated.
        """
        first = b""
        for chunk in self._decompressed():
            first = first or chunk[:16]
            yield chunk
        if _is_proto(first):
            self.probing = True
            yield _PROBE
            self.probing = False

    def _decompressed(self) -> Iterator[bytes]:
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
        """Decompresses one member after the other. Raises EngineError if the last one is cut off."""
        decompressor = None
        members = 0
        while data := file.read(_COMPRESSED_CHUNK):
            while data:
                # gzip files from tapes are padded with zeros.
                if decompressor is None and members and not data.strip(b"\0"):
                    break
                decompressor = decompressor or new()
                try:
                    plain = decompressor.decompress(data)
                except Exception as error:  # each library has an exception class of its own
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
                f"{self.path}: the trace is compressed with zstd, which this Python cannot read",
                f"Type: zstd -d {self.path}   or: pip install zstandard",
            ) from None
        return lambda: zstandard.ZstdDecompressor().decompressobj()


def _is_proto(first: bytes) -> bool:
    """Detects a proto trace as Perfetto does (src/trace_processor/util/trace_type.cc)."""
    text = first.lstrip()
    return first.startswith(b"\n") and not text.startswith((b'{"', b'[{"'))


def _probe(size: int) -> bytes:
    """Returns bytes that the trace processor skips after a whole packet and rejects after a cut one.

    Perfetto accepts a trace that ends inside a packet. The probe completes such a packet, and the
    rest of the probe is not proto: no field has the wire type 7. After a whole packet the probe is
    one unknown field (number 2, which Perfetto reserves).
    """
    length, varint = size, bytearray()
    while length:
        varint.append(length & 0x7F | (0x80 if length > 0x7F else 0))
        length >>= 7
    return b"\x12" + bytes(varint) + b"\x07" * size


# As long as the longest packet that can be detected as cut: writers keep packets below 512 KiB.
_PROBE = _probe(1 << 20)
