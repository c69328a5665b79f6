"""Reads what a replay needs of a recording: requests of one device, syncs, and commits of its journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from syncline.errors import InputError
from syncline.report import catalogue, run_query
from syncline.report.run import check_trace
from syncline.report.tables import SqlEngine

__all__ = ["Commit", "Recording", "Request", "Sync", "Wait", "read"]


@dataclass(frozen=True)
class Request:
    """A request of the block layer. Times are in ns of the recording's clock.

    `sync`: index of its sync in `Recording.syncs`; None for all others.
    """

    tid: int
    comm: str | None
    sync: int | None
    submit_ns: int
    issue_ns: int
    end_ns: int
    size_bytes: int
    is_sync: bool
    is_read: bool = False
    sector: int | None = None

    @property
    def written_bytes(self) -> int:
        return 0 if self.is_read else self.size_bytes


@dataclass(frozen=True)
class Wait:
    """A wait of a sync for a commit, which is an index of `Recording.commits`."""

    commit: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Sync:
    """A sync request."""

    sync_id: int
    tid: int
    comm: str | None
    path: str | None
    start_ns: int
    end_ns: int
    waits: tuple[Wait, ...]


@dataclass(frozen=True)
class Commit:
    """A commit of the journal's thread."""

    tid: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Recording:
    """One run at one device.

    `requests` are in the order of their submits, the others in the order of their starts.
    `notes`: what the replay assumes, in sentences.
    `scheduler`: that of the device, such as `none`; None if it was not recorded.
    """

    dev: str
    requests: list[Request]
    syncs: list[Sync]
    commits: list[Commit]
    notes: list[str] = field(default_factory=list)
    scheduler: str | None = None

    @property
    def start_ns(self) -> int:
        """Returns the time of the first event."""
        return min([self.requests[0].submit_ns, *(one.start_ns for one in self.syncs[:1])])

    @property
    def end_ns(self) -> int:
        """Returns the time of the last event."""
        return max(one.end_ns for one in (*self.requests, *self.syncs))


def read(
    engine: SqlEngine,
    dev: str | None = None,
    *,
    lost_is_ok: bool = False,
    hardware_queues: Mapping[str, int] | None = None,
    schedulers: Mapping[str, str] | None = None,
) -> Recording:
    """Reads the recording.

    Args:
        dev: the device, as `major,minor`; by default that with most syncs.
        hardware_queues: their number, by device, where it is known.
        schedulers: their names, by device, where they are known.
        lost_is_ok: uses a recording in which events are lost.

    Raises:
        InputError: the recording lacks what a replay needs.
    """
    check_trace(engine)
    requests, syncs = _rows(engine, "requests"), _rows(engine, "syncs")
    # Losses come last: larger buffers do not help a recording that lacks the rest.
    unfit = _rows(engine, "unfit")
    _refuse_unfit(unfit)
    _refuse_unissued(requests, syncs)
    notes = list(_losses(unfit, lost_is_ok=lost_is_ok))
    dev = _device(requests, syncs, dev, notes)
    if dev in {row["detail"] for row in unfit if row["reason"] == "stacked"}:
        raise InputError(
            f"device {dev} is stacked on another device, which has the queue",
            "a replay needs a file system on the device itself",
        )
    queues = (hardware_queues or {}).get(dev, 1)
    if queues > 1:
        notes.append(
            f"the device has {queues} hardware queues, each with tags of its own, and a recording does not say which request went"
            f" to which: the replay has one queue, so its depth is that of all {queues} together"
        )
    of_dev = [row for row in requests if row["dev"] == dev]
    _count_background(unfit, dev, len(of_dev), notes)
    used = {row["sync_id"] for row in of_dev}
    kept = [row for row in syncs if row["dev"] == dev or row["sync_id"] in used]
    if not kept:
        raise InputError(f"no sync of device {dev} is in the recording", "name another one: --block-device MAJOR,MINOR")  # fmt: skip
    commits = [row for row in _rows(engine, "commits") if row["dev"] in (dev, None)]
    waits = _waits(_rows(engine, "waits"), commits)
    numbers = {row["sync_id"]: index for index, row in enumerate(kept)}
    return Recording(
        dev,
        [
            Request(
                *(row["tid"], row["comm"], numbers.get(row["sync_id"])),
                *(row["submit_ns"], row["issue_ns"], row["end_ns"]),
                *(row["bytes"] or 0, bool(row["is_sync"]), bool(row["is_read"]), row["sector"]),
            )
            for row in of_dev
        ],
        [
            Sync(
                *(row["sync_id"], row["tid"], row["comm"], row["path"]),
                *(row["start_ns"], row["end_ns"], tuple(waits.get(row["sync_id"], ()))),
            )
            for row in kept
        ],
        [Commit(row["tid"], row["start_ns"], row["end_ns"]) for row in commits],
        notes,
        (schedulers or {}).get(dev),
    )


def _rows(engine: SqlEngine, name: str) -> list[dict[str, Any]]:
    return run_query(engine, catalogue.read_sql("commands/model", name)).as_dicts()


def _refuse_unissued(requests: list[dict[str, Any]], syncs: list[dict[str, Any]]) -> None:
    """Refuses a recording without what a replay repeats.

    Raises:
        InputError: says what is not recorded.
    """
    if not syncs:
        raise InputError(
            "no sync in the recording has a known start, end and thread",
            "record with: syncline record -o run/ -- COMMAND",
        )
    if not requests:
        raise InputError(
            "the recording has no issue of a request, so its service times are not known",
            "record with the route dynamic-events, or ring-buffer on a patched kernel: they record block_rq_issue",
        )


def _device(
    requests: list[dict[str, Any]], syncs: list[dict[str, Any]], dev: str | None, notes: list[str]
) -> str:
    """Returns the device, and adds notes on the choice."""
    by_dev = Counter(row["dev"] for row in requests if row["sync_id"] is not None)
    known = Counter(row["dev"] for row in requests)
    if dev is not None:
        if dev not in known:
            listed = ", ".join(sorted(known))
            raise InputError(
                f"device {dev} has no request with an issue", f"devices that have: {listed}"
            )
        return dev
    chosen = (by_dev or known).most_common(1)[0][0]
    others = sorted(set(by_dev) - {chosen})
    if others:
        notes.append(f"syncs also wrote to {', '.join(others)}: those requests take no time here")
    return chosen


def _refuse_unfit(rows: list[dict[str, Any]]) -> None:
    """Refuses what a replay cannot use.

    Raises:
        InputError: says what it is.
    """
    for row in rows:
        if row["reason"] == "runs":
            raise InputError(
                f"the input holds {row['number']:,} runs", "name one run: a replay repeats one"
            )
        if row["reason"] == "unissued":
            raise InputError(
                f"{row['number']:,} bios of syncs went to device {row['detail']}, whose issues are not"
                " recorded: it is stacked on another device, or its requests were not recorded",
                "a replay needs a file system on the device itself; syncline report INPUT device lists"
                " the devices",
            )


def _losses(rows: list[dict[str, Any]], *, lost_is_ok: bool) -> Iterator[str]:
    """Yields notes on what is not replayed.

    Raises:
        InputError: events are lost, and that is not accepted.
    """
    lost = {row["detail"]: row["number"] for row in rows if row["reason"] == "lost" and row["number"]}  # fmt: skip
    if lost:
        what = ", ".join(f"{number:,} {reason}" for reason, number in lost.items())
        if not lost_is_ok:
            again = (
                "record on a kernel with fprobes, which do not miss these"
                if [*lost] == ["missed_by_probe"]
                else "record again with larger buffers (syncline doctor)"
            )
            raise InputError(
                f"the recording lost events ({what}), so requests and their order are not all known",
                f"{again}, or accept the loss: --max-loss N, or N%",
            )
        yield (f"the recording lost events ({what}): what they were about is not replayed")
    for row in rows:
        if row["reason"] == "unfinished":
            yield (f"{row['number']:,} bios of syncs without a completion are not replayed")


# More background requests than this share of all must not be missing.
_MISSING = 0.05


def _count_background(rows: list[dict[str, Any]], dev: str, known: int, notes: list[str]) -> None:
    """Adds a note on requests of no sync that cannot be replayed.

    Raises:
        InputError: they are too many.
    """
    missing = sum(
        row["number"]
        for row in rows
        if row["reason"] == "background" and row["detail"] in (dev, "unknown")
    )
    if not missing:
        return
    said = f"{missing:,} bios of threads without a sync lack their device, issue or completion"
    if missing > _MISSING * (known + missing):
        raise InputError(
            f"{said}, beside {known:,} requests that have them, so what competes with the syncs is not known",
            "record the whole time of the load, with the route dynamic-events, or ring-buffer on a patched kernel",
        )
    notes.append(f"{said}: they are not replayed")


def _waits(rows: list[dict[str, Any]], commits: list[dict[str, Any]]) -> dict[int, list[Wait]]:
    """Returns the waits by sync_id, for commits that are known."""
    numbers = {row["commit_id"]: index for index, row in enumerate(commits)}
    found: dict[int, list[Wait]] = {}
    for row in rows:
        number = numbers.get(row["commit_id"])
        if number is not None:
            wait = Wait(number, row["start_ns"], row["end_ns"])
            found.setdefault(row["sync_id"], []).append(wait)
    return found
