"""What a recording waits for, because a filter names it and it does not exist yet: a container that starts, a thread that gets its name.

It records meanwhile, so it has the first sync too.
"""

from __future__ import annotations

import difflib
import time

from syncline.record.processes import all_processes, cgroup
from syncline.record.recorders import Recorders, Say
from syncline.record.watch import Scanner
from syncline.run_directory import Filter, is_in_cgroup

_EVERY_S = 1.0
# The share of one CPU that looking takes at most, as the time between two looks in times of one.
_PAUSE = 20


class Awaited:
    """Looks whether there is what a filter names. Created after a scan of all processes."""

    def __init__(self, wanted: Filter, scanner: Scanner, recorders: Recorders, say: Say) -> None:
        self._wanted, self._scanner, self._recorders, self._say = wanted, scanner, recorders, say
        # In words, by the condition of the filter.
        self.missing: dict[str, str] = {}
        self._next = 0.0
        self._groups: set[str] = set()
        if wanted.cgroup is not None and not self._has_cgroup():
            self.missing["cgroup"] = f"a process in a control group {wanted.cgroup}"
            self._say_missing("cgroup", wanted.cgroup, self._groups)
        if wanted.comm is not None and not self._has_comm():
            self.missing["comm"] = f"a thread named {wanted.comm}"
            self._say_missing("comm", wanted.comm, scanner.maps.comms())
        self._groups.clear()

    def _say_missing(self, condition: str, name: str, names: set[str]) -> None:
        close = difflib.get_close_matches(name, sorted(names))
        similar = f"; did you mean {' or '.join(close)}?" if close else ""
        self._say(f"waiting for {self.missing[condition]}, because there is none yet{similar}")

    def look_if_due(self) -> None:
        """Says so if something has appeared."""
        if not self.missing or (began := time.monotonic()) < self._next:
            return
        for condition, what in [*self.missing.items()]:
            if self._has_cgroup() if condition == "cgroup" else self._has_comm():
                del self.missing[condition]
                self._say(f"there is {what} now")
        now = time.monotonic()
        self._next = now + max(_EVERY_S, _PAUSE * (now - began))

    def _has_cgroup(self) -> bool:
        wanted = self._wanted.cgroup or ""
        for pid in all_processes():
            group = cgroup(pid)
            self._groups.add(group)
            if is_in_cgroup(group, wanted):
                # It may have been in another one when it was first seen.
                self._scanner.tasks.scan([pid])
                return True
        return False

    def _has_comm(self) -> bool:
        ring = self._recorders.ring
        # The kernel names the threads of which it has recorded something.
        recorded = {*{**ring.comms}.values()} if ring is not None else set()
        return self._wanted.comm in self._scanner.maps.comms() | recorded
