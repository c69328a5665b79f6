"""What an INPUT is, as one value: `kinds.resolve` makes it at the door of a command, and it is passed down.

Nothing below asks a path again what it is. The kinds are classes in `kinds/`, which lists them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from syncline.errors import InputError
from syncline.reading import Progress, Reading
from syncline.recordings import Recording

__all__ = ["Input"]


@dataclass(frozen=True)
class Input(ABC):
    """An INPUT of a command. Each kind answers what the commands ask.

    A method `refuse_to_...` raises InputError if the kind has nothing for a command. What a value finds out when it is
    first asked (the manifest of a run directory, the runs of a folder), it keeps.
    """

    # As the user named it, which is what messages say.
    path: str

    # What `inspect` calls it.
    kind: ClassVar[str]
    # It is no log any more, so options of how a log is read have no effect on it.
    is_converted: ClassVar[bool] = True
    # It is the events of one run, as they were recorded.
    is_log: ClassVar[bool] = False
    # The Perfetto UI shows it as it stands.
    is_trace: ClassVar[bool] = False
    # A trace of several traces, of which no part can be taken.
    is_archive: ClassVar[bool] = False

    @abstractmethod
    def open(
        self,
        reading: Reading,
        engine: str = "auto",
        progress: Progress | None = None,
        **how: Any,
    ) -> AbstractContextManager[Any]:
        """Yields an engine that has the tables of docs/reference/tables.md. `kinds.kind` describes the arguments."""

    @cached_property
    def recording(self) -> Recording:
        """Its files, and what is known of them: filter, threads, names, devices, clocks.

        Raises:
            InputError: it is a run directory, and damaged.
        """
        return Recording([self.path], path=self.path)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """How and where it was recorded, and what its recorder cannot see. Empty if it does not say so."""
        return {}

    @property
    def can_be_read_whole(self) -> bool:
        """Whether it can be read a second time without the filter."""
        return False

    def files(self) -> list[Path]:
        """Returns the files that an output of the same command must not replace."""
        return [Path(self.path)]

    def content(self) -> list[Path]:
        """Returns the files that identify a run, whatever its name is."""
        return [Path(self.path)]

    def runs(self, source: str | None = None) -> list[Input]:
        """Returns the runs that an ingest adds, with `source` (`--from`) as logs of that format.

        Raises:
            InputError: it is no run.
        """
        return [self]

    @abstractmethod
    def write_tables(self, output: str, reading: Reading, progress: Progress | None = None) -> None:
        """Writes the tables of its run into a new folder, whose name ends in `/`.

        Raises:
            InputError, CoreError, EngineError.
        """

    @abstractmethod
    def refuse_to_convert(self, *, with_others: bool) -> None:
        """Raises InputError if `convert` cannot read it, by itself or together with others."""

    @abstractmethod
    def convert(
        self, output: str, reading: Reading, progress: Progress | None = None, **choices: Any
    ) -> dict[str, Any]:
        """Converts it, if `refuse_to_convert` accepts it. Returns the summary of the core.

        Raises:
            InputError, CoreError.
        """

    @abstractmethod
    def refuse_to_show(self) -> None:
        """Raises InputError if the Perfetto UI cannot show it, as a trace or converted to one."""

    @property
    def can_be_shown(self) -> bool:
        """Whether the Perfetto UI can show it."""
        try:
            self.refuse_to_show()
        except InputError:
            return False
        return True

    def absolute(self) -> Input:
        """Returns the same INPUT with a name that holds in another folder."""
        return replace(self, path=str(Path(self.path).absolute()))
