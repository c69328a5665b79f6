"""Generates logs in the thesis's line format with a known truth.

The generator simulates threads, files, requests and bios. Every line is a simulated event. The
truth follows from the simulated objects and from which of their lines are in the log. Nothing is
paired here, so the truth does not depend on how a converter pairs.

    python -m tests.reference.loggen --seed 7 --requests 100 --truth truth.json > log
    python -m tests.reference.loggen --random --seed 7 > log
    python -m tests.reference.loggen --bulk 1000000000 > big.log
"""

from __future__ import annotations

import argparse
import dataclasses
import heapq
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from tests.reference.thesis import COLUMNS

Row = dict[str, Any]
Names = str  # plain: realistic; odd: spaces, event names, UTF-8; hostile: any bytes


@dataclass
class Params:
    """What a log contains. `p_*`, `lose_*`, `cut_*` and `double_*` are probabilities or shares from 0 to 1."""

    requests: int = 50  # sync calls and requests, including unmatched calls
    threads: int = 4  # threads that make syscalls
    dsync_threads: int = 0  # threads that sync by O_DSYNC writes, without a sync call
    uring_threads: int = 0  # io_uring workers, which also make no sync call
    background: int = 0  # bios of id 0
    files: int = 8  # a file may be synced by several threads at once
    addresses: int = 8  # bio addresses at first; more are added when all are in use
    max_bios: int = 3
    max_folios: int = 4
    p_empty: float = 0.2
    p_scattered: float = 0.4  # a folio that is not adjacent to the previous one
    p_two_at_once: float = 0.2  # two bios are filled alternately
    p_lone: float = 0.1  # a call without a request
    p_error: float = 0.05
    p_ends_early: float = 0.0  # the request ends before its bios complete
    p_helper: float = 0.0  # a bio that another thread fills and submits
    syscall_exits: bool = False
    # lost events
    lose_call: float = 0.0
    lose_call_exit: float = 0.0
    lose_start: float = 0.0
    lose_end: float = 0.0
    lose_folio: float = 0.0
    lose_submit: float = 0.0
    lose_complete: float = 0.0
    bursts: int = 0  # runs of lost events on one CPU, each reported by a `Lost N events` line
    cut_head: float = 0.0  # shares of the lines; the cuts are by time
    cut_tail: float = 0.0
    # repeated events and lines that are no events
    double_complete: float = 0.0
    double_end: float = 0.0
    garbage: int = 0  # lines that are not in the format
    # order of the lines
    cpus: int = 2
    disorder_ns: int = 0  # period in which each CPU's buffer is drained
    p_tie: float = 0.0  # an event at the time of the previous one; needs disorder_ns 0
    # presentation
    names: Names = "plain"
    stacks: str = "default"  # default, perf, mixed, none
    stack_pool: int = 12
    stack_depth: int = 5
    blank_before_stack: bool = False
    header: bool = True
    map_dump: bool = False
    extra_pairs: bool = False
    words: str = "thesis"  # thesis: start, exit, fsync; kernel: sync_start, sync_end, sys_enter_X
    exit_style: str = "X_exit"  # X_exit, exit_X, sys_exit_X, "X exit"
    exit_ret: bool = True
    time_unit: str = "ns"
    pid_is: str = "thread"
    processes: int = 0  # number of PIDs that threads share, for pid_is "process"; 0: no sharing
    final_newline: bool = True
    first_time: int = 40_000_000_000
    first_id: int = 1


def random_params(rng: random.Random) -> Params:
    """Draws parameters at random. About half of the difficulties are switched off."""

    def maybe(value: Any, otherwise: Any, chance: float = 0.35) -> Any:
        return value if rng.random() < chance else otherwise

    def share(high: float, chance: float = 0.25) -> float:
        return rng.uniform(0, high) if rng.random() < chance else 0.0

    helper = share(0.3)
    disorder = maybe(rng.choice((10**5, 10**7, 2 * 10**9)), 0, 0.5)
    return Params(
        requests=rng.choice((1, 3, 20, 80)),
        threads=rng.choice((1, 2, 5)),
        dsync_threads=maybe(1, 0),
        uring_threads=maybe(2, 0),
        background=maybe(10, 0),
        files=rng.choice((1, 3, 30)),
        addresses=rng.choice((1, 2, 6, 40)),
        max_bios=rng.choice((1, 2, 5)),
        max_folios=rng.choice((1, 4, 9)),
        p_empty=rng.choice((0.0, 0.2, 0.9)),
        p_scattered=rng.random(),
        p_two_at_once=share(0.5),
        p_lone=share(0.5, 0.5),
        p_error=share(0.2),
        p_ends_early=share(1.0, 0.4),
        p_helper=helper,
        syscall_exits=maybe(True, False),
        lose_call=share(0.2),
        lose_call_exit=share(0.2),
        lose_start=share(0.2),
        lose_end=share(0.2),
        lose_folio=share(0.2),
        lose_submit=share(0.2),
        lose_complete=share(0.9),
        bursts=maybe(2, 0),
        cut_head=0.0 if helper else share(0.5),
        cut_tail=share(0.5),
        double_complete=share(0.2),
        double_end=share(0.2),
        garbage=maybe(3, 0),
        cpus=rng.choice((1, 2, 4)),
        disorder_ns=disorder,
        p_tie=0.0 if disorder else share(0.5),
        names=rng.choice(("plain", "odd", "hostile")),
        stacks=rng.choice(("default", "perf", "mixed", "none")),
        blank_before_stack=maybe(True, False),
        header=maybe(False, True),
        map_dump=maybe(True, False),
        extra_pairs=maybe(True, False),
        words=rng.choice(("thesis", "kernel")),
        exit_style=rng.choice(("X_exit", "exit_X", "sys_exit_X", "X exit")),
        exit_ret=maybe(False, True),
        time_unit=rng.choice(("ns", "us")),
        final_newline=maybe(False, True),
        first_id=rng.choice((1, 999, 2**63 - 5, 2**64 - 3000)),
    )


# ---------------------------------------------------------------- names

COMMS = {
    "plain": (b"wl", b"sqlite3", b"bioaof", b"rocksdb:low0", b"postgres", b"ld-linux-x86-64"),
    "odd": (
        b"start",
        b"exit id 3",
        b"fsync",
        b"a fsync",
        b"db fsync b",
        b"x exit",
        b"bio_submit",
        b"x bio_submit",
        b"42",
        b"7 1 fsync exit",
        b"Web Content",
        b"12345 678 start",
        "café ☕".encode(),
        b"@map: 1",
        b"Lost 3 events",
        b"path /x",
        b"id 1 ret 0",
    ),
    "hostile": (
        b" lead",
        b"trail ",
        b"two  spaces",
        b" ",
        b"",
        b"\xff\xfe\x80",
        b"tab\there",
        b"nul\x00nul",
        b"\xe2\x82",
        b"[1, 2)  3 |@@|",
        b"fifteen bytes!!",
        b'"quo,ted"',
        b"\x1b[31m",
    ),
}
PATHS = {
    "plain": (b"/var/lib/db/data.%d", b"/home/u/.config/app/state-%d.json", b"/mnt/d/f%d"),
    "odd": (
        b"/a b/fsync start id %d",
        b"/mnt/un linked-%d.dat (deleted)",
        b"/x exit id %d ret 0",
        b"/mnt/bio_submit id 1 bio 0xff%d",
        b"/path path /%d",
        "/home/ü/☕ %d".encode(),
        b'/quo"te,comma;semi:%d',
        b"start id 1 start 0 end 1 datasync 0 path /%d",
        b"%d",
    ),
    "hostile": (
        b"/bad\xff\xfe/%d",
        b"/trailing/%d ",
        b"  /leading/%d",
        b"/tab\t%d",
        b"/nul\x00%d",
        b"/%d/" + b"long-" * 800,
        b"/\xe2\x82/%d",
        b"/esc\x1b[0m\\xff%d",
        b"/cr\rcr%d",
    ),
}
FRAMES = {
    "plain": (
        b"main",
        b"start_thread",
        b"__libc_start_call_main",
        b"save_small",
        b"__GI_fdatasync",
        b"bioProcessBackgroundJobs",
        b"sqlite3OsSync",
        b"pagerStress",
        b"walCheckpoint",
        b"__GI___clone3",
    ),
    "odd": (
        b"rocksdb::WritableFileWriter::SyncInternal(bool)",
        b"std::function<void (int, char const*)>::operator()(int, char const*) const",
        b"core::ops::function::FnOnce::call_once{{vtable.shim}}",
        "naïve".encode(),
        b"operator+",
        b"fsync",
    ),
    "hostile": (b"bad\xff\xfe", b"a;b", b"nul\x00"),
}
MODULES = (b"/usr/lib64/libc.so.6", b"/usr/bin/valkey-server", b"/opt/my app (x86)/bin/db", b"")
GARBAGE = (
    b"ERROR: failed to attach probe",
    b"12 34 wl bio_add_folio id 999999999 bio 0x1 start 0 len",
    b"hello",
    b"1 2 wl unknown_event id 4",
    b"999 files",
    b"5 wl fsync",
    b"\x00\x01\x02\xff",
    b'{"ts_ns": 5}',
)
MAP_DUMP = b"""
@bytes: 81920

@count[wl, 12]: 3
@usecs:
[1]                    5 |@@@@@                                               |
[2, 4)                52 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
[4K, 8K)               0 |                                                    |
@lat[fsync]:
(..., 0)               1 |@@@@                                                |
[0, 10)                2 |@@@@@@@@                                            |
[100, ...)             1 |@@@@                                                |
"""


def text(value: bytes) -> str:
    """Decodes bytes as the tables show them: bytes that are not UTF-8 become backslash, x and two hex digits."""
    return value.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def pool_of(names: dict[str, tuple[bytes, ...]], kind: Names) -> tuple[bytes, ...]:
    kinds = ("plain", "odd", "hostile")
    return tuple(name for k in kinds[: kinds.index(kind) + 1] for name in names[k])


# ---------------------------------------------------------------- simulated objects


@dataclass(eq=False)
class Line:
    """An event: a line of the log, unless it is lost."""

    kind: str
    t: int  # in units of the log
    pid: int
    comm: bytes
    cpu: int
    event_name: bytes
    data: list[tuple[str, Any]]
    lost: str | None = None  # random, burst or cut
    frames: list[bytes] = field(default_factory=list)
    double: bool = False


@dataclass(eq=False)
class Call:
    op: str
    stack: str | None
    entry: Line
    exit: Line | None = None
    request: Request | None = None


@dataclass(eq=False)
class Bio:
    request: Request | None
    id: int
    address: int
    folios: list[tuple[Line, int, int]] = field(default_factory=list)
    submit: Line | None = None
    complete: Line | None = None
    sector: int = 0

    def lines(self) -> list[Line]:
        ends = [self.submit, self.complete]
        return [line for line, _, _ in self.folios] + [line for line in ends if line]


@dataclass(eq=False)
class Request:
    thread: Thread
    id: int
    path: bytes
    ino: int
    datasync: bool
    call: Call | None
    start: Line | None = None
    end: Line | None = None
    ret: int = 0
    has_helper: bool = False
    bios: list[Bio] = field(default_factory=list)


@dataclass(eq=False)
class Thread:
    tid: int
    comm: bytes
    cpu: int


@dataclass
class Truth:
    """The tables (docs/reference/tables.md) and the losses that a converter must report."""

    sync: list[Row]
    bio: list[Row]
    call: list[Row]
    losses: dict[str, int]
    lost: list[Row]  # the events that happened and are not in the log
    events: int
    folio_bytes: int  # sum over all folio lines in the log

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1)


@dataclass
class Generated:
    log: bytes
    params: Params
    world: World
    reported_lost: int

    @cached_property
    def truth(self) -> Truth:
        # It takes as long as the log, and many tests need only that.
        return truth_of(self.world, self.params.garbage, self.reported_lost)


class World:
    """Simulates threads that share a clock, files and bio addresses."""

    def __init__(self, params: Params, rng: random.Random) -> None:
        self.p = params
        self.rng = rng
        # A source of its own keeps the other numbers of a seed unchanged.
        own = random.Random()
        own.setstate(rng.getstate())
        self.own_rng = random.Random(own.random())
        self.unit = {"ns": 1, "us": 1000}[params.time_unit]
        self.now = params.first_time // self.unit
        self.last = self.now
        self.lines: list[Line] = []
        self.calls: list[Call] = []
        self.requests: list[Request] = []
        self.bios: list[Bio] = []
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.order = 0
        self.thread_count = 0
        self.requests_left = params.requests
        self.next_id = params.first_id
        self.next_address = 0xFF11000000896780
        self.free = [self.new_address() for _ in range(params.addresses)]
        comms = pool_of(COMMS, params.names)
        self.threads = [self.thread(rng.choice(comms)) for _ in range(params.threads)]
        self.workers = [self.thread(b"writer") for _ in range(params.dsync_threads)]
        self.workers += [self.thread(b"iou-wrk-718") for _ in range(params.uring_threads)]
        self.kworkers = [Thread(11, b"kworker/u8:0", 0), Thread(145, b"kworker/u8:3", 0)]
        paths = pool_of(PATHS, params.names)
        self.files = [
            (rng.choice(paths).replace(b"%d", b"%d" % i), i + 12) for i in range(params.files)
        ]
        self.stacks = [self.new_stack() for _ in range(params.stack_pool)]

    def thread(self, comm: bytes) -> Thread:
        self.thread_count += 1
        number = self.thread_count
        if self.p.processes:
            number %= self.p.processes
        return Thread(500 + 7 * number, comm, self.rng.randrange(self.p.cpus))

    def new_address(self) -> int:
        self.next_address += 0xC0
        return self.next_address

    def new_stack(self) -> tuple[list[bytes], str | None]:
        """Returns stack lines, innermost first, and their folded stack."""
        style = self.p.stacks
        if style == "none":
            return [], None
        if style == "mixed":
            style = self.rng.choice(("default", "perf", "none"))
        if style == "none":
            return [], None
        lines: list[bytes] = []
        names: list[str] = []
        symbols = pool_of(FRAMES, self.p.names)
        for _ in range(self.rng.randint(1, 2 * self.p.stack_depth - 1)):
            address = self.rng.randrange(0x400000, 0x7FFFFFFFFFFF)
            known = self.rng.random() < 0.85
            name = self.rng.choice(symbols) if known else b"0x%x" % address
            shown = name + b"+%d" % self.rng.randrange(4000) if known else name
            if style == "perf":
                module = self.rng.choice(MODULES) if known else b"[unknown]"
                lines.append(b"\t%x %s (%s)" % (address, shown, module))
            else:
                lines.append(b"        " + shown)
            names.append(text(name).replace(";", ":"))
        return lines, ";".join(reversed(names))

    # time

    def at(self, delay: int, action: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.queue, (self.now + max(1, delay // self.unit), self.order, action))

    def drive(self, steps: Iterator[int]) -> None:
        """Runs a generator that yields the times for which it sleeps, in ns."""
        delay = next(steps, None)
        if delay is not None:
            self.at(delay, lambda: self.drive(steps))

    def run(self) -> None:
        for thread in self.threads:
            self.drive(self.caller(thread))
        for thread in self.workers:
            self.drive(self.worker(thread))
        if self.p.background:
            self.drive(self.writeback())
        while self.queue:
            self.now, _, action = heapq.heappop(self.queue)
            action()

    def us(self, low: float, high: float) -> int:
        return int(self.rng.uniform(low, high) * 1000)

    def emit(self, kind: str, thread: Thread, event_name: str, data: list[tuple[str, Any]]) -> Line:
        tie = self.rng.random() < self.p.p_tie and self.lines
        t = self.last if tie else max(self.now, self.last + 1)
        self.last = self.now = t
        line = Line(kind, t, thread.tid, thread.comm, thread.cpu, event_name.encode(), data)
        self.lines.append(line)
        if self.rng.random() < 0.05:
            thread.cpu = self.rng.randrange(self.p.cpus)
        return line

    # actions of threads

    def draws_early(self) -> bool:
        return self.own_rng.random() < self.p.p_ends_early

    def take_request(self) -> bool:
        self.requests_left -= 1
        return self.requests_left >= 0

    def caller(self, thread: Thread) -> Iterator[int]:
        yield self.us(0, 5000)
        while self.take_request():
            yield self.us(10, 3000)
            op = self.rng.choice(("fsync", "fsync", "fdatasync", "fdatasync", "msync"))
            is_unmatched = self.rng.random() < self.p.p_lone
            if is_unmatched:
                op = self.rng.choice((op, "sync", "syncfs", "sync_file_range"))
            # The other calls wait for their bios.
            ends_early = not is_unmatched and self.draws_early()
            if ends_early:
                op = "sync_file_range"
            frames, stack = self.rng.choice(self.stacks)
            enter = f"sys_enter_{op}" if self.p.words == "kernel" else op
            data = [("fd", self.rng.randrange(3, 99))] if self.p.extra_pairs else []
            call = Call(op, stack, self.emit("call", thread, enter, data))
            call.entry.frames = frames
            self.calls.append(call)
            yield self.us(5, 300)
            ret = 0
            if is_unmatched:
                yield self.us(0, 2000)
            else:
                request = self.new_request(thread, call, op != "fsync")
                yield from self.sync(request, ends_early)
                ret = request.ret
            yield self.us(1, 50)
            if self.p.syscall_exits:
                word = self.p.exit_style.replace("X", op)
                data = [("ret", ret)] if self.p.exit_ret else []
                call.exit = self.emit("call_exit", thread, word, data)

    def worker(self, thread: Thread) -> Iterator[int]:
        yield self.us(0, 5000)
        while self.take_request():
            yield self.us(10, 3000)
            request = self.new_request(thread, None, self.rng.random() < 0.5)
            yield from self.sync(request, self.draws_early())

    def writeback(self) -> Iterator[int]:
        for _ in range(self.p.background):
            yield self.us(100, 4000)
            thread = self.rng.choice(self.kworkers)
            yield from self.write(None, [thread], self.offsets())

    def new_request(self, thread: Thread, call: Call | None, datasync: bool) -> Request:
        path, ino = self.rng.choice(self.files)
        request = Request(thread, self.next_id, path, ino, datasync, call)
        self.next_id += 1
        if call:
            call.request = request
        self.requests.append(request)
        return request

    def sync(self, request: Request, ends_early: bool) -> Iterator[int]:
        thread = request.thread
        end = 2**63 - 1 if self.rng.random() < 0.8 else self.rng.randrange(2**20)
        data: list[tuple[str, Any]] = [
            ("id", request.id),
            ("start", 0),
            ("end", end),
            ("datasync", int(request.datasync)),
        ]
        if self.p.extra_pairs:
            data[self.rng.randrange(5) : 0] = [("dev", "254,16"), ("ino", request.ino)]
        data.append(("path", request.path))
        word = "sync_start" if self.p.words == "kernel" else "start"
        request.start = self.emit("start", thread, word, data)
        yield self.us(1, 200)
        if self.rng.random() >= self.p.p_empty:
            bios_left = self.rng.randint(1, self.p.max_bios)
            while bios_left > 0:
                submitter = thread
                if self.rng.random() < self.p.p_helper:
                    submitter, request.has_helper = self.rng.choice(self.kworkers), True
                count = 2 if bios_left > 1 and self.rng.random() < self.p.p_two_at_once else 1
                bios_left -= count
                yield from self.write(request, [submitter] * count, self.offsets())
        self.rng.random()
        if not ends_early:
            while any(bio.complete is None for bio in request.bios):
                yield self.us(5, 500)
        yield self.us(1, 4000)
        request.ret = -5 if self.rng.random() < self.p.p_error else 0
        word = "sync_end" if self.p.words == "kernel" else "exit"
        request.end = self.emit("end", thread, word, [("id", request.id), ("ret", request.ret)])

    def offsets(self) -> Iterator[int]:
        """Where folios begin. None begins there twice, because a folio under writeback is not added again."""
        offset = 4096 * self.rng.randrange(50)
        seen: set[int] = set()
        while True:
            while offset in seen:
                offset += 4096
            seen.add(offset)
            yield offset
            offset += 4096
            if self.rng.random() < self.p.p_scattered:
                offset = 4096 * self.rng.randrange(200)

    def write(
        self, request: Request | None, threads: list[Thread], offsets: Iterator[int]
    ) -> Iterator[int]:
        """Fills and submits bios, one for each thread in `threads`; several bios alternate."""
        bios: list[Bio] = []
        for _ in threads:
            if not self.free:
                self.free.append(self.new_address())
            address = self.free.pop(self.rng.randrange(len(self.free)))
            bio = Bio(request, request.id if request else 0, address)
            bio.sector = self.rng.randrange(10**6)
            bios.append(bio)
            self.bios.append(bio)
            if request:
                request.bios.append(bio)
        for _ in range(self.rng.randint(1, self.p.max_folios)):
            for bio, thread in zip(bios, threads, strict=True):
                start = next(offsets)
                length = 4096 if self.rng.random() < 0.9 else self.rng.choice((512, 8192, 65536))
                data = [("id", bio.id), ("bio", f"{bio.address:#x}")]
                data += [("start", start), ("len", length)]
                line = self.emit("folio", thread, "bio_add_folio", data)
                bio.folios.append((line, start, length))
                yield self.us(0.5, 20)
        for bio, thread in zip(bios, threads, strict=True):
            data = [("id", bio.id), ("bio", f"{bio.address:#x}")]
            if self.p.extra_pairs:
                data.insert(self.rng.randrange(3), ("sector", bio.sector))
            bio.submit = self.emit("submit", thread, "bio_submit", data)
            self.at(self.us(30, 9000), lambda bio=bio: self.complete(bio))
            yield self.us(1, 100)

    def complete(self, bio: Bio) -> None:
        # The line names the thread that happens to run on the CPU.
        cpu = self.rng.randrange(self.p.cpus)
        other = self.rng.choice([*self.threads, *self.kworkers, None, None])
        swapper = Thread(0, b"swapper/%d" % cpu, cpu)
        thread = Thread(other.tid, other.comm, cpu) if other else swapper
        data = [("bio", f"{bio.address:#x}")]
        if self.p.extra_pairs:
            data.append(("status", 0))
        bio.complete = self.emit("complete", thread, "bio_complete", data)
        self.free.append(bio.address)


# ---------------------------------------------------------------- losses


def is_logged(line: Line | None) -> bool:
    return line is not None and line.lost is None


def lose(world: World) -> None:
    """Marks lines as lost such that the truth stays unique."""
    p, rng = world.p, world.rng
    shares = {
        "call": p.lose_call,
        "call_exit": p.lose_call_exit,
        "start": p.lose_start,
        "end": p.lose_end,
        "folio": p.lose_folio,
        "submit": p.lose_submit,
        "complete": p.lose_complete,
    }
    for line in world.lines:
        if rng.random() < shares[line.kind]:
            line.lost = "random"
    for _ in range(p.bursts):
        cpu = rng.randrange(p.cpus)
        buffer = [line for line in world.lines if line.cpu == cpu]
        first = rng.randrange(len(buffer) + 1)
        for line in buffer[first : first + rng.randint(1, 25)]:
            line.lost = line.lost or "burst"
    keep_truth_unique(world)
    # The cut comes last. It removes every line before or after a time, so it leaves no thread and
    # no address in a state in which a later line is ambiguous.
    head = p.cut_head and world.lines[int(p.cut_head * len(world.lines))].t
    tail = p.cut_tail and world.lines[int((1 - p.cut_tail) * len(world.lines)) - 1].t
    for line in world.lines:
        if (head and line.t < head) or (tail and line.t > tail):
            line.lost = line.lost or "cut"


def keep_truth_unique(world: World) -> None:
    """Restores lost lines where two histories would leave the same log.

    If a completion and the next submit at its address are both lost, the bio of the next completion
    is ambiguous. If a call is lost, its request looks like that of an earlier unmatched call.
    """
    uses: dict[int, list[Bio]] = {}
    order = {id(line): number for number, line in enumerate(world.lines)}
    for bio in sorted(world.bios, key=lambda bio: order[id(bio.folios[0][0])]):
        uses.setdefault(bio.address, []).append(bio)
    for bios in uses.values():
        previous_is_whole = True
        for bio in bios:
            lines = bio.lines()
            if not previous_is_whole:
                restore(lines)
            if bio.submit and bio.submit.lost and bio.complete:
                restore([bio.complete])
            previous_is_whole = not any(line.lost for line in lines)
    for request in world.requests:
        if request.has_helper and request.start and request.end:
            restore([request.start])  # otherwise it would open on the helper's thread
    last: dict[int, Call] = {}
    for call in world.calls:
        previous = last.get(call.entry.pid)
        if not is_logged(call.entry) and previous is not None and not is_logged(previous.exit):
            has_request = previous.request is not None and lines_with_id(previous.request)
            if not has_request or is_logged(call.exit):
                restore([call.entry])
        if is_logged(call.entry):
            last[call.entry.pid] = call


def restore(lines: list[Line]) -> None:
    for line in lines:
        line.lost = None


def lines_with_id(request: Request) -> list[Line]:
    """The lines of the log that contain the request's id."""
    lines = [request.start, request.end]
    for bio in request.bios:
        lines += [line for line, _, _ in bio.folios] + [bio.submit]
    return [line for line in lines if line is not None and line.lost is None]


# ---------------------------------------------------------------- the truth


SIZES = ("bytes", "folios", "ranges", "first_offset", "last_offset")


@dataclass
class ThreadInLog:
    """What the log says of a thread that may have made requests in calls whose entries are lost."""

    op: str | None = None  # that of the call that it is in
    in_call: list[Request] = field(default_factory=list)
    has_begun: bool = False
    without_call: int = 0
    awaiting: list[tuple[Request, bool]] = field(default_factory=list)


def lost_calls(world: World) -> tuple[dict[int, str | None], int, dict[int, Request]]:
    """The requests that may have been made in a call whose entry is lost, with its op; the number of exits without any request; and, of
    the requests that the log shows in one call, the first.

    docs/reference/pairing.md says which: only the log decides it.
    """
    marked: dict[int, str | None] = {}
    firsts: dict[int, Request] = {}
    unmatched = 0
    if world.p.pid_is == "process":
        # Calls of processes cannot be distinguished.
        exits = (call for call in world.calls if not is_logged(call.entry))
        return marked, sum(is_logged(call.exit) for call in exits), firsts
    order = {id(line): number for number, line in enumerate(world.lines)}
    events: dict[int, Call | Request] = {}
    for call in world.calls:
        events |= {id(line): call for line in (call.entry, call.exit) if line is not None}
    for request in world.requests:
        if with_id := lines_with_id(request):
            events[id(min(with_id, key=lambda line: order[id(line)]))] = request
    threads: dict[int, ThreadInLog] = {}
    sees_calls = sees_exits = False
    logged = [line for line in world.lines if is_logged(line)]
    unit = world.unit

    def mark(request: Request, op: str | None) -> None:
        if is_logged(request.start):
            marked[id(request)] = op

    def join(thread: ThreadInLog, has_returned: bool) -> None:
        if has_returned or thread.op in ("sync", "syncfs", "msync"):
            firsts.update({id(request): thread.in_call[0] for request in thread.in_call})
        thread.in_call = []

    for line in logged:
        what = events.get(id(line))
        if isinstance(what, Request):
            thread = threads.setdefault(what.thread.tid, ThreadInLog())
            if thread.op is not None:
                thread.in_call.append(what)
            else:
                is_first = not thread.has_begun
                thread.without_call += 1
                if thread.without_call > 8:
                    thread.awaiting = []
                elif sees_exits or (is_first and (line.t - logged[0].t) * unit <= 10**9):
                    thread.awaiting.append((what, is_first))
            thread.has_begun = True
        elif isinstance(what, Call):
            thread = threads.setdefault(line.pid, ThreadInLog())
            if line is what.entry:
                if thread.awaiting and thread.awaiting[0][1] and not sees_exits:
                    mark(thread.awaiting[0][0], None)
                join(thread, has_returned=False)
                sees_calls, thread.op = True, what.op
            else:
                sees_exits = True
                if thread.op == what.op:
                    join(thread, has_returned=True)
                    thread.op = None
                    continue
                inside = [request for request, _ in thread.awaiting]
                inside = inside if what.op in ("sync", "syncfs", "msync") else inside[-1:]
                inside = [request for request in inside if is_logged(request.start)]
                for request in inside:
                    mark(request, what.op if len(inside) == 1 else None)
                    firsts[id(request)] = inside[0]
                unmatched += not inside
            thread.has_begun, thread.without_call, thread.awaiting = True, 0, []
    for thread in threads.values():
        join(thread, has_returned=False)
        if sees_calls and not sees_exits and thread.without_call == 1 and thread.awaiting:
            request, is_first = thread.awaiting[0]
            comm = (request.start or lines_with_id(request)[0]).comm
            if is_first and not comm.startswith((b"iou-wrk-", b"kworker/")):
                mark(request, None)
    return marked, unmatched, firsts


def truth_of(world: World, garbage: int, reported_lost: int) -> Truth:
    unit = world.unit
    order = {id(line): number for number, line in enumerate(world.lines)}
    losses: Counter[str] = Counter(unparsed_line=garbage, lost_by_tracer=reported_lost)

    def first(lines: list[Line]) -> Line:
        return min(lines, key=lambda line: order[id(line)])

    def ns(line: Line) -> int:
        return line.t * unit

    in_process = world.p.pid_is == "process"
    exits = [(order[id(c.exit)], c.op) for c in world.calls if is_logged(c.exit)]

    def exit_lost(call: Call) -> bool:
        """Whether the log records exits of such calls before it shows that the thread has left this one."""
        if is_logged(call.exit):
            return False
        calls = [c for c in world.calls if c.entry.pid == call.entry.pid and is_logged(c.entry)]
        later = [order[id(c.entry)] for c in calls if not in_process]
        closed = min((at for at in later if at > order[id(call.entry)]), default=len(order))
        return any(op == call.op and at < closed for at, op in exits)

    def thread_columns(pid: int) -> Row:
        return {"tid": None if in_process else pid, "pid": pid if in_process else None}

    def sizes(bios: list[Bio]) -> Row:
        parts = [(s, n) for bio in bios for line, s, n in bio.folios if is_logged(line)]
        # Count ranges in a set of 512-byte blocks: all offsets and lengths are multiples of 512.
        blocks = {b for s, n in parts for b in range(s // 512, (s + n) // 512)}
        return {
            "bytes": sum(n for _, n in parts),
            "folios": len(parts),
            "ranges": sum(1 for block in blocks if block - 1 not in blocks),
            "first_offset": min(blocks) * 512 if blocks else None,
            "last_offset": (max(blocks) + 1) * 512 if blocks else None,
        }

    def opening_lines(bio: Bio) -> list[Line]:
        lines = [line for line, _, _ in bio.folios] + [bio.submit]
        return [line for line in lines if line is not None and line.lost is None]

    def has_folio(bio: Bio) -> bool:
        return any(is_logged(line) for line, _, _ in bio.folios)

    def bio_outlives(bio: Bio) -> bool:
        """Whether a bio completes after its request, as far as the log shows."""
        end = bio.request.end if bio.request else None
        are_logged = is_logged(bio.submit) and is_logged(bio.complete) and is_logged(end)
        return are_logged and bio.complete.t > end.t

    requests = [request for request in world.requests if lines_with_id(request)]
    requests.sort(key=lambda request: order[id(first(lines_with_id(request)))])
    sync_id = {id(request): number for number, request in enumerate(requests, 1)}
    # Completions of bios that are not in the log. All addresses are of one region of memory.
    orphans = [
        order[id(bio.complete)]
        for bio in world.bios
        if is_logged(bio.complete) and not opening_lines(bio)
    ]
    bios = sorted(
        filter(opening_lines, world.bios), key=lambda bio: order[id(first(opening_lines(bio)))]
    )
    extra = world.p.extra_pairs
    without_entry, losses["unmatched_exit"], firsts = lost_calls(world)

    def may_have_begun_before(bio: Bio) -> bool:
        """Whether the log may begin within the bio: its request has no earlier event than the first folios or submits of its bios."""
        if bio.request is None or is_logged(bio.request.start):
            return False
        if first(lines_with_id(bio.request)).kind not in ("folio", "submit"):
            return False
        opening = order[id(first(opening_lines(bio)))]
        submits = [other.submit for other in bio.request.bios if is_logged(other.submit)]
        return not any(order[id(submit)] < opening for submit in submits)

    # Without any event of a bio, nothing says that the recorder follows them, and a sync without one need not be empty.
    of_bio = ("folio", "submit", "complete")
    follows_bios = any(is_logged(line) and line.kind in of_bio for line in world.lines)
    sync_rows = []
    for request in requests:
        call = request.call if request.call and is_logged(request.call.entry) else None
        start = request.start if is_logged(request.start) else None
        end = request.end if is_logged(request.end) else None
        logged_bios = [bio for bio in request.bios if opening_lines(bio)]
        submits = [bio.submit for bio in logged_bios if is_logged(bio.submit)]
        completes = [bio.complete for bio in logged_bios if is_logged(bio.complete)]
        submitted = bool(logged_bios) and len(submits) == len(logged_bios)
        completed = bool(logged_bios) and len(completes) == len(logged_bios)
        opening = first(lines_with_id(request))
        begin = call.entry if call else opening
        row: Row = {"ts_ns": ns(begin), "dur_ns": None} | thread_columns(request.thread.tid)
        row |= {
            "comm": text(opening.comm),
            "process": None,
            "cgroup": None,
            "op": call.op if call else None,
        }
        row |= {"datasync": request.datasync if start else None}
        row |= {"path": text(request.path) if start else None, "container_path": None}
        row |= {"dev": "254,16" if start and extra else None}
        row |= {
            "ino": request.ino if start and extra else None,
            "fs": "ext4" if start else None,
            "id": request.id,
        }
        row |= {"ret": request.ret if end else None, "syscall_ns": None, "writeback_ns": None}
        row |= {"before_submit_ns": None, "after_complete_ns": None}
        row |= {"journal_ns": None, "flush_ns": None, "other_ns": None, "cpu_wait_ns": None}
        row |= sizes(logged_bios) | {
            "bios": len(logged_bios),
            "stack": call.stack if call else None,
        }
        row |= {"confidence": "inferred" if call and not start else "exact", "incomplete": None}
        row |= {"sync_id": sync_id[id(request)], "start_ns": ns(start) if start else None}
        row |= {"call_sync_id": sync_id[id(firsts.get(id(request), request))]}
        if start and end:
            row["dur_ns"] = ns(end) - ns(begin)
            if call and not exit_lost(call):
                call_end = call.exit if is_logged(call.exit) else end
                row["syscall_ns"] = ns(call_end) - ns(call.entry)
            if not logged_bios:
                row["writeback_ns"] = 0
            elif submitted and completed:
                row["writeback_ns"] = max(map(ns, completes)) - min(map(ns, submits))
            else:
                row["incomplete"] = "bio"
        if id(request) in without_entry:
            row |= {"op": without_entry[id(request)], "dur_ns": None, "incomplete": "call"}
            losses["call_missing"] += 1
        if start and submitted:
            row["before_submit_ns"] = min(map(ns, submits)) - ns(start)
        if end and completed and max(map(ns, completes)) <= ns(end):
            row["after_complete_ns"] = ns(end) - max(map(ns, completes))
        lacks_folios = any(is_logged(bio.submit) and not has_folio(bio) for bio in logged_bios)
        if lacks_folios or any(map(may_have_begun_before, logged_bios)):
            row |= dict.fromkeys(SIZES)
        outlived = any(bio_outlives(bio) for bio in logged_bios)
        if outlived and not call and request.ret >= 0:
            row["confidence"] = "inferred"
        if start and end and any(order[id(opening)] < at < order[id(end)] for at in orphans):
            unknown = ("writeback_ns", "before_submit_ns", "after_complete_ns", "bios")
            row |= dict.fromkeys((*SIZES, *unknown))
            row["incomplete"] = row["incomplete"] or "bio"
        if not follows_bios:
            unknown = ("writeback_ns", "before_submit_ns", "after_complete_ns", "bios")
            row |= dict.fromkeys((*SIZES, *unknown))
        if not end:
            row["incomplete"] = "end"
            losses["end_missing"] += 1
        if not start:
            row["incomplete"] = "start"
            losses["start_missing"] += 1
        if end and end.double:
            losses["duplicate_end"] += 1
        sync_rows.append(row)

    bio_rows = []
    for number, bio in enumerate(bios, 1):
        submit = bio.submit if is_logged(bio.submit) else None
        complete = bio.complete if is_logged(bio.complete) else None
        bio_line = submit or first(opening_lines(bio))
        row = {"bio_id": number, "sync_id": sync_id[id(bio.request)] if bio.request else None}
        row |= {"id": bio.id, "ts_ns": ns(bio_line), "dur_ns": None, "bio": f"{bio.address:#x}"}
        row |= {"dev": None, "sector": bio.sector if submit and extra else None}
        row |= sizes([bio]) | thread_columns(bio_line.pid) | {"comm": text(bio_line.comm)}
        row |= {"origin": "sync" if bio.request else "background"}
        # The format has no issue events. `extra_pairs` prints the status of each completion.
        row |= {"queue_ns": None, "device_ns": None}
        row["error"] = 0 if complete and extra else None
        row |= {} if row["folios"] and not may_have_begun_before(bio) else dict.fromkeys(SIZES)
        losses["folios_missing"] += submit is not None and not has_folio(bio)
        row |= {"confidence": "exact" if bio.request else None, "incomplete": None}
        if bio_outlives(bio) and bio.request and bio.request.ret >= 0:
            logged_call = bio.request.call and is_logged(bio.request.call.entry)
            row["confidence"] = "exact" if logged_call else "inferred"
        if submit and complete:
            row["dur_ns"] = ns(complete) - ns(submit)
        elif submit:
            row["incomplete"] = "end"
            losses["never_completed"] += 1
        if not submit:
            row["incomplete"] = "start"
            losses["never_submitted"] += 1
        end = bio.request.end if bio.request else None
        if complete and end and is_logged(end) and complete.t > end.t:
            losses["completed_after_end"] += 1
        bio_rows.append(row)
    for bio in world.bios:
        if is_logged(bio.complete):
            # The completion of a bio that is not in the log, or a second completion.
            losses["unmatched_complete"] += (not opening_lines(bio)) + bio.complete.double

    # A log that holds only calls does not say what they did: each is a call-only request.
    of_calls = {id(line) for call in world.calls for line in (call.entry, call.exit)}
    are_alone = all(id(line) in of_calls for line in world.lines if is_logged(line))
    has_exits = any(is_logged(call.exit) for call in world.calls)
    lone_rows: list[tuple[int, Row, Row]] = []
    call_rows = []
    for call in world.calls:
        exit_line = call.exit if is_logged(call.exit) else None
        if not is_logged(call.entry):
            continue
        request = call.request if call.request and lines_with_id(call.request) else None
        end = request.end if request and is_logged(request.end) else None
        if exit_lost(call):
            losses["exit_missing"] += end is not None
            end = None
        if request and not is_logged(request.start):
            # Only the thread says that the request is of this call.
            end = None
        end = exit_line or end
        row = {"call_id": len(call_rows) + 1, "ts_ns": ns(call.entry)}
        row |= {"dur_ns": ns(end) - ns(call.entry) if end else None}
        row |= thread_columns(call.entry.pid) | {"comm": text(call.entry.comm), "op": call.op}
        row |= {"ret": dict(exit_line.data).get("ret") if exit_line else None, "stack": call.stack}
        row |= {"sync_id": sync_id[id(request)] if request else None, "unmatched": request is None}
        losses["unmatched_call"] += request is None and not are_alone
        call_rows.append(row)
        if are_alone:
            losses["call_only"] += 1
            losses["end_missing" if has_exits else "ends_not_recorded"] += exit_line is None
            columns = ("ts_ns", "dur_ns", "tid", "pid", "comm", "op", "ret", "stack")
            lone = dict.fromkeys(COLUMNS["sync"]) | {column: row[column] for column in columns}
            lone |= {"syscall_ns": row["dur_ns"], "confidence": "unknown"}
            lone |= {"incomplete": None if exit_line else "end"}
            lone_rows.append((ns(exit_line or call.entry), row, lone))
    for number, (_, row, lone) in enumerate(sorted(lone_rows, key=lambda each: each[0]), 1):
        row |= {"sync_id": number, "unmatched": False}
        sync_rows.append(lone | {"sync_id": number, "call_sync_id": number})

    lost = [
        {"line": text(render_head(line)), "why": line.lost} for line in world.lines if line.lost
    ]
    doubles = sum(line.double for line in world.lines if is_logged(line))
    return Truth(
        sync_rows,
        bio_rows,
        call_rows,
        {reason: count for reason, count in sorted(losses.items()) if count},
        lost,
        sum(map(is_logged, world.lines)) + doubles,
        sum(n for bio in world.bios for line, _, n in bio.folios if is_logged(line)),
    )


# ---------------------------------------------------------------- the log


def render_head(line: Line) -> bytes:
    parts = [b"%d %d " % (line.t, line.pid) + line.comm, line.event_name]
    for key, value in line.data:
        parts += [key.encode(), value if isinstance(value, bytes) else str(value).encode()]
    return b" ".join(parts)


def render(line: Line, blank_before_stack: bool) -> list[bytes]:
    lines = [render_head(line)]
    if line.frames:
        lines += [b""] * blank_before_stack + line.frames
    return lines * (2 if line.double else 1)


def in_file_order(world: World) -> list[Line]:
    """Orders lines as a tracer prints them: CPU by CPU, each buffer drained once in `disorder_ns`."""
    period = world.p.disorder_ns // world.unit
    if not period:
        return list(world.lines)
    shift = [world.rng.randrange(period) for _ in range(world.p.cpus)]

    def drained(line: Line) -> tuple[int, int]:
        return (line.t + shift[line.cpu]) // period, line.cpu

    return sorted(world.lines, key=drained)  # stable: each CPU's lines stay in time order


def simulate(params: Params, rng: random.Random) -> World:
    if params.p_tie and params.disorder_ns:
        raise ValueError("p_tie needs disorder_ns = 0: events at the same time keep the file order")
    if params.p_helper and params.cut_head:
        raise ValueError(
            "p_helper needs cut_head = 0: a request whose start is cut would open on its helper's thread"
        )
    if params.processes and params.pid_is != "process":
        raise ValueError("processes needs pid_is = process: threads share PIDs")
    world = World(params, rng)
    world.run()
    return world


def generate(params: Params, rng: random.Random) -> Generated:
    """Returns a log and its truth. The same parameters and seed give the same log."""
    world = simulate(params, rng)
    lose(world)
    for line in world.lines:
        share = {"complete": params.double_complete, "end": params.double_end}.get(line.kind, 0)
        line.double = is_logged(line) and rng.random() < share

    records: list[bytes] = []  # a record is a line and its stack lines, which stay together
    burst = reported = 0
    for line in in_file_order(world):
        if line.lost == "burst":
            burst += 1
        elif line.lost is None:
            if burst:
                records.append(b"Lost %d events" % burst)
                reported, burst = reported + burst, 0
            records.append(b"\n".join(render(line, params.blank_before_stack)))
    if burst:
        records.append(b"Lost %d events" % burst)
        reported += burst
    for _ in range(params.garbage):
        records.insert(rng.randrange(len(records) + 1), rng.choice(GARBAGE))
    if params.header:
        attached = rng.choice((b"Attaching 8 probes...", b"Attached 8 probes"))
        records[:0] = [b"TIME PID COMM EVENT DATA", attached]
    if params.map_dump:
        records.append(MAP_DUMP.rstrip(b"\n"))
    log = b"\n".join(records)
    if params.final_newline and records:
        log += b"\n"
    return Generated(log, params, world, reported)


# ---------------------------------------------------------------- bulk logs

BLOCK_BYTES = 20_000_000
BULK = Params(
    threads=16,
    files=2000,
    addresses=64,
    max_bios=2,
    max_folios=10,
    p_empty=0.05,
    p_lone=0.02,
    cpus=2,
    stack_pool=300,
    stacks="perf",
    stack_depth=8,
    header=False,
)


def bulk(
    size: int,
    seed: int,
    out: BinaryIO,
    params: Params = BULK,
    block_bytes: int = BLOCK_BYTES,
) -> dict[str, int]:
    """Writes about `size` bytes: one simulated block repeatedly, each copy with later times and ids.

    Each time and id of a block is a prefix, which is the same in the whole block, and digits of
    fixed width. So a copy needs one replacement of bytes for the times and one for the ids. Returns
    the sums that the log's tables must have.
    """
    block_bytes = min(size, block_bytes)
    params = dataclasses.replace(params, first_time=0, first_id=1)
    rng = random.Random(seed)
    params.requests = 500
    sample = generate(params, rng)
    params.requests = max(1, int(500 * block_bytes / len(sample.log)))
    world = simulate(params, rng)
    time_width = len(str(max(line.t for line in world.lines)))
    id_width = len(str(world.next_id))
    parts: list[bytes] = []
    for line in in_file_order(world):
        head, _, rest = render_head(line).partition(b" ")
        if line.data[:1] and line.data[0][0] == "id" and line.data[0][1]:
            old = b" id %d" % line.data[0][1]
            new = b" id \x02%0*d" % (id_width, line.data[0][1])
            rest = rest.replace(old, new, 1)
        parts.append(b"\x01%0*d %s" % (time_width, int(head), rest))
        parts += line.frames
    block = b"\n".join(parts) + b"\n"

    truth = truth_of(world, 0, 0)
    out.write(b"TIME PID COMM EVENT DATA\nAttaching 8 probes...\n")
    written = rounds = 0
    while written < size:
        # The prefixes have a fixed width and no leading zero, so all blocks have the same length.
        shifted = block.replace(b"\x01", b"%d" % (1000 + rounds))
        shifted = shifted.replace(b"\x02", b"%d" % (1000 + rounds))
        out.write(shifted)
        written += len(shifted)
        rounds += 1
    out.flush()
    return {
        "bytes": written,
        "lines": 2 + rounds * block.count(b"\n"),
        "events": rounds * truth.events,
        "requests": rounds * len(truth.sync),
        "bios": rounds * len(truth.bio),
        "calls": rounds * len(truth.call),
        "unmatched_calls": rounds * truth.losses.get("unmatched_call", 0),
        "folio_bytes": rounds * truth.folio_bytes,
    }


# ---------------------------------------------------------------- command line


def set_param(params: Params, text: str) -> None:
    name, _, value = text.partition("=")
    if name not in {f.name for f in dataclasses.fields(params)}:
        raise SystemExit(f"unknown parameter {name!r}; known are: {', '.join(vars(params))}")
    kind = type(getattr(params, name))
    setattr(params, name, value == "true" if kind is bool else kind(value))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reference.loggen")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--random", action="store_true", help="draw all parameters at random from the seed"
    )
    parser.add_argument("--requests", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="sets any parameter"
    )
    parser.add_argument("--bulk", type=int, metavar="BYTES", help="writes a log of about this size")
    parser.add_argument(
        "--truth", metavar="FILE", help="writes the truth as JSON (with --bulk: its sums)"
    )
    args = parser.parse_args(argv)

    rng = random.Random(args.seed)
    params = dataclasses.replace(BULK) if args.bulk else Params()
    if args.random:
        params = random_params(rng)
    for name in ("requests", "threads"):
        if getattr(args, name) is not None:
            setattr(params, name, getattr(args, name))
    for setting in args.set:
        set_param(params, setting)
    if args.bulk:
        truth = json.dumps(bulk(args.bulk, args.seed, sys.stdout.buffer, params))
    else:
        generated = generate(params, rng)
        sys.stdout.buffer.write(generated.log)
        truth = generated.truth.to_json()
    if args.truth:
        Path(args.truth).write_text(truth + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
