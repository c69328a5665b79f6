"""A plain reference for logs in the thesis's line format.

It reads a whole log into memory, sorts its events by time and pairs them by looking through lists,
as docs/formats.md, docs/pairing.md and docs/tables.md say. It is slow on purpose: its only job is
to be easy to check by eye, so that the converter can be checked against it.

    python -m tests.reference.thesis LOG --table sync|bio|call|loss
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SYSCALLS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")
GIVE_UP_NS = 60 * 10**9
MAX_WAITING = 65_536
I64 = 2**63 - 1
U64 = 2**64 - 1

COLUMNS = {
    table: names.split()
    for table, names in {
        "sync": (
            "ts_ns dur_ns tid pid comm process op datasync path dev ino fs id ret syscall_ns"
            " writeback_ns before_submit_ns after_complete_ns bytes folios bios ranges"
            " first_offset last_offset stack confidence incomplete sync_id start_ns"
        ),
        "bio": (
            "bio_id sync_id id ts_ns dur_ns bio dev sector bytes folios ranges first_offset"
            " last_offset tid pid comm origin confidence incomplete"
        ),
        "call": "call_id ts_ns dur_ns tid pid comm op ret stack sync_id lone",
        "loss": "reason severity count first_ts_ns last_ts_ns example meaning",
    }.items()
}

# In the order of docs/pairing.md, which is the order of the rows.
REASONS = {
    "lost_by_tracer": ("loss", "the tracer said that it lost so many events"),
    "unparsed_line": ("loss", "a line is not of the format"),
    "late_event": ("loss", "came later than the reorder window allows"),
    "unmatched_complete": ("loss", "a completion for an address that is not in flight"),
    "never_completed": ("loss", "a submitted bio whose completion is not in the log"),
    "never_submitted": ("loss", "folios added to a bio whose submit is not in the log"),
    "start_missing": ("loss", "a request whose sync_start is not in the log"),
    "end_missing": ("loss", "a request whose sync_end is not in the log"),
    "duplicate_end": ("loss", "a second sync_end for an id that has just ended"),
    "unmatched_exit": ("loss", "a syscall exit with no entry on that thread"),
    "lone_call": ("info", "a sync call with no request"),
    "completed_after_end": ("info", "a bio that completed after its request had ended"),
}

Row = dict[str, Any]


@dataclass
class Event:
    """One line of the log. `pid` is the PID column, be it a thread or a process."""

    kind: str  # call, call_exit, start, folio, submit, complete, end
    fields: dict[str, Any]
    ts: int = 0
    pid: int = 0
    comm: str = ""
    line: int = 0
    text: bytes = b""
    frames: list[bytes] = field(default_factory=list)


@dataclass
class Call:
    entry: Event
    exit: Event | None = None
    request: Request | None = None


@dataclass(eq=False)
class Bio:
    request: Request | None
    id: int
    address: int
    folios: list[Event] = field(default_factory=list)
    submit: Event | None = None
    complete: Event | None = None
    given_up: bool = False
    inferred: bool = False

    def first(self) -> Event:
        return self.folios[0] if self.folios else self.submit  # type: ignore[return-value]


@dataclass(eq=False)
class Request:
    pid: int
    id: int
    first: Event
    start: Event | None = None
    end: Event | None = None
    call: Call | None = None
    call_inferred: bool = False
    bios: list[Bio] = field(default_factory=list)
    closed_ts: int | None = None


@dataclass
class Tables:
    sync: list[Row]
    bio: list[Row]
    call: list[Row]
    loss: list[Row]
    lines: int = 0
    events: int = 0

    def count(self, reason: str) -> int:
        """How often a reason was met; 0 when it has no row."""
        return sum(row["count"] for row in self.loss if row["reason"] == reason)


class Losses:
    """What was not used, by reason."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[str, Row] = {}

    def add(self, reason: str, line: int, text: bytes, ts: int | None, count: int = 1) -> None:
        row = self.rows.get(reason)
        if row is None:
            severity, meaning = REASONS[reason]
            example = f"{self.name}:{line}: {decode(text)}"
            values = (reason, severity, 0, ts, ts, example, meaning)
            row = dict(zip(COLUMNS["loss"], values, strict=True))
            self.rows[reason] = row
        row["count"] += count
        if ts is not None:
            known = [row["first_ts_ns"], row["last_ts_ns"], ts]
            times = [time for time in known if time is not None]
            row["first_ts_ns"], row["last_ts_ns"] = min(times), max(times)

    def event(self, reason: str, event: Event) -> None:
        self.add(reason, event.line, event.text, event.ts)

    def in_order(self) -> list[Row]:
        return [self.rows[reason] for reason in REASONS if reason in self.rows]


def decode(text: bytes) -> str:
    """Bytes that are not UTF-8 become backslash, x and two hex digits."""
    return text.decode("utf-8", "backslashreplace")


# ---------------------------------------------------------------- parsing

# No tracer prints more digits than fit, and Python refuses to convert very long numbers.
_NUMBER = re.compile(rb"[0-9]{1,20}")
_SIGNED = re.compile(rb"-?[0-9]{1,20}")
_ADDRESS = re.compile(rb"0x[0-9a-fA-F]{1,16}")
_DEV = re.compile(rb"[0-9]+,[0-9]+")
_KEY = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")


def _unsigned(text: bytes, limit: int = U64) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) and int(text) <= limit else None


def _offset(text: bytes) -> int | None:
    return _unsigned(text, I64)


def _signed(text: bytes) -> int | None:
    ok = _SIGNED.fullmatch(text) and -I64 - 1 <= int(text) <= I64
    return int(text) if ok else None


def _bound(text: bytes) -> int | None:
    # The bounds of a sync are loff_t; tracers print "to the end" as signed or unsigned.
    value = _signed(text)
    return _unsigned(text) if value is None else value


def _flag(text: bytes) -> bool | None:
    return {b"0": False, b"1": True}.get(text)


def _address(text: bytes) -> int | None:
    return int(text, 16) if _ADDRESS.fullmatch(text) else None


def _dev(text: bytes) -> str | None:
    return text.decode() if _DEV.fullmatch(text) else None


NAMED = {
    "start": {"id": _unsigned, "start": _bound, "end": _bound, "datasync": _flag, "path": decode},
    "folio": {"id": _unsigned, "bio": _address, "start": _offset, "len": _offset},
    "submit": {"id": _unsigned, "bio": _address},
    "complete": {"bio": _address},
    "end": {"id": _unsigned, "ret": _signed},
    "call": {},
    "call_exit": {},
}
OPTIONAL = {"call_exit": {"ret": _signed}}
KNOWN_EXTRA = {
    "dev": _dev,
    "ino": _unsigned,
    "sector": _unsigned,
    "bytes": _unsigned,
    "status": _signed,
}
WORDS: dict[bytes, tuple[str, str | None]] = {
    b"start": ("start", None),
    b"sync_start": ("start", None),
    b"exit": ("end", None),
    b"sync_end": ("end", None),
    b"bio_add_folio": ("folio", None),
    b"bio_submit": ("submit", None),
    b"bio_complete": ("complete", None),
}
for _call in SYSCALLS:
    for _word in (_call, f"sys_enter_{_call}"):
        WORDS[_word.encode()] = ("call", _call)
    for _word in (f"{_call}_exit", f"exit_{_call}", f"sys_exit_{_call}", f"{_call} exit"):
        WORDS[_word.encode()] = ("call_exit", _call)


def _pairs(data: bytes, with_path: bool) -> dict[bytes, bytes] | None:
    """`key value` pairs, one space apart; `path` takes the rest of the line."""
    found: dict[bytes, bytes] = {}
    while data:
        key, space, data = data.partition(b" ")
        if not space or not _KEY.fullmatch(key) or key in found:
            return None
        if with_path and key == b"path":
            found[key] = data
            return found
        value, space, data = data.partition(b" ")
        if not value or (space and not data):
            return None
        found[key] = value
    return found


def _fields(kind: str, data: bytes) -> dict[str, Any] | None:
    """The fields of an event, or None where the data is not exactly that event's."""
    pairs = _pairs(data, with_path=kind == "start")
    if pairs is None:
        return None
    fields: dict[str, Any] = {}
    for key, read in NAMED[kind].items():
        if key.encode() not in pairs:
            return None
        fields[key] = read(pairs.pop(key.encode()))
    for key, value in pairs.items():
        name = key.decode()
        if name in OPTIONAL.get(kind, {}):
            fields[name] = OPTIONAL[kind][name](value)
            continue
        # Pairs that are not named for this event. They must not swallow the real event behind a
        # COMM that holds an event's name, so they hold no such name, and a syscall has no id.
        if (key in WORDS and key != b"start") or value in WORDS:
            return None
        if kind in ("call", "call_exit") and name in ("id", "bio"):
            return None
        fields[name] = KNOWN_EXTRA[name](value) if name in KNOWN_EXTRA else decode(value)
    if any(value is None for value in fields.values()):
        return None
    if kind == "folio" and fields["start"] + fields["len"] > I64:
        return None
    return fields


def _parse_after_comm(tail: bytes) -> Event | None:
    word, _, data = tail.partition(b" ")
    if tail == word + b" ":
        return None
    second, _, rest = data.partition(b" ")
    two_words = word + b" " + second
    if two_words in WORDS and data != second + b" ":
        word, data = two_words, rest
    if word not in WORDS:
        return None
    kind, op = WORDS[word]
    fields = _fields(kind, data)
    if fields is None:
        return None
    if op is not None:
        fields["op"] = op
    return Event(kind, fields)


_LINE = re.compile(rb"([0-9]+) ([0-9]+) (.*)", re.DOTALL)


def parse_line(line: bytes, unit_ns: int = 1) -> Event | None:
    """One line as an event, or None. The COMM ends where the leftmost event fits."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    time, pid, rest = _unsigned(match[1]), _unsigned(match[2], I64), match[3]
    if time is None or pid is None or time * unit_ns > I64:
        return None
    for end in range(min(16, len(rest))):
        if rest[end : end + 1] != b" ":
            continue
        event = _parse_after_comm(rest[end + 1 :])
        if event is not None:
            event.ts, event.pid, event.comm = time * unit_ns, pid, decode(rest[:end])
            event.text = line
            return event
    return None


_LOST = re.compile(rb"Lost ([0-9]{1,20}) events?")
_OWN = (
    re.compile(rb"TIME[ \t]+PID[ \t]+COMM[ \t]+EVENT[ \t]+DATA"),
    re.compile(rb"Attaching [0-9]+ probes?\.\.\."),
    re.compile(rb"Attached [0-9]+ probes?"),
    re.compile(rb"@[A-Za-z0-9_]*(\[.*\])?:.*", re.DOTALL),  # a map, or the head of a histogram
    re.compile(rb"[\[(][^|]*[\])] +[0-9]+ \|[@ ]*\|"),  # a row of a histogram
)
_PERF_FRAME = re.compile(rb"[0-9a-fA-F]+[ \t]+(.+?)[ \t]+\([^()]*(?:\([^()]*\)[^()]*)*\)")
_SHIFT = re.compile(rb"\+(?:0x[0-9a-fA-F]+|[0-9]+)\Z")


def frame_name(line: bytes) -> str:
    """The function of a stack line in either style of bpftrace, or the bare address."""
    text = line.strip(b" \t")
    perf = _PERF_FRAME.fullmatch(text)
    if perf is not None:
        text = perf[1]
    # `;` separates frames, so no frame may hold one.
    return decode(_SHIFT.sub(b"", text)).replace(";", ":")


def parse(data: bytes, losses: Losses, time_unit: str = "ns") -> tuple[list[Event], int]:
    """All events in the order of the file, and the number of lines."""
    unit_ns = {"ns": 1, "us": 1000}[time_unit]
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    events: list[Event] = []
    call: Event | None = None  # the entry that stack lines would belong to
    for number, line in enumerate(lines, 1):
        line = line.removesuffix(b"\r")
        if not line.strip(b" \t"):
            continue
        if line[:1] in (b" ", b"\t"):
            if call is None:
                losses.add("unparsed_line", number, line, None)
            else:
                call.frames.append(line)
            continue
        lost = _LOST.fullmatch(line)
        if lost is not None and int(lost[1]) <= U64:
            if int(lost[1]):
                # It has no time of its own: that of the event before it.
                before = events[-1].ts if events else None
                losses.add("lost_by_tracer", number, line, before, int(lost[1]))
            continue
        if any(own.fullmatch(line) for own in _OWN):
            continue
        event = parse_line(line, unit_ns)
        call = event if event is not None and event.kind == "call" else None
        if event is None:
            losses.add("unparsed_line", number, line, None)
        else:
            event.line = number
            events.append(event)
    return events, len(lines)


# ---------------------------------------------------------------- pairing


class Assembly:
    """Walks over the events in the order of time, and looks in lists for who belongs to whom."""

    def __init__(self, losses: Losses, pid_is: str) -> None:
        self.losses = losses
        self.processes = pid_is == "process"
        self.calls: list[Call] = []
        self.requests: list[Request] = []
        self.bios: list[Bio] = []
        self.open: list[Request] = []
        self.waiting: list[Request] = []  # closed, oldest first; some may have settled since
        self.filling: list[Bio] = []
        self.in_flight: list[Bio] = []

    def run(self, events: list[Event]) -> None:
        for event in events:
            while self.waiting and event.ts - (self.waiting[0].closed_ts or 0) > GIVE_UP_NS:
                self.give_up(self.waiting.pop(0))
            getattr(self, event.kind)(event)
        for request in self.open:
            self.losses.event("end_missing", request.first)
        for bio in self.bios:
            if bio.submit is None:
                self.losses.event("never_submitted", bio.first())
            elif bio.complete is None:
                self.losses.event("never_completed", bio.submit)
        for call in self.calls:
            if call.request is None:
                self.losses.event("lone_call", call.entry)

    # calls

    def call(self, event: Event) -> None:
        self.calls.append(Call(event))

    def call_exit(self, event: Event) -> None:
        for call in reversed(self.calls):
            if call.entry.pid != event.pid:
                continue
            if call.exit is None and call.entry.fields["op"] == event.fields["op"]:
                call.exit = event
                return
            if not self.processes:
                break  # a new call on a thread closes the one before
        self.losses.event("unmatched_exit", event)

    def free_calls(self, pid: int) -> list[Call]:
        """The calls that a new request may have come from, the last one first."""
        free: list[Call] = []
        for call in reversed(self.calls):
            if call.entry.pid == pid:
                if call.request is None and call.exit is None:
                    free.append(call)
                if not self.processes:
                    break  # a new call on a thread closes the one before
        return free

    # requests

    def open_request(self, event: Event) -> Request:
        request = Request(event.pid, event.fields["id"], event)
        free = self.free_calls(event.pid)
        if free:
            request.call = free[0]
            request.call.request = request
            request.call_inferred = len(free) > 1 or event.kind != "start"
        if event.kind != "start":
            self.losses.event("start_missing", event)
        self.requests.append(request)
        self.open.append(request)
        return request

    def close(self, request: Request, event: Event) -> None:
        request.closed_ts = event.ts
        self.open.remove(request)
        if not settled(request):
            self.waiting.append(request)
        if len(self.waiting) > MAX_WAITING:
            self.waiting = [waiting for waiting in self.waiting if not settled(waiting)]
        if len(self.waiting) > MAX_WAITING:
            self.give_up(self.waiting.pop(0))

    def give_up(self, request: Request) -> None:
        for bio in request.bios:
            bio.given_up = True
        self.filling = [bio for bio in self.filling if not bio.given_up]
        self.in_flight = [bio for bio in self.in_flight if not bio.given_up]

    def start(self, event: Event) -> None:
        for request in list(self.open):
            same = not self.processes or request.id == event.fields["id"]
            if request.pid == event.pid and same:
                self.losses.event("end_missing", request.first)
                self.close(request, event)
        self.open_request(event).start = event

    def end(self, event: Event) -> None:
        key = (event.pid, event.fields["id"])
        for request in self.open:
            if (request.pid, request.id) == key:
                break
        else:
            before = [request for request in self.requests if (request.pid, request.id) == key]
            if before and before[-1].end is not None:
                self.losses.event("duplicate_end", event)
                return
            request = self.open_request(event)
        request.end = event
        self.close(request, event)

    # bios

    def request_of(self, event: Event) -> tuple[Request | None, bool]:
        """The request of a folio or submit, and whether another one was possible."""
        if event.fields["id"] == 0:
            return None, False
        same_id = [request for request in self.open if request.id == event.fields["id"]]
        for request in same_id:
            if request.pid == event.pid:
                return request, False
        if same_id:
            return same_id[-1], len(same_id) > 1
        return self.open_request(event), False

    def bio_of(self, event: Event) -> Bio:
        """The bio that a folio or a submit belongs to."""
        address = event.fields["bio"]
        for bio in self.filling:
            if (bio.id, bio.address) == (event.fields["id"], address):
                return bio
        for bio in [bio for bio in self.filling if bio.address == address]:
            bio.given_up = True
            self.filling.remove(bio)
        request, inferred = self.request_of(event)
        bio = Bio(request, event.fields["id"], address, inferred=inferred)
        self.bios.append(bio)
        self.filling.append(bio)
        if request is not None:
            request.bios.append(bio)
        return bio

    def folio(self, event: Event) -> None:
        self.bio_of(event).folios.append(event)

    def submit(self, event: Event) -> None:
        bio = self.bio_of(event)
        for old in [old for old in self.in_flight if old.address == bio.address]:
            old.given_up = True
            self.in_flight.remove(old)
        bio.submit = event
        self.filling.remove(bio)
        self.in_flight.append(bio)

    def complete(self, event: Event) -> None:
        for bios in (self.in_flight, self.filling):
            for bio in bios:
                if bio.address == event.fields["bio"]:
                    bios.remove(bio)
                    bio.complete = event
                    if bio.request is not None and bio.request.end is not None:
                        self.losses.event("completed_after_end", event)
                    return
        self.losses.event("unmatched_complete", event)


def settled(request: Request) -> bool:
    return all(bio.complete is not None or bio.given_up for bio in request.bios)


# ---------------------------------------------------------------- tables


def _sizes(folios: list[Event]) -> Row:
    parts = sorted((f.fields["start"], f.fields["start"] + f.fields["len"]) for f in folios)
    ranges: list[tuple[int, int]] = []
    for start, end in parts:
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(end, ranges[-1][1]))
        else:
            ranges.append((start, end))
    return {
        "bytes": sum(f.fields["len"] for f in folios),
        "folios": len(folios),
        "ranges": len(ranges),
        "first_offset": ranges[0][0] if ranges else None,
        "last_offset": ranges[-1][1] if ranges else None,
    }


def _first_known(name: str, events: Iterable[Event | None]) -> Any:
    for event in events:
        if event is not None and name in event.fields:
            return event.fields[name]
    return None


def _stack(call: Call | None) -> str | None:
    if call is None or not call.entry.frames:
        return None
    return ";".join(frame_name(line) for line in reversed(call.entry.frames))


def _sync_row(request: Request, bio_events: list[Event]) -> Row:
    call, start, end, bios = request.call, request.start, request.end, request.bios
    ts = call.entry.ts if call else (start or request.first).ts
    submits = [bio.submit.ts for bio in bios if bio.submit]
    completes = [bio.complete.ts for bio in bios if bio.complete]
    all_submitted = bool(bios) and len(submits) == len(bios)
    all_complete = bool(bios) and len(completes) == len(bios)
    row = _sizes([folio for bio in bios for folio in bio.folios])
    row |= {
        "ts_ns": ts,
        "dur_ns": end.ts - ts if start and end else None,
        "comm": request.first.comm,
        "process": None,
        "op": call.entry.fields["op"] if call else None,
        "datasync": start.fields["datasync"] if start else None,
        "path": start.fields["path"] if start else None,
        "dev": _first_known("dev", [start, *bio_events, end]),
        "ino": _first_known("ino", [start, *bio_events, end]),
        "fs": "ext4" if start else None,
        "id": request.id,
        "ret": end.fields["ret"] if end else None,
        "syscall_ns": (call.exit or end).ts - call.entry.ts if call and start and end else None,
        "writeback_ns": None,
        "before_submit_ns": min(submits) - start.ts if start and all_submitted else None,
        "after_complete_ns": end.ts - max(completes) if end and all_complete else None,
        "bios": len(bios),
        "stack": _stack(call),
        "confidence": "exact",
        "incomplete": None,
        "start_ns": start.ts if start else None,
    }
    if start and end:
        if not bios:
            row["writeback_ns"] = 0
        elif all_submitted and all_complete:
            row["writeback_ns"] = max(completes) - min(submits)
    if request.call_inferred or any(bio.inferred for bio in bios):
        row["confidence"] = "inferred"
    if not start:
        row["incomplete"] = "start"
    elif not end:
        row["incomplete"] = "end"
    elif bios and not (all_submitted and all_complete):
        row["incomplete"] = "bio"
    return row


def _bio_row(bio: Bio) -> Row:
    sender = bio.submit or bio.first()
    row = _sizes(bio.folios)
    row |= {
        "id": bio.id,
        "ts_ns": sender.ts,
        "dur_ns": bio.complete.ts - bio.submit.ts if bio.submit and bio.complete else None,
        "bio": f"{bio.address:#x}",
        "dev": _first_known("dev", [*bio.folios, bio.submit, bio.complete]),
        "sector": _first_known("sector", [*bio.folios, bio.submit, bio.complete]),
        "comm": sender.comm,
        "origin": "sync" if bio.request else "background",
        "confidence": None,
        "incomplete": None,
    }
    if bio.request:
        row["confidence"] = "inferred" if bio.inferred else "exact"
    if not bio.submit:
        row["incomplete"] = "start"
    elif not bio.complete:
        row["incomplete"] = "end"
    return row


def _call_row(call: Call) -> Row:
    end = call.exit or (call.request.end if call.request else None)
    return {
        "ts_ns": call.entry.ts,
        "dur_ns": end.ts - call.entry.ts if end else None,
        "comm": call.entry.comm,
        "op": call.entry.fields["op"],
        "ret": call.exit.fields.get("ret") if call.exit else None,
        "stack": _stack(call),
        "lone": call.request is None,
    }


def read(
    data: bytes, *, time_unit: str = "ns", pid_is: str = "thread", name: str = "log"
) -> Tables:
    """The tables of a log, given as bytes (gzip is recognised by its first bytes)."""
    if pid_is not in ("thread", "process"):
        raise ValueError(f"pid_is must be thread or process, not {pid_is!r}")
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        raise ValueError(f"{name}: zstd is not read here")
    losses = Losses(name)
    events, lines = parse(data, losses, time_unit)
    events.sort(key=lambda event: event.ts)  # stable: equal times keep the order of the file
    assembly = Assembly(losses, pid_is)
    assembly.run(events)

    order = {id(event): position for position, event in enumerate(events)}
    sync_id = {id(request): number for number, request in enumerate(assembly.requests, 1)}
    tables = Tables([], [], [], losses.in_order(), lines, len(events))

    def who(pid: int) -> Row:
        return {"tid": None, "pid": pid} if pid_is == "process" else {"tid": pid, "pid": None}

    for request in assembly.requests:
        bio_events = [e for bio in request.bios for e in [*bio.folios, bio.submit] if e]
        bio_events.sort(key=lambda event: order[id(event)])
        row = _sync_row(request, bio_events) | who(request.pid)
        tables.sync.append(row | {"sync_id": sync_id[id(request)]})
    for number, bio in enumerate(assembly.bios, 1):
        row = _bio_row(bio) | who((bio.submit or bio.first()).pid)
        owner = sync_id[id(bio.request)] if bio.request else None
        tables.bio.append(row | {"bio_id": number, "sync_id": owner})
    for number, call in enumerate(assembly.calls, 1):
        row = _call_row(call) | who(call.entry.pid)
        taker = sync_id[id(call.request)] if call.request else None
        tables.call.append(row | {"call_id": number, "sync_id": taker})
    for table, columns in COLUMNS.items():
        rows = getattr(tables, table)
        rows[:] = [{column: row[column] for column in columns} for row in rows]
    return tables


def read_file(path: str | Path, *, time_unit: str = "ns", pid_is: str = "thread") -> Tables:
    data = Path(path).read_bytes()
    return read(data, time_unit=time_unit, pid_is=pid_is, name=str(path))


def write_csv(rows: list[Row], table: str, out: Any) -> None:
    """As docs/formats.md says: null is the empty field, booleans are true and false."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS[table])
    for row in rows:
        values = [row[column] for column in COLUMNS[table]]
        writer.writerow([str(v).lower() if isinstance(v, bool) else v for v in values])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reference.thesis")
    parser.add_argument("log", help="a log in the thesis's format, or - for stdin")
    parser.add_argument("--table", choices=list(COLUMNS), default="sync")
    parser.add_argument("--time-unit", choices=("ns", "us"), default="ns")
    parser.add_argument("--pid-is", choices=("thread", "process"), default="thread")
    args = parser.parse_args(argv)
    options = {"time_unit": args.time_unit, "pid_is": args.pid_is}
    if args.log == "-":
        tables = read(sys.stdin.buffer.read(), name="stdin", **options)
    else:
        tables = read_file(args.log, **options)
    write_csv(getattr(tables, args.table), args.table, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
