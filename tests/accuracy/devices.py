"""Simulates devices, and writes what a kernel would have recorded of them: text of ftrace whose truth is known.

Nothing here is shared with `syncline whatif`, which has to find out from the text what the device is.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["DEVICES", "Load", "Run", "simulate"]

_SECTORS = 1 << 24
# The whole event is in this header, as tracefs prints it.
_HEADER = """# tracer: nop
#
# entries-in-buffer/entries-written: {count}/{count}   #P:2
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""


@dataclass(frozen=True)
class Load:
    """A device and what it has to do. Times are in ns.

    `kind`: servers, shared or nearest; or one that `whatif` has no model of: channels (each serves its own addresses) or slower (the
    more there are, the longer each takes). `parallelism`: how many it serves at once; `service_ns`: of 4 KiB.
    `noise`: standard deviation of a service time, relative to it; 1 is exponential.
    `large`: share of requests of 64 KiB, which take ten times as long.
    `seek_ns`: for each sector between two requests, if the nearest is first.
    `flush_ns`: of the flush after each sync, which waits for all that was issued before it; None for no flush.
    `dispatch`: fifo, sync-first or tags.
    `writers`: threads that write and pause; `burst`: requests of a sync.
    `unit_ns`: of the times that are recorded.
    """

    kind: str = "servers"
    parallelism: int = 4
    service_ns: int = 5_000_000
    noise: float = 0.0
    large: float = 0.0
    seek_ns: float = 0.0
    flush_ns: int | None = None
    dispatch: str = "fifo"
    writers: int = 24
    pause_ns: int = 20_000_000
    syncs: int = 60
    burst: int = 1
    sync_pause_ns: int = 50_000_000
    unit_ns: int = 1


@dataclass(frozen=True)
class Run:
    """What was recorded, and the truth: the latency of each sync in ns."""

    text: str
    latencies_ns: list[int] = field(repr=False)


DEVICES = {
    "four servers": Load(),
    "four servers, random times": Load(noise=1.0, syncs=300),
    "one server": Load(parallelism=1, service_ns=2_000_000, pause_ns=40_000_000),
    "two sizes": Load(large=0.1, service_ns=2_000_000),
    "shared bandwidth": Load(kind="shared", parallelism=1, service_ns=1_500_000, pause_ns=40_000_000),
    "nearest first": Load(kind="nearest", parallelism=1, service_ns=500_000, seek_ns=0.8, pause_ns=60_000_000),
    "flush drains": Load(flush_ns=100_000),
    "syncs first": Load(parallelism=1, service_ns=2_000_000, dispatch="sync-first", pause_ns=40_000_000),
    "tags": Load(dispatch="tags"),
    "bursts": Load(burst=16, writers=8, pause_ns=10_000_000, sync_pause_ns=50_000_000),
    "channels by address": Load(kind="channels"),
    "slower when full": Load(kind="slower", parallelism=1, service_ns=800_000, pause_ns=40_000_000),
    "bursts, microseconds": Load(burst=16, writers=0, unit_ns=1000, syncs=40),
}  # fmt: skip


def simulate(load: Load, depth: int, seed: int) -> Run:
    """Runs a load at a queue depth."""
    return _Simulation(load, depth, seed).run()


@dataclass
class _Request:
    tid: int
    sector: int
    size: int
    is_sync: bool
    service: float
    done: Callable[[], None]
    issued: Callable[[], None] | None = None
    left: float = 0.0


class _Simulation:
    def __init__(self, load: Load, depth: int, seed: int) -> None:
        self.load, self.depth = load, depth
        # Each thread draws from its own, so the load is the same at all depths.
        self.draws = {tid: random.Random(f"{seed} {tid}") for tid in (0, 100, *range(200, 200 + load.writers))}  # fmt: skip
        self.now = 0
        self.order = itertools.count()
        self.agenda: list[tuple[int, int, Callable[[], None]]] = []
        self.lines: list[tuple[int, int, str]] = []
        self.waiting: list[_Request] = []
        self.at_device: list[_Request] = []
        self.inside: list[_Request] = []
        self.head = 0
        self.busy = 0
        self.channels: set[int] = set()
        self.turned = 0
        self.version = 0
        self.drains: list[tuple[list[_Request], Callable[[], None]]] = []
        self.latencies: list[int] = []
        self.bios = itertools.count(0xFF11 << 48)

    def after(self, delay: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.agenda, (self.now + round(delay), next(self.order), action))

    def run(self) -> Run:
        for number in range(self.load.writers):
            tid = 200 + number
            self.after(self.draws[tid].expovariate(1 / self.load.pause_ns), lambda tid=tid: self.write(tid))  # fmt: skip
        self.after(self.load.sync_pause_ns, lambda: self.sync(0))
        # Nobody begins anything after the last sync, so all that was begun is complete at the end.
        while self.agenda:
            self.now, _, action = heapq.heappop(self.agenda)
            action()
        lines = [text for _, _, text in sorted(self.lines)]
        return Run(_HEADER.format(count=len(lines)) + "".join(lines), self.latencies)

    # What threads do.

    def is_over(self) -> bool:
        return len(self.latencies) == self.load.syncs

    def write(self, tid: int) -> None:
        if self.is_over():
            return

        def again() -> None:
            self.after(self.draws[tid].expovariate(1 / self.load.pause_ns), lambda: self.write(tid))

        self.submit(self.request(tid, again, is_sync=False))

    def sync(self, number: int) -> None:
        begin, ident = self.now, 100 + number
        self.say(100, "sys_fsync(fd: 4)")
        self.say(100, f"sync_start: id={ident} start=0 end=9223372036854775807 datasync=0 dev=254,16 ino=131075 path=/run/mnt/f.db")  # fmt: skip
        left = self.load.burst

        def end() -> None:
            self.say(100, f"sync_end: id={ident} ret=0")
            self.say(100, "sys_fsync -> 0x0")
            self.latencies.append(self.now - begin)
            if self.is_over():
                return
            pause = self.load.sync_pause_ns * self.draws[100].uniform(0.6, 1.4)
            self.after(pause, lambda: self.sync(number + 1))

        def completed(bio: str) -> None:
            nonlocal left
            self.say(0, f"bio_complete: bio={bio} status=0")
            left -= 1
            if not left:
                self.after(1000, end if self.load.flush_ns is None else lambda: self.flush(end))

        def one(place: int) -> None:
            bio = f"{next(self.bios):x}"
            request = self.request(100, lambda: completed(bio), is_sync=True)
            self.say(
                100,
                f"bio_add_folio: id={ident} bio={bio} start=0 len={request.size} dev=254,16 ino=131075",
            )
            self.say(100, f"bio_submit: id={ident} bio={bio} dev=254,16 sector={request.sector} bytes={request.size} opf=0x801")  # fmt: skip
            if place + 1 < self.load.burst:
                # A thread that waits for a tag submits nothing meanwhile. A scheduler takes all that it is given.
                if self.load.dispatch == "tags":
                    request.issued = lambda: self.after(2000, lambda: one(place + 1))
                else:
                    self.after(2000, lambda: one(place + 1))
            self.submit(request)

        self.after(1000, lambda: one(0))

    def flush(self, then: Callable[[], None]) -> None:
        self.say(100, "block_rq_issue: 254,16 FF 0 () 0 + 0 none,0,0 [wl]")

        def done() -> None:
            self.say(0, "block_rq_complete: 254,16 FF () 18446744073709551615 + 0 none,0,0 [0]")
            self.after(1000, then)

        if self.at_device:
            self.drains.append((list(self.at_device), done))
        else:
            self.after(self.load.flush_ns or 0, done)

    def request(self, tid: int, done: Callable[[], None], *, is_sync: bool) -> _Request:
        load, draws = self.load, self.draws[tid]
        is_large = draws.random() < load.large
        service = load.service_ns * (10 if is_large else 1)
        if load.noise:
            shape = 1 / load.noise**2
            service = draws.gammavariate(shape, service / shape)
        sector = draws.randrange(_SECTORS) // 8 * 8
        return _Request(tid, sector, 65536 if is_large else 4096, is_sync, service, done)

    # The scheduler.

    def submit(self, request: _Request) -> None:
        self.say(request.tid, f"block_bio_queue: {self.of(request)}")
        self.enter(request)

    def enter(self, request: _Request) -> None:
        if self.load.dispatch == "tags" and len(self.at_device) < self.depth:
            self.issue(request)
            return
        self.waiting.append(request)
        if self.load.dispatch != "tags":
            self.fill()

    def fill(self) -> None:
        while self.waiting and len(self.at_device) < self.depth:
            first = self.waiting[0]
            if self.load.dispatch == "sync-first":
                first = next((one for one in self.waiting if one.is_sync), first)
            self.waiting.remove(first)
            self.issue(first)

    def issue(self, request: _Request) -> None:
        self.at_device.append(request)
        flags = self.flags(request)
        self.say(request.tid, f"block_rq_issue: 254,16 {flags} {request.size} () {request.sector} + {request.size // 512} be,0,4 [{self.name(request.tid)}]")  # fmt: skip
        self.serve(request)
        if request.issued is not None:
            request.issued()

    def complete(self, request: _Request) -> None:
        self.at_device.remove(request)
        self.say(0, f"block_rq_complete: 254,16 {self.flags(request)} () {request.sector} + {request.size // 512} be,0,4 [0]")  # fmt: skip
        for held, done in list(self.drains):
            if request in held:
                held.remove(request)
                if not held:
                    self.drains.remove((held, done))
                    self.after(self.load.flush_ns or 0, done)
        request.done()
        if self.load.dispatch != "tags":
            self.fill()
        elif self.waiting:
            woken = self.waiting.pop(0)
            self.after(self.draws[0].expovariate(1 / 20_000), lambda: self.enter(woken))

    # The device.

    def serve(self, request: _Request) -> None:
        if self.load.kind == "shared":
            self.turn()
            request.left = request.service
            self.inside.append(request)
            self.plan()
            return
        self.inside.append(request)
        self.take()

    def take(self) -> None:
        while (request := self.next()) is not None:
            time = request.service
            if self.load.kind == "nearest":
                time += self.load.seek_ns * abs(request.sector - self.head)
                self.head = request.sector
            if self.load.kind == "slower":
                time *= 1 + len(self.at_device) / 8
            self.inside.remove(request)
            self.busy += 1
            self.channels.add(self.channel(request))

            def end(done: _Request = request) -> None:
                self.busy -= 1
                self.channels.discard(self.channel(done))
                self.take()
                self.complete(done)

            self.after(time, end)

    def channel(self, request: _Request) -> int:
        return request.sector // 8 % self.load.parallelism

    def next(self) -> _Request | None:
        """Returns the request that is served next, if there is one and room for it."""
        if not self.inside or self.busy == self.load.parallelism:
            return None
        if self.load.kind == "nearest":
            return min(self.inside, key=lambda one: abs(one.sector - self.head))
        if self.load.kind == "channels":
            free = (one for one in self.inside if self.channel(one) not in self.channels)
            return next(free, None)
        return self.inside[0]

    def rate(self) -> float:
        return min(1.0, self.load.parallelism / max(1, len(self.inside)))

    def turn(self) -> None:
        served = (self.now - self.turned) * self.rate()
        for request in self.inside:
            request.left -= served
        self.turned = self.now

    def plan(self) -> None:
        self.version += 1
        version = self.version
        if self.inside:
            first = min(self.inside, key=lambda one: one.left)

            def end() -> None:
                if version == self.version:
                    self.turn()
                    self.inside.remove(first)
                    self.plan()
                    self.complete(first)

            self.after(max(0.0, first.left) / self.rate(), end)

    # The recording.

    def flags(self, request: _Request) -> str:
        return "WS" if request.is_sync or self.load.dispatch != "sync-first" else "W"

    @staticmethod
    def name(tid: int) -> str:
        return "wl" if tid == 100 else "bg"

    def of(self, request: _Request) -> str:
        return f"254,16 {self.flags(request)} {request.sector} + {request.size // 512} [{self.name(request.tid)}]"

    def say(self, tid: int, text: str) -> None:
        task = f"{'<idle>' if not tid else self.name(tid)}-{tid}"
        at = self.now // self.load.unit_ns * self.load.unit_ns
        # Begins long after 0, because a time of 0 is not that of a kernel that runs programs.
        seconds, rest = divmod(10_000_000_000 + at, 1_000_000_000)
        digits = f"{rest:09d}" if self.load.unit_ns == 1 else f"{rest // 1000:06d}"
        self.lines.append(
            (
                self.now,
                next(self.order),
                f"{task:>20}     [000] .....    {seconds}.{digits}: {text}\n",
            )
        )
