"""Finds conversions whose work grows faster than their input: `python -m tests.growth PROGRAM [NAME...]`.

PROGRAM is `growth` of converter/fuzz, as tests/fuzz.sh builds it. It counts steps of the core and
allocated bytes instead of time, so a result does not depend on the machine or on its load.

Each case is converted at three sizes, n, 2n and 4n. From the growth of the work between them
follows an exponent: 1 if the work is proportional to the input, 2 if it is quadratic. There are
two kinds of cases:

- CASES: one for each dimension in which an input can grow.
- mutants: a few lines of a seed of the fuzzers, repeated n times. Some of their numbers count up
  with each repetition, the others stay. They find what nobody has thought of.

Copies of memory are counted only where memory is allocated for them.
"""

from __future__ import annotations

import math
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from google.protobuf.descriptor_pb2 import DescriptorProto
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from tests import fuzz_seeds

# Work of n log n has an exponent below 1.2 at these sizes.
MAX_EXPONENT = 1.35
SIZE = 400
MUTANTS = 160
MAX_WINDOW = 6
NUMBER = re.compile(rb"0x[0-9a-f]+|\d+")
HEADER = "TIME PID COMM EVENT DATA"


@dataclass(frozen=True)
class Case:
    """A conversion whose input grows. `inputs` makes the texts of the inputs of a size.

    Flags: `processes`, the ids of the log are processes; `joined`, the inputs are on one clock.
    """

    inputs: Callable[[int], list[str | bytes]]
    to: str = "pftrace"
    flags: str = ""
    size: int = SIZE
    limit: float = MAX_EXPONENT


class Log:
    """A log of bpftrace, with a clock that ticks on each line."""

    def __init__(self, tick: int = 1000) -> None:
        self.lines = [HEADER]
        self.now = 1_000_000
        self.tick = tick

    def add(self, text: str, task: int = 7, comm: str = "wl") -> None:
        self.now += self.tick
        self.lines.append(f"{self.now} {task} {comm} {text}")

    def start(self, number: int, task: int = 7, path: str = "/a", comm: str = "wl") -> None:
        self.add(f"start id {number} start 0 end 9 datasync 1 path {path}", task, comm)

    def end(self, number: int, task: int = 7, comm: str = "wl") -> None:
        self.add(f"exit id {number} ret 0", task, comm)

    def bio(
        self, number: int, address: int, task: int = 7, dev: str = "8,0", sector: int = -1
    ) -> None:
        self.add(
            f"bio_add_folio id {number} bio {address:#x} start {4096 * address} len 4096", task
        )
        place = f" dev {dev} sector {sector}" if sector >= 0 else ""
        self.add(f"bio_submit id {number} bio {address:#x}{place}", task)

    def done(self, address: int) -> None:
        self.add(f"bio_complete bio {address:#x}", 0, "swapper/0")

    def texts(self) -> list[str | bytes]:
        return ["\n".join(self.lines) + "\n"]


def _requests(n: int) -> list[str | bytes]:
    log = Log()
    for i in range(1, n + 1):
        log.add("fsync")
        log.start(i)
        log.bio(i, 5)
        log.done(5)
        log.end(i)
    return log.texts()


def _threads(
    n: int, same_id: bool = False, lifo: bool = False, path: str = "/a"
) -> list[str | bytes]:
    """Requests of n threads, all open at the same time."""
    log = Log()
    for i in range(1, n + 1):
        log.add("fsync", i, f"t{i}")
        log.start(1 if same_id else i, i, path + (str(i) if path != "/a" else ""), f"t{i}")
    for i in range(n, 0, -1) if lifo else range(1, n + 1):
        log.end(1 if same_id else i, i, f"t{i}")
    return log.texts()


def _bios_of_one(
    n: int, lifo: bool = False, sector: int = -1, devices: bool = False
) -> list[str | bytes]:
    """Bios of one request, all in flight at the same time."""
    log = Log()
    log.start(1)
    for i in range(1, n + 1):
        log.bio(1, i, dev=f"8,{i}" if devices else "8,0", sector=sector)
    for i in range(n, 0, -1) if lifo else range(1, n + 1):
        log.done(i)
    log.end(1)
    return log.texts()


def _torn(n: int, text: str) -> list[str | bytes]:
    """Torn lines of a thread, between the requests of its only call and their bios, which are in flight."""
    log = Log()
    log.add("fsync")
    for i in range(1, n + 1):
        log.start(i)
        log.bio(i, i)
        log.lines.append(text.format(time=log.now, number=i, address=hex(i)))
    for i in range(1, n + 1):
        log.lines.append(text.format(time=log.now, number=i, address=hex(i)))
        log.add("fsync", 7 + i)
    return log.texts()


def _foreign_ids(n: int) -> list[str | bytes]:
    """Threads in requests, each adding a folio with the id of another request."""
    log = Log()
    for i in range(1, n + 1):
        log.start(i, i)
        log.add(f"bio_add_folio id {i + 1_000_000} bio {i:#x} start 0 len 4096", i)
    for i in range(1, n + 1):
        log.end(i, i)
    return log.texts()


def _late_bios(n: int) -> list[str | bytes]:
    """Requests that have ended and wait for their bios."""
    log = Log()
    for i in range(1, n + 1):
        log.add("fsync")
        log.start(i)
        log.bio(i, i)
        log.end(i)
    for i in range(n, 0, -1):
        log.done(i)
    return log.texts()


def _lost(n: int) -> list[str | bytes]:
    """Calls, requests and bios of n threads, without their ends."""
    log = Log()
    for i in range(1, n + 1):
        log.add("fsync", i)
        log.start(i, i)
        log.bio(i, i, i)
        log.add("fsync exit", i + 1_000_000)
        log.done(i + 1_000_000)
    return log.texts()


def _folios(n: int) -> list[str | bytes]:
    log = Log()
    log.start(1)
    for i in range(n, 0, -1):
        log.add(f"bio_add_folio id 1 bio 0x5 start {8192 * i} len 4096")
    log.add("bio_submit id 1 bio 0x5")
    log.done(5)
    log.end(1)
    return log.texts()


def _slow(n: int) -> list[str | bytes]:
    """One request of each thread in four seconds."""
    log = Log(4_000_000_000)
    for i in range(1, n + 1):
        log.add("fsync", i)
        log.start(i, i)
        log.end(i, i)
    return log.texts()


def _stacks(n: int, depth: bool) -> list[str | bytes]:
    log = Log()
    for i in range(1, 4 if depth else n + 1):
        log.add("fsync")
        log.lines += [f"        f{frame}+{i}" for frame in range(n if depth else 5)]
        log.lines.append(f"        g{i}+1")
        log.start(i)
        log.end(i)
    return log.texts()


def _long_line(n: int) -> list[str | bytes]:
    log = Log()
    log.start(1, path="/" + "ab/" * n)
    log.end(1)
    return log.texts()


def _backwards(n: int) -> list[str | bytes]:
    """Lines whose times run backwards, each by more than the reorder window."""
    log = Log(-6_000_000_000)
    log.now = 10**15
    for i in range(1, n + 1):
        log.start(i, i)
        log.bio(i, i, i)
        log.done(i)
        log.end(i, i)
    return log.texts()


def _waits(n: int, nested: bool) -> list[str | bytes]:
    """Waits of one request, in the kernel's events."""

    def line(at: int, text: str) -> str:
        return f"              wl-7     [000] .....    20.{at:09d}: {text}"

    lines = ["# tracer: nop"]
    lines.append(
        line(1, "sync_start: id=1 start=0 end=9 datasync=1 dev=8,0 ino=13 op=fsync fs=ext4 path=/a")
    )
    starts = [f"{kind}_start: id=1 dev=8,0 tid=2" for kind in ("commit_wait", "flush")]
    ends = [f"{kind}_end: id=1 dev=8,0 tid=2 ret=0" for kind in ("flush", "commit_wait")]
    texts = [*starts * n, *ends * n] if nested else [*starts, *ends] * n
    lines += [line(at, text) for at, text in enumerate(texts, 2)]
    lines.append(line(len(texts) + 9, "sync_end: id=1 dev=8,0 ino=13 ret=0"))
    return ["\n".join(lines) + "\n"]


def _block(n: int, long: int = 0, same: bool = False, overlap: bool = False) -> list[str | bytes]:
    """Requests of the block layer in flight on a device."""
    lines = []

    def add(action: str, sector: int, length: int) -> None:
        at = len(lines)
        lines.append(
            f"  8,0    0 {at:8}   {at / 1e6:13.9f}  697  {action}   W {sector} + {length} [{'wl' if action == 'Q' else 0}]"
        )

    for i in range(long):
        add("Q", i, 1 << 22)
    step = 1 if overlap else 8
    for i in range(n):
        add("Q", 1000 if same else 1000 + step * i, 8)
    for i in range(n):
        add("C", 1000 if same else 1000 + step * i, 8)
    return ["\n".join(lines) + "\n"]


def _partitions(n: int, threads: bool = False) -> list[str | bytes]:
    """Bios that are redirected, each from a device of its own."""
    lines = []
    for i in range(n):
        at = 3 * i
        tid = 697 + i * threads
        lines += [
            f"  8,{i}    0 {at:8}   {at / 1e6:13.9f}  {tid}  Q   W 8 + 8 [wl]",
            f"  9,{i}    0 {at:8}   {(at + 1) / 1e6:13.9f}  {tid}  A   W 16 + 8 <- (8,{i}) 8",
            f"  9,{i}    0 {at:8}   {(at + 2) / 1e6:13.9f}  697  C   W 16 + 8 [0]",
        ]
    return ["\n".join(lines) + "\n"]


class Strace:
    """A log of `strace -f -ttt -T`."""

    def __init__(self) -> None:
        self.lines = ['1  100.000000 execve("/bin/a", ["a"], 0x7ffc /* 1 var */) = 0 <0.000100>']

    def add(self, tid: int, text: str) -> None:
        self.lines.append(f"{tid}  {100 + len(self.lines) / 1e4:.6f} {text}")

    def texts(self) -> list[str | bytes]:
        return ["\n".join(self.lines) + "\n"]


CLONE = "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD"


def _children(n: int, how: str) -> list[str | bytes]:
    """Processes that run at the same time, and end."""
    log = Strace()
    if how == "running":
        # None of them is known before the call that creates it has returned.
        log.add(1, f"{CLONE} <unfinished ...>")
    for i in range(2, n + 2):
        if how != "running":
            log.add(1, f"{CLONE}) = {i} <0.000100>")
        log.add(i, "fsync(3</a>) = 0 <0.000010>")
    for i in range(2, n + 2):
        log.add(i, "exit_group(0) = ?" if how == "group" else "exit(0) = ?")
        if how != "quiet":
            log.add(i, "+++ exited with 0 +++")
    return log.texts()


def _unfinished(n: int) -> list[str | bytes]:
    log = Strace()
    for i in range(2, n + 2):
        log.add(i, "fsync(3</a> <unfinished ...>")
    for i in range(2, n + 2):
        log.add(i, "<... fsync resumed>) = 0 <0.001000>")
    return log.texts()


def _files(n: int) -> list[str | bytes]:
    log = Strace()
    for i in range(3, n + 3):
        log.add(1, f'openat(AT_FDCWD, "/f{i}", O_WRONLY) = {i} <0.000010>')
    for i in range(3, n + 3):
        log.add(1, f"fsync({i}) = 0 <0.000010>")
        log.add(1, f"close({i}) = 0 <0.000010>")
    return log.texts()


def _pieces(n: int) -> list[str | bytes]:
    """A log of each thread, as `strace -ff` writes it."""
    log = "{}.000001 fsync(3</a>) = 0 <0.000010>\n{}.000002 +++ exited with 0 +++\n"
    return [log.format(100 + i, 100 + i) for i in range(n // 10)]


def _function_graph(n: int) -> list[str | bytes]:
    """Functions of many threads: each sync waits in one that has only one line, until all have begun."""
    begun = (
        f" {i}.000000 |   0)   t-{i}   |               |  ext4_sync_file() {{\n"
        for i in range(1, n)
    )
    waits = (
        f" {n}.000000 |   0)   t-{i}   | * {n}000000.000 us |    jbd2_log_wait_commit();\n"
        for i in range(1, n)
    )
    ended = (f" {2 * n}.000000 |   0)   t-{i}   | * 1.000 us |  }}\n" for i in range(1, n))
    return ["# tracer: function_graph\n" + "".join([*begun, *waits, *ended])]


def _perf_trace(n: int) -> list[str | bytes]:
    """Calls of many threads, each interrupted by the next one."""
    begun = (f"{i}.000 (         ): t/{i} fsync(fd: 3)   ...\n" for i in range(1, n))
    ended = (f"{i}.000 ({n}.000 ms): t/{i}  ... [continued]: fsync()) = 0\n" for i in range(1, n))
    return ["".join([*begun, *ended])]


def _slower(n: int) -> list[str | bytes]:
    """Slow syncs of many processes, files and hours."""
    rows = (
        f"{i // 60 % 24:02}:{i % 60:02}:00 db {i % 4_000_000} S 0 0 {i}.00 file{i}\n"
        for i in range(n)
    )
    return ["Tracing ext4 operations slower than 10 ms\n" + "".join(rows)]


def _syncsnoop(n: int) -> list[str | bytes]:
    """Calls of many processes over many days."""
    rows = (
        f"{i // 60 % 24:02}:{i % 60:02}:00  {i % 4_000_000} db tracepoint:syscalls:sys_enter_fsync\n"
        for i in range(n)
    )
    return ["TIME      PID    COMM             EVENT\n" + "".join(rows)]


def _biosnoop(n: int) -> list[str | bytes]:
    """Requests of many processes to many disks, each in flight since the first row."""
    rows = (
        f"{i // 1000}.{i % 1000:03}000 {f't{i}':<14} {i % 4_000_000:<7} {f'd{i}':<7} {'W':<4} {i:<10} {4096:<7} {f'{i}.000':>7}\n"
        for i in range(n)
    )
    return [
        "TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)\n"
        + "".join(rows)
    ]


def _babeltrace(n: int) -> list[str | bytes]:
    """Calls of many threads over many days, with ever more fields."""
    fields = ", ".join(f"f{i} = {i}" for i in range(n // 100))
    lines = (
        f'[{i // 60 % 24:02}:{i % 60:02}:00.000000000] h syscall_{way}_fsync: {{ cpu_id = 0 }}, {{ procname = "t{i}", tid = {i} }}, {{ ret = 0 }}\n'
        for i in range(1, n)
        for way in ("entry", "exit")
    )
    return ["".join(lines) + f"[00:00:00.000000000] h other: {{ {fields} }}\n"]


def _recorders(n: int, lost: bool) -> list[str | bytes]:
    """The ring buffer and strace record the same calls. With `lost`, the ring buffer lost the calls of one thread after the first one."""
    ring = ["# tracer: nop"]
    calls = Strace()
    for i in range(n):
        at = 100 + i / 100
        for thread in (7, 8):
            if not (lost and thread == 7 and i):
                head = f"              wl-{thread}     [000] .....    "
                ring.append(f"{head}{at:.6f}: sys_fsync(fd: 3)")
                if not (lost and thread == 7):
                    ring.append(f"{head}{at + 0.001:.6f}: sys_fsync -> 0x0")
            calls.lines.append(f"{thread}  {at:.6f} fsync(3</a>) = 0 <0.001000>")
    return ["\n".join(ring) + "\n", *calls.texts()]


def _probes(n: int, shared: bool) -> list[str | bytes]:
    """Probes report syncs of n threads at once, in a bio each, or in one bio."""
    lines = ["# tracer: nop"]

    def add(thread: int, event: str) -> None:
        lines.append(f"{f'wl-{thread}':>24} [000] .....    {100 + len(lines) / 1000:.6f}: {event}")

    threads = range(2, n + 2)
    for i in threads:
        add(i, f"fsync_enter: (ext4_sync_file+0x4/0x9) dev=1 ino={i} gen=1")
        add(i, "fc_commit: (ext4_fc_commit+0x4/0x9) tid=1")
    for i in threads:
        bio = 1 if shared else i
        add(i, f"bio_add_folio: (bio_add_folio+0x4/0x9) bio={bio} ino={i} index=0 len=512 off=0")
    for i in threads if not shared else (2,):
        size = 512 * n if shared else 512
        add(i, f"bio: (submit_bio+0x4/0x9) bio={i - shared} dev=1 sector={i} bytes={size} opf=1")
    for i in threads:
        add(1, f"bio_end: (bio_endio+0x4/0x9) bio={i - shared} status=0")
        add(i, "fc_commit_end: (f+0x4/0x9 <- ext4_fc_commit) ret=0")
        add(i, "fsync_exit: (f+0x4/0x9 <- ext4_sync_file) ret=0")
    return ["\n".join(lines) + "\n"]


def _commits(n: int, shared: bool) -> list[str | bytes]:
    """n threads wait for commits: all for the same one, or each for its own. Half of them end without the end of the wait."""
    lines = ["# tracer: nop"]

    def add(thread: int, event: str) -> None:
        lines.append(f"{f'wl-{thread}':>24} [000] .....    {100 + len(lines) / 1000:.6f}: {event}")

    def transaction(thread: int) -> int:
        return 1 if shared else thread

    threads = range(2, n + 2)
    for i in threads:
        add(i, f"fsync_enter: (ext4_sync_file+0x4/0x9) dev=1 ino={i} gen=1")
        add(i, f"commit_request: (__jbd2_log_start_commit+0x4/0x9) dev=1 tid={transaction(i)}")
        add(i, f"wait_commit: (jbd2_log_wait_commit+0x4/0x9) tid={transaction(i)}")
    for i in threads:
        add(i + n, f"jbd2_start_commit: dev 0,1 transaction {transaction(i)} sync 0")
    for i in threads:
        if i % 2:
            add(i, "wait_commit_end: (f+0x4/0x9 <- jbd2_log_wait_commit) ret=0")
        add(i, "fsync_exit: (f+0x4/0x9 <- ext4_sync_file) ret=0")
    for i in threads:
        add(i + n, f"jbd2_end_commit: dev 0,1 transaction {transaction(i)} sync 0 head 3")
    return ["\n".join(lines) + "\n"]


def _writes(n: int, how: str) -> list[str | bytes]:
    """Events of writes: calls that are open at the same time, files, or losses."""
    lines = ["# tracer: nop"]

    def add(thread: int, event: str) -> None:
        lines.append(f"{f'wl-{thread}':>24} [000] .....    {100 + len(lines) / 1000:.6f}: {event}")

    def start(thread: int, dev: int = 1, ino: int = 1, flags: int = 0) -> None:
        fields = (
            f'dev={dev} ino={ino} gen=1 offset=0 ki_flags={flags} file_size=0 n0="f{ino}" n1="/"'
        )
        add(thread, f"write_enter: (ext4_file_write_iter+0x0/0x10) {fields}")

    def end(thread: int, call: str = "write") -> None:
        add(thread, f"{call}_exit: (vfs_write+0x1/0x10 <- ext4_file_write_iter) ret=1")

    for i in range(1, n + 1):
        if how == "threads" or how == "losses":
            start(i, ino=i)
        elif how == "files":
            start(7, ino=i)
            end(7)
        elif how == "lost returns":
            start(7)
        else:
            # In one thread, each on a device of its own.
            start(7, dev=i)
    for i in range(1, n + 1):
        if how == "threads":
            end(i)
        elif how == "losses":
            lines.append("CPU:0 [LOST 1 EVENTS]")
            start(i + n, ino=i)
        elif how == "returns of others":
            # No call of this kind is open.
            end(7, "fsync")
        elif how == "parts":
            start(7, dev=1, flags=2)
            add(7, "fsync_enter: (ext4_sync_file+0x0/0x10) dev=1 ino=1 gen=1")
        elif how == "nested":
            end(7)
    return ["\n".join(lines) + "\n"]


def _perfetto(n: int, how: str) -> list[str | bytes]:
    """A system trace of Perfetto that grows in one dimension."""
    trace = Trace()
    for number in range(n):
        cpu = number if how == "cpus" else 0
        if how != "events" or number == 0:
            packet = trace.packet.add(trusted_packet_sequence_id=3)
            bundle = packet.ftrace_events
            bundle.cpu = cpu
        if how == "descriptions":
            description = DescriptorProto(name=f"event{number}")
            bundle.generic_event_descriptors.add(
                field_id=65536 + number, event_descriptor=description.SerializeToString()
            )
        if how == "clocks":
            bundle.ftrace_clock = 3
            bundle.ftrace_timestamp, bundle.boot_timestamp = 1000 * number + 9, 2000 * number
        if how == "backwards":
            number = n - number
        for at, name in ((0, "ext4_sync_file_enter"), (500, "ext4_sync_file_exit")):
            event = bundle.event.add(timestamp=1000 * number + at, pid=7 + cpu)
            getattr(event, name).ino = 3
            getattr(event, name).dev = 0x801
        if how == "switches":
            sched = bundle.compact_sched
            sched.intern_table.append(f"t{number}")
            sched.switch_timestamp.append(1000 * number)
            sched.switch_prev_state.append(1)
            sched.switch_next_pid.append(7 + number)
            sched.switch_next_prio.append(1)
            sched.switch_next_comm_index.append(0)
    return [trace.SerializeToString()]


CASES = {
    "requests": Case(_requests),
    "requests to tables": Case(_requests, "tables"),
    "requests to events.jsonl": Case(_requests, "events.jsonl"),
    "requests to csv": Case(_requests, "csv"),
    "requests to jsonl": Case(_requests, "jsonl"),
    "requests to perf": Case(_requests, "perf"),
    "threads": Case(_threads),
    "threads, last first": Case(lambda n: _threads(n, lifo=True)),
    "threads of one id": Case(lambda n: _threads(n, same_id=True)),
    "threads of one id, last first": Case(lambda n: _threads(n, same_id=True, lifo=True)),
    "threads of a process": Case(
        lambda n: [text.replace(" t", " p").encode() for text in map(str, _threads(n))],
        flags="processes",
    ),
    "files": Case(lambda n: _threads(n, path="/d/f")),
    "files to folded": Case(lambda n: _threads(n, path="/d/f"), "folded"),
    "bios": Case(_bios_of_one),
    "bios, last first": Case(lambda n: _bios_of_one(n, lifo=True)),
    "bios to tables": Case(_bios_of_one, "tables"),
    "bios at one sector": Case(lambda n: _bios_of_one(n, sector=8)),
    "bios at one sector, last first": Case(lambda n: _bios_of_one(n, lifo=True, sector=8)),
    "devices": Case(lambda n: _bios_of_one(n, sector=8, devices=True)),
    "late bios": Case(_late_bios),
    "torn lines": Case(lambda n: _torn(n, "{time} 7")),
    "torn lines of a call": Case(lambda n: _torn(n, "{time} 7 wl fsync_exit r")),
    "torn lines of no thread": Case(lambda n: _torn(n, "{time}")),
    "torn lines of bios": Case(
        lambda n: _torn(n, "{time} 7 wl bio_submit id {number} bio {address} dev")
    ),
    "foreign ids": Case(_foreign_ids),
    "losses": Case(_lost),
    "folios": Case(_folios),
    "hours": Case(_slow),
    "stacks": Case(lambda n: _stacks(n, depth=False)),
    "stacks to folded": Case(lambda n: _stacks(n, depth=False), "folded"),
    "stack depth": Case(lambda n: _stacks(n, depth=True)),
    "stack depth to perf": Case(lambda n: _stacks(n, depth=True), "perf"),
    "line length": Case(_long_line, size=10 * SIZE),
    "line length to events.jsonl": Case(_long_line, "events.jsonl", size=10 * SIZE),
    "times that run backwards": Case(_backwards),
    "waits": Case(lambda n: _waits(n, nested=False)),
    "nested waits": Case(lambda n: _waits(n, nested=True)),
    "block layer": Case(_block),
    "block layer, below a long bio": Case(lambda n: _block(n, long=1)),
    "block layer, one sector": Case(lambda n: _block(n, same=True)),
    "block layer, overlapping": Case(lambda n: _block(n, overlap=True)),
    "probes": Case(lambda n: _probes(n, shared=False)),
    "probes, one bio": Case(lambda n: _probes(n, shared=True)),
    "commits": Case(lambda n: _commits(n, shared=False)),
    "commits, one transaction": Case(lambda n: _commits(n, shared=True)),
    **{
        f"Perfetto, {how}": Case(lambda n, how=how: _perfetto(n, how))
        for how in ("bundles", "events", "cpus", "descriptions", "clocks", "backwards", "switches")
    },
    "partitions": Case(_partitions),
    "partitions, each by a thread": Case(lambda n: _partitions(n, threads=True)),
    "children that exit": Case(lambda n: _children(n, "exit")),
    "children that exit unreported": Case(lambda n: _children(n, "quiet")),
    "children that exit as groups": Case(lambda n: _children(n, "group")),
    "children that run early": Case(lambda n: _children(n, "running")),
    "unfinished calls": Case(_unfinished),
    "open files": Case(_files),
    "writes of threads": Case(lambda n: _writes(n, "threads"), "writes"),
    "writes to files": Case(lambda n: _writes(n, "files"), "writes"),
    "nested writes": Case(lambda n: _writes(n, "nested"), "writes"),
    "nested writes, returns of others": Case(lambda n: _writes(n, "returns of others"), "writes"),
    "nested writes and parts of writes": Case(lambda n: _writes(n, "parts"), "writes"),
    "writes without returns": Case(lambda n: _writes(n, "lost returns"), "writes"),
    "writes and losses": Case(lambda n: _writes(n, "losses"), "writes"),
    # The merge asks every input for its watermark at each step, which is little work: 30 steps for each pair of inputs.
    "inputs": Case(_pieces, limit=2.0),
    "calls of perf trace": Case(_perf_trace),
    "calls of babeltrace2": Case(_babeltrace),
    "functions of many threads": Case(_function_graph),
    "slow calls of many processes": Case(_slower),
    "calls of syncsnoop": Case(_syncsnoop),
    "requests of biosnoop": Case(_biosnoop),
    "two recorders": Case(lambda n: _recorders(n, lost=False), flags="joined"),
    "two recorders, one of which lost events": Case(
        lambda n: _recorders(n, lost=True), flags="joined"
    ),
}


def _seeds() -> Iterator[tuple[str, bytes]]:
    """The texts of all formats."""
    kinds = (
        fuzz_seeds.logs,
        fuzz_seeds.ftraces,
        fuzz_seeds.straces,
        fuzz_seeds.blkparses,
        fuzz_seeds.perfs,
        fuzz_seeds.perf_traces,
        fuzz_seeds.babeltraces,
        fuzz_seeds.function_graphs,
        fuzz_seeds.slowers,
        fuzz_seeds.syncsnoops,
        fuzz_seeds.biosnoops,
        fuzz_seeds.bpftrace_jsons,
        fuzz_seeds.write_texts,
    )
    for kind in kinds:
        for name, data in kind().items():
            if len(data.splitlines()) > MAX_WINDOW:
                yield f"{kind.__name__} {name}", data


def _mutant(rng: random.Random, name: str, data: bytes) -> Case:
    lines = data.splitlines()
    begin = rng.randrange(len(lines))
    window = b"\n".join(lines[begin : begin + rng.randint(1, MAX_WINDOW)]) + b"\n"
    head, tail = b"\n".join([*lines[:begin], b""]), b"\n".join(lines[begin:])
    # How much each repetition adds to each number of the window.
    steps = [rng.choice((0, 0, 1, 1, 8)) for _ in NUMBER.finditer(window)]

    def repeat(n: int) -> list[str | bytes]:
        return [head + b"".join(_counted(window, steps, number) for number in range(n)) + tail]

    to = rng.choice(("pftrace", "pftrace", "events.jsonl", "folded"))
    if name.startswith("write_texts"):
        to = "writes"
    # Not of processes: there, each event asks all calls and requests that the process has open.
    return Case(repeat, to, size=SIZE // 2)


def _counted(window: bytes, steps: list[int], number: int) -> bytes:
    added = iter(steps)

    def count(found: re.Match[bytes]) -> bytes:
        step, text = next(added), found[0]
        if not step:
            return text
        base = 16 if text.startswith(b"0x") else 10
        value = int(text, base) + step * number
        return b"0x%x" % value if base == 16 else b"%0*d" % (len(text), value)

    return NUMBER.sub(count, window)


def cases() -> Iterator[tuple[str, Case]]:
    yield from CASES.items()
    seeds = list(_seeds())
    for number in range(MUTANTS):
        rng = random.Random(number)
        name, data = rng.choice(seeds)
        case = _mutant(rng, name, data)
        yield f"mutant {number} ({name})", case


def exponent(work: list[int]) -> float:
    """Returns the exponent of the growth between three sizes, each twice the one before. Constant work does not count."""
    small, large = work[1] - work[0], work[2] - work[1]
    if small <= 0 or large <= 0:
        return 0.0
    return math.log2(large / small)


def whole_exponent(work: list[int]) -> float:
    """Returns the exponent of the growth from the first size to the last, for work in few large amounts, as of buffers that double."""
    return math.log(work[2] / work[0], 4)


def measure(program: str, chosen: list[tuple[str, Case]]) -> list[list[str]] | None:
    """Returns the answers of the program for three sizes of each case, each twice the one before; `None` if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        requests: list[str] = []
        for index, (_, case) in enumerate(chosen):
            for size in (case.size, 2 * case.size, 4 * case.size):
                paths = []
                for number, text in enumerate(case.inputs(size)):
                    path = Path(folder, f"{index}-{size}.{number + 1}")
                    path.write_bytes(text if isinstance(text, bytes) else text.encode())
                    paths.append(str(path))
                requests.append("\t".join([case.to, case.flags, *paths]))
        done = subprocess.run(
            [program], input="\n".join(requests) + "\n", capture_output=True, text=True, check=False
        )
    answers = done.stdout.splitlines()
    if done.returncode or len(answers) != len(requests):
        print(done.stderr[-2000:])
        print(f"growth: FAILED after {len(answers)} of {len(requests)} conversions")
        return None
    return [answer.split("\t") for answer in answers]


def growth(three: list[list[str]]) -> tuple[float, float, list[list[int]]]:
    """Returns the exponents of the steps and of the allocated bytes, and steps, bytes and events of the three sizes."""
    figures = [[int(words[column]) for words in three] for column in range(3)]
    return exponent(figures[0]), whole_exponent(figures[1]), figures


def main(program: str, wanted: list[str]) -> int:
    chosen = [(name, case) for name, case in cases() if not wanted or name.split(" (")[0] in wanted]
    answers = measure(program, chosen)
    if answers is None:
        return 1
    failed = refused = 0
    for index, (name, case) in enumerate(chosen):
        three = answers[3 * index : 3 * index + 3]
        if any(words[0] == "-" for words in three):
            refused += 1
            if name in CASES or wanted:
                failed += name in CASES
                print(f"growth: {name}: not converted: {three[-1][1]}")
            continue
        steps, allocated, figures = growth(three)
        if name.startswith("mutant ") and max(steps, allocated) > case.limit:
            # A part of it may begin only after some repetitions. What grows faster than its input does so at any size.
            again = measure(program, [(name, replace(case, size=16 * case.size))])
            if again and all(words[0] != "-" for words in again):
                steps, allocated, figures = growth(again)
        is_too_much = max(steps, allocated) > case.limit
        failed += is_too_much
        if is_too_much or wanted:
            print(
                f"growth: {name} to {case.to}: exponent {steps:.2f} of the steps {figures[0]}, "
                f"{allocated:.2f} of the allocated bytes {figures[1]}, {figures[2]} events"
            )
    print(f"growth: {len(chosen) - failed - refused} ok, {refused} refused, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
