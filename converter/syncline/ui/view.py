"""What the Perfetto UI shows first when it has loaded a trace: the address of its page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from . import timeline
from .macros import SLOWEST, Command, command

__all__ = ["PLUGIN", "SLOWEST_SYNC", "Slowest", "address", "first_commands", "select", "slowest"]

# Tracks whose children are shown (docs/reference/trace-layout.md). The group of a process is called NAME PID.
_EXPANDED = r"^(More threads|Page cache|.* \d+)$"
# The id of the plugin (perfetto-ui-plugin/src/plugin.ts).
PLUGIN = "dev.syncline.Sync"
# Where the condition of SLOWEST_SYNC ends.
_ORDER = re.compile(r"\s+ORDER BY\s+dur_ns DESC")
# The SQL of a fact of the run that is a number.
_FACT = "(SELECT CAST(value AS BIGINT) FROM syncline_meta WHERE key = '{}')"
# What is pinned if there is no sync to begin with.
_PINNED = r": (syncs|all) in flight$"


@dataclass(frozen=True)
class Slowest:
    """The sync that is shown first: the one that waited longest, unless another one is wanted. All times are on the clock of the trace.

    `start_ns`, `length_ns`: its call. `slice_ns`, `slice_length_ns`: its slice in the timeline. `first_ns`, `last_ns`:
    the start of the first sync of the trace and the end of the last one.
    """

    start_ns: int
    length_ns: int
    slice_ns: int
    slice_length_ns: int
    first_ns: int
    last_ns: int

    def parameters(self) -> dict[str, str]:
        """Returns the parameters of the address that show this sync and select its slice."""
        margin = self.length_ns // 4
        return {
            "ts": str(self.slice_ns),
            "dur": str(self.slice_length_ns),
            # The UI ignores a span that is not within the trace.
            "visStart": str(max(self.start_ns - margin, self.first_ns)),
            "visEnd": str(min(self.start_ns + self.length_ns + margin, self.last_ns)),
        }


SLOWEST_SYNC = timeline.select("first-view")


def select(sync_id: int | None = None, at_ns: int | None = None) -> str:
    """Returns the SQL of the sync that is shown first: the slowest, the one to which a request belongs, or the one at a time.

    At a time is the longest that is in flight then, else the next one that begins. The time counts from the first event. One that would
    be after the last event is a time of the recording's clock, as reports print it.
    """
    if at_ns is not None:
        first, last = map(_FACT.format, ("first_ts_ns", "last_ts_ns"))
        time = f"(CASE WHEN {first} + {at_ns:d} > {last} THEN 0 ELSE {first} END + {at_ns:d})"
        order = (
            f" AND {time} >= {first} AND ts_ns + dur_ns > {time}"
            f" ORDER BY CASE WHEN ts_ns <= {time} THEN 0 ELSE ts_ns END, dur_ns DESC"
        )
    elif sync_id is not None:
        order = (
            " AND call_sync_id IN (SELECT call_sync_id FROM syncline_sync"
            f" WHERE sync_id = {sync_id:d}) ORDER BY dur_ns DESC"
        )
    else:
        return SLOWEST_SYNC
    found = _ORDER.subn(order, SLOWEST_SYNC)
    assert found[1] == 1
    return found[0]


def slowest(rows: Iterable[tuple[Any, ...]]) -> Slowest | None:
    """Returns the sync in the result of SLOWEST_SYNC; None if no sync has a known length."""
    return next((Slowest(*map(int, row)) for row in rows), None)


def first_commands(shown: Slowest | None, *, plugin: bool = False) -> list[Command]:
    """Returns the commands that run when the trace is loaded. With `plugin`, the UI has the modules of the tables."""
    expand = command("ExpandTracksByRegex", _EXPANDED)
    if plugin:
        # The plugin pins tracks of its own, and lists the slowest syncs in a tab of its own.
        return [expand]
    if shown is None:
        return [expand, command("PinTracksByRegex", _PINNED)]
    return [expand, *SLOWEST.commands(timeline.inlined)]


def address(ui: str, trace: str, shown: Slowest | None = None, *, plugin: bool = False) -> str:
    """Returns the address of the UI at `ui` that loads the trace at `trace`.

    It expands the tracks of Syncline. With `shown`, it begins with the view of that sync. With `plugin`, it enables
    Syncline's plugin, which the UI must have with the modules of the tables.
    """
    parameters = {"hideSidebar": "true"} | (shown.parameters() if shown else {})
    if plugin:
        parameters["enablePlugins"] = PLUGIN
    parameters["startupCommands"] = json.dumps(
        first_commands(shown, plugin=plugin), separators=(",", ":")
    )
    rest = "".join(f"&{name}={quote(value, safe='')}" for name, value in parameters.items())
    return f"{ui}/#!/?url={quote(trace, safe=':/')}{rest}"
