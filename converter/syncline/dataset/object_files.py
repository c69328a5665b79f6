"""The tables of a dataset in an object store, as the kind of file system that DuckDB reads.

DuckDB asks for the size of a file before each query, and reads it in pieces. Each of that is a request, and a report has dozens of
queries, so three small runs took 600 requests and their answer 2,900. The sizes are in the entries of the runs, and a small file is
fetched whole the first time that it is read. To open a dataset, DuckDB reads one file of each table. If it reads a second one, it is about
to read all, so these are fetched at once.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from syncline.engine import EngineError

from . import layout
from .layout import Entry
from .store import ObjectStore

__all__ = ["filesystem"]

# A file that is larger is read in pieces, because a report may need few of them.
_SMALL_BYTES = 16 << 20
# All small files that are kept together.
_KEPT_BYTES = 256 << 20
_THREADS = 16
# A partition never changes, because other rows have another name. So one time suits all files.
_SOME_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def filesystem(store: ObjectStore, entries: Sequence[Entry]) -> Any:
    """Returns the tables of runs as a file system of fsspec.

    Raises:
        EngineError: the package fsspec is missing.
    """
    try:
        arrow = importlib.import_module("fsspec.implementations.arrow")
    except ImportError:
        raise EngineError(
            "an object store needs the Python package fsspec", "pip install 'syncline[s3]'"
        ) from None
    root = store.root.removeprefix("s3://")
    tables = {
        f"{root}/{entry.partition}/{layout.table_name(table)}": file
        for entry in entries
        for table, file in entry.tables.items()
    }
    sizes = {name: file.bytes for name, file in tables.items()}

    class S3(arrow.ArrowFSWrapper):  # type: ignore[misc, name-defined]
        protocol = ("s3",)
        # Name -> content. DuckDB opens files in several threads.
        _kept: dict[str, bytes] = {}
        _lock = threading.Lock()

        def info(self, path: str, **options: Any) -> Any:
            size = sizes.get(self._strip_protocol(path))
            if size is None:
                return super().info(path, **options)
            return {"name": path, "size": size, "type": "file", "mtime": _SOME_TIME}

        def exists(self, path: str, **options: Any) -> bool:
            return self._strip_protocol(path) in sizes or super().exists(path, **options)

        def modified(self, path: str) -> Any:
            return self.info(path)["mtime"]

        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            name = self._strip_protocol(path)
            if mode != "rb" or sizes.get(name, _SMALL_BYTES + 1) > _SMALL_BYTES:
                return super()._open(path, mode, **options)
            with self._lock:
                if name in self._kept:
                    return io.BytesIO(self._kept[name])
                wanted = self._wanted(name)
                with ThreadPoolExecutor(_THREADS) as pool:
                    found = dict(zip(wanted, pool.map(self._content, wanted), strict=True))
                if sum(map(len, self._kept.values())) + sizes[name] <= _KEPT_BYTES:
                    self._kept |= found
            return io.BytesIO(found[name])

        def _wanted(self, name: str) -> list[str]:
            """Returns a file and what is read next, as far as there is room for it."""
            table = f"/{name.rpartition('/')[2]}"
            if not any(other.endswith(table) for other in self._kept):
                return [name]
            wanted, room = [name], _KEPT_BYTES - sum(map(len, self._kept.values())) - sizes[name]
            for other, size in sizes.items():
                is_next = other.endswith(table) and other != name and other not in self._kept
                if is_next and size <= min(room, _SMALL_BYTES):
                    wanted.append(other)
                    room -= size
            return wanted

        def _content(self, name: str) -> bytes:
            with self.fs.open_input_stream(name, compression=None) as file:
                content = bytes(file.read())
            if hashlib.sha256(content).hexdigest() != tables[name].sha256:
                raise OSError(f"{name} is not what was written at ingest")
            return content

    return S3(store.filesystem)
