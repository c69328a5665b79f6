"""Which probes have no effect: the kernel accepted them, and they never fire, because the function was inlined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from syncline.record.dynamic_events import Hits
from syncline.record.probes import Probe
from syncline.record.seen_events import Seen

# The functions that calls enter, by the event of their entry.
_ENTERED = {
    "fsync_enter": {"fsync", "fdatasync"},
    "range_enter": {"sync_file_range"},
    "syncfs_enter": {"syncfs"},
    "sync_inodes": {"sync"},
}


def without_effect(
    probes: Iterable[Probe], probed: Iterable[str], seen: Seen, profile: Mapping[str, Hits]
) -> dict[str, int]:
    """Returns the events that did not occur although others imply them, and how many of each are missing at least.

    Args:
        probes: those of probes.toml.
        probed: the events that have a probe.
        seen: what was recorded.
        profile: the hits of kprobes by event. A filter may have left out all of them.
    """
    probes = [*probes]
    hits = {event: counts.hits for event, counts in profile.items() if counts.hits}
    occurred = seen.names | hits.keys()
    missing: dict[str, int] = {}
    ends: dict[str, str] = {}
    for probe in probes:
        start, end = probe.expects, probe.event
        if not start:
            continue
        ends[start] = end
        if end in seen.names and start not in occurred:
            missing[start] = hits.get(end, 1)
        # A call that has returned has waited for the end.
        if start in seen.in_calls and end not in occurred:
            missing[end] = hits.get(start, 1)
    # Without the end too, only the calls show that the function was entered. fsync calls that of the file system, and
    # tmpfs and others have none that does anything. So there, something must have happened within a call.
    is_working = bool(seen.in_calls & {probe.event for probe in probes})
    for event, calls in _ENTERED.items():
        if (
            seen.calls & calls
            and not occurred & {event, ends.get(event)}
            and (is_working or event != "fsync_enter")
        ):
            missing[event] = 1
    # An effect that has no probe is reported as not recorded.
    return {event: count for event, count in missing.items() if event in set(probed)}
