"""Macros for the Perfetto UI: commands that show what Syncline's tables say of a trace.

They use only commands that Perfetto keeps stable, so they need no plugin. An extension server offers them in any
UI; `syncline open` runs one when a trace is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import timeline

__all__ = ["MACROS", "SLOWEST", "Command", "Macro"]

# A command as the UI takes it: its id and its arguments, which are text.
Command = dict[str, str | list[str]]


@dataclass(frozen=True)
class Macro:
    """Commands under one name.

    `steps`: the last part of the id of a command (`AddDebugSliceTrack`), the file of sql/views/timeline/ that it shows, and
    its other arguments. A command without a file has an empty name.
    """

    id: str
    name: str
    steps: tuple[tuple[str, ...], ...]

    def commands(self, tables: Callable[[Iterable[str]], str]) -> list[Command]:
        """Returns the commands. `tables` gives the SQL that builds the tables which statements name."""
        selects = [timeline.select(step[1]) for step in self.steps if step[1]]
        # A statement that builds a table cannot be in the query of a track.
        found = [command("RunQuery", tables(selects))]
        for name, file, *arguments in self.steps:
            if not file:
                found.append(command(name, *arguments))
                continue
            sql = timeline.select(file)
            if name == "RunQueryAndShowTab":
                # The UI gives the tab no other title than its SQL.
                sql = f"-- {arguments[0]}\n{sql}"
            found.append(command(name, sql, *arguments))
        return found


def command(name: str, *arguments: str) -> Command:
    """Returns a command of Perfetto."""
    return {"id": f"dev.perfetto.{name}", "args": list(arguments)}


_LATENCY = ("AddDebugCounterTrack", "latency", "Sync latency (ms)")

SLOWEST = Macro(
    "SlowestSyncs",
    "Syncline: slowest syncs",
    (
        ("AddDebugSliceTrack", "slowest", "Slowest syncs"),
        ("AddDebugSliceTrack", "slowest-parts", "their phases"),
        ("AddDebugSliceTrack", "disk", "Who used the disk"),
        ("PinTracksByRegex", "", "^Journal "),
        _LATENCY,
        ("RunQueryAndShowTab", "slowest-phases", "Slowest syncs: an id leads to its sync"),
    ),
)

MACROS = (
    SLOWEST,
    Macro(
        "WhoseData",
        "Syncline: whose data",
        (
            ("AddDebugSliceTrackWithPivot", "whose-data", "owner", "Bios of"),
            ("RunQueryAndShowTab", "whose-data-table", "Whose data"),
        ),
    ),
    Macro(
        "EmptySyncs",
        "Syncline: empty syncs",
        (
            ("AddDebugSliceTrack", "empty", "Empty syncs"),
            ("RunQueryAndShowTab", "empty-files", "Empty syncs by file"),
        ),
    ),
    Macro(
        "QueueAgainstLatency",
        "Syncline: queue against latency",
        (
            ("AddDebugCounterTrack", "queue", "Bios in flight, all devices"),
            _LATENCY,
            ("RunQueryAndShowTab", "queue-latency", "Queue against latency"),
        ),
    ),
    Macro(
        "QueueParts",
        "Syncline: queue by sync, async and process",
        (("AddDebugCounterTrackWithPivot", "queue-parts", "part", "Bios at"),),
    ),
)
