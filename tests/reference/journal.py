"""The columns of `syncline_journal` that say why a commit was made and for whom, by the events of a recording of `dynamic-events`.

It shares nothing with the core: it reads the low-level log, in which each event has its own fields, once for each question.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

# The kernel's numbers.
STATUSES = ("ok", "ineligible", "skipped", "failed")
REASONS = (
    "xattr",
    "cross rename",
    "journal flag change",
    "no memory",
    "swap boot",
    "resize",
    "rename dir",
    "falloc range",
    "inode journal data",
    "encrypted filename",
)
SECOND = 1_000_000_000


def transaction_of(event: Row) -> int:
    return int(event.get("transaction", event.get("data_tid", 0)))


def device_of(event: Row) -> str:
    """A dynamic event has the kernel's number of a device."""
    dev = event["dev"]
    return dev if isinstance(dev, str) else f"{dev >> 20},{dev & 0xFFFFF}"


class Journal:
    """The events and the requests of a recording."""

    def __init__(self, events: list[Row], syncs: list[Row], waits: list[Row]) -> None:
        # A line about a file has no time.
        self.events = [event for event in events if "ts_ns" in event]
        self.syncs = syncs
        self.waits = waits

    def named(self, *names: str) -> list[Row]:
        return [event for event in self.events if event["event"] in names]

    def request_at(self, event: Row) -> int | None:
        """The request that the thread of an event is in."""
        found = [
            row["sync_id"]
            for row in self.syncs
            if row["tid"] == event["tid"]
            and row["start_ns"] <= event["ts_ns"] <= row["ts_ns"] + row["dur_ns"]
        ]
        return found[0] if found else None

    def waits_for_room(self, event: Row) -> bool:
        for kind in ("journal_handle", "journal_space"):
            last = [
                other
                for other in self.named(kind, f"{kind}_end")
                if other["tid"] == event["tid"] and other["ts_ns"] <= event["ts_ns"]
            ][-1:]
            if last and last[0]["event"] == kind:
                return True
        return False

    def started(self, start: Row) -> tuple[str | None, int | None]:
        """What started the commit that begins with an event, and which request."""
        dev, transaction = start["dev"], transaction_of(start)
        asked = [
            event
            for event in self.named("commit_request")
            if device_of(event) == dev
            and transaction_of(event) == transaction
            and event["ts_ns"] <= start["ts_ns"]
        ]
        if asked:
            first = asked[0]
            request = self.request_at(first)
            if request is not None:
                return "sync", request
            if self.waits_for_room(first):
                return "space", None
            if "now" in first and first["now"] >= first["expires"]:
                return "timer", None
            return "other", None
        before = [event for event in self.events if event["ts_ns"] < start["ts_ns"]]
        names = {event["event"] for event in before}
        has_begun = any(
            event["event"] == "jbd2_start_commit" and event["dev"] == dev for event in before
        )
        expired = [
            event
            for event in before
            if event["event"] == "commit_timer" and start["ts_ns"] - event["ts_ns"] < SECOND
        ]
        if "commit_request" in names:
            return ("timer", None) if has_begun and expired else (None, None)
        waiting = sorted(
            (wait["ts_ns"], wait["sync_id"])
            for wait in self.waits_for(dev, transaction)
            if wait["ts_ns"] <= start["ts_ns"]
        )
        return ("sync", waiting[0][1]) if waiting else (None, None)

    def waits_for(self, dev: str, transaction: int) -> list[Row]:
        devices = {row["sync_id"]: row["dev"] for row in self.syncs}
        return [
            wait
            for wait in self.waits
            if wait["wait"] == "commit wait"
            and wait["transaction_id"] == transaction
            and devices[wait["sync_id"]] == dev
        ]

    def commits(self) -> dict[tuple[str, int], tuple[Any, ...]]:
        """(started_by, sync_id, the requests that waited) of each commit whose start is recorded, by device and transaction."""
        return {
            (start["dev"], transaction_of(start)): (
                *self.started(start),
                sorted(
                    {
                        wait["sync_id"]
                        for wait in self.waits_for(start["dev"], transaction_of(start))
                    }
                ),
            )
            for start in self.named("jbd2_start_commit")
        }

    def fast_commits(self) -> list[tuple[Any, ...]]:
        """(start, end, sync_id, status, reason) of each fast commit, in the order of the starts."""
        found = []
        for start in self.named("ext4_fc_commit_start"):
            stop = next(
                event
                for event in self.named("ext4_fc_commit_stop")
                if event["tid"] == start["tid"] and event["ts_ns"] >= start["ts_ns"]
            )
            status = STATUSES[stop["reason"]]
            marks = [
                event
                for event in self.named("fc_ineligible")
                if device_of(event) == start["dev"] and event["ts_ns"] <= start["ts_ns"]
            ]
            reason = REASONS[marks[-1]["reason"]] if status == "ineligible" else None
            found.append((start["ts_ns"], stop["ts_ns"], self.request_at(start), status, reason))
        return found


def whose_data(
    tables: dict[str, list[Row]],
) -> dict[tuple[Any, ...], tuple[int, int, int | None, int]]:
    """The report `whose-data`: (bios, bytes, commits, syncs) by (kind, path, writers)."""
    syncs = {row["sync_id"]: row for row in tables["sync"]}
    own = [bio for bio in tables["bio"] if bio["sync_id"] is not None]
    found: dict[tuple[Any, ...], list[tuple[Row, int | None, set[int]]]] = {}
    if own:
        found["itself", None, None] = [(bio, None, {bio["sync_id"]}) for bio in own]
    for commit in tables["journal"]:
        waiting = {w["sync_id"] for w in tables["wait"] if w["commit_id"] == commit["commit_id"]}
        if commit["kind"] == "fast commit" and commit["sync_id"] is not None:
            waiting = {commit["sync_id"]}
        if commit["dur_ns"] is None or not waiting:
            continue
        files = {(syncs[sync_id]["dev"], syncs[sync_id]["ino"]) for sync_id in waiting}
        end = commit["ts_ns"] + commit["dur_ns"]
        for bio in tables["bio"]:
            if (
                bio["sync_id"] is None
                and bio["tid"] == commit["tid"]
                and commit["ts_ns"] <= bio["ts_ns"] <= end
            ):
                key: tuple[Any, ...] = ("unknown", None, None)
                # Older kernels mark only the block that ends the commit, by a flush or FUA.
                if bio["rwbs"] is not None and {"M", "F"} & {*bio["rwbs"]}:
                    key = ("journal", None, None)
                elif bio["ino"] is not None and (commit["dev"], bio["ino"]) in files:
                    key = ("own file", None, None)
                elif bio["ino"] is not None:
                    key = ("other file", bio["path"], bio["writers"])
                found.setdefault(key, []).append((bio, commit["commit_id"], waiting))
    return {
        key: (
            len(rows),
            sum(bio["bytes"] or 0 for bio, _, _ in rows),
            None if key[0] == "itself" else len({commit for _, commit, _ in rows}),
            len(set().union(*(waiting for _, _, waiting in rows))),
        )
        for key, rows in found.items()
    }
