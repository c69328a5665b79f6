"""Compares what probes on a stock kernel say of each sync with what a patched kernel says of it.

    python -m tools.agreement RECORDING...

A recording holds both: it was made on a patched kernel, with the patch's events and the dynamic events of
`syncline record` in one buffer. It is converted twice, once without the one kind of events and once without the
other. The requests of both are then compared, one by one: bytes, folios, bios, and waits.

If the recording has no bounds of a sync function from probes, those of the patch are used for both. So are those of
syncfs(): on a patched kernel it calls a function with another name.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncline import _core

from tests.coretools import Rows, tables

# Fields that only dynamic events have.
PROBE = ("probe", "__probe_ip", "__probe_func", "__probe_ret_ip")
# Events of the patch. All others, such as those of syscalls and of the block layer, are of both halves.
PATCH = {
    *("sync_start", "sync_end", "sync_fs_start", "sync_fs_end", "bio_add_folio", "bio_submit"),
    *("bio_complete", "wb_start", "wb_end", "commit_start", "commit_bio", "commit_end"),
    *("commit_wait_start", "commit_wait_end", "fc_start", "fc_bio", "fc_wait_start"),
    *("fc_wait_end", "fc_end", "bh_submit", "bh_complete", "log_submit", "log_complete"),
    *("flush_start", "flush_end"),
}
# Waits are equal if their lengths differ by no more than this.
WAIT_NS = 50_000
WAIT_SHARE = 0.05
# The two kinds of events give a request bounds that differ by less. Requests without an end have a start only.
NEAR_NS = 1_000_000
COUNTS = ("bytes", "folios", "bios")

Event = dict[str, Any]


@dataclass
class Agreement:
    """The result for one recording. Each count is (of the patch, of these the same by probes)."""

    name: str
    requests: tuple[int, int] = (0, 0)
    sums: dict[str, tuple[int, int]] = field(default_factory=dict)
    waits: tuple[int, int] = (0, 0)
    # By how much the lengths of equal waits differ, in ns.
    wait_ns: list[int] = field(default_factory=list)
    inferred_bios: int = 0
    differences: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def differ(self, kind: str, example: str, count: int = 1) -> None:
        """Notes a difference of a kind."""
        self.differences[kind] += count
        self.examples.setdefault(kind, example)


def events_of(recording: Path, folder: Path) -> list[Event]:
    """Returns the events of a recording, as the low-level log has them."""
    log = folder / "all.events.jsonl"
    _core.convert([str(recording)], str(log))
    return [json.loads(line) for line in log.read_text().splitlines()]


def is_of_probe(event: Event) -> bool:
    """Returns whether an event is a dynamic one."""
    return any(key in event for key in PROBE)


def halves(events: list[Event]) -> tuple[list[Event], list[Event]]:
    """Returns the events without those of probes, and without those of the patch."""
    of_patch = [event for event in events if not is_of_probe(event)]
    of_probes = [e for e in events if is_of_probe(e) or e["event"] not in PATCH]
    names = {event["event"] for event in of_probes}
    borrowed: set[int] = set()
    if "fsync_enter" not in names:
        borrowed |= {i for i, event in enumerate(events) if event["event"] in BOUNDS}
    if "syncfs_enter" not in names:
        borrowed |= bounds_of_syncfs(events)
    if borrowed:
        of_probes = [
            bounds(e)
            for i, e in enumerate(events)
            if i in borrowed or is_of_probe(e) or e["event"] not in PATCH
        ]
    return of_patch, of_probes


BOUNDS = {"sync_start", "sync_end"}


def bounds_of_syncfs(events: list[Event]) -> set[int]:
    """Returns the indexes of the patch's events of syncfs()."""
    ids = {e["id"] for e in events if e["event"] == "sync_fs_start" and e["op"] == "syncfs"}
    names = ("sync_fs_start", "sync_fs_end")
    return {i for i, e in enumerate(events) if e["event"] in names and e["id"] in ids}


def bounds(event: Event) -> Event:
    """Returns a bound of a request as a probe reports it."""
    if is_of_probe(event) or event["event"] not in {*BOUNDS, "sync_fs_start", "sync_fs_end"}:
        return event
    common = {key: event[key] for key in ("ts_ns", "tid", "pid", "comm", "source") if key in event}
    if event["event"] == "sync_end":
        return {**common, "event": "fsync_exit", "probe": "sync", "ret": event["ret"]}
    if event["event"] == "sync_fs_end":
        return {**common, "event": "syncfs_exit", "probe": "sync", "ret": event["ret"]}
    major, minor = map(int, event["dev"].split(","))
    if event["event"] == "sync_fs_start":
        known = {"dev": major << 20 | minor, "fs": event["fs"]}
        return {**common, "event": "syncfs_enter", "probe": "sync_filesystem", **known}
    known = {key: event[key] for key in ("ino", "start", "end", "datasync", "fs")}
    return {
        **{**common, "event": "fsync_enter", "probe": f"{event['fs']}_sync_file"},
        **{**known, "dev": major << 20 | minor},
    }


def rows_of(events: list[Event], folder: Path) -> dict[str, Rows]:
    """Converts events. Returns the tables."""
    folder.mkdir()
    log = folder / "half.events.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    _core.convert([str(log)], f"{folder}/tables/")
    return tables(folder / "tables")


def overlap(a: dict[str, Any], b: dict[str, Any]) -> int:
    """Returns the ns that both requests last."""

    def span(row: dict[str, Any]) -> tuple[int, int]:
        start = row["start_ns"] if row["start_ns"] is not None else row["ts_ns"]
        return start, row["ts_ns"] + (row["dur_ns"] or 0)

    (a_start, a_end), (b_start, b_end) = span(a), span(b)
    return min(a_end, b_end) - max(a_start, b_start)


def pairs(patch: Rows, probes: Rows) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Yields each request of the patch with the one of its thread that lasts at the same time."""
    by_thread = defaultdict(list)
    for row in probes:
        by_thread[row["tid"]].append(row)
    for row in patch:
        candidates = by_thread[row["tid"]]
        best = max(candidates, key=lambda other: overlap(row, other), default=None)
        if best is not None and overlap(row, best) < -NEAR_NS:
            best = None
        if best is not None:
            candidates.remove(best)
        yield row, best


def by_sync(rows: Rows) -> dict[int, Rows]:
    """Groups rows by their request. The patch has no event of the bio of a flush."""
    groups = defaultdict(list)
    for row in rows:
        if row["sync_id"] is not None and row.get("direction") != "flush":
            groups[row["sync_id"]].append(row)
    return groups


def compare_bios(result: Agreement, what: str, patch: Rows, probes: Rows) -> int:
    """Compares the bios of one request. Returns how many are the same."""

    # The patch shows bios of btrfs before they are mapped to a device, so sectors may differ.
    def keys(rows: Rows) -> Counter[tuple[str, int]]:
        return Counter((row["bio"], row["bytes"]) for row in rows)

    mine, others = keys(patch), keys(probes)
    for (bio, length), count in (mine - others).items():
        result.differ("bio only by the patch", f"{what}: {bio} of {length} bytes", count)
    for (bio, length), count in (others - mine).items():
        result.differ("bio only by probes", f"{what}: {bio} of {length} bytes", count)
    result.inferred_bios += sum(row["confidence"] == "inferred" for row in probes)
    return (mine & others).total()


def compare_waits(result: Agreement, what: str, patch: Rows, probes: Rows) -> int:
    """Compares the waits of one request. Returns how many are the same."""
    same = 0
    left = list(probes)
    for wait in patch:
        kinds = [other for other in left if other["wait"] == wait["wait"]]
        other = min(kinds, key=lambda other: abs(other["ts_ns"] - wait["ts_ns"]), default=None)
        if other is None:
            result.differ(f"{wait['wait']} only by the patch", f"{what}: {wait['dur_ns']} ns")
            continue
        left.remove(other)
        by = abs(other["dur_ns"] - wait["dur_ns"])
        known = {wait["transaction_id"], other["transaction_id"]} - {None}
        if len(known) > 1:
            result.differ(f"transaction of {wait['wait']}", f"{what}: {known}")
        elif by > max(WAIT_NS, WAIT_SHARE * wait["dur_ns"]):
            lengths = f"{wait['dur_ns']} ns, by probes {other['dur_ns']} ns"
            result.differ(f"length of {wait['wait']}", f"{what}: {lengths}")
        else:
            same += 1
            result.wait_ns.append(by)
    for other in left:
        result.differ(f"{other['wait']} only by probes", f"{what}: {other['dur_ns']} ns")
    return same


def agreement(recording: Path) -> Agreement:
    """Compares the two halves of a recording."""
    result = Agreement(recording.name)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        patch_events, probe_events = halves(events_of(recording, folder))
        patch, probes = (
            rows_of(patch_events, folder / "patch"),
            rows_of(probe_events, folder / "probes"),
        )
    bios, waits = [[by_sync(half[t]) for half in (patch, probes)] for t in ("bio", "wait")]
    requests, same_requests, same_bios, all_waits, same_waits = 0, 0, 0, 0, 0
    sums = {count: [0, 0] for count in COUNTS}
    found = set()
    for row, other in pairs(patch["sync"], probes["sync"]):
        what = f"{row['fs']} {row['path']} at {row['ts_ns']} ns"
        requests += 1
        for count in COUNTS:
            sums[count][0] += row[count] or 0
        all_waits += len(waits[0][row["sync_id"]])
        if other is None:
            result.differ("request only by the patch", what)
            continue
        found.add(other["sync_id"])
        # A function of the kernel that returns nothing has no result to report.
        same_requests += row["ino"] == other["ino"] and other["ret"] in (None, row["ret"])
        if row["ino"] != other["ino"]:
            result.differ("inode", f"{what}: {row['ino']}, by probes {other['ino']}")
        for count in COUNTS:
            sums[count][1] += min(row[count] or 0, other[count] or 0)
            if row[count] != other[count]:
                numbers = f"{row[count]}, by probes {other[count]}"
                result.differ(f"{count} of a request", f"{what}: {numbers}")
        if row["folios"] and (row["first_offset"], row["last_offset"]) != (
            other["first_offset"],
            other["last_offset"],
        ):
            result.differ("offsets of a request", f"{what}: by probes {other['first_offset']}")
        ids = (row["sync_id"], other["sync_id"])
        same_bios += compare_bios(result, what, bios[0][ids[0]], bios[1][ids[1]])
        same_waits += compare_waits(result, what, waits[0][ids[0]], waits[1][ids[1]])
    for other in probes["sync"]:
        if other["sync_id"] not in found:
            result.differ("request only by probes", f"{other['fs']} at {other['ts_ns']} ns")
    sums["bios"][1] = same_bios
    for loss in probes["loss"]:
        if loss["severity"] == "loss":
            result.differ(f"loss: {loss['reason']}", loss["example"] or "", loss["count"])
    result.requests = (requests, same_requests)
    result.sums = {count: (of_patch, same) for count, (of_patch, same) in sums.items()}
    result.waits = (all_waits, same_waits)
    return result


def table(results: list[Agreement]) -> str:
    """Returns the results as a table of Markdown."""

    def counts(pair: tuple[int, int]) -> str:
        return f"{pair[1]} of {pair[0]}"

    lines = [
        "| recording | requests | bytes | folios | bios | inferred | waits | difference of waits: median, largest |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in results:
        median = statistics.median(one.wait_ns) / 1000 if one.wait_ns else 0
        largest = max(one.wait_ns, default=0) / 1000
        sums = " | ".join(counts(one.sums[count]) for count in COUNTS)
        lines.append(
            f"| {one.name} | {counts(one.requests)} | {sums} | {one.inferred_bios} | {counts(one.waits)} "
            f"| {median:.0f} us, {largest:.0f} us |"
        )
    return "\n".join(lines)


def main() -> None:
    """Prints the table, and every difference with its first example."""
    results = [agreement(Path(name)) for name in sys.argv[1:]]
    print(table(results))
    for result in results:
        print(f"\n{result.name}: differences")
        for kind, count in sorted(result.differences.items()):
            print(f"  {count:5} {kind}; first: {result.examples[kind]}")


if __name__ == "__main__":
    main()
