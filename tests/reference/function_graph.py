"""The syncs and waits in a text of the tracer function_graph, from docs/reference/formats.md alone: the reference for `function_graph/`.

It reads texts without losses: a `}` ends the innermost function of its thread.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

SYNCS = {
    "ext4_sync_file": "ext4", "xfs_file_fsync": "xfs", "btrfs_sync_file": "btrfs", "f2fs_sync_file": "f2fs",
}  # fmt: skip
CALLS = {"__x64_sys_fsync": "fsync", "__x64_sys_fdatasync": "fdatasync"}
WAITS = {
    "jbd2_complete_transaction": "commit wait", "jbd2_log_wait_commit": "commit wait",
    "xfs_log_force_seq": "commit wait", "btrfs_sync_log": "commit", "btrfs_commit_transaction": "commit",
    "f2fs_issue_flush": "flush", "blkdev_issue_flush": "flush", "f2fs_write_checkpoint": "commit wait",
    "f2fs_issue_checkpoint": "commit wait",
}  # fmt: skip
DATA = {"file_write_and_wait_range", "__filemap_fdatawait_range", "folio_wait_writeback"}

_KERNEL = re.compile(
    r"^\s*(?P<time>\d+\.\d{6}) \|\s+(?P<cpu>\d+)\)(?:\s+(?P<task>\S.*?-\d+)\s+\|)?\s*(?P<dur>[-+!#*@$ ]*[\d.]+ us)?\s*\|(?P<text>.*)$"
)
_TRACE_CMD = re.compile(
    r"^\s*(?P<task>\S.*?-\d+)\s+\[\d+\] \S+\s+(?P<time>\d+\.\d{6}): funcgraph_\w+:\s*(?P<dur>[-+!#*@$ ]*[\d.]+ us)?\s*\|(?P<text>.*)$"
)
_SWITCH = re.compile(r"^\s*(?P<cpu>\d+)\)\s+(?P<old>\S.*?-\d+)\s+=>\s+(?P<new>\S.*?-\d+)\s*$")


@dataclass
class Sync:
    tid: int
    fs: str
    start: int
    end: int | None = None
    op: str | None = None
    call: tuple[int, int | None] | None = None
    waits: list[tuple[str, int, int]] = field(default_factory=list)
    data: list[tuple[int, int]] = field(default_factory=list)


def _us(text: str) -> int:
    return int(text.replace(".", ""))


def read(text: str) -> list[Sync]:
    """The syncs in the order of their starts. Times are in µs."""
    lines = text.splitlines()
    running: dict[str, str] = {}
    for line in lines:
        if found := _SWITCH.match(line):
            running.setdefault(found["cpu"], found["old"])
    # (time, order, thread, function, whether it begins)
    steps: list[tuple[int, int, int, str, bool]] = []
    stacks: dict[int, list[str]] = defaultdict(list)
    for line in lines:
        if found := _SWITCH.match(line):
            running[found["cpu"]] = found["new"]
            continue
        found = _KERNEL.match(line) or _TRACE_CMD.match(line)
        if not found:
            continue
        task = found["task"] or running[found["cpu"]]
        tid, at, code = int(task.rpartition("-")[2]), _us(found["time"]), found["text"].strip()
        if code.startswith("/*"):
            continue
        if code.startswith("}"):
            # The recording may begin in a function.
            if stacks[tid]:
                steps.append((at, len(steps), tid, stacks[tid].pop(), False))
            continue
        name = re.match(r"[\w.]+", code)[0]  # type: ignore[index]
        steps.append((at, len(steps), tid, name, True))
        if code.endswith("{"):
            stacks[tid].append(name)
        else:
            took = int(re.search(r"([\d.]+) us", found["dur"])[1].partition(".")[0])  # type: ignore[index]
            steps.append((at + took, len(steps), tid, name, False))
    return _syncs(sorted(steps))


def _syncs(steps: list[tuple[int, int, int, str, bool]]) -> list[Sync]:
    syncs: list[Sync] = []
    current: dict[int, Sync] = {}
    calls: dict[int, tuple[str, int]] = {}
    begun: dict[tuple[int, str], list[int]] = defaultdict(list)
    for at, _, tid, name, begins in steps:
        sync = current.get(tid)
        if name in CALLS:
            if begins:
                calls[tid] = (CALLS[name], at)
            else:
                _, since = calls.pop(tid)
                for other in reversed(syncs):
                    if other.tid == tid and other.start >= since:
                        other.call = (since, at)
        elif name in SYNCS:
            if begins:
                current[tid] = Sync(tid, SYNCS[name], at)
                if tid in calls:
                    current[tid].op = calls[tid][0]
                syncs.append(current[tid])
            elif sync:
                sync.end = at
                del current[tid]
        elif sync and name in WAITS | dict.fromkeys(DATA, "data"):
            kind = WAITS.get(name, "data")
            if begins:
                begun[tid, kind].append(at)
                continue
            since = begun[tid, kind].pop()
            # A wait in another one of its kind is the same wait.
            if not begun[tid, kind]:
                if kind == "data":
                    sync.data.append((since, at))
                else:
                    sync.waits.append((kind, since, at - since))
    return syncs
