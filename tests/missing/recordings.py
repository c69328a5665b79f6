"""Complete recordings as lists of events."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tests.missing.kinds import CALLS, kind_of

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True)
class Event:
    """One event of a recording: a line, or several if it has a stack."""

    text: bytes
    kind: str
    name: str
    tid: int
    ts_ns: int


# What recordings hold, and the formats in which such recordings come.
FACTS = {
    # The line format without sizes of bios and without exits of calls.
    "bpftrace": ("bpftrace",),
    # The patch, and the scripts of bpf/.
    "ids": ("bpftrace", "bpftrace-json", "ftrace", "trace-dat", "perf", "perf-data"),
    # A script of bpf/ for kernels without BTF.
    "ids without folios": ("bpftrace", "bpftrace-json"),
    "probes": ("ftrace", "trace-dat", "perf", "perf-data"),
    # Tracepoints of a stock kernel.
    "stock": ("ftrace", "trace-dat", "perf", "perf-data", "bpftrace-json"),
    # Tracepoints or probes next to the events of the patch.
    "both": ("ftrace", "trace-dat", "perf", "perf-data"),
    "calls": ("strace",),
    "block": ("blkparse", "blktrace"),
}


@dataclass(frozen=True)
class Recording:
    """A complete recording. `head` and `tail` are never dropped."""

    name: str
    source: str
    """The format, by the name that `--from` gives it. Binary ones are read from their low-level log."""
    facts: str
    """Which events it has, a key of `FACTS`."""
    events: tuple[Event, ...]
    head: bytes = b""
    tail: bytes = b""

    def text(self, events: tuple[Event, ...] | list[Event]) -> bytes:
        return self.head + b"".join(event.text for event in events) + self.tail

    @property
    def kinds(self) -> list[str]:
        return sorted({event.kind for event in self.events})


def read(path: str) -> bytes:
    """The decompressed bytes of a recording."""
    data = (DATA / path).read_bytes()
    return gzip.decompress(data) if path.endswith(".gz") else data


def _seconds(text: str) -> int:
    whole, _, part = text.partition(".")
    return int(whole) * 10**9 + int(part.ljust(9, "0")[:9] or "0")


# Readers. Each takes the text and yields (text, name, flags, tid, ts_ns) of each event, with name None for what belongs to the head or tail.

Line = tuple[bytes, str | None, str, int, int]
Reader = Callable[[bytes], Iterator[Line]]


def by_line(of_line: Callable[[bytes], tuple[str, str, int, int] | None]) -> Reader:
    """Reads a text in which a line is an event, or belongs to another one."""

    def read_text(data: bytes) -> Iterator[Line]:
        for line in data.splitlines(keepends=True):
            yield line, *(of_line(line) or (None, "", 0, 0))

    return read_text


FTRACE = re.compile(
    rb"-(\d+) .*?(?:\s|\.)(\d+\.\d{6}|\d{12}): +(?:sys_(\w+?)(\(| -> )|(\w+):)\s*(.*)",
)
BLOCK_FLAGS = re.compile(rb"(?:\d+,\d+) +([A-Z]+) ")


def flags_of(text: bytes) -> str:
    """The flags of an event of the block layer."""
    match = BLOCK_FLAGS.match(text)
    return match[1].decode() if match else ""


@by_line
def ftrace(line: bytes) -> tuple[str, str, int, int] | None:
    """Text of the ring buffer, and of `trace-cmd report`."""
    if line.startswith((b"#", b"cpus=")) or not (match := FTRACE.search(line)):
        return None
    tid, time, call, arrow, name, rest = match.groups()
    if call:
        word = ("sys_exit_" if b">" in arrow else "sys_enter_") + call.decode()
    else:
        word = name.decode()
    ts = _seconds(time.decode()) if b"." in time else int(time)
    if word in ("wb_start", "wb_end") and not rest.startswith(b"id="):
        word = f"event {word}"
    return word, flags_of(rest), int(tid), ts


# The exit of a call is named as the end of a sync function is by a probe.
THESIS = re.compile(
    rb"(\d+) (\d+) (.{1,64}?) "
    rb"((?:%s)(?:_exit)?|start|bio_add_folio|bio_submit|bio_complete|exit)(?: .*)?$"
    % CALLS.encode()
)


@by_line
def thesis(line: bytes) -> tuple[str, str, int, int] | None:
    """The line format of the thesis, with stacks."""
    match = THESIS.match(line.split(b"\n")[0])
    return match and (
        match[4].decode().replace("_exit", "_returns"),
        "",
        int(match[2]),
        int(match[1]),
    )


@by_line
def bpftrace_json(line: bytes) -> tuple[str, str, int, int] | None:
    """bpftrace's JSON: printed lines of `bpf/`, or tuples for btetto."""
    record = json.loads(line)
    if record["type"] == "printf":
        return next(thesis(record["data"].encode()))[1:]
    if record["type"] != "value" or record["data"][0] != "track_event":
        return None
    pairs = {pair[0]: pair[1] for pair in record["data"][1:]}
    name = pairs["name"].removeprefix("tracepoint:syscalls:")
    if name == "ext4_sync_file":
        name += "_enter" if pairs["type"] == "BEGIN" else "_exit"
    return name, str(pairs.get("rwbs", "")), int(pairs.get("tid", 0)), int(pairs["ts"])


PERF = re.compile(rb"\s*\S.*?\s(?:\d+/)?(\d+) +\[\d+\] (\d+\.\d+): +\w+:(\w+): ?(.*)")


@by_line
def perf(line: bytes) -> tuple[str, str, int, int] | None:
    """`perf script`, with stacks."""
    match = None if line.startswith(b"#") else PERF.match(line)
    return match and (
        match[3].decode(),
        flags_of(match[4]),
        int(match[1]),
        _seconds(match[2].decode()),
    )


BLKPARSE = re.compile(rb" *\d+,\d+ +\d+ +\d+ +(\d+\.\d+) +(\d+) +(\w+) +(\w+)")


@by_line
def blkparse(line: bytes) -> tuple[str, str, int, int] | None:
    """`blkparse`."""
    match = BLKPARSE.match(line)
    return match and (
        match[3].decode(),
        match[4].decode(),
        int(match[2]),
        _seconds(match[1].decode()),
    )


STRACE = re.compile(rb"(?:(\d+)(?:<.*?>)? +)?(\d+\.\d+) (?:<\.\.\. (\w+) resumed>|(\w+)\()")


@by_line
def strace(line: bytes) -> tuple[str, str, int, int]:
    """strace with `-f -ttt`. A call in two parts is two events."""
    match = STRACE.match(line)
    if not match:
        return "note", "", 0, 0
    name = (match[3] or match[4]).decode()
    if re.fullmatch(CALLS, name):
        name = "resumed" if match[3] else "unfinished" if b"<unfinished" in line else name
    return name, "", int(match[1] or 0), _seconds(match[2].decode())


@by_line
def low_level(line: bytes) -> tuple[str, str, int, int]:
    """Syncline's low-level log."""
    event = json.loads(line)
    return event["event"], event.get("rwbs") or "", event["tid"], event["ts_ns"]


def split(reader: Reader, data: bytes) -> tuple[bytes, list[Event], bytes]:
    """The head, the events that a kind names, and the tail. Stacks follow their event, and go with it."""
    head: list[bytes] = []
    tail: list[bytes] = []
    events: list[tuple[list[bytes], str, str, int, int]] = []
    last: list[bytes] = head
    for text, word, flags, tid, ts in reader(data):
        if word is not None:
            last = [text]
            kind = kind_of(word, flags)
            if kind != "other":
                events.append((last, kind, word, tid, ts))
        elif events and text[:1] in b"\t \n" and reader in (thesis, perf):
            last.append(text)
        else:
            (tail if events else head).append(text)
    made = [Event(b"".join(text), *rest) for text, *rest in events]
    return b"".join(head), made, b"".join(tail)


# What names a bio in a line: its address, or its first sector.
BIO = re.compile(rb'\bbio"?[ =:]+"?(\w+)|(\d+) \+ \d+|"sector",(\d+)')


def settled(events: list[Event], count: int) -> list[Event]:
    """The first `count` events, and the further ones until all requests and commits that are then open have ended."""
    kinds = {event.kind for event in events}
    last_kind = next((kind for kind in ("call exit", "end") if kind in kinds), "")
    begins = ("call entry", "start", "unfinished")
    syncing = {event.tid for event in events if event.kind in begins}
    calling = {event.tid for event in events if event.kind == "call entry"}
    open_threads: set[int] = set()
    nested: Counter[int] = Counter()
    """Sync functions that a thread is in which makes no calls."""
    left_out: list[bytes] = []
    open_commits = 0
    kept = []
    for at, event in enumerate(events):
        match = BIO.search(event.text)
        bio = match and (match[1] or match[2] or match[3])
        if at >= count:
            if not open_threads and not open_commits:
                break
            if "completion" in event.kind:
                if bio in left_out:
                    left_out.remove(bio)
                    continue
            elif event.tid in syncing and event.tid not in open_threads:
                if "submit" in event.kind and bio:
                    left_out.append(bio)
                continue
        open_commits += (event.kind == "commit begin") - (event.kind == "commit end")
        if event.kind in begins:
            open_threads.add(event.tid)
        elif event.kind in (last_kind, "resumed"):
            open_threads.discard(event.tid)
        if event.tid not in calling and event.kind in ("start", "end"):
            nested[event.tid] += 1 if event.kind == "start" else -1
            if nested[event.tid] == 0:
                open_threads.discard(event.tid)
        kept.append(event)
    return kept


def renumbered(events: list[Event]) -> list[Event]:
    """Events of blkparse with numbers that are consecutive on each CPU, as they are where none is left out."""
    numbers: Counter[bytes] = Counter()
    made = []
    for event in events:
        device, cpu, _, rest = event.text.split(maxsplit=3)
        numbers[cpu] += 1
        head = b" %s %s %s " % (device, cpu, str(numbers[cpu]).encode())
        made.append(replace(event, text=head + rest))
    return made


def _as_stock(data: bytes) -> bytes:
    """What tracepoints of a stock kernel would have recorded in place of the patch and of probes: the same syncs and bios, at the same times.

    A fast commit, a wait and a folio have none.
    """
    lines = []
    ends: dict[bytes, bytes] = {}
    """By thread: the end of its sync, of the same file as its start."""
    for line in data.splitlines(keepends=True):
        thread = line.split(b"[")[0]
        if match := re.search(rb"sync_start: .* dev=(\d+),(\d+) ino=(\d+) .*fs=(\w+)", line):
            major, minor, ino, fs = (group.decode() for group in match.groups())
            text = {
                "xfs": f"xfs_file_fsync: dev {major}:{minor} ino 0x{int(ino):x}",
                "btrfs": f"btrfs_sync_file: root = 5(FS_TREE), ino = {ino}, parent = 256, datasync = 0",
                "f2fs": f"f2fs_sync_file_enter: dev = ({major},{minor}), ino = {ino}, pino = 3, i_mode = 0x81a4, "
                "i_size = 12288, i_nlink = 1, i_blocks = 24, i_advise = 0x0",
            }[fs]
            if fs == "f2fs":
                end = f"f2fs_sync_file_exit: dev = ({major},{minor}), ino = {ino}, checkpoint is not needed, datasync = 0, ret = 0"
                ends[thread] = end.encode() + b"\n"
            lines.append(line[: line.index(b"sync_start:")] + text.encode() + b"\n")
        elif b" sync_end:" in line:
            if thread in ends:
                lines.append(line[: line.index(b"sync_end:")] + ends.pop(thread))
        elif match := re.search(rb" (bio: .* dev=(\d+) sector=(\d+) bytes=(\d+) opf=(\d+))", line):
            dev, sector, size, flags = (int(group) for group in match.groups()[1:])
            letters = ("F" if flags & 1 << 18 else "") + (
                "W" if flags & 1 else "R" if flags & 255 == 0 else "N"
            )
            for bit, letter in ((17, "F"), (11, "S"), (12, "M")):
                letters += letter if flags & 1 << bit else ""
            text = f"block_bio_queue: {dev >> 20},{dev & 0xFFFFF} {letters} {sector} + {size // 512} [x]"
            lines.append(line[: match.start(1)] + text.encode() + b"\n")
        elif re.search(rb" (sys_\w+|block_rq_\w+|jbd2_\w+)(:|\(| ->)", line) or line.startswith(
            b"#"
        ):
            lines.append(line)
    return b"".join(lines)


# What tracepoints of a stock kernel do not record, and what the patch does not.
PATCH = r"sync_start|sync_end|bio_add_folio|bio_submit|bio_complete|commit_(wait_)?(start|end)|flush_(start|end)|wb_start|wb_end"
BIOS_OF_STOCK = r"ext4_sync_file_\w+|block_bio_queue"


@dataclass(frozen=True)
class Cut:
    """A part of a file, which is a recording of its own."""

    name: str
    source: str
    facts: str
    path: str
    reader: Reader
    count: int
    """How many events, and then those until its requests have ended. 0: all."""
    leave_out: str = ""
    prepare: Callable[[bytes], bytes] = bytes
    """Rewrites the file."""


CUTS = [
    Cut("bpftrace", "bpftrace", "bpftrace", "thesis/small1.log", thesis, 60),
    Cut("bpftrace-threads", "bpftrace", "bpftrace", "thesis/small4-slowdisk.log", thesis, 60),
    Cut("bpftrace-folios", "bpftrace", "bpftrace", "thesis/sqlite_wal_full.log", thesis, 90),
    Cut("bpftrace-no-calls", "bpftrace", "bpftrace", "thesis/uring.log", thesis, 30),
    Cut("bpf-stock", "bpftrace", "ids", "bpf/stock.log.gz", thesis, 60),
    Cut(
        "bpf-tracepoints",
        "bpftrace",
        "ids without folios",
        "bpf/stock-tracepoints.log.gz",
        thesis,
        60,
    ),
    Cut("json", "bpftrace-json", "ids", "bpftrace-json/stock-0.27.json.gz", bpftrace_json, 60),
    Cut(
        "json-btetto",
        "bpftrace-json",
        "stock",
        "bpftrace-json/btetto-0.27.json.gz",
        bpftrace_json,
        20,
    ),
    Cut("ftrace-patch", "ftrace", "ids", "ftrace/small4.trace.txt.gz", ftrace, 80, BIOS_OF_STOCK),
    Cut("ftrace-both", "ftrace", "both", "ftrace/sqlite_wal_full.trace.txt.gz", ftrace, 140),
    Cut(
        "ftrace-ext4", "ftrace", "stock", "ftrace/sqlite_wal_full.trace.txt.gz", ftrace, 110, PATCH
    ),
    Cut(
        "ftrace-xfs",
        "ftrace",
        "stock",
        "dynamic-events/xfs-both.txt.gz",
        ftrace,
        90,
        prepare=_as_stock,
    ),
    Cut(
        "ftrace-btrfs",
        "ftrace",
        "stock",
        "dynamic-events/btrfs-both.txt.gz",
        ftrace,
        60,
        prepare=_as_stock,
    ),
    Cut(
        "ftrace-f2fs",
        "ftrace",
        "stock",
        "dynamic-events/f2fs-both.txt.gz",
        ftrace,
        93,
        prepare=_as_stock,
    ),
    Cut("report", "ftrace", "both", "ftrace/rename.report.txt.gz", ftrace, 120),
    Cut("report-no-calls", "ftrace", "stock", "ftrace/uring.report.txt.gz", ftrace, 90, PATCH),
    Cut("probes-ext4", "ftrace", "probes", "dynamic-events/ext4.txt.gz", ftrace, 48),
    Cut("probes-xfs", "ftrace", "probes", "dynamic-events/xfs.txt.gz", ftrace, 137),
    Cut("probes-btrfs", "ftrace", "probes", "dynamic-events/btrfs.txt.gz", ftrace, 20),
    Cut("probes-f2fs", "ftrace", "probes", "dynamic-events/f2fs.txt.gz", ftrace, 120),
    Cut("both-ext4", "ftrace", "both", "dynamic-events/ext4-both.txt.gz", ftrace, 122),
    Cut("both-f2fs", "ftrace", "both", "dynamic-events/f2fs-both.txt.gz", ftrace, 116),
    Cut("perf", "perf", "stock", "perf/pipe.txt.gz", perf, 20),
    Cut("perf-stacks", "perf", "stock", "perf/stacks.txt.gz", perf, 102),
    Cut("strace-threads", "strace", "calls", "strace/small4.log", strace, 60),
    Cut("strace", "strace", "calls", "strace/rename.log", strace, 0),
    Cut("strace-names", "strace", "calls", "strace/odd-plain.log", strace, 0),
    Cut("blkparse", "blkparse", "block", "blktrace/rename.blkparse.txt.gz", blkparse, 98),
    Cut("blkparse-threads", "blkparse", "block", "blktrace/small4.blkparse.txt.gz", blkparse, 98),
    *(
        Cut(name, "events-jsonl", facts, f"missing/{name}.events.jsonl.gz", low_level, 0)
        for name, facts in (
            ("trace-dat", "probes"),
            ("trace-dat-stacked", "probes"),
            ("trace-dat-patched", "both"),
            ("trace-dat-xfs", "probes"),
            ("trace-dat-fast-commit", "probes"),
            ("trace-dat-timer", "probes"),
            ("trace-dat-btrfs", "probes"),
            ("trace-dat-f2fs", "probes"),
            ("trace-dat-sync", "probes"),
            ("trace-dat-syncfs", "probes"),
            ("trace-dat-freeze", "probes"),
            ("perf-data", "stock"),
            ("blktrace", "block"),
        )
    ),
]


@cache
def recordings() -> dict[str, Recording]:
    """The recordings, by name."""
    return {cut.name: _cut(cut) for cut in CUTS}


def _cut(cut: Cut) -> Recording:
    head, events, tail = split(cut.reader, cut.prepare(read(cut.path)))
    if cut.leave_out:
        events = [event for event in events if not re.fullmatch(cut.leave_out, event.name)]
    if cut.reader in (thesis, bpftrace_json):
        # bpftrace drains one CPU after another.
        events.sort(key=lambda event: event.ts_ns)
    if cut.count:
        events = settled(events, cut.count)
        if cut.reader is blkparse:
            events = renumbered(events)
        # The recorder's own counts are those of the whole file.
        tail = b""
    return Recording(cut.name, cut.source, cut.facts, tuple(events), head, tail)
