"""A plain reference implementation for logs in the thesis's line format.

It reads a whole log into memory, sorts the events by time and pairs them by searching lists, as
formats.md, pairing.md and tables.md in docs/reference/ specify. It is slow on purpose: it must be
easy to check by eye, because the tests check the converter against it.

    python -m tests.reference.thesis LOG --table sync|bio|call|loss
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.reference import far_times, repeats, torn

SYSCALLS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")
GIVE_UP_NS = 60 * 10**9
CLOCK_SKEW_NS = 100_000
MAX_WAITING = 65_536
# A call begins at most this long before its request.
BEGINNING_NS = 10**9
MAX_WITHOUT_CALL = 8
# Calls in which several requests are made.
WHOLE_SYSTEM = ("sync", "syncfs", "msync")
ON_DISK = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs")
WORKERS = ("iou-wrk-", "kworker/")
MAX_COMM_COLUMN = 64
MAX_COMM = 15  # TASK_COMM_LEN without the terminating NUL
MAX_LEN = 2**40
I32 = 2**31 - 1
I64 = 2**63 - 1
U64 = 2**64 - 1

COLUMNS = {
    table: names.split()
    for table, names in {
        "sync": (
            "ts_ns dur_ns tid pid comm process cgroup op datasync path container_path dev ino fs id ret syscall_ns"
            " writeback_ns before_submit_ns after_complete_ns journal_ns flush_ns other_ns cpu_wait_ns bytes folios bios ranges"
            " first_offset last_offset stack confidence incomplete sync_id start_ns call_sync_id"
        ),
        "bio": (
            "bio_id sync_id id ts_ns dur_ns queue_ns device_ns error bio dev sector bytes folios ranges first_offset"
            " last_offset tid pid comm origin confidence incomplete"
        ),
        "call": "call_id ts_ns dur_ns tid pid comm op ret stack sync_id unmatched",
        "loss": "reason severity count first_ts_ns last_ts_ns example meaning",
    }.items()
}

# In the order of docs/reference/loss-reasons.md, which is the order of the rows.
REASONS = {
    "lost_by_tracer": ("loss", "the tracer reported that it lost this number of events"),
    "unparsed_line": ("loss", "a line is not in the expected format"),
    "late_event": ("loss", "an event arrived later than the reorder window allows"),
    "unmatched_complete": ("loss", "a completion names an address that is not in flight"),
    "never_completed": ("loss", "the completion of a submitted bio is not in the log"),
    "never_submitted": ("loss", "folios were added to a bio whose submit is not in the log"),
    "folios_missing": ("loss", "the folios of a submitted bio are not in the log"),
    "start_missing": ("loss", "the sync_start of a request is not in the log"),
    "call_missing": ("loss", "the entry of the call of a request is not in the log"),
    "end_missing": ("loss", "the sync_end of a request is not in the log"),
    "ends_not_recorded": ("loss", "a request has no end in a log without any end"),
    "duplicate_start": ("loss", "an open request has a second sync_start"),
    "duplicate_end": ("loss", "an id that has just ended has a second sync_end"),
    "damaged_id": ("loss", "an id is not that of the request that its thread is in"),
    "unmatched_exit": ("loss", "the exit of a sync call has no entry on that thread"),
    "exit_missing": ("loss", "the exit of a sync call is not in the log, which records exits"),
    "unmatched_call": ("info", "a sync call has no request"),
    "call_only": ("info", "only the call of a request is known"),
    "duplicate": ("info", "another part of the log holds the event too"),
    "completed_after_end": ("info", "a bio completed after its request had ended"),
}

Row = dict[str, Any]


@dataclass
class Event:
    """One line of the log. `pid` is the PID column: a thread or a process, as `pid_is` says."""

    kind: str  # call, call_exit, start, folio, submit, complete, end
    fields: dict[str, Any]
    ts: int = 0
    pid: int = 0
    comm: str = ""
    line: int = 0
    text: bytes = b""
    frames: list[bytes] = field(default_factory=list)


@dataclass(eq=False)
class Call:
    entry: Event
    exit: Event | None = None
    exit_lost: bool = False
    request: Request | None = None
    has_returned: bool = False  # its exit is one of several, and nobody's


@dataclass(eq=False)
class Bio:
    request: Request | None
    id: int
    address: int
    folios: list[Event] = field(default_factory=list)
    submit: Event | None = None
    complete: Event | None = None
    early_complete: Event | None = None  # a completion that arrived before the submit
    given_up: bool = False
    inferred: bool = False  # only the thread says whose bio it is
    may_have_begun_before: bool = False  # the log may lack its first folios
    torn: bool = False  # a line of it, or one that says whose it is, may be torn
    lacks_folios: bool = False  # a torn line may have been a folio of it

    def first_event(self) -> Event:
        return self.folios[0] if self.folios else self.submit  # type: ignore[return-value]


@dataclass(eq=False)
class Request:
    pid: int
    id: int
    first_event: Event
    begin: int  # not before the end of the request before it, although an event that was held back may be older
    start: Event | None = None
    end: Event | None = None
    call: Call | None = None
    call_inferred: bool = False
    bios: list[Bio] = field(default_factory=list)
    closed_ts: int | None = None
    damaged: bool = False  # the id of one of its events was damaged
    begins_with_bio: bool = False  # its first event is a folio or a submit
    call_lost: bool = False  # it may have been made in a call whose entry is not in the log
    lost_op: str | None = None
    orphans_before: int = 0  # completions of unknown bios before its first event
    bio_lost: bool = False  # a bio of it may be missing from the log altogether
    highest_before: int = 0  # the highest id of the requests that had ended at its start
    lost_call_first: Request | None = (
        None  # the first request in its call, whose entry is not in the log
    )
    in_call: Call | None = (
        None  # the call that it is made in, which has the row of its first request
    )
    torn: bool = False  # a torn line may have said something of it
    lacks_folios: bool = False  # such a line may have been a folio or a bio of it


@dataclass
class Guesses:
    """What was guessed of the calls of a process, whose threads are not known.

    What is left after a guess is no surer than the guess, so it holds until nothing is left.
    """

    hold: bool = False
    have_been: bool = False
    sees_exits: bool = False
    # Number of exits that each belong to one of several calls, by op.
    exits: Counter[str] = field(default_factory=Counter)

    def guess(self) -> None:
        self.hold = self.have_been = True


@dataclass
class WithoutCall:
    """The requests of a thread since its last call: which of them the next call may say more about."""

    has_begun: bool = False
    count: int = 0
    # Each with whether it is the first request of the thread, at the beginning of the log.
    awaiting: list[tuple[Request, bool]] = field(default_factory=list)

    def release(self) -> None:
        self.has_begun, self.count, self.awaiting = True, 0, []


@dataclass
class Held:
    """A folio or a submit whose id is not that of the request that its thread is in."""

    event: Event
    request: Request


@dataclass
class Tables:
    sync: list[Row]
    bio: list[Row]
    call: list[Row]
    loss: list[Row]
    lines: int = 0
    events: int = 0

    def count(self, reason: str) -> int:
        """The count of a reason; 0 if it has no row."""
        return sum(row["count"] for row in self.loss if row["reason"] == reason)


class Losses:
    """Counts what was lost or not used, by reason."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[str, Row] = {}

    def add(self, reason: str, line: int, text: bytes, ts: int | None, count: int = 1) -> None:
        """A count that exceeds a BIGINT is shown as the largest BIGINT."""
        row = self.rows.get(reason)
        if row is None:
            severity, meaning = REASONS[reason]
            example = f"{self.name}:{line}: {decode(text)}"
            values = (reason, severity, 0, ts, ts, example, meaning)
            row = dict(zip(COLUMNS["loss"], values, strict=True))
            self.rows[reason] = row
        row["count"] = min(row["count"] + count, I64)
        if ts is not None:
            known = [row["first_ts_ns"], row["last_ts_ns"], ts]
            times = [time for time in known if time is not None]
            row["first_ts_ns"], row["last_ts_ns"] = min(times), max(times)

    def add_event(self, reason: str, event: Event) -> None:
        self.add(reason, event.line, event.text, event.ts)

    def rows_in_order(self) -> list[Row]:
        return [self.rows[reason] for reason in REASONS if reason in self.rows]


def decode(text: bytes) -> str:
    """Decodes text. NUL and bytes that are not UTF-8 become backslash, x and two hex digits."""
    return text.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


# ---------------------------------------------------------------- parsing

# No tracer prints more digits than 64 bits need, and Python refuses to convert very long numbers.
_NUMBER = re.compile(rb"[0-9]{1,20}")
_SIGNED = re.compile(rb"-?[0-9]{1,20}")
_ADDRESS = re.compile(rb"0x[0-9a-fA-F]{1,16}")
_DEV = re.compile(rb"([0-9]{1,9})[,:]([0-9]{1,9})")
_KEY = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_BLANK = b" \t\r\f"
NO_DEV = "0,0"
NO_SECTOR = -1


def _unsigned(text: bytes, limit: int = U64) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) and int(text) <= limit else None


def _id(text: bytes) -> int | None:
    # 2^64 - 1 means that there is no id.
    return _unsigned(text, U64 - 1)


def _signed(text: bytes) -> int | None:
    ok = _SIGNED.fullmatch(text) and -I64 - 1 <= int(text) <= I64
    return int(text) if ok else None


def _range_end(text: bytes) -> int | None:
    # "To the end" is printed as -1 by a signed format.
    value = _unsigned(text)
    return _signed(text) if value is None else value


def _flag(text: bytes) -> bool | None:
    return {b"0": False, b"1": True}.get(text)


def _address(text: bytes) -> int | None:
    return int(text, 16) if _ADDRESS.fullmatch(text) else None


def _dev(text: bytes) -> str | None:
    match = _DEV.fullmatch(text)
    if match is None or int(match[1]) >= 2**12 or int(match[2]) >= 2**20:
        return None
    return f"{int(match[1])},{int(match[2])}"


# The fields of each kind of event: required and optional ones.
REQUIRED = {
    "start": {
        "id": _id,
        "start": _unsigned,
        "end": _range_end,
        "datasync": _flag,
        "path": decode,
    },
    "folio": {"id": _id, "bio": _address, "start": _unsigned, "len": _unsigned},
    "submit": {"id": _id, "bio": _address},
    "complete": {},
    "end": {"id": _id, "ret": _signed},
    "call": {},
    "call_exit": {},
}
OPTIONAL = {
    "start": {"dev": _dev, "ino": _unsigned, "fs": decode},
    "submit": {"dev": _dev, "sector": _signed},
    "complete": {"bio": _address, "dev": _dev, "sector": _signed},
    "call": {"ret": _signed},
    "call_exit": {"ret": _signed},
}
EVENT_NAMES: dict[bytes, tuple[str, str | None]] = {
    b"start": ("start", None),
    b"sync_start": ("start", None),
    b"exit": ("end", None),
    b"sync_end": ("end", None),
    b"bio_add_folio": ("folio", None),
    b"bio_submit": ("submit", None),
    b"bio_complete": ("complete", None),
}
for _call in SYSCALLS:
    for _name in (_call, f"sys_enter_{_call}"):
        EVENT_NAMES[_name.encode()] = ("call", _call)
    for _name in (f"{_call}_exit", f"exit_{_call}", f"sys_exit_{_call}", f"{_call} exit"):
        EVENT_NAMES[_name.encode()] = ("call_exit", _call)


# What a line may have said, by the kind of its event. That a completion is lost shows anyway: the bio never completes.
TORN_FACTS = {
    "start": ("request",),
    "end": ("request",),
    "folio": ("pages",),
    "submit": ("pages",),
    "call": ("call",),
    "call_exit": ("call",),
    "complete": (),
}


def torn_events(line: bytes, unit_ns: int) -> list[Event]:
    """The torn events of a line that could not be parsed. An event without a thread has no time either, or that of the line."""
    words = [word for word in re.split(rb"[ \t]+", line) if word]
    time = _unsigned(words[0]) if words else None
    task = _unsigned(words[1], I32) if len(words) > 1 else None
    rest = words[2:]
    if time is None or time * unit_ns > I64 or task is None:
        # It ends within its time or its thread, or has lost what follows its time: a time of 9 digits or
        # more, or one before a stack line. Any other line is the text of a program, or lacks its begin.
        patterns = (rb"[0-9 ]*", rb"[0-9]{9,}[A-Za-z ].*", rb"[0-9]+    .*")
        is_cut = any(re.fullmatch(pattern, line, re.DOTALL) for pattern in patterns)
        return [_torn_event(None, None, "any")] if is_cut else []
    ts = time * unit_ns
    # The last number of a line may lack digits, and so may one that a stack line is joined to.
    of_task = task if rest and not re.match(rb"[0-9]+ [0-9]+    ", line) else None
    places = [
        at
        for at, word in enumerate(rest)
        # `start` is the name of a field too, and a field has a number.
        if word in EVENT_NAMES and not re.match(rb"[0-9]", b"".join(rest[at + 1 : at + 2]))
    ]
    if not places:
        return [_torn_event(ts, of_task, "any")]
    events = []
    for nth, at in enumerate(places):
        is_last = nth + 1 == len(places)
        # The time and the thread of the next line come before its event.
        data = rest[at:] if is_last else rest[at : max(places[nth + 1] - 2, at)]
        bio = _address(_torn_value(data, b"bio"))
        id_ = _id(_torn_value(data, b"id"))
        for fact in TORN_FACTS[EVENT_NAMES[rest[at]][0]]:
            # The thread of a line that is joined to another one is not certain.
            events.append(_torn_event(ts, of_task if nth == 0 else None, fact, id_, bio))
    return events


def _torn_value(data: list[bytes], key: bytes) -> bytes:
    """The value of a field that something follows: one at the end of a line may be cut off."""
    for at in range(len(data) - 2):
        if data[at] == key:
            return data[at + 1]
    return b""


def _torn_event(
    ts: int | None, task: int | None, fact: str, id_: int | None = None, bio: int | None = None
) -> Event:
    fields = {
        "fact": fact,
        "id": id_ or 0,
        "bio": bio or 0,
        "task": task,
        "has_time": ts is not None,
    }
    return Event("torn", fields, ts or 0, -1 if task is None else task)


def give_torn_times(events: list[Event]) -> list[Event]:
    """Gives a torn line without a time that of the line before it, or else of the first line."""
    times = [event.ts for event in events if event.fields.get("has_time", True)]
    if not times:
        return []
    last = times[0]
    timed = []
    for event in events:
        if not event.fields.get("has_time", True):
            event = replace(event, ts=last)
        last = event.ts
        timed.append(event)
    return timed


def has_line(path: bytes) -> bool:
    """Whether another line is joined to a path: its time follows the path without a blank."""
    words = path.split(b" ")
    return any(
        re.search(rb"[0-9]\Z", words[at])
        and re.fullmatch(rb"[0-9]+", words[at + 1])
        and words[at + 3] in EVENT_NAMES
        for at in range(len(words) - 3)
    )


def _pairs(data: bytes, with_path: bool) -> dict[bytes, bytes] | None:
    """Splits `key value` pairs; the value of `path` is the rest of the line."""
    pairs: dict[bytes, bytes] = {}
    while data := data.lstrip(_BLANK):
        key, data = _split_word(data)
        if not _KEY.fullmatch(key) or key in pairs:
            return None
        if with_path and key == b"path":
            pairs[key] = data[1:]
            return pairs
        pairs[key], data = _split_word(data.lstrip(_BLANK))
        if not pairs[key]:
            return None
    return pairs


def _split_word(data: bytes) -> tuple[bytes, bytes]:
    """Splits off the first word: returns it and the rest."""
    word = re.split(rb"[ \t]", data, maxsplit=1)[0]
    return word, data[len(word) :]


def _fields(kind: str, data: bytes) -> dict[str, Any] | None:
    """Returns the fields of an event, or None if the data is not exactly in its format."""
    pairs = _pairs(data, with_path=kind == "start")
    if pairs is None:
        return None
    if kind == "start" and has_line(pairs.get(b"path", b"")):
        return None
    fields: dict[str, Any] = {}
    for key, read in REQUIRED[kind].items():
        if key.encode() not in pairs:
            return None
        fields[key] = read(pairs.pop(key.encode()))
    for key, read in OPTIONAL.get(kind, {}).items():
        if key.encode() in pairs:
            fields[key] = read(pairs.pop(key.encode()))
    if any(value is None for value in fields.values()):
        return None
    for key, value in pairs.items():
        # Pairs that the format does not define for this event. A COMM may contain the name of an
        # event, and the real event must still be found behind it. So no such pair may hold the
        # name of an event, and those of a syscall hold only numbers.
        if (key in EVENT_NAMES and key != b"start") or value in EVENT_NAMES:
            return None
        if kind in ("call", "call_exit"):
            number = _signed(value) is not None or _address(value) is not None
            if key in (b"id", b"bio") or not number:
                return None
        fields.setdefault(key.decode(), decode(value))
    if kind == "folio":
        # No file extends beyond 2^63 - 1 bytes, and no folio is larger than MAX_LEN.
        end = fields["start"] + fields["len"]
        if end > I64 or fields["len"] > MAX_LEN:
            return None
        # A kernel writes whole sectors: digits of the number are missing.
        if fields["len"] % 512 != 0:
            return None
    if kind == "complete" and "bio" not in fields:
        has_place = (
            fields.get("dev", NO_DEV) != NO_DEV and fields.get("sector", NO_SECTOR) != NO_SECTOR
        )
        return fields if has_place else None
    return fields


def _parse_after_comm(tail: bytes) -> Event | None:
    word, data = _split_word(tail)
    second, rest = _split_word(data.lstrip(_BLANK))
    if word + b" " + second in EVENT_NAMES:  # `fsync exit`
        word, data = word + b" " + second, rest
    if word not in EVENT_NAMES:
        return None
    kind, op = EVENT_NAMES[word]
    fields = _fields(kind, data)
    if fields is None:
        return None
    if op is not None:
        fields["op"] = op
    if kind == "call" and "ret" in fields:  # `fsync ret 0`
        kind = "call_exit"
    return Event(kind, fields)


# Columns may be aligned with tabs or several spaces. A single space before COMM may be part of COMM.
_LINE = re.compile(rb"([0-9]+)([ \t\r\f]+)([0-9]+)(?: |[\t\r\f][ \t\r\f]*)(.*)", re.DOTALL)


def parse_line(line: bytes, unit_ns: int = 1) -> Event | None:
    """Parses one line as an event, or returns None. COMM ends where the leftmost event fits."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    # Perfetto's thread ids are below 2^31, the kernel's are below 2^22.
    time, pid, rest = _unsigned(match[1]), _unsigned(match[3], I32), match[4]
    if time is None or pid is None or time * unit_ns > I64:
        return None
    aligned = len(match[2]) > 1 or match[2] == b"\t"
    for end in comm_ends(rest):
        comm = rest[:end]
        if len(comm.strip(_BLANK)) > MAX_COMM:
            return None
        event = _parse_after_comm(rest[end + 1 :])
        if event is not None:
            event.ts, event.pid, event.comm = time * unit_ns, pid, decode(trim_comm(comm, aligned))
            event.text = line
            return event
    return None


def comm_ends(rest: bytes) -> list[int]:
    """Offsets at which COMM may end: any space, and any tab after the last space."""
    spaces = [at for at, byte in enumerate(rest) if byte == ord(" ")]
    tabs = [
        at for at, byte in enumerate(rest) if byte == ord("\t") and at > max(spaces, default=-1)
    ]
    return [at for at in spaces + tabs if at <= MAX_COMM_COLUMN]


def trim_comm(comm: bytes, aligned: bool) -> bytes:
    """Removes the blanks that align the column of COMM. A single space may be part of COMM."""
    bare = comm.strip(_BLANK)
    before, after = comm[: len(comm) - len(comm.lstrip(_BLANK))], comm[len(comm.rstrip(_BLANK)) :]
    runs = any(b"\t" in run or len(run) > 1 for run in (before, after))
    return bare if aligned or (bare and runs) else comm


_LOST = re.compile(rb"Lost ([0-9]{1,20}) events?[ \t\r\f]*")
_TRACER_LINES = (
    re.compile(rb"TIME[ \t]+PID[ \t]+COMM[ \t]+EVENT[ \t]+DATA[ \t]*"),
    re.compile(rb"Attach(ing|ed) [0-9]{1,19} probe.*", re.DOTALL),
)
_MAP = re.compile(rb"@[A-Za-z0-9_]*[:\[]")
_PERF_FRAME = re.compile(rb"[0-9a-fA-F]+ +(.+?) +\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_OFFSET = re.compile(rb"\+(?:0x[0-9a-fA-F]+|[0-9]+)\Z")


def frame_name(line: bytes) -> str:
    """Returns the function name of a stack line in either style of bpftrace, or the bare address."""
    text = line.strip(b" \t\r\f")
    perf = _PERF_FRAME.fullmatch(text)
    if perf is not None:
        text = perf[1].strip(_BLANK)
        if text == b"[unknown]" and perf[2] != b"[unknown]":
            return decode(b"[" + perf[2].rpartition(b"/")[2] + b"]").replace(";", ":")
    # `;` separates frames, so no frame may contain one.
    return decode(_OFFSET.sub(b"", text)).replace(";", ":")


def parse(data: bytes, losses: Losses, time_unit: str = "ns") -> tuple[list[Event], int]:
    """Returns all events in file order, and the number of lines."""
    unit_ns = {"ns": 1, "us": 1000}[time_unit]
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    events: list[Event] = []
    unparsed: list[tuple[int, bytes]] = []
    lost_events: list[tuple[int, int, bytes, int]] = []  # events before it, number, line, count
    call: Event | None = None  # the entry to which the next stack lines belong
    in_map = False
    for number, line in enumerate(lines, 1):
        line = line.removesuffix(b"\r")
        if not line.strip(b" \t\r\f"):
            continue
        if line[:1] in (b" ", b"\t"):
            if call is not None:
                call.frames.append(line)
            elif not in_map:
                unparsed.append((number, line))
            continue
        call = None
        if _MAP.match(line):
            in_map = True
            continue
        if in_map and line[:1] in (b"[", b"(", b"]"):
            continue
        in_map = False
        lost = _LOST.fullmatch(line)
        if lost is not None and int(lost[1]) <= U64:
            if int(lost[1]):
                lost_events.append((len(events), number, line, int(lost[1])))
            continue
        if any(pattern.fullmatch(line) for pattern in _TRACER_LINES):
            continue
        event = parse_line(line, unit_ns)
        call = event if event is not None and event.kind == "call" else None
        if event is None:
            unparsed.append((number, line))
            if line[:1].isdigit():
                events.extend(replace(one, line=number) for one in torn_events(line, unit_ns))
        else:
            event.line = number
            events.append(event)
    events = give_torn_times(events)
    for number, ts in far_times.tear(events, lambda near: _torn_event(near, None, "any")):
        second, ns = divmod(ts, 10**9)
        unparsed.append((number, f"an event at {second}.{ns:09} s".encode()))
    for number, line in sorted(unparsed, key=lambda one: one[0]):
        losses.add("unparsed_line", number, line, None)
    for count_before, number, line, count in lost_events:
        # The line has no time; use that of the event before it.
        before = next((e.ts for e in reversed(events[:count_before]) if e.kind != "torn"), None)
        losses.add("lost_by_tracer", number, line, before, count)
    return events, len(lines)


# ---------------------------------------------------------------- pairing


class Pairing:
    """Walks over the events in time order and searches lists for what belongs together."""

    def __init__(self, losses: Losses, pid_is: str) -> None:
        self.losses = losses
        self.pid_is_process = pid_is == "process"
        self.calls: list[Call] = []
        self.requests: list[Request] = []
        self.bios: list[Bio] = []
        self.open: list[Request] = []
        self.open_of_thread: defaultdict[int, list[Request]] = defaultdict(list)
        # Closed requests that wait for bios, oldest first; their bios may have completed meanwhile.
        self.waiting: list[Request] = []
        self.filling: list[Bio] = []
        self.in_flight: list[Bio] = []
        # Events that wait for the next event of their threads.
        self.held: list[Held] = []
        self.replayed: Held | None = None
        # Calls that are call-only requests, in the order in which they returned.
        self.lone_calls: list[Call] = []
        # By process.
        self.guesses: defaultdict[int, Guesses] = defaultdict(Guesses)
        self.without_call: defaultdict[int, WithoutCall] = defaultdict(WithoutCall)
        self.sees_calls = False
        self.exits: set[str] = set()  # the calls whose exits the log has recorded
        self.first_ts = 0
        # Completions of bios that are not in the log.
        self.orphans = 0
        self.addresses: tuple[int, ...] = ()  # the lowest and the highest one of a bio
        self.last_complete: tuple[int, int] | None = None
        self.torn_lines = torn.TornLines(self)

    def run(self, events: list[Event]) -> None:
        whole = [event for event in events if event.kind != "torn"]
        self.first_ts = whole[0].ts if whole else 0
        for event in events:
            # A torn line may have any time, so it is not the begin of the log, and nothing expires because of it.
            if event.kind == "torn":
                self.torn_lines.take(event)
                continue
            self.expire_without_call(event.ts)
            while self.waiting and event.ts - (self.waiting[0].closed_ts or 0) > GIVE_UP_NS:
                self.give_up(self.waiting.pop(0))
            self.use_held(event)
            if event.kind != "complete":
                self.torn_lines.catch_up(event.pid, event.ts)
            if self.has_foreign_id(event) and not self.continues_bio(event):
                request = self.request_of_thread(event)
                assert request is not None
                self.held.append(Held(event, request))
            else:
                getattr(self, event.kind)(event)
        for pid in {event.pid for event in whole}:
            self.torn_lines.catch_up(pid, I64)
        for held in self.held:
            self.replay(held)
        for of_thread in self.without_call.values():
            self.lose_first_call(of_thread)
        # Those that are open at the end of the log. A call of a thread was closed by the next one.
        last = {call.entry.pid: call for call in self.calls}
        for call in self.calls if self.pid_is_process else last.values():
            if not call.has_returned:
                self.lose_exit(call)
        for request in self.requests:
            first = request.first_event
            if request.start is None:
                self.losses.add("start_missing", first.line, first.text, request.begin)
            if request.end is None:
                self.losses.add("end_missing", first.line, first.text, request.begin)
        for bio in self.bios:
            if bio.submit is None:
                bio.complete = bio.early_complete
                self.losses.add_event("never_submitted", bio.first_event())
            elif bio.complete is None:
                self.losses.add_event("never_completed", bio.submit)
            end = bio.request.end if bio.request else None
            if bio.complete and end and bio.complete.ts > end.ts:
                self.losses.add_event("completed_after_end", bio.complete)
                if bio.submit and waits(bio.request) != "no":
                    bio.inferred = True
        # A log that holds only calls does not say what they did. They are call-only requests.
        are_alone = all(event.kind in ("call", "call_exit") for event in whole)
        self.lone_calls = sorted(self.calls, key=returned_at) if are_alone else []
        for call in self.calls:
            if are_alone:
                self.losses.add_event("call_only", call.entry)
                if call.exit is None:
                    reason = "end_missing" if self.exits else "ends_not_recorded"
                    self.losses.add_event(reason, call.entry)
            elif call.request is None:
                self.losses.add_event("unmatched_call", call.entry)
            elif call.exit_lost and call.request.end is not None:
                self.losses.add_event("exit_missing", call.entry)

    # damaged ids

    def request_of_thread(self, event: Event) -> Request | None:
        """The open request of the event's thread, if its start is known."""
        for request in self.open:
            if not self.pid_is_process and request.pid == event.pid:
                return request if request.start else None
        return None

    def has_foreign_id(self, event: Event) -> bool:
        """Whether a thread adds a folio or submits a bio with another id than that of its request."""
        if event.kind not in ("folio", "submit") or event.fields["id"] == 0:
            return False
        request = self.request_of_thread(event)
        return request is not None and request.id != event.fields["id"]

    def highest_ended(self) -> int:
        """The highest id of a request with a start and an end, and no damaged id; 0 without one."""
        whole = [r.id for r in self.requests if r.start and r.end and not r.damaged]
        return max(whole, default=0)

    def repair_start(self, event: Event) -> Request | None:
        """The request whose start has a damaged id, if the event is of that request.

        The kernel numbers requests in the order of their starts.
        """
        request, id_ = self.request_of_thread(event), event.fields["id"]
        if request is None or event.kind == "start" or not self.has_damaged_start(request, id_):
            return None
        assert request.start is not None
        self.losses.add_event("damaged_id", request.start)
        request.id, request.damaged = id_, True
        return request

    def has_damaged_start(self, request: Request, id_: int) -> bool:
        """Whether a request with a start only is the one with `id_`: its own id is not possible."""
        before = request.highest_before
        is_possible = before < request.id < id_
        return not request.bios and 0 < before < id_ and not is_possible

    def request_with_damaged_end(self, event: Event) -> Request | None:
        """The request of the event's thread, if the id of the end cannot be that of its next one."""
        request, id_ = self.request_of_thread(event), event.fields["id"]
        if request is None or request.id == id_:
            return None
        is_held = any((h.event.pid, h.event.fields["id"]) == (event.pid, id_) for h in self.held)
        was_left = any(
            (r.pid, r.id) == (event.pid, id_) and r not in self.open and r.end is None
            for r in self.requests
        )
        if is_held or was_left or self.has_damaged_start(request, id_):
            return None
        is_too_high = id_ >= 100 and id_ // 4 > max(request.id, self.highest_ended())
        is_open = any(r.id == id_ for r in self.open)
        return request if id_ < request.id or is_too_high or is_open else None

    def continues_bio(self, event: Event) -> bool:
        """Whether the event is of the bio that is being filled at its address."""
        return any(self.fills(bio, event) and not has_ended(bio, event) for bio in self.filling)

    def use_held(self, event: Event) -> None:
        """Uses the held events whose ids are known by now to be right or damaged."""
        for held in list(self.held):
            is_damaged = self.is_damaged(held, event)
            if is_damaged is None:
                continue
            self.held.remove(held)
            if not is_damaged:
                self.replay(held)
                continue
            self.losses.add_event("damaged_id", held.event)
            repaired = replace(held.event, fields={**held.event.fields, "id": held.request.id})
            getattr(self, repaired.kind)(repaired)
            held.request.damaged = True
            for bio in held.request.bios:
                if repaired in bio.folios or bio.submit is repaired:
                    bio.inferred = True

    def replay(self, held: Held) -> None:
        """Uses a held event whose id is right: it is of the next request of its thread."""
        self.replayed = held
        getattr(self, held.event.kind)(held.event)
        self.replayed = None

    def is_damaged(self, held: Held, event: Event) -> bool | None:
        """Whether the id of the held event is damaged; None if it is not known yet."""
        if self.request_of_thread(held.event) is not held.request:
            return False
        own_id, id_ = held.request.id, event.fields.get("id")
        if event.pid == held.event.pid and event.kind != "complete":
            if event.kind in ("call", "call_exit", "start"):
                return False
            if id_ == own_id:
                return True
            if id_ == held.event.fields["id"] or event.kind == "end":
                return False
            if self.has_foreign_id(event):
                return True
        address = held.event.fields["bio"]
        if event.fields.get("bio") != address:
            return None
        filling = [bio for bio in self.filling if bio.address == address]
        return held.event.kind == "submit" and any(bio.request is held.request for bio in filling)

    # calls without an entry

    def lose_call(self, request: Request, op: str | None) -> None:
        if request.start is not None and request.call is None:
            request.call_lost, request.lost_op = True, op
            self.losses.add_event("call_missing", request.start)

    def await_call(self, request: Request, event: Event) -> None:
        """A request begins outside of a call, as far as the log says."""
        of_thread = self.without_call[event.pid]
        is_first, of_thread.has_begun = not of_thread.has_begun, True
        of_thread.count += 1
        is_beginning = is_first and event.ts - self.first_ts <= BEGINNING_NS
        if of_thread.count > MAX_WITHOUT_CALL:
            of_thread.awaiting = []
        elif self.exits or is_first:
            # Until the first exit, nothing says whether the log has any.
            of_thread.awaiting.append((request, is_beginning))

    def enter_next_call(self, event: Event) -> None:
        """The thread makes calls. So its first request may have had one, unless the log would have its exit."""
        of_thread = self.without_call[event.pid]
        if of_thread.awaiting and of_thread.awaiting[0][1] and not self.exits:
            self.lose_call(of_thread.awaiting[0][0], None)
        of_thread.release()

    def leave_lost_call(self, event: Event) -> bool:
        """Finds the requests of a call whose exit is in the log, and not its entry. Returns whether there are any."""
        of_thread = self.without_call[event.pid]
        op = event.fields["op"]
        inside = [request for request, _ in of_thread.awaiting]
        inside = inside if op in WHOLE_SYSTEM else inside[-1:]
        inside = [request for request in inside if request.start is not None]
        for request in inside:
            self.lose_call(request, op if len(inside) == 1 else None)
            request.lost_call_first = inside[0]
        of_thread.release()
        return bool(inside)

    def lose_first_call(self, of_thread: WithoutCall) -> None:
        """The thread has made no call after its first request. If others have, that may have had one."""
        if self.exits or not self.sees_calls or of_thread.count > 1 or not of_thread.awaiting:
            return
        request, is_first = of_thread.awaiting[0]
        comm = (request.start or request.first_event).comm
        if is_first and not comm.startswith(WORKERS):
            self.lose_call(request, None)

    def requests_without_call(self, pid: int) -> list[Request]:
        """The requests of a thread that wait for its next call, oldest first."""
        return [request for request, _ in self.without_call[pid].awaiting]

    def requests_in_open_call(self, pid: int) -> list[Request]:
        """The requests in the call that a thread has not left, as far as the log says."""
        last = [call for call in self.calls if call.entry.pid == pid][-1:]
        of_last = [request for request in self.requests if request.in_call in last]
        return of_last if last and last[0].exit is None and not last[0].has_returned else []

    def expire_without_call(self, now: int) -> None:
        for of_thread in self.without_call.values():
            while of_thread.awaiting and now - of_thread.awaiting[0][0].first_event.ts > GIVE_UP_NS:
                self.lose_first_call(of_thread)
                of_thread.awaiting.pop(0)

    # calls

    def call(self, event: Event) -> None:
        self.close_requests_of_thread(event)
        self.end_guesses(event)
        if not self.pid_is_process:
            self.sees_calls = True
            self.enter_next_call(event)
        self.torn_lines.end_call(event.pid)
        # The thread has left the call before.
        for call in [] if self.pid_is_process else self.open_calls(event):
            self.lose_exit(call)
        self.calls.append(Call(event))

    def call_exit(self, event: Event) -> None:
        self.close_requests_of_thread(event)
        op = event.fields["op"]
        self.exits.add(op)
        self.torn_lines.end_call(event.pid)
        calls = [call for call in self.open_calls(event) if call.entry.fields["op"] == op]
        # A call does not return before its sync function returns.
        calls = [call for call in calls if call.request not in self.open]
        if self.pid_is_process:
            self.guess_exit(event, calls)
        if len(calls) == 1:
            calls[0].exit = event
        elif self.pid_is_process or not self.leave_lost_call(event):
            self.losses.add_event("unmatched_exit", event)

    def lose_exit(self, call: Call) -> None:
        """Closes a call without an exit. The exit was lost if the log has recorded others."""
        call.exit_lost = call.exit is None and call.entry.fields["op"] in self.exits

    def leave_call_with_request(self, event: Event) -> None:
        """A call makes one request, unless it is of several files. A second start says that the thread has left the call."""
        for call in self.open_calls(event):
            first = next((request for request in self.requests if request.in_call is call), None)
            fields = first.start.fields if first and first.start else {}
            # Overlayfs syncs the file below it in the same call.
            is_on_disk = fields.get("dev", NO_DEV) != NO_DEV and fields.get("fs", "ext4") in ON_DISK
            if (
                is_on_disk
                and call.entry.fields["op"] not in WHOLE_SYSTEM
                and event.ts >= call.entry.ts
            ):
                self.lose_exit(call)
                call.has_returned = True

    def guess_exit(self, event: Event, calls: list[Call]) -> None:
        """Takes an exit of a process that may be of each of `calls`."""
        guesses, op = self.guesses[event.pid], event.fields["op"]
        uncertain = calls if len(calls) > 1 else []
        # What was guessed before the first exit concerns the exits of all calls that are open.
        if not guesses.sees_exits and guesses.have_been:
            uncertain = self.open_calls(event)
        guesses.sees_exits = True
        for call in uncertain:
            if call.request:
                call.request.call_inferred = True
        if len(calls) > 1:
            guesses.guess()
            guesses.exits[op] += 1
            if guesses.exits[op] >= len(calls):
                guesses.exits[op] = 0
                for call in calls:
                    call.has_returned = True
                    self.lose_exit(call)

    def end_guesses(self, event: Event) -> None:
        """Ends the guesses of a process if no request is open, and no call that they concern."""
        guesses = self.guesses[event.pid]
        calls = self.open_calls(event) if self.pid_is_process else []
        if not guesses.sees_exits:
            calls = [call for call in calls if call.request is None]
        if not calls and not self.open_of_thread[event.pid]:
            guesses.hold = False
            guesses.exits.clear()

    def open_calls(self, event: Event) -> list[Call]:
        """The calls that the event's thread, or a thread of its process, may be in, newest first."""
        calls: list[Call] = []
        for call in reversed(self.calls):
            if call.entry.pid != event.pid:
                continue
            if (
                call.exit is None
                and not call.has_returned
                and not (self.pid_is_process and event.ts - call.entry.ts > GIVE_UP_NS)
            ):
                calls.append(call)
            if not self.pid_is_process:
                break  # a new call on a thread closes the previous one
        return calls

    # requests

    def close_requests_of_thread(self, event: Event) -> None:
        """Closes the open requests of the event's thread.

        A thread is in one sync function at a time, so the ends of these requests were lost.
        """
        for request in list(self.open_of_thread[event.pid]):
            if not self.pid_is_process:
                self.close(request, event)

    def open_request(self, event: Event) -> Request:
        if repaired := self.repair_start(event):
            return repaired
        self.close_requests_of_thread(event)
        over = self.replayed.request.closed_ts if self.replayed else None
        request = Request(event.pid, event.fields["id"], event, max(event.ts, over or 0))
        request.begins_with_bio = event.kind in ("folio", "submit")
        request.orphans_before = self.orphans
        request.start = event if event.kind == "start" else None
        if not self.pid_is_process and event.kind == "start":
            self.leave_call_with_request(event)
        if not self.pid_is_process and not self.open_calls(event):
            self.await_call(request, event)
        free = [call for call in self.open_calls(event) if call.request is None]
        if len(free) > 1:
            self.guesses[event.pid].guess()
        request.call_inferred = self.guesses[event.pid].hold
        if free:
            request.call = free[0]
            request.call.request = request
            request.call_inferred |= event.kind != "start"
        if not self.pid_is_process:
            request.in_call = next(iter(self.open_calls(event)), None)
        self.requests.append(request)
        self.open.append(request)
        self.open_of_thread[request.pid].append(request)
        self.torn_lines.call_of(request)
        return request

    def close(self, request: Request, event: Event) -> None:
        request.closed_ts = event.ts
        self.open.remove(request)
        self.open_of_thread[request.pid].remove(request)
        if not is_settled(request):
            self.waiting.append(request)
        if len(self.waiting) > MAX_WAITING:
            self.waiting = [waiting for waiting in self.waiting if not is_settled(waiting)]
        if len(self.waiting) > MAX_WAITING:
            self.give_up(self.waiting.pop(0))

    def give_up(self, request: Request) -> None:
        for bio in request.bios:
            self.give_up_bio(bio)

    def give_up_bio(self, bio: Bio) -> None:
        bio.given_up = True
        for bios in (self.filling, self.in_flight):
            if bio in bios:
                bios.remove(bio)

    def find_own_request(self, event: Event) -> Request | None:
        """The open request with the thread and the id of the event."""
        for request in self.open_of_thread[event.pid]:
            if request.id == event.fields["id"]:
                return request
        return None

    def find_request(self, event: Event) -> Request | None:
        """The open request of the event's thread, else the only open request with that id."""
        if own := self.find_own_request(event):
            return own
        same_id = [request for request in self.open if request.id == event.fields["id"]]
        # An event that was held back is not of a request that began after it.
        if len(same_id) == 1 and same_id[0].first_event.ts <= event.ts:
            return same_id[0]
        return None

    def start(self, event: Event) -> None:
        request = self.find_own_request(event)
        if request is None:
            request = self.open_request(event)
        elif request.start is not None:
            self.losses.add_event("duplicate_start", event)
            return
        request.start = event
        request.highest_before = self.highest_ended()

    def end(self, event: Event) -> None:
        request = self.request_with_damaged_end(event) or self.find_request(event)
        if request is None:
            key = (event.pid, event.fields["id"])
            if any((r.pid, r.id) == key and r.end is not None for r in self.requests):
                self.losses.add_event("duplicate_end", event)
                return
            request = self.open_request(event)
        if request.id != event.fields["id"]:
            self.losses.add_event("damaged_id", event)
            request.damaged = True
        request.end = event
        may_lack_a_bio = self.orphans > request.orphans_before
        request.bio_lost = request.start is not None and may_lack_a_bio
        self.close(request, event)

    # bios

    def open_bio(self, event: Event) -> Bio:
        inferred = False
        if event.fields["id"] != 0:
            request = self.find_request(event) or self.open_request(event)
        else:
            # The file system does not pass the id on. The thread may be in a request all the same.
            request = self.request_of_thread(event)
            inferred = request is not None
        bio = Bio(request, event.fields["id"], event.fields["bio"], inferred=inferred)
        self.bios.append(bio)
        if bio.address:
            known = (*self.addresses, bio.address)
            self.addresses = (min(known), max(known))
        if request is not None:
            is_submitted = any(other.submit for other in request.bios)
            bio.may_have_begun_before = request.begins_with_bio and not is_submitted
            request.bios.append(bio)
        return bio

    def fills(self, bio: Bio, event: Event) -> bool:
        """Whether a folio or a submit is of a bio that is being filled."""
        is_of_other_thread = (
            bio.request is not None
            and bio.request.pid != event.pid
            and self.find_own_request(event) is not None
        )
        has_its_id = (bio.address, bio.id) == (event.fields["bio"], event.fields["id"])
        return has_its_id and not is_of_other_thread

    def find_filling_bio(self, event: Event) -> Bio | None:
        """The bio at the event's address that is being filled for the event's request.

        A bio at that address that is filled for another request was never submitted: give it up.
        """
        for bio in self.filling:
            # An event that was held back is not of a bio that was begun after it.
            if bio.address != event.fields["bio"] or bio.first_event().ts > event.ts:
                continue
            if self.fills(bio, event) and not has_ended(bio, event):
                return bio
            self.give_up_bio(bio)
            break
        return None

    def give_up_in_flight(self, event: Event) -> None:
        """Gives up the bio in flight at the address: the address is reused, so its completion was lost."""
        for bio in list(self.in_flight):
            if bio.address == event.fields["bio"]:
                self.give_up_bio(bio)

    def folio(self, event: Event) -> None:
        bio = self.find_filling_bio(event)
        if bio is None:
            self.give_up_in_flight(event)
            bio = self.open_bio(event)
            self.filling.append(bio)
            self.torn_lines.new_bio(bio, event.pid)
        bio.folios.append(event)
        self.torn_lines.next_of_bio(bio, event.pid)

    def submit(self, event: Event) -> None:
        bio = self.find_filling_bio(event)
        if bio is None:
            bio = self.open_bio(event)
            bio.submit = event
            self.torn_lines.new_bio(bio, event.pid)
        else:
            self.filling.remove(bio)
        self.torn_lines.next_of_bio(bio, event.pid)
        self.give_up_in_flight(event)
        if bio.early_complete is not None:
            self.losses.add_event("unmatched_complete", bio.early_complete)
            bio.early_complete = None
        if not bio.folios:
            self.losses.add_event("folios_missing", event)
        bio.submit = event
        self.in_flight.append(bio)

    def complete(self, event: Event) -> None:
        for bio in self.in_flight:
            if matches(bio, event):
                if self.was_complete_before(bio, event):
                    self.give_up_bio(bio)
                    break
                self.in_flight.remove(bio)
                bio.complete = event
                self.last_complete = (event.fields.get("bio", 0), event.ts)
                return
        for bio in self.filling:
            if bio.address == event.fields.get("bio") and bio.early_complete is None:
                bio.early_complete = event
                self.last_complete = (bio.address, event.ts)
                return
        self.losses.add_event("unmatched_complete", event)
        self.note_orphan(event)

    def was_complete_before(self, bio: Bio, event: Event) -> bool:
        """Whether the bio was complete before the event, because its sync waits for it and is over."""
        request = bio.request
        if (
            request is None
            or request.start is None
            or bio.inferred
            or bio.torn
            or waits(request) != "yes"
        ):
            return False
        over = request.end.ts if request.end else request.closed_ts
        return over is not None and event.ts > over + CLOCK_SKEW_NS

    def note_orphan(self, event: Event) -> None:
        """Takes note of a completion of a bio that is not in the log.

        A torn line has an address that no bio has. A line that is there twice is of a known bio.
        """
        address = event.fields.get("bio", 0)
        is_possible = address == 0 or address >> 32 in {bound >> 32 for bound in self.addresses}
        if self.last_complete == (address, event.ts):
            return
        if is_possible or not self.addresses:
            self.orphans += 1


def has_ended(bio: Bio, event: Event) -> bool:
    """Whether a completion without a submit has ended the bio, so that a folio begins the next one."""
    return bio.early_complete is not None and event.kind == "folio"


def waits(request: Request | None) -> str:
    """Whether a request waits for its bios before it ends: yes, no or unknown."""
    if request is None or (request.end and request.end.fields["ret"] < 0):
        return "no"
    if request.call is None:
        return "unknown"
    op = request.call.entry.fields["op"]
    return "no" if op in ("sync", "syncfs", "sync_file_range") else "yes"


def matches(bio: Bio, complete: Event) -> bool:
    """Compares by address, or by device and sector if the completion has no address."""
    if "bio" in complete.fields:
        return bio.address == complete.fields["bio"]
    assert bio.submit is not None
    keys = ("dev", "sector")
    return [bio.submit.fields.get(k) for k in keys] == [complete.fields[k] for k in keys]


def returned_at(call: Call) -> tuple[int, int]:
    """When a call returned, or began if its exit is missing. Of equal ones, the first one comes first."""
    return ((call.exit or call.entry).ts, call.entry.ts)


def is_settled(request: Request) -> bool:
    return all(bio.complete is not None or bio.given_up for bio in request.bios)


# ---------------------------------------------------------------- tables


def _sizes(folios: list[Event]) -> Row:
    parts = sorted((f.fields["start"], f.fields["start"] + f.fields["len"]) for f in folios)
    parts = [(start, end) for start, end in parts if start < end]
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


def _may_lack_folios(bio: Bio) -> bool:
    """Whether the log may lack folios of the bio: one is torn, or the log begins within the bio."""
    # The line of a start may come a little after those that it precedes.
    start = bio.request.start if bio.request is not None else None
    first = min(event.ts for event in (*bio.folios, *([bio.submit] if bio.submit else [])))
    has_begun_before = bio.request is not None and (
        start is None or start.ts > first + CLOCK_SKEW_NS
    )
    return bio.lacks_folios or (bio.may_have_begun_before and has_begun_before)


def _length(since: int, until: int) -> int | None:
    return until - since if until >= since else None


def _known(event: Event | None, name: str, unknown: Any) -> Any:
    value = event.fields.get(name, unknown) if event else unknown
    return None if value == unknown else value


def _stack(call: Call | None) -> str | None:
    if call is None or not call.entry.frames:
        return None
    return ";".join(frame_name(line) for line in reversed(call.entry.frames))


def first_in_call(request: Request, requests: list[Request]) -> Request:
    """The first request in the same call.

    Without its exit, a call may have returned before the later requests, unless it is one that makes several.
    """
    call = request.in_call
    if call and (call.exit or call.entry.fields["op"] in WHOLE_SYSTEM):
        return next(other for other in requests if other.in_call is call)
    return request.lost_call_first or request


def _sync_row(request: Request, follows_bios: bool) -> Row:
    """`follows_bios`: some event of a bio is in the log. Without any, a sync need not be empty."""
    call, start, end, bios = request.call, request.start, request.end, request.bios
    ts = call.entry.ts if call else start.ts if start else request.begin
    submits = [bio.submit.ts for bio in bios if bio.submit]
    completions = [bio.complete.ts for bio in bios if bio.complete]
    all_submitted = bool(bios) and len(submits) == len(bios)
    all_complete = bool(bios) and len(completions) == len(bios)
    row = _sizes([folio for bio in bios for folio in bio.folios])
    lacks_folios = any(bio.submit and not bio.folios for bio in bios)
    if not follows_bios or request.bio_lost or lacks_folios or any(map(_may_lack_folios, bios)):
        row = dict.fromkeys(row)
    elif request.lacks_folios:
        row |= dict.fromkeys(name for name in row if name != "bytes")
    row |= {
        "ts_ns": ts,
        "dur_ns": end.ts - ts if start and end else None,
        "comm": (start or request.first_event).comm,
        "process": None,
        "cgroup": None,
        "op": call.entry.fields["op"] if call else None,
        "datasync": start.fields["datasync"] if start else None,
        "path": (start.fields["path"] or None) if start else None,
        "container_path": None,
        "dev": _known(start, "dev", NO_DEV),
        "ino": _known(start, "ino", 0),
        "fs": start.fields.get("fs", "ext4") if start else None,
        "id": request.id,
        "ret": end.fields["ret"] if end else None,
        "syscall_ns": None,
        "writeback_ns": None,
        "before_submit_ns": _length(start.ts, min(submits)) if start and all_submitted else None,
        "after_complete_ns": _length(max(completions), end.ts) if end and all_complete else None,
        # The thesis's format records no waits.
        "journal_ns": None,
        "flush_ns": None,
        "other_ns": None,
        # Nor what the scheduler does.
        "cpu_wait_ns": None,
        "bios": len(bios),
        "stack": _stack(call),
        "confidence": "exact",
        "incomplete": None,
        "start_ns": start.ts if start else None,
    }
    if start and end:
        if call and not call.exit_lost:
            row["syscall_ns"] = (call.exit or end).ts - call.entry.ts
        if not bios:
            row["writeback_ns"] = 0
        elif all_submitted and all_complete:
            row["writeback_ns"] = max(completions) - min(submits)
    if request.call_lost:
        row["op"], row["dur_ns"] = request.lost_op, None
    if (
        request.torn
        or request.call_inferred
        or request.damaged
        or any(bio.inferred for bio in bios)
    ):
        row["confidence"] = "inferred"
    if not start:
        row["incomplete"] = "start"
    elif not end:
        row["incomplete"] = "end"
    elif request.call_lost:
        row["incomplete"] = "call"
    elif request.bio_lost or (bios and not (all_submitted and all_complete)):
        row["incomplete"] = "bio"
    if request.bio_lost or not follows_bios:
        unknown = ("writeback_ns", "before_submit_ns", "after_complete_ns", "bios")
        row |= dict.fromkeys(unknown)
    return row


def _lone_row(call: Call) -> Row:
    """A call-only request."""
    syscall_ns = call.exit.ts - call.entry.ts if call.exit else None
    known = {
        "ts_ns": call.entry.ts,
        "dur_ns": syscall_ns,
        "comm": call.entry.comm,
        "op": call.entry.fields["op"],
        "ret": call.exit.fields.get("ret") if call.exit else None,
        "syscall_ns": syscall_ns,
        "stack": _stack(call),
        "confidence": "unknown",
        "incomplete": None if call.exit else "end",
    }
    return dict.fromkeys(COLUMNS["sync"]) | known


# The errors of include/linux/blk_types.h, as block/blk-core.c translates them.
BLK_STATUS = {
    1: 95,
    2: 110,
    3: 28,
    4: 67,
    5: 121,
    6: 52,
    7: 61,
    8: 84,
    9: 12,
    10: 5,
    11: 78,
    12: 11,
    13: 16,
}


def _error(complete: Event | None) -> int | None:
    """The negative errno, or 0. `status` is printed as that, or as the kernel stores it in a bio."""
    if complete is None or not re.fullmatch(
        r"0|-?[1-9][0-9]{0,8}", complete.fields.get("status", "")
    ):
        return None
    status = int(complete.fields["status"])
    return -BLK_STATUS.get(status, 5) if status > 0 else max(status, -4095)


def _bio_row(bio: Bio) -> Row:
    row_event = bio.submit or bio.first_event()
    lacks_folios = not bio.folios or _may_lack_folios(bio)
    row = dict.fromkeys(_sizes([])) if lacks_folios else _sizes(bio.folios)
    row |= {
        "id": bio.id,
        "ts_ns": row_event.ts,
        "dur_ns": bio.complete.ts - bio.submit.ts if bio.submit and bio.complete else None,
        # The format has no issue events.
        "queue_ns": None,
        "device_ns": None,
        "error": _error(bio.complete),
        "bio": f"{bio.address:#x}",
        "dev": _known(bio.submit, "dev", NO_DEV),
        "sector": _known(bio.submit, "sector", NO_SECTOR),
        "comm": row_event.comm,
        "origin": "sync" if bio.request else "background",
        "confidence": None,
        "incomplete": None,
    }
    if bio.request:
        row["confidence"] = "inferred" if bio.inferred or bio.torn else "exact"
    elif bio.torn:
        row["confidence"] = "inferred"
    if not bio.submit:
        row["incomplete"] = "start"
    elif not bio.complete:
        row["incomplete"] = "end"
    return row


def _call_row(call: Call) -> Row:
    # Without its start, only the thread says that the request is of this call.
    has_start = call.request and call.request.start
    end = call.exit or (call.request.end if has_start and not call.exit_lost else None)
    return {
        "ts_ns": call.entry.ts,
        "dur_ns": end.ts - call.entry.ts if end else None,
        "comm": call.entry.comm,
        "op": call.entry.fields["op"],
        "ret": call.exit.fields.get("ret") if call.exit else None,
        "stack": _stack(call),
        "unmatched": call.request is None,
    }


def read(
    data: bytes, *, time_unit: str = "ns", pid_is: str = "thread", name: str = "log"
) -> Tables:
    """Returns the tables of a log. A log compressed with gzip is detected by its first bytes."""
    if pid_is not in ("thread", "process"):
        raise ValueError(f"pid_is must be thread or process, not {pid_is!r}")
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        raise ValueError(f"{name}: the reference does not read zstd")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        # PowerShell writes what a program prints so.
        data = data.decode("utf-16", "replace").encode()
    losses = Losses(name)
    events, lines = parse(data, losses, time_unit)
    # Events at the same time keep the file order.
    events, repeated = repeats.without(events, pid_is == "thread")
    for event in repeated:
        losses.add_event("duplicate", event)
    pairing = Pairing(losses, pid_is)
    pairing.run(events)

    sync_id = {id(request): number for number, request in enumerate(pairing.requests, 1)}
    tables = Tables(
        [],
        [],
        [],
        losses.rows_in_order(),
        lines,
        sum(e.kind != "torn" for e in [*events, *repeated]),
    )

    def thread_columns(pid: int) -> Row:
        return {"tid": None, "pid": pid} if pid_is == "process" else {"tid": pid, "pid": None}

    follows_bios = any(event.kind in ("folio", "submit", "complete") for event in events)
    for request in pairing.requests:
        row = _sync_row(request, follows_bios) | thread_columns(request.pid)
        first = first_in_call(request, pairing.requests)
        numbers = {"sync_id": sync_id[id(request)], "call_sync_id": sync_id[id(first)]}
        tables.sync.append(row | numbers)
    lone_id = {id(call): number for number, call in enumerate(pairing.lone_calls, 1)}
    for call in pairing.lone_calls:
        row = _lone_row(call) | thread_columns(call.entry.pid)
        number = lone_id[id(call)]
        tables.sync.append(row | {"sync_id": number, "call_sync_id": number})
    for number, bio in enumerate(pairing.bios, 1):
        row = _bio_row(bio) | thread_columns((bio.submit or bio.first_event()).pid)
        owner = sync_id[id(bio.request)] if bio.request else None
        tables.bio.append(row | {"bio_id": number, "sync_id": owner})
    for number, call in enumerate(pairing.calls, 1):
        row = _call_row(call) | thread_columns(call.entry.pid)
        request_id = sync_id[id(call.request)] if call.request else lone_id.get(id(call))
        row["unmatched"] = request_id is None
        tables.call.append(row | {"call_id": number, "sync_id": request_id})
    for table, columns in COLUMNS.items():
        rows = getattr(tables, table)
        rows[:] = [{column: row[column] for column in columns} for row in rows]
    return tables


def read_file(path: str | Path, *, time_unit: str = "ns", pid_is: str = "thread") -> Tables:
    data = Path(path).read_bytes()
    return read(data, time_unit=time_unit, pid_is=pid_is, name=str(path))


def write_csv(rows: list[Row], table: str, out: Any) -> None:
    """Writes CSV as docs/reference/output-formats.md specifies: null is empty, booleans are lower case."""
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
