"""Writes trace.dat files with known events, as trace-cmd.dat(5) and tracefs specify.

A `World` is the truth: events with their times, threads and fields, and the gaps where events were
lost. A `Shape` is the encoding of a file: version, compression, byte order, size of the kernel's
long, page size, offsets of fields. Every shape of a world must be read as the same events.

    python -m tests.reference.tracedat --events 1000000 > big.dat
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

MAGIC = b"\x17\x08\x44tracing"
MISSED, MISSED_STORED = 1 << 31, 1 << 30
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
MAX_DATA_WORDS = 28
IDLE = "<idle>"


class Option:
    """Ids of the options and of the sections of a file."""

    DONE, CPUSTAT, BUFFER, CLOCK, UNAME, OFFSET, CPUCOUNT, VERSION = 0, 2, 3, 4, 5, 7, 8, 9
    TSC2NSEC, HEADER_INFO, FTRACE_EVENTS, EVENT_FORMATS = 14, 16, 17, 18
    KALLSYMS, PRINTK, CMDLINES, BUFFER_TEXT = 19, 20, 21, 22


# ---------------------------------------------------------------- events

# Size and signedness of numbers; L is the kernel's long. Texts are `loc` or an array of characters.
TYPES: dict[str, tuple[Any, bool]] = {
    "u8": (1, False),
    "u16": (2, False),
    "unsigned int": (4, False),
    "int": (4, True),
    "dev_t": (4, False),
    "u64": (8, False),
    "s64": (8, True),
    "loff_t": (8, True),
    "unsigned long": ("L", False),
    "long": ("L", True),
    "const void *": ("L", False),
}
COMMON = (
    ("unsigned short", "common_type", 2, 0),
    ("unsigned char", "common_flags", 1, 0),
    ("unsigned char", "common_preempt_count", 1, 0),
    ("int", "common_pid", 4, 1),
)
CALLS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")

# system:event -> fields and their types. Syncline pairs the events of wb_tracer and the syscalls.
EVENTS: dict[str, dict[str, str]] = {
    "wb_tracer:sync_start": {
        "id": "u64",
        "dev": "dev_t",
        "ino": "unsigned long",
        "start": "loff_t",
        "end": "loff_t",
        "datasync": "int",
        "fs": "loc",
        "path": "loc",
    },
    "wb_tracer:sync_end": {"id": "u64", "ret": "int"},
    "wb_tracer:bio_add_folio": {
        "id": "u64",
        "bio": "u64",
        "start": "loff_t",
        "len": "unsigned int",
        "dev": "dev_t",
        "ino": "unsigned long",
    },
    "wb_tracer:bio_submit": {
        "id": "u64",
        "bio": "u64",
        "dev": "dev_t",
        "sector": "u64",
        "bytes": "unsigned int",
        "opf": "unsigned int",
    },
    "wb_tracer:bio_complete": {"bio": "u64", "status": "int"},
    "jbd2:jbd2_start_commit": {"dev": "dev_t", "sync_commit": "u8", "transaction": "unsigned int"},
    "jbd2:jbd2_end_commit": {
        "dev": "dev_t",
        "sync_commit": "u8",
        "transaction": "unsigned int",
        "head": "unsigned int",
    },
    "odd:numbers": {
        "a": "u8",
        "b": "u16",
        "c": "s64",
        "d": "long",
        "e": "unsigned long",
        "f": "int",
    },
    "odd:texts": {"name": "char[16]", "one": "loc", "two": "loc", "raw": "int[3]"},
    "odd:long": {"text": "loc"},
    # `rest` reaches to the end of the record.
    "ftrace:print": {"ip": "unsigned long", "buf": "rest"},
    "ftrace:bprint": {"ip": "unsigned long", "fmt": "const void *", "buf": "rest"},
    "syscalls:sys_enter_write": {"__syscall_nr": "int", "count": "u64"},
    **{f"syscalls:sys_enter_{call}": {"__syscall_nr": "int", "fd": "u64"} for call in CALLS},
    **{f"syscalls:sys_exit_{call}": {"__syscall_nr": "int", "ret": "long"} for call in CALLS},
    # Dynamic events.
    "syncline_7:fsync_enter": {
        "__probe_ip": "unsigned long",
        "dev": "unsigned int",
        "ino": "unsigned long",
        "gen": "unsigned int",
        "n0": "loc",
        "n1": "loc",
    },
    "syncline_7:fsync_exit": {
        "__probe_func": "unsigned long",
        "__probe_ret_ip": "unsigned long",
        "ret": "int",
    },
    "syncline_7:bio_add_folio": {
        "__probe_ip": "unsigned long",
        "bio": "u64",
        "ino": "unsigned long",
        "index": "u64",
        "len": "u64",
        "off": "u64",
    },
    "syncline_7:bio": {
        "__probe_ip": "unsigned long",
        "bio": "u64",
        "dev": "unsigned int",
        "sector": "u64",
        "bytes": "unsigned int",
        "opf": "unsigned int",
        "end_io": "u64",
    },
    "syncline_7:bio_end": {"__probe_ip": "unsigned long", "bio": "u64", "status": "u8"},
}


@dataclass(frozen=True)
class Event:
    """An event."""

    ts: int
    cpu: int
    tid: int
    name: str
    fields: dict[str, Any]
    buffer: str = ""


@dataclass
class Gap:
    """Events that a CPU lost before one of its events. `None`: the page does not record the count."""

    cpu: int
    before: int  # index in the list of all events
    count: int | None


@dataclass
class World:
    """The contents of a file, in time order."""

    events: list[Event]
    comms: dict[int, str]
    gaps: list[Gap] = field(default_factory=list)
    cpus: int = 2


# ---------------------------------------------------------------- encoding


@dataclass
class Shape:
    """The encoding of a file."""

    version: int = 7
    compression: str = "none"
    big_endian: bool = False
    long: int = 8
    page_bytes: int = 4096
    chunk_pages: int = 2
    count_in_size: bool = True  # whether a CPU's size includes the 4 bytes of its chunk count
    clock: str = "local"
    offset: str | None = None
    tsc: tuple[int, int, int] | None = None
    seed: int = 0
    shuffled: bool = False  # fields in random order, with holes between them
    rel_loc: bool = False
    ino: str = "unsigned long"
    p_extend: float = 0.0  # extended or absolute times where a delta suffices
    p_discarded: float = 0.0
    p_length: float = 0.0  # separate lengths where the record's header has room for them
    p_new_page: float = 0.0
    stale: bool = False  # bytes of an older page after the last record
    stats: str | None = None  # the statistics of each CPU's buffer
    drop_fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    undescribed: tuple[str, ...] = ()
    symbols: bytes = b"ffffffff81000000 T start\n"  # the kernel's, as in /proc/kallsyms
    more_options: tuple[tuple[int, bytes], ...] = ()


@dataclass
class FieldLocation:
    """The location of a field in a record."""

    name: str
    type: str
    offset: int
    size: int


class Writer:
    """Writes one file."""

    def __init__(self, world: World, shape: Shape) -> None:
        self.world, self.shape = world, shape
        self.rng = random.Random(shape.seed)
        self.order = ">" if shape.big_endian else "<"
        self.layouts = {name: self.layout(name, fields) for name, fields in EVENTS.items()}
        names = [name for name in EVENTS if not name.startswith("ftrace:")]
        if shape.shuffled:
            self.rng.shuffle(names)
        self.ids = {name: 300 + number for number, name in enumerate(names)}
        self.ids |= {"ftrace:print": 5, "ftrace:bprint": 6}
        self.data_at = 8 + shape.long

    def number(self, size: int, value: int) -> bytes:
        return (value % (1 << 8 * size)).to_bytes(
            size, "big" if self.shape.big_endian else "little"
        )

    def sized(self, size: int, data: bytes) -> bytes:
        return self.number(size, len(data)) + data

    # ------------------------------------------------------------ records

    def size_of(self, kind: str) -> int:
        if kind == "loc":
            return 4
        if kind == "rest":
            return 0
        if kind.startswith("char["):
            return int(kind[5:-1])
        if kind.startswith("int["):
            return 4 * int(kind[4:-1])
        size, _ = TYPES[kind]
        return self.shape.long if size == "L" else size

    def layout(self, name: str, fields: dict[str, str]) -> list[FieldLocation]:
        kinds = dict(fields)
        if "ino" in kinds:
            kinds["ino"] = self.shape.ino
        for dropped in self.shape.drop_fields.get(name, ()):
            del kinds[dropped]
        order = list(kinds.items())
        at = 8
        if self.shape.shuffled and not name.startswith("ftrace:"):
            self.rng.shuffle(order)
            at += 8 * self.rng.randrange(3)
        locations = []
        for key, kind in order:
            size = self.size_of(kind)
            align = 1 if kind == "rest" else min(size, 8) if size in (1, 2, 4, 8) else 4
            at = -(-at // align) * align
            locations.append(FieldLocation(key, kind, at, size))
            at += size
            if self.shape.shuffled and not name.startswith("ftrace:") and self.rng.random() < 0.3:
                at += self.rng.randrange(12)
        return locations

    def format(self, name: str) -> bytes:
        event = name.split(":")[1]
        lines = [f"name: {event}", f"ID: {self.ids[name]}", "format:"]
        at = 0
        for kind, key, size, signed in COMMON:
            lines.append(f"\tfield:{kind} {key};\toffset:{at};\tsize:{size};\tsigned:{signed};")
            at += size
        lines.append("")
        texts, values = [], []
        for location in self.layouts[name]:
            kind, signed = location.type, False
            declared = f"{kind} {location.name}"
            if kind == "loc":
                declared = f"__{'rel' if self.shape.rel_loc else 'data'}_loc char[] {location.name}"
                texts.append(f"{location.name}=%s")
                get = "__get_rel_str" if self.shape.rel_loc else "__get_str"
                values.append(f"{get}({location.name})")
            elif kind == "rest":
                declared, signed = f"char {location.name}[]", True
            elif "[" in kind:
                base, count = kind[:-1].split("[")
                declared = f"{base} {location.name}[{count}]"
                signed = True
            else:
                signed = TYPES[kind][1]
                texts.append(f"{location.name}=%ll{'d' if signed else 'u'}")
                values.append(f"REC->{location.name}")
            lines.append(
                f"\tfield:{declared};\toffset:{location.offset};\tsize:{location.size};\tsigned:{int(signed)};"
            )
        printed = ", ".join([f'"{" ".join(texts)}"', *values])
        return "\n".join([*lines, "", f"print fmt: {printed}", ""]).encode()

    def record(self, event: Event) -> bytes:
        locations = self.layouts[event.name]
        end = max([8, *(location.offset + location.size for location in locations)])
        data = bytearray(self.rng.randbytes(end) if self.shape.stale else bytes(end))
        data[0:2] = self.number(2, self.ids[event.name])
        data[2:4] = self.rng.randbytes(2)
        data[4:8] = self.number(4, event.tid)
        for location in locations:
            value = event.fields[location.name]
            at, size = location.offset, location.size
            if location.type == "loc":
                text = value.encode() + b"\0"
                base = at + 4 if self.shape.rel_loc else 0
                data[at : at + 4] = self.number(4, len(text) << 16 | len(data) - base)
                data += text
            elif location.type == "rest":
                data += value.encode() + b"\0"
            elif location.type.startswith("char["):
                text = value.encode()[: size - 1]
                data[at : at + size] = text + bytes(size - len(text))
            elif "[" in location.type:
                data[at : at + size] = b"".join(self.number(4, v) for v in value)
            else:
                data[at : at + size] = self.number(size, value)
        return bytes(data)

    # ------------------------------------------------------------ pages

    def record_header(self, kind: int, delta: int) -> bytes:
        """The header of a record: 5 bits of type or length, 27 bits of time delta."""
        return self.number(4, kind << 27 | delta if self.shape.big_endian else delta << 5 | kind)

    def record_with_time(self, data: bytes, delta: int, ts: int) -> bytes:
        """A record and its time."""
        rng, shape = self.rng, self.shape
        out = b""
        if rng.random() < shape.p_discarded and delta >= 1:
            # A discarded record: its time delta still counts for the records after it.
            before = rng.randint(1, min(delta, (1 << 27) - 1))
            size = 4 * rng.randint(1, 6)
            out += (
                self.record_header(PADDING, before) + self.number(4, size) + rng.randbytes(size - 4)
            )
            delta -= before
        if delta >= 1 << 27 or rng.random() < shape.p_extend:
            if rng.random() < 0.5:
                out += self.record_header(TIME_EXTEND, delta % (1 << 27)) + self.number(
                    4, delta >> 27
                )
            else:
                stamp = ts % (1 << 59)
                out += self.record_header(TIME_STAMP, stamp % (1 << 27)) + self.number(
                    4, stamp >> 27
                )
            delta = 0
        padded = data + bytes(-len(data) % 4)
        words = len(padded) // 4
        if words > MAX_DATA_WORDS or rng.random() < shape.p_length:
            return out + self.record_header(0, delta) + self.number(4, len(data) + 4) + padded
        return out + self.record_header(words, delta) + padded

    def page(self, ts: int, body: bytes, gap: Gap | None) -> bytes:
        shape = self.shape
        commit = len(body)
        room = shape.page_bytes - self.data_at - len(body)
        assert room >= 0
        rest = self.rng.randbytes(room) if shape.stale else bytes(room)
        if gap is not None:
            commit |= MISSED
            if gap.count is not None and room >= shape.long:
                commit |= MISSED_STORED
                rest = self.number(shape.long, gap.count) + rest[shape.long :]
        return self.number(8, ts) + self.number(shape.long, commit) + body + rest

    def pages(self, events: list[tuple[int, Event]], clock: Any) -> list[bytes]:
        """All pages of one CPU."""
        gaps = {gap.before: gap for gap in self.world.gaps}
        pages: list[bytes] = []
        body, page_ts, last, gap = b"", 0, 0, None
        has_page = False
        room = self.shape.page_bytes - self.data_at

        def close() -> None:
            if has_page:
                pages.append(self.page(page_ts, body, gap))

        for number, event in events:
            ts = clock(event.ts)
            data = self.record(event)
            gap_before = gaps.get(number)
            fits = False
            if has_page and gap_before is None and self.rng.random() >= self.shape.p_new_page:
                added = self.record_with_time(data, ts - last, ts)
                fits = len(body) + len(added) <= room
            if fits:
                body += added
            else:
                close()
                has_page, gap = True, gap_before
                page_ts = max(0, ts - self.rng.choice((0, 0, 1, 500)))
                if pages:
                    page_ts = max(page_ts, last)
                body = self.record_with_time(data, ts - page_ts, ts)
            last = ts
        close()
        return pages

    # ------------------------------------------------------------ the file

    def header_info(self) -> bytes:
        long, data_at = self.shape.long, self.data_at
        page = (
            f"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
            f"\tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n"
            f"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
            f"\tfield: char data;\toffset:{data_at};\tsize:{self.shape.page_bytes - data_at};\tsigned:1;\n"
        )
        event = (
            "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
            "\tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n"
            "\ttime_stamp : type == 31\n\tdata max type_len  == 28\n"
        )
        return b"".join(
            (
                b"header_page\0" + self.sized(8, page.encode()),
                b"header_event\0" + self.sized(8, event.encode()),
            )
        )

    def ftrace_formats(self) -> bytes:
        names = [name for name in EVENTS if name.startswith("ftrace:")]
        formats = b"".join(self.sized(8, self.format(name)) for name in names)
        return self.number(4, len(names)) + formats

    def event_formats(self) -> bytes:
        systems: dict[str, list[str]] = {}
        for name in EVENTS:
            if name not in self.shape.undescribed and not name.startswith("ftrace:"):
                systems.setdefault(name.split(":")[0], []).append(name)
        out = self.number(4, len(systems))
        for system, names in systems.items():
            out += system.encode() + b"\0" + self.number(4, len(names))
            out += b"".join(self.sized(8, self.format(name)) for name in names)
        return out

    def cmdlines(self) -> bytes:
        lines = [f"{tid} {comm}\n" for tid, comm in self.world.comms.items() if tid]
        return self.sized(8, "".join(lines).encode())

    def options(self) -> list[tuple[int, bytes]]:
        shape = self.shape
        clocks = " ".join(
            f"[{clock}]" if clock == shape.clock else clock
            for clock in dict.fromkeys(("local", "global", "mono", "boot", shape.clock))
        )
        options = [
            (Option.CLOCK, f"{clocks}\n".encode() + b"\0"),
            (Option.UNAME, b"Linux guest 6.12.0-made x86_64\0"),
            (Option.VERSION, b"0.0.0 made\0"),
        ]
        if shape.offset is not None:
            options.append((Option.OFFSET, shape.offset.encode() + b"\0"))
        if shape.tsc is not None:
            mult, shift, offset = shape.tsc
            data = self.number(4, mult) + self.number(4, shift) + self.number(8, offset)
            options.append((Option.TSC2NSEC, data))
        if shape.stats is not None:
            options += [
                (Option.CPUSTAT, f"CPU: {cpu}\n{shape.stats}\0".encode())
                for cpu in range(self.world.cpus)
            ]
        options.extend(shape.more_options)
        return options

    def clock(self, ts: int) -> int:
        """Converts a time to the clock of the buffer."""
        if self.shape.offset is not None:
            ts -= int(self.shape.offset, 0)
        if self.shape.tsc is not None:
            mult, shift, offset = self.shape.tsc
            # Round up to the next tick.
            ts = -(-((ts - offset) << shift) // mult)
        return ts

    def buffers(self) -> dict[str, dict[int, list[bytes]]]:
        by_cpu: dict[str, dict[int, list[tuple[int, Event]]]] = {
            "": {cpu: [] for cpu in range(self.world.cpus)}
        }
        for number, event in enumerate(self.world.events):
            cpus = by_cpu.setdefault(event.buffer, {cpu: [] for cpu in range(self.world.cpus)})
            cpus[event.cpu].append((number, event))
        return {
            name: {cpu: self.pages(events, self.clock) for cpu, events in cpus.items()}
            for name, cpus in by_cpu.items()
        }

    def compress(self, data: bytes) -> bytes:
        packed = compressed(self.shape.compression, data)
        return self.sized(4, packed)[:4] + self.number(4, len(data)) + packed

    def head(self) -> bytes:
        return b"".join(
            (
                MAGIC + str(self.shape.version).encode() + b"\0",
                bytes([self.shape.big_endian, self.shape.long]),
                self.number(4, self.shape.page_bytes),
            )
        )

    def file(self) -> bytes:
        return self.version_6() if self.shape.version == 6 else self.version_7()

    def aligned(self, at: int) -> int:
        return -(-at // self.shape.page_bytes) * self.shape.page_bytes

    def version_6(self) -> bytes:
        buffers = self.buffers()
        head = self.head() + self.header_info()
        head += self.ftrace_formats() + self.event_formats()
        head += self.sized(4, self.shape.symbols) + self.sized(4, b"")
        head += self.cmdlines() + self.number(4, self.world.cpus)
        others = [name for name in buffers if name]
        options = self.options()
        # The offsets of the other buffers depend on the size of everything before them.
        names_size = sum(6 + 8 + len(name.encode()) + 1 for name in others)
        options_size = sum(6 + len(data) for _, data in options) + names_size
        table_size = 10 + 16 * self.world.cpus
        at = len(head) + 10 + options_size + 2 + table_size
        locations = {}
        for name in others:
            locations[name] = at
            at += table_size
        options += [
            (Option.BUFFER, self.number(8, locations[name]) + name.encode() + b"\0")
            for name in others
        ]
        out = head + b"options  \0"
        for key, data in options:
            out += self.number(2, key) + self.sized(4, data)
        out += self.number(2, Option.DONE)
        at = self.aligned(at)
        pages = b""
        for cpus in buffers.values():
            out += b"flyrecord\0"
            for cpu_pages in cpus.values():
                data = b"".join(cpu_pages)
                out += self.number(8, at if data else 0) + self.number(8, len(data))
                pages += data
                at += len(data)
        out += bytes(self.aligned(len(out)) - len(out))
        return out + pages

    def section(self, key: int, data: bytes, packed: bool = True) -> bytes:
        packed = packed and self.shape.compression != "none"
        body = self.compress(data) if packed else data
        flags = 1 if packed else 0
        return b"".join(
            (self.number(2, key), self.number(2, flags), self.number(4, 0), self.sized(8, body))
        )

    def version_7(self) -> bytes:
        shape = self.shape
        name = shape.compression
        out = self.head() + name.encode() + b"\0" + (b"" if name == "none" else b"1.0") + b"\0"
        first_at = len(out)
        out += bytes(8)
        options = self.options()
        for key, data in (
            (Option.HEADER_INFO, self.header_info()),
            (Option.FTRACE_EVENTS, self.ftrace_formats()),
            (Option.EVENT_FORMATS, self.event_formats()),
            (Option.KALLSYMS, self.sized(4, shape.symbols)),
            (Option.PRINTK, self.sized(4, b"")),
            (Option.CMDLINES, self.cmdlines()),
        ):
            options.append((key, self.number(8, len(out))))
            out += self.section(key, data)
        options.append((Option.CPUCOUNT, self.number(4, self.world.cpus)))
        buffer_options = []
        # The first options; the offset of the second ones is known only at the end.
        first = self.option_bytes(options, 0)
        out = out[:first_at] + self.number(8, len(out)) + out[first_at + 8 :]
        next_at = len(out) + 16 + len(first) - 8
        out += self.section(Option.DONE, first, packed=False)
        for name, cpus in self.buffers().items():
            buffer_at = len(out)
            header = self.number(2, Option.BUFFER)
            header += self.number(2, int(shape.compression != "none")) + self.number(4, 0)
            body = bytes(self.aligned(buffer_at + 16) - buffer_at - 16)
            table = b""
            for cpu, pages in cpus.items():
                data = self.cpu_data(pages)
                at = self.aligned(buffer_at + 16 + len(body))
                body += bytes(at - buffer_at - 16 - len(body))
                size = len(data)
                if data and shape.compression != "none" and not shape.count_in_size:
                    size -= 4
                table += self.number(4, cpu) + self.number(8, at if data else 0)
                table += self.number(8, size)
                body += data
            out += header + self.sized(8, body)
            data = self.number(8, buffer_at) + name.encode() + b"\0" + shape.clock.encode() + b"\0"
            data += self.number(4, shape.page_bytes) + self.number(4, len(cpus)) + table
            buffer_options.append((Option.BUFFER, data))
        second = self.section(Option.DONE, self.option_bytes(buffer_options, 0))
        out = out[:next_at] + self.number(8, len(out)) + out[next_at + 8 :]
        return out + second

    def cpu_data(self, pages: list[bytes]) -> bytes:
        if self.shape.compression == "none" or not pages:
            return b"".join(pages)
        step = self.shape.chunk_pages
        chunks = [b"".join(pages[i : i + step]) for i in range(0, len(pages), step)]
        return self.number(4, len(chunks)) + b"".join(self.compress(chunk) for chunk in chunks)

    def option_bytes(self, options: Iterable[tuple[int, bytes]], after: int) -> bytes:
        out = b"".join(self.number(2, key) + self.sized(4, data) for key, data in options)
        return out + self.number(2, Option.DONE) + self.sized(4, self.number(8, after))


def compressed(method: str, data: bytes) -> bytes:
    if method == "zlib":
        return zlib.compress(data)
    assert method == "zstd"
    # A frame of raw blocks (RFC 8878) with a content size, as Python has no zstd compressor.
    blocks = [data[i : i + 100_000] for i in range(0, len(data), 100_000)] or [b""]
    out = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data))
    for number, block in enumerate(blocks):
        last = number == len(blocks) - 1
        out += (len(block) << 3 | last).to_bytes(3, "little") + block
    return out


def file(world: World, shape: Shape) -> bytes:
    return Writer(world, shape).file()


# ---------------------------------------------------------------- worlds

FILES = (
    "/run/mnt/a",
    "/var/lib/db/file with spaces",
    "/mnt/ü/☕",
    "/x exit id 3 ret 0",
    "/" + "p" * 300,
)
COMMS = ("wl", "sqlite3", "kworker/u8:2", "a b c", "jbd2/vdb-8", "123 45")


def world(rng: random.Random, requests: int = 12, cpus: int = 3, first: int = 40 * 10**9) -> World:
    """Threads that sync files concurrently, on random CPUs. The last CPU is nearly idle."""
    threads = [100 + 7 * n for n in range(rng.choice((1, 2, 4)))]
    comms = {tid: rng.choice(COMMS) for tid in threads} | {0: IDLE, 30: "kworker/u8:2"}
    steps = (1, 2, 300, 5_000, 200_000, 1 << 27, 1 << 31)
    events: list[Event] = []
    ready = dict.fromkeys(threads, first)
    used: set[int] = set()
    bio = 0xFF11_0000_0089_6000

    def at(ts: int) -> int:
        while ts in used:
            ts += 1
        used.add(ts)
        return ts

    for number in range(requests):
        tid = min(ready, key=lambda t: (ready[t], t))
        now = ready[tid]
        cpu = rng.randrange(max(1, cpus - 1))
        call = rng.choice(("fsync", "fsync", "fdatasync", "msync", None))
        request_id, ino = number + 1, rng.choice((12, 2**31 + 5))
        dev = 254 << 20 | rng.choice((16, 0x12345))
        bio += 256

        def put(
            name: str, task: int | None = None, on: int | None = None, /, **fields: Any
        ) -> None:
            nonlocal now
            now = at(now + rng.choice(steps))
            events.append(
                Event(now, cpu if on is None else on, tid if task is None else task, name, fields)  # noqa: B023
            )

        if rng.random() < 0.5:
            put("syscalls:sys_enter_write", __syscall_nr=1, count=200)
        if rng.random() < 0.3:
            low, high = rng.choice(((-(2**31), 2**31 - 1), (-5, 7)))
            put("odd:numbers", a=255, b=65535, c=-(10**17), d=low, e=high, f=-1)
        if rng.random() < 0.3:
            put(
                "odd:texts",
                name=rng.choice(("", "fifteen bytes!!")),
                one="ü☕",
                two="",
                raw=[1, -1, 7],
            )
        if rng.random() < 0.2:
            put("odd:long", text="long " * rng.randrange(40))
        if call:
            put(f"syscalls:sys_enter_{call}", __syscall_nr=74, fd=3)
        put(
            "wb_tracer:sync_start",
            id=request_id,
            dev=dev,
            ino=ino,
            start=0,
            end=2**63 - 1,
            datasync=int(call == "fdatasync"),
            fs=rng.choice(("ext4", "xfs")),
            path=rng.choice(FILES),
        )
        bios = rng.randrange(3)
        folios = bios and rng.randrange(1, 4)
        for folio in range(folios):
            put(
                "wb_tracer:bio_add_folio",
                id=request_id,
                bio=bio,
                start=4096 * folio * rng.choice((1, 3)),
                len=4096,
                dev=dev,
                ino=ino,
            )
        if bios:
            sector = rng.choice((275_336, 2**64 - 1))
            put(
                "wb_tracer:bio_submit",
                id=request_id,
                bio=bio,
                dev=dev,
                sector=sector,
                bytes=4096 * folios,
                opf=2049,
            )
            # The completion may run on another CPU, in any task.
            task, on = rng.choice(((0, cpus - 1), (30, 0), (tid, cpu)))
            put("wb_tracer:bio_complete", task, on, bio=bio, status=0)
        put("wb_tracer:sync_end", id=request_id, ret=rng.choice((0, 0, -5)))
        if call:
            put(f"syscalls:sys_exit_{call}", __syscall_nr=74, ret=rng.choice((0, -5)))
        ready[tid] = now + rng.choice((1, 10_000))
    # The last CPU has one event at the beginning and one at the end, both on one page.
    for ts in (first - 5, max(used) + 3):
        events.append(Event(ts, cpus - 1, 0, "odd:long", {"text": "idle"}))
    events.sort(key=lambda event: event.ts)
    return World(events, comms, [], cpus)


def repeated(world: World, times: int) -> World:
    """The events of a world repeated, one copy after another."""
    span = world.events[-1].ts - world.events[0].ts + 1000
    ids = sum(1 for event in world.events if event.name == "wb_tracer:sync_start")
    events = []
    for number in range(times):
        for event in world.events:
            fields = event.fields
            if "id" in fields:
                fields = fields | {"id": fields["id"] + number * ids}
            events.append(replace(event, ts=event.ts + number * span, fields=fields))
    return replace(world, events=events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--version", type=int, default=7)
    parser.add_argument("--compression", default="none")
    options = parser.parse_args()
    one = world(random.Random(options.seed), requests=500)
    times = -(-options.events // len(one.events))
    shape = Shape(version=options.version, compression=options.compression)
    sys.stdout.buffer.write(file(repeated(one, times), shape))


if __name__ == "__main__":
    main()
