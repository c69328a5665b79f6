"""A high-level log: the requests of a run as Parquet, CSV or JSON lines."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from syncline.input import Input

from .kind import Kind, Opening, only_requests
from .place import Place
from .tables import open_converted

__all__ = ["Rows"]

# A CSV file is a high-level log if its header has at least _COLUMNS_REQUIRED of these columns.
_COLUMNS = {b"ts_ns", b"sync_id", b"syscall_ns", b"writeback_ns", b"bytes", b"bios", b"dur_ns"}
_COLUMNS_REQUIRED = 3


class Rows(Kind):
    """A high-level log."""

    kind = "rows"

    @classmethod
    def recognized(cls, place: Place) -> Kind | None:
        is_rows = place.head[:4] == b"PAR1" or _is_high_level(place.head)
        return cls(place.path) if is_rows else None

    def runs(self, source: str | None = None) -> list[Input]:
        raise only_requests(self.path)

    def _opened(self, how: Opening, stack: contextlib.ExitStack) -> Any:
        from syncline.engine.run_files import of_file

        return stack.enter_context(
            open_converted(self.path, how, lambda: [of_file(Path(self.path))])
        )


def _is_high_level(head: bytes) -> bool:
    """Returns whether text is a high-level log. The engine reports a column that is missing."""
    first = head.split(b"\n", 1)[0].strip()
    if first.startswith(b"{"):
        # A line of the low-level log begins with ts_ns too.
        return first.startswith(b'{"ts_ns":') and b'"sync_id":' in first
    return len(_COLUMNS & {*first.replace(b'"', b"").split(b",")}) >= _COLUMNS_REQUIRED
