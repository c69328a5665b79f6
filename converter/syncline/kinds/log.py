"""A log: a file, a pipe, or standard input. The core detects its format. It is what no other kind recognizes.

Several logs of one run, named one after another, are one log too: the core joins them, as it does for `convert`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from syncline import _core, scratch
from syncline.errors import InputError
from syncline.input import Input
from syncline.reading import Progress, Reading
from syncline.recordings import Recording, join_recordings, read_file

from .kind import Kind, Opening, of_temporary
from .place import Place

__all__ = ["Log", "Together"]


class Log(Kind):
    """A log."""

    kind = "log"
    is_converted = False
    is_log = True
    takes_marks = True

    @classmethod
    def recognized(cls, place: Place) -> Kind | None:
        return cls(place.path)

    @cached_property
    def recording(self) -> Recording:
        return read_file(self.path)

    @property
    def can_be_read_whole(self) -> bool:
        return self.path != "-"

    def files(self) -> list[Path]:
        return [] if self.path == "-" else [Path(self.path)]

    def runs(self, source: str | None = None) -> list[Input]:
        if self.path == "-":
            raise InputError(
                "standard input has no name and cannot be read twice",
                "convert it first: syncline convert - -o RUN/; then ingest RUN/",
            )
        return [self]

    def write_tables(self, output: str, reading: Reading, progress: Progress | None = None) -> None:
        self.convert(output, reading, progress)

    def convert(
        self, output: str, reading: Reading, progress: Progress | None = None, **choices: Any
    ) -> dict[str, Any]:
        return reading.convert([self.recording], output, progress=progress, **choices)

    def refuse_to_convert(self, *, with_others: bool) -> None:
        """Accepts it."""

    def refuse_to_show(self) -> None:
        """Accepts it."""

    def _opened(self, how: Opening, stack: contextlib.ExitStack) -> Any:
        from syncline.report.opening import open_tables, open_trace

        use_duckdb = how.engine in ("auto", "duckdb")
        folder = stack.enter_context(scratch.folder())
        output = f"{folder}/tables/" if use_duckdb else f"{folder}/trace.pftrace"
        try:
            summary = self.convert(
                output, how.reading, how.progress, **(how.options | how.contents)
            )
        except _core.CoreError as error:
            raise of_temporary(error, self.path) from None
        how.converted(summary)
        opened = stack.enter_context(
            open_tables(output, allow_files=how.allow_files, named=how.named, is_fresh=True)
            if use_duckdb
            else open_trace(output, how.engine)
        )
        # Messages name the file of the user, not the temporary one.
        opened.path = Path(self.path)
        return opened


@dataclass(frozen=True)
class Together(Log):
    """Several logs of one run. No path leads to them, so `kinds.together` makes the value."""

    parts: tuple[Input, ...] = ()

    @cached_property
    def recording(self) -> Recording:
        return join_recordings([part.recording for part in self.parts])

    @cached_property
    def facts(self) -> dict[str, Any]:
        # What one recorder cannot see, another one may.
        return {}

    @property
    def can_be_read_whole(self) -> bool:
        return all(part.can_be_read_whole for part in self.parts)

    def files(self) -> list[Path]:
        return [file for part in self.parts for file in part.files()]

    def content(self) -> list[Path]:
        return [file for part in self.parts for file in part.content()]

    def convert(
        self, output: str, reading: Reading, progress: Progress | None = None, **choices: Any
    ) -> dict[str, Any]:
        recordings = [part.recording for part in self.parts]
        return reading.convert(recordings, output, progress=progress, **choices)
