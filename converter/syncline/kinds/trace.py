"""A Perfetto trace: one that Syncline wrote, whose rows the core reads, or another one. One of a system's events is a Log."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from syncline import _core, scratch
from syncline.input import Input
from syncline.reading import Progress, Reading, convert_trace, verify_trace

from .kind import Kind, Opening, of_temporary
from .log import Log
from .place import Place

__all__ = ["Trace"]


class Trace(Kind):
    """A Perfetto trace."""

    kind = "trace"
    is_trace = True

    @classmethod
    def recognized(cls, place: Place) -> Kind | None:
        # A trace begins with this byte. A log may do so too: with an empty line.
        head = place.head
        is_trace = head[:1] == b"\x0a" and not _is_text(head[:256]) and _is_packet(head)
        if not is_trace or _core.is_system_trace(place.path):
            return None
        return cls(place.path)

    def runs(self, source: str | None = None) -> list[Input]:
        return [Log(self.path) if source else self]

    def write_tables(self, output: str, reading: Reading, progress: Progress | None = None) -> None:
        # A limit of losses applies to `convert` only.
        convert_trace(self.path, output, progress=progress)

    def convert(
        self, output: str, reading: Reading, progress: Progress | None = None, **choices: Any
    ) -> dict[str, Any]:
        return convert_trace(
            self.path, output, max_loss=reading.max_loss, progress=progress, **choices
        )

    def refuse_to_convert(self, *, with_others: bool) -> None:
        if with_others:
            super().refuse_to_convert(with_others=True)

    def refuse_to_show(self) -> None:
        """Accepts it."""

    def _opened(self, how: Opening, stack: contextlib.ExitStack) -> Any:
        from syncline.report.opening import open_tables, open_trace

        tables = None
        if how.engine == "duckdb" or (how.engine == "auto" and not how.perfetto):
            tables = f"{stack.enter_context(scratch.folder())}/tables/"
            if not self._converted(tables, how):
                tables = None
        else:
            # A trace processor does not notice that packets are missing or were changed.
            verify_trace(self.path)
        opened = stack.enter_context(
            open_tables(tables, allow_files=how.allow_files, named=how.named, is_fresh=True)
            if tables
            else open_trace(self.path, how.engine)
        )
        opened.path = Path(self.path)
        return opened

    def _converted(self, output: str, how: Opening) -> bool:
        """Converts the trace to tables. Returns whether it is one whose rows the core can read.

        Raises:
            CoreError: the tables cannot be written; or the engine is to be DuckDB, and the core cannot read the rows.
        """
        try:
            convert_trace(self.path, output, progress=how.progress, **how.contents)
        except _core.CoreError as error:
            # The trace processor says what is wrong with a trace, in its own words.
            if error.args[2] == "foreign" and how.engine != "duckdb":
                return False
            raise of_temporary(error, self.path) from None
        return True


def _is_text(head: bytes) -> bool:
    """Returns whether all bytes are printable text. The last character may be cut off."""
    text = head.decode("utf-8", "ignore")
    is_utf8 = len(head) - len(text.encode()) < 4
    return is_utf8 and all(char.isprintable() or char.isspace() for char in text)


def _is_packet(head: bytes) -> bool:
    """Returns whether the bytes begin with a packet of a `Trace` that is not empty."""
    length, shift, at = 0, 0, 1
    while at < len(head) and at < 6:
        length |= (head[at] & 0x7F) << shift
        shift += 7
        at += 1
        if head[at - 1] < 0x80:
            break
    return length > 0 and at < len(head) and head[at] & 7 in (0, 1, 2, 5) and head[at] >> 3 > 0
