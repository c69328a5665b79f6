"""A plain reference implementation of docs/reference/phases.md.

It takes a request with its bios and waits, as rows of the tables, and the events of its recording, as objects of the low-level log. It
asks of each piece of the request, between any two moments at which something changes, in which phase it is. It searches lists for
each answer: slow on purpose, so that it is easy to check by eye.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Span = tuple[int, int]
# Thread, name, and `exact` or `inferred`.
User = tuple[int, str | None, str]
# Name, start, length, and who had the CPU.
Phase = tuple[str, int | None, int, User | None]

STEPS = {
    "jbd2_commit_locking": "commit locking",
    "jbd2_commit_flushing": "commit flushing",
    "jbd2_commit_logging": "commit logging",
}
# Phases in which a thread waits for the work of another one.
BY_OTHERS = {
    *STEPS.values(),
    "earlier commit",
    "commit start",
    "commit wait",
    "fast commit wait",
    "completion",
}
MAX_WAY_OUT_NS = 1_000_000
MAX_SPIN_NS = 1_000_000
START, END = "jbd2_start_commit", "jbd2_end_commit"
FOLIO_WAITS = {"filemap_wait", "folio_wait"}


@dataclass
class Thread:
    """What was recorded of a thread."""

    runnable: list[Span] = field(default_factory=list)
    # Who had the CPU in these, in parts.
    users: list[tuple[Span, User]] = field(default_factory=list)
    # Who had the CPU for which the thread waited that then woke this one.
    behind: list[tuple[Span, User]] = field(default_factory=list)
    # What it did is not known, because an event was lost.
    unseen: list[Span] = field(default_factory=list)
    blocked: list[Span] = field(default_factory=list)
    locks: list[Span] = field(default_factory=list)
    folios: list[Span] = field(default_factory=list)
    # When its states were recorded first.
    watched_from: int | None = None
    # When it left a CPU, or got one.
    switches: list[int] = field(default_factory=list)


@dataclass
class Commit:
    transaction: int
    # The time of each of its events that was recorded, by the event's name.
    times: dict[str, int] = field(default_factory=dict)

    def until(self, end: int) -> Commit:
        """What was recorded of it by a time."""
        return Commit(self.transaction, {name: at for name, at in self.times.items() if at <= end})


class Cpus:
    """The switches of a recording. A CPU is known by the thread that has it."""

    def __init__(self, log: list[Row]) -> None:
        of_switches = {"prev_pid", "next_pid"}
        self.log = [one for one in log if of_switches <= one.keys() or "data_pid" in one]
        self.switches = [event for event in self.log if of_switches <= event.keys()]
        # The waits of each thread for a CPU.
        self.waits: dict[int, list[tuple[Span, User]]] = {}
        self.places: dict[int, list[int]] = {}
        for at, event in enumerate(self.switches):
            for tid in {event["prev_pid"], event["next_pid"]}:
                self.places.setdefault(tid, []).append(at)
        # When one of these showed that a switch before it is missing.
        self.gaps = [event["ts_ns"] for at, event in enumerate(self.switches) if self.is_gap(at)]

    def last_before(self, at: int, tid: int) -> int | None:
        """The last switch before one that is from this thread, or to it."""
        places = self.places.get(tid, [])
        before = bisect.bisect_left(places, at)
        return places[before - 1] if before else None

    def got_it(self, at: int, tid: int) -> int | None:
        """The switch that gave a thread the CPU that it has at a switch. None if that is not recorded; each CPU is idle on its own."""
        before = self.last_before(at, tid)
        if tid == 0 or before is None or self.switches[before]["next_pid"] != tid:
            return None
        return before

    def is_gap(self, at: int) -> bool:
        left, got = self.switches[at]["prev_pid"], self.switches[at]["next_pid"]
        has_left_unseen = left != 0 and self.got_it(at, left) is None
        has_it_already = got not in (0, left) and self.got_it(at, got) is not None
        return has_left_unseen or has_it_already

    def users(self, event: Row, since: int) -> list[tuple[Span, User]]:
        """Who had, from a time on, the CPU that a switch gives to somebody, the last one first."""
        at: int | None = next(at for at, one in enumerate(self.switches) if one is event)
        until = event["ts_ns"]
        gap = max((time for time in self.gaps if time <= until), default=-math.inf)
        found: list[tuple[Span, User]] = []
        while at is not None and since < until:
            switch = self.switches[at]
            tid = switch["prev_pid"]
            at = self.got_it(at, tid)
            begin = since if at is None else max(since, self.switches[at]["ts_ns"])
            is_exact = at is not None and self.switches[at]["ts_ns"] >= gap
            name = switch.get("comm") if switch.get("tid") == tid else None
            if begin < until:
                found.append(((begin, until), (tid, name, "exact" if is_exact else "inferred")))
            until = begin
        return found

    def waits_within(self, tid: int, since: int, until: int) -> list[tuple[Span, User]]:
        """When a thread waited for a CPU between two times, and who had it."""
        if tid not in self.waits:
            # In an interrupt of an idle CPU, nobody wakes the thread.
            self.waits[tid] = self._waits_of(tid) if tid else []
        parts = [
            ((max(begin, since), min(end, until)), user) for (begin, end), user in self.waits[tid]
        ]
        return [(span, user) for span, user in parts if span[0] < span[1]]

    def _waits_of(self, tid: int) -> list[tuple[Span, User]]:
        found: list[tuple[Span, User]] = []
        ready: int | None = None
        runs = False
        for event in self.log:
            if event["event"] == "sched_waking" and event.get("tid") == tid:
                # It runs, though the switch to it is not recorded.
                ready = None
            if event.get("data_pid") == tid and event["event"] == "sched_waking":
                if ready is None and not runs:
                    ready = event["ts_ns"]
            elif event.get("prev_pid") == tid:
                runs = False
                ready = event["ts_ns"] if is_runnable(event["prev_state"]) else None
            elif event.get("next_pid") == tid:
                if ready is not None:
                    found += self.users(event, ready)
                ready, runs = None, True
        return found


class Events:
    """The events of a recording, by thread and by journal. `spans` are those of the requests of each thread, and `first` is when its first
    sync call or request began."""

    def __init__(self, log: list[Row], spans: dict[int, list[Span]], first: dict[int, int]) -> None:
        self.log = [switch_of_report(event) for event in log]
        self.first = first
        self.cpus = Cpus(self.log)
        # From when on the log has shown that it records switches to a thread that syncs, and that such a thread is woken.
        self.switches_in = self.wakes = math.inf
        self._find_kinds(spans)
        self.threads: dict[int, Thread] = {}
        self.commits: dict[str, list[Commit]] = {}
        for tid, requests in spans.items():
            thread = self.threads[tid] = Thread()
            for start, end in requests:
                self._read_request(tid, thread, start, end)
        for event in log:
            self._read_commit(event)

    def _find_kinds(self, spans: dict[int, list[Span]]) -> None:
        """Finds out what the log records of threads, in the order of its events."""
        for event in self.log:
            at, name = event["ts_ns"], event["event"]

            def syncs(tid: object, at: int = at) -> bool:
                return any(start <= at <= end for start, end in spans.get(tid, ()))  # type: ignore[call-overload]

            if name == "sched_switch" and syncs(event.get("next_pid")):
                self.switches_in = min(self.switches_in, at)
            elif name == "sched_waking" and syncs(event.get("data_pid")):
                self.wakes = min(self.wakes, at)

    def _read_request(self, tid: int, thread: Thread, start: int, end: int) -> None:
        state, since = "running", start
        woken: int | None = None
        lock: int | None = None
        folio: list[int] = []
        doubtful = False
        unwoken: list[Span] = []
        for event in self.log:
            at, name = event["ts_ns"], event["event"]
            switches = name == "sched_switch" and tid in (
                event.get("prev_pid"),
                event.get("next_pid"),
            )
            if switches and start <= at <= end:
                thread.switches.append(at)
            if switches and thread.watched_from is None and at >= self.first[tid]:
                thread.watched_from = at
            if not start <= at <= end:
                continue
            if name == "sched_switch" and event.get("prev_pid") == tid:
                if state != "running" and self.switches_in > at:
                    doubtful = True
                    continue
                if state != "running":
                    thread.unseen.append((since, at))
                    doubtful = False
                state, since = "runnable" if is_runnable(event["prev_state"]) else "blocked", at
            elif name == "sched_switch" and event.get("next_pid") == tid:
                if state == "blocked" and woken is not None and since - woken <= MAX_WAY_OUT_NS:
                    # It was woken on its way out.
                    state = "runnable"
                if state == "running" or doubtful:
                    thread.unseen.append((since, at))
                elif state == "runnable":
                    thread.runnable.append((since, at))
                    thread.users += self.cpus.users(event, since)
                else:
                    unwoken.append((since, at))
                state, since, doubtful = "running", at, False
            elif name == "sched_waking" and event.get("data_pid") == tid:
                if state == "running":
                    woken = at
                elif state == "blocked":
                    thread.blocked.append((since, at))
                    thread.behind += self.cpus.waits_within(event["tid"], since, at)
                    state, since = "runnable", at
            elif event.get("tid") != tid:
                continue
            elif name == "contention_begin" and lock is None:
                lock = at
            elif name == "contention_end" and lock is not None:
                thread.locks.append((lock, at))
                lock = None
            elif name in FOLIO_WAITS:
                folio.append(at)
            elif name.removesuffix("_end") in FOLIO_WAITS and folio:
                began = folio.pop()
                if not folio:
                    thread.folios.append((began, at))
        if state != "running" and self.switches_in <= end:
            thread.unseen.append((since, end))
        # A thread runs again without being woken only if nothing records that.
        (thread.unseen if self.wakes <= end else thread.blocked).extend(unwoken)

    def _read_commit(self, event: Row) -> None:
        name, at = event["event"], event["ts_ns"]
        if not name.startswith("jbd2_") or "transaction" not in event:
            return
        commits = self.commits.setdefault(event["dev"], [])
        number = event["transaction"]
        if name not in (START, END, *STEPS):
            return
        if all(commit.transaction != number for commit in commits):
            commits.append(Commit(number))
        for commit in commits:
            if commit.transaction == number:
                commit.times.setdefault(name, at)


# As `trace-cmd report` prints a switch.
_SWITCH = re.compile(r"(?s:.*):(\d+) \[\d+\] (\S+) ==> (?s:.*):(\d+) \[\d+\]")


def switch_of_report(event: Row) -> Row:
    """The event with the fields of a switch, if it has only their text."""
    match = _SWITCH.fullmatch(str(event.get("text", "")).strip())
    if event["event"] != "sched_switch" or match is None:
        return event
    return event | {
        "prev_pid": int(match[1]),
        "prev_state": match[2],
        "next_pid": int(match[3]),
    }


def is_runnable(state: object) -> bool:
    """`R` and `R+` as text; as a number, the low byte says why the thread was blocked."""
    return int(state) & 0xFF == 0 if str(state).isdigit() else str(state).startswith("R")


def covers(span: Span, at: int) -> bool:
    return span[0] <= at < span[1]


class Request:
    """A complete request, with its bios, its waits, and the events of its recording."""

    def __init__(
        self, row: Row, bios: list[Row], waits: list[Row], events: Events, others: list[Row]
    ) -> None:
        self.row = row
        self.start, self.end = row["start_ns"], row["ts_ns"] + row["dur_ns"]
        # When its flushes began whose completion is lost.
        self.lost_flushes = [
            bio["ts_ns"]
            for bio in bios
            if bio["direction"] == "flush"
            and bio["dur_ns"] is None
            and bio["ts_ns"] >= self.start
            # A probe that reports its bio, by an address, reports the wait for it too.
            and (bio["bio"] is None or row["flush_ns"] is None)
        ]
        bios = [
            bio | {"end": min(bio["ts_ns"] + bio["dur_ns"], self.end)}
            for bio in bios
            if bio["dur_ns"] is not None and self.start <= bio["ts_ns"]
        ]
        bios = [bio for bio in bios if bio["ts_ns"] < bio["end"]]
        self.bios = [bio for bio in bios if bio["direction"] != "flush"]
        # The thread waits for each of its flushes, as for any wait.
        self.flushes = [(bio["ts_ns"], bio["end"]) for bio in bios if bio["direction"] == "flush"]
        self.waits = [wait | {"end": wait["ts_ns"] + wait["dur_ns"]} for wait in waits]
        self.thread = events.threads.get(row["tid"], Thread())
        self.commits = events.commits.get(row["dev"] or "", [])
        # Completions of bios of its file for others.
        self.others = [bio["ts_ns"] + bio["dur_ns"] for bio in others if bio["dur_ns"] is not None]
        watched = self.thread.watched_from
        self.knows_state = watched is not None and watched <= self.end
        switches = [at for at in self.thread.switches if self.start <= at <= self.end]
        # It had nothing to do but wait, and yet it never left its CPU: nobody followed it then.
        if not switches and self.longest_wait() > MAX_SPIN_NS:
            self.knows_state = False

    def longest_wait(self) -> int:
        """The longest of its waits, and of the time from its last submit to the last completion of its bios."""
        found = [wait["end"] - wait["ts_ns"] for wait in self.waits]
        if self.bios:
            submitted = max(bio["ts_ns"] for bio in self.bios)
            found.append(max(bio["end"] for bio in self.bios) - submitted)
        return max(found, default=0)

    def moments(self) -> list[int]:
        """All times at which something may change."""
        found = {self.start, self.end, *self.others, *self.lost_flushes}
        for bio in self.bios:
            found |= {bio["ts_ns"], bio["end"]}
            if bio["queue_ns"] is not None:
                found.add(bio["ts_ns"] + bio["queue_ns"])
        for wait in self.waits:
            found |= {wait["ts_ns"], wait["end"]}
        for spans in (
            self.thread.runnable,
            [span for span, _ in self.thread.users + self.thread.behind],
            self.thread.unseen,
            self.thread.blocked,
            self.thread.locks,
            self.thread.folios,
            self.flushes,
        ):
            found |= {time for span in spans for time in span}
        for commit in self.commits:
            found |= {*commit.times.values()}
        edges = (self.begun(), self.done())
        found |= {edge for edge in edges if edge is not None}
        return sorted(time for time in found if self.start <= time <= self.end)

    def begun(self) -> int | None:
        """The first submit, or the first wait without a bio."""
        if self.row["bios"] is None:
            return None
        if self.row["bios"] > 0:
            submits = self.row["before_submit_ns"]
            return None if submits is None else self.start + submits
        waits = [wait["ts_ns"] for wait in self.waits]
        return min(waits + [start for start, _ in self.flushes], default=None)

    def done(self) -> int | None:
        """The last completion or the end of the last wait."""
        if self.row["bios"] is None:
            return None
        waited = [wait["end"] for wait in self.waits] + [end for _, end in self.flushes]
        if self.row["bios"] > 0:
            if self.row["after_complete_ns"] is None:
                return None
            waited.append(self.end - self.row["after_complete_ns"])
        return max(waited, default=None)

    def phase(self, at: int) -> str:
        """The phase of the piece that begins at a moment."""
        if any(covers(span, at) for span in self.thread.unseen):
            return self.wait(at) or "residue"
        if any(covers(span, at) for span in self.thread.runnable):
            return "cpu wait"
        if any(covers(span, at) for span in self.thread.locks):
            return "lock wait"
        if any(covers(span, at) for span in self.flushes):
            return "flush"
        if any(since <= at for since in self.lost_flushes):
            return "flush" if self.of_waits(at) == "flush" else "residue"
        return (
            self.of_waits(at)
            or self.of_data(at)
            or self.of_thread(at)
            or self.of_edges(at)
            or "residue"
        )

    def user(self, name: str, at: int) -> User | None:
        """Who had the CPU for which the thread, or the one that it waits for, waited in a phase at a moment."""
        users = self.thread.users
        if name in BY_OTHERS:
            is_unseen = any(covers(span, at) for span in self.thread.unseen)
            users = self.thread.behind if self.knows_state and not is_unseen else []
        elif name != "cpu wait":
            users = []
        return next((user for span, user in users if covers(span, at)), None)

    def wait(self, at: int) -> str | None:
        """The wait that the thread is in, as a whole."""
        found = self.of_waits(at)
        steps = {"earlier commit", "commit start", *STEPS.values()}
        return "commit wait" if found in steps else found

    def of_waits(self, at: int) -> str | None:
        active = [wait for wait in self.waits if covers((wait["ts_ns"], wait["end"]), at)]
        if not active:
            return None
        if any(wait["wait"] == "flush" for wait in active):
            return "flush"
        inner = max(active, key=lambda wait: (wait["ts_ns"], -wait["end"]))
        if inner["wait"] != "commit wait":
            return inner["wait"]
        if not self.knows_state and self.is_commit_over(inner, at):
            return "residue"
        return self.of_commit(inner, at) or "commit wait"

    def is_commit_over(self, wait: Row, at: int) -> bool:
        """Whether the commit of a wait has ended, as far as its start and its end are known at the end of the request."""
        for commit in self.commits:
            times = commit.until(self.end).times
            if (
                commit.transaction == wait["transaction_id"]
                and START in times
                and times[START] < wait["end"]
            ):
                return times.get(END, self.end) <= at
        return False

    def of_commit(self, wait: Row, at: int) -> str | None:
        # What comes after the end of the request cannot be known at its end.
        commits = [commit.until(self.end) for commit in self.commits]
        commits = [commit for commit in commits if commit.times]
        numbers = [commit.transaction for commit in commits]
        if wait["transaction_id"] not in numbers:
            return None
        place = numbers.index(wait["transaction_id"])
        own = commits[place].times
        # A wait that ends before its commit begins was for something else.
        if START not in own or own[START] >= wait["end"]:
            return None
        if at >= own[START]:
            # A step lasts until the next one begins. The first one begins with the commit.
            borders = [own.get(name) for name in (START, *list(STEPS)[1:], END)]
            for name, (begin, end) in zip(STEPS.values(), itertools.pairwise(borders), strict=True):
                if begin is not None and end is not None and begin <= at < end:
                    return name
            return None
        # Until when it is explained what the journal did, None if it is not, and which commit is next.
        reached: int | None = wait["ts_ns"]
        following: int | None = None
        for commit in commits[: place + 1]:
            first, last = min(commit.times.values()), max(commit.times.values())
            is_next = following in (None, commit.transaction) and START in commit.times
            if reached is not None and is_next and reached <= at < first:
                return "commit start"
            if first <= at < last:
                return "earlier commit"
            reached = max(commit.times[END], wait["ts_ns"]) if END in commit.times else None
            following = commit.transaction + 1
        return None

    def of_data(self, at: int) -> str | None:
        """What the critical path was at. Its last bio ends the spell in which bios of the request are in flight without a gap."""
        flying = [bio for bio in self.bios if bio["ts_ns"] <= at < bio["end"]]
        if not flying:
            return None
        end = max(bio["end"] for bio in flying)
        while later := [bio for bio in self.bios if bio["ts_ns"] <= end < bio["end"]]:
            end = max(bio["end"] for bio in later)
        spell = [bio for bio in self.bios if bio["end"] <= end]
        last = max(spell, key=lambda bio: (bio["end"], bio["ts_ns"]))
        if at >= last["ts_ns"]:
            return of_bio(last, at)
        # Until when the thread did not submit: it was blocked, or it is not known what it did.
        until = last["ts_ns"]
        if self.knows_state:
            blocked = [span for span in self.thread.blocked if covers(span, at)]
            if not blocked:
                return "submit"
            until = min(until, blocked[0][1])
        while True:
            before = [bio for bio in spell if bio["ts_ns"] < until]
            last = max(before, key=lambda bio: (bio["end"], bio["ts_ns"]))
            if at >= last["ts_ns"]:
                return of_bio(last, at) if at < last["end"] else None
            until = last["ts_ns"]

    def of_thread(self, at: int) -> str | None:
        """What the thread did while no bio of its own was in flight."""
        in_folio_wait = any(covers(span, at) for span in self.thread.folios)
        if not self.knows_state:
            return "earlier writeback" if self.is_of_others(at) else None
        blocked = [span for span in self.thread.blocked if covers(span, at)]
        if blocked:
            since, until = blocked[0]
            own = [bio["end"] for bio in self.bios if bio["end"] <= until]
            others = [time for time in self.others if since < time <= until]
            last = max(own + others, default=None)
            if last is not None and at >= last and last > since:
                return "completion"
            if last is None and self.row["bios"] is None:
                # A bio of its own may have completed.
                return None
            if in_folio_wait:
                return "earlier writeback" if last is None or at < last else "completion"
            return None
        submits = [bio["ts_ns"] for bio in self.bios]
        return "submit" if submits and min(submits) <= at < max(submits) else None

    def is_of_others(self, at: int) -> bool:
        """Whether the thread waits for folios, and the last bio of the file that completes in that wait does it later, for somebody else."""
        for since, until in self.thread.folios:
            own = [bio["end"] for bio in self.bios if since < bio["end"] <= until]
            others = [time for time in self.others if since < time <= until]
            if since <= at < max(others, default=since) and max(others) >= max(own, default=since):
                return True
        return False

    def of_edges(self, at: int) -> str | None:
        begun, done = self.begun(), self.done()
        if begun is not None and at < begun:
            return "before submit"
        return "after completion" if done is not None and at >= max(done, begun or 0) else None


def of_bio(bio: Row, at: int) -> str:
    if bio["queue_ns"] is None:
        return "writeback"
    return "queue" if at < bio["ts_ns"] + bio["queue_ns"] else "device"


def phases(request: Request) -> list[Phase]:
    """Each phase, and the residue last. A phase ends where a wait begins or ends, or where somebody else gets the CPU."""
    borders = {time for wait in request.waits for time in (wait["ts_ns"], wait["end"])}
    found: list[list[Any]] = []
    moments = request.moments()
    for at, until in itertools.pairwise(moments):
        name = request.phase(at)
        user = request.user(name, at)
        if (
            found
            and (found[-1][0], found[-1][3]) == (name, user)
            and (name == "residue" or at not in borders)
            and found[-1][2] == at
        ):
            found[-1][2] = until
        else:
            found.append([name, at, until, user])
    named = [(name, at, until - at, user) for name, at, until, user in found if name != "residue"]
    rest = [(at, until) for name, at, until, _ in found if name == "residue"]
    length = sum(until - at for at, until in rest)
    return [*named, ("residue", rest[0][0] if len(rest) == 1 else None, length, None)]


def of_tables(tables: dict[str, list[Row]], log: list[Row]) -> dict[int, list[Phase]]:
    """The phases of each complete request, by its sync_id."""
    complete = [
        row for row in tables["sync"] if row["start_ns"] is not None and row["dur_ns"] is not None
    ]
    spans: dict[int, list[Span]] = {}
    for row in complete:
        if row["tid"] is not None:
            spans.setdefault(row["tid"], []).append((row["start_ns"], row["ts_ns"] + row["dur_ns"]))
    first: dict[int, int] = {}
    for row in [*tables["sync"], *tables.get("call", [])]:
        first[row["tid"]] = min(row["ts_ns"], first.get(row["tid"], row["ts_ns"]))
    events = Events(log, spans, first)
    files = files_of(tables, log)
    found = {}
    for row in complete:
        number = row["sync_id"]
        own = [bio for bio in tables["bio"] if bio["sync_id"] == number]
        waits = [wait for wait in tables["wait"] if wait["sync_id"] == number]
        file = (row["dev"], row["ino"])
        others = [
            bio
            for bio in tables["bio"]
            if bio["sync_id"] != number and files[bio["bio_id"]] == file
        ]
        found[number] = phases(Request(row, own, waits, events, others))
    return found


def files_of(tables: dict[str, list[Row]], log: list[Row]) -> dict[int, tuple[Any, Any]]:
    """The device and inode of the first folio of each bio; those of its request if the recording names none."""
    requests = {row["sync_id"]: (row["dev"], row["ino"]) for row in tables["sync"]}
    files = {bio["bio_id"]: requests.get(bio["sync_id"], (None, None)) for bio in tables["bio"]}
    submits = {
        (bio["ts_ns"], int(bio["bio"], 16)): bio["bio_id"]
        for bio in tables["bio"]
        if bio["id"] is None and bio["bio"] is not None
    }
    filled: dict[int, tuple[str, int]] = {}
    for event in log:
        if event["event"] in ("bio_add_folio", "bio_add_page") and {"dev", "ino"} <= event.keys():
            filled.setdefault(address(event["bio"]), (device(event["dev"]), int(event["ino"])))
        elif event["event"] == "bio":
            file = filled.pop(address(event["bio"]), None)
            number = submits.get((event["ts_ns"], address(event["bio"])))
            if number is not None and file is not None:
                files[number] = file
    return files


def address(value: object) -> int:
    text = str(value)
    return int(text, 16) if text.startswith("0x") else int(text)


def device(value: object) -> str:
    """`major,minor` of the kernel's number."""
    text = str(value)
    return text if "," in text else f"{int(text) >> 20},{int(text) & 0xFFFFF}"
