"""Writes the events of a trace.dat as Perfetto's recorder would have: the same run in another format.

    python -m tests.reference.perfettotrace IN.dat OUT.perfetto-trace [--generic legacy|described] [--compact]

The trace.dat is read by its own description of its records, and written with Perfetto's official protos, by the rules of
Perfetto's `cpu_reader.cc`: events that have a message of their own (`typed`), and all others as generic ones, either with the
names of their fields in each event (`legacy`) or with a description in the trace (`described`). Device numbers of type `dev_t`
become those that programs see. The names of functions that a probe of Syncline needs become texts, as with `symstr`.
"""

from __future__ import annotations

import argparse
import gzip
import re
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    FtraceEvent,
    FtraceEventBundle,
    GenericFtraceEvent,
    Trace,
    TracePacket,
)

from tests.reference.tracedat import MISSED, PADDING, TIME_EXTEND, TIME_STAMP, Option

# ---------------------------------------------------------------- reading a trace.dat


@dataclass
class Field:
    """A field of a record."""

    kind: str
    name: str
    offset: int
    size: int
    signed: bool
    array: bool


@dataclass
class Format:
    """The description of an event."""

    system: str
    name: str
    number: int
    fields: list[Field]


@dataclass
class Record:
    """An event. `lost`: events of its CPU are lost before it."""

    ts: int
    format: Format
    data: bytes
    lost: bool


@dataclass
class Recording:
    """What a trace.dat holds."""

    uname: str = ""
    clock: str = ""
    comms: dict[int, str] = field(default_factory=dict)
    symbols: list[tuple[int, str]] = field(default_factory=list)
    formats: dict[int, Format] = field(default_factory=dict)
    # By buffer and CPU, in the order of time.
    records: dict[tuple[int, int], list[Record]] = field(default_factory=dict)


# What a transcoded trace says that its clock lacks to ns since 1970.
REALTIME_OFFSET_NS = 1_795_000_000_000_000_000


class Bytes:
    """A position in little-endian bytes."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def sized(self, size: int) -> bytes:
        return self.take(self.number(size))

    def string(self) -> str:
        end = self.data.index(b"\0", self.at)
        text = self.take(end - self.at)
        self.at += 1
        return text.decode()


def parse_format(system: str, text: str) -> Format:
    """Parses the description of an event."""
    name = re.search(r"^name: (.*)$", text, re.M)
    number = re.search(r"^ID: (\d+)$", text, re.M)
    assert name
    assert number
    fields = []
    for line in text.splitlines():
        declaration, *rest = line.strip().removeprefix("field:").split(";")
        if not line.strip().startswith("field:"):
            continue
        keys = dict(part.strip().split(":") for part in rest if ":" in part)
        array = "[" in declaration
        plain = re.sub(r"\[[^]]*\]", " ", declaration).split()
        kind, last = " ".join(plain[:-1]), plain[-1].lstrip("*")
        size = int(keys["size"])
        fields.append(
            Field(kind, last, int(keys["offset"]), size, keys["signed"] == "1", array or size == 0)
        )
    return Format(system, name[1].strip(), int(number[1]), fields)


def unpack(method: str, packed: bytes, size: int) -> bytes:
    if method == "zlib":
        return zlib.decompress(packed)
    return bytes(pyarrow.decompress(packed, size, codec=method))


def read(data: bytes) -> Recording:
    """Reads a little-endian trace.dat."""
    recording = Recording()
    at = Bytes(data, 10)
    version = at.string()
    at.take(2)
    page_bytes = at.number(4)
    buffers: list[tuple[int, list[tuple[int, int, int]], str]] = []

    def formats(at: Bytes, system: str = "") -> None:
        if system:
            for _ in range(at.number(4)):
                one = parse_format(system, at.sized(8).decode("utf-8", "replace"))
                recording.formats[one.number] = one
            return
        for _ in range(at.number(4)):
            name = at.string()
            formats(at, name)

    def simple(key: int, data: bytes) -> None:
        if key == Option.UNAME:
            recording.uname = data.rstrip(b"\0").decode()
        elif key == Option.CLOCK:
            recording.clock = data.decode().split("[")[1].split("]")[0]

    def symbols(text: bytes) -> None:
        for line in text.decode("utf-8", "replace").splitlines():
            address, _, name = line.split()[:3]
            recording.symbols.append((int(address, 16), name))
        recording.symbols.sort()

    def comms(text: bytes) -> None:
        for line in text.rstrip(b"\0").decode().splitlines():
            tid, comm = line.split(" ", 1)
            recording.comms[int(tid)] = comm

    def cpu_table(at: Bytes, cpus: int) -> list[tuple[int, int, int]]:
        return [(cpu, at.number(8), at.number(8)) for cpu in range(cpus)]

    if version == "6":
        for _ in range(2):
            at.string()
            at.sized(8)
        formats(at, "ftrace")
        formats(at)
        symbols(at.sized(4))
        at.sized(4)
        comms(at.sized(8))
        cpus = at.number(4)
        others = []
        while (word := at.take(10)) == b"options  \0":
            while (key := at.number(2)) != Option.DONE:
                option = at.sized(4)
                if key == Option.BUFFER:
                    others.append(int.from_bytes(option[:8], "little"))
                simple(key, option)
        assert word == b"flyrecord\0"
        buffers.append((page_bytes, cpu_table(at, cpus), "none"))
        for other in others:
            buffers.append((page_bytes, cpu_table(Bytes(data, other + 10), cpus), "none"))
    else:
        method = at.string()
        at.string()
        next_options = at.number(8)

        def section(where: int) -> tuple[bytes, str]:
            at = Bytes(data, where)
            at.take(2)
            packed = at.number(2) & 1
            at.take(4)
            body = at.sized(8)
            if packed and where in bodies:
                inner = Bytes(body)
                size, unpacked = inner.number(4), inner.number(4)
                body = unpack(method, inner.take(size), unpacked)
            return body, method if packed else "none"

        bodies: set[int] = set()
        readers = {
            Option.FTRACE_EVENTS: lambda body: formats(Bytes(body), "ftrace"),
            Option.EVENT_FORMATS: lambda body: formats(Bytes(body)),
            Option.KALLSYMS: lambda body: symbols(Bytes(body).sized(4)),
            Option.CMDLINES: lambda body: comms(Bytes(body).sized(8)),
        }
        while next_options:
            options = Bytes(section(next_options)[0])
            while True:
                key = options.number(2)
                option = Bytes(options.sized(4))
                if key == Option.DONE:
                    next_options = option.number(8)
                    break
                if key in readers:
                    where = option.number(8)
                    bodies.add(where)
                    readers[key](section(where)[0])
                elif key == Option.BUFFER:
                    where = option.number(8)
                    option.string()
                    recording.clock = option.string()
                    own_page_bytes, cpus = option.number(4), option.number(4)
                    table = [
                        (option.number(4), option.number(8), option.number(8)) for _ in range(cpus)
                    ]
                    buffers.append((own_page_bytes, table, section(where)[1]))
                else:
                    simple(key, option.data)
    for number, (own_page_bytes, table, packing) in enumerate(buffers):
        for cpu, where, size in table:
            pages = data[where : where + size]
            if packing != "none" and size:
                at = Bytes(data, where)
                chunks = at.number(4)
                pages = b""
                for _ in range(chunks):
                    packed, unpacked = at.number(4), at.number(4)
                    pages += unpack(packing, at.take(packed), unpacked)
            records = recording.records.setdefault((number, cpu), [])
            for start in range(0, len(pages), own_page_bytes):
                records += page_records(recording, pages[start : start + own_page_bytes])
    return recording


def page_records(recording: Recording, page: bytes) -> Iterator[Record]:
    """Yields the records of a page whose header has 16 bytes."""
    ts, commit = struct.unpack_from("<QQ", page)
    lost = bool(commit & MISSED)
    at, end = 16, 16 + (commit & 0xFFFFF)
    while at < end:
        (header,) = struct.unpack_from("<I", page, at)
        kind, delta = header & 31, header >> 5
        at += 4
        if kind == PADDING:
            if delta == 0:
                return
            ts += delta
            at += max(4, struct.unpack_from("<I", page, at)[0])
        elif kind in (TIME_EXTEND, TIME_STAMP):
            more = struct.unpack_from("<I", page, at)[0] << 27 | delta
            ts = ts + more if kind == TIME_EXTEND else more
            at += 4
        else:
            ts += delta
            size = kind * 4
            if kind == 0:
                size = struct.unpack_from("<I", page, at)[0] - 4
                at += 4
            data = page[at : at + size]
            at += -(-size // 4) * 4
            one = recording.formats.get(int.from_bytes(data[:2], "little"))
            if one is not None:
                yield Record(ts, one, data, lost)
                lost = False


# ---------------------------------------------------------------- writing a trace of Perfetto

TYPED = {one.name: one for one in FtraceEvent.DESCRIPTOR.fields if one.message_type is not None}
FIRST_DESCRIBED = 65536
STRING, SIGNED, UNSIGNED = "string", "signed", "unsigned"


def makedev(number: int) -> int:
    """The number that programs see of a device (sys/sysmacros.h), from that of the kernel."""
    major, minor = number >> 20, number & 0xFFFFF
    return (
        (major & 0xFFF) << 8
        | (major & ~0xFFF) << 32
        | (minor & 0xFF)
        | (minor & ~0xFF) << 12
    )  # fmt: skip


def value_of(recording: Recording, one: Field, record: Record) -> tuple[str, int | str] | None:
    """A field as Perfetto reads it; None if it has no type that Perfetto knows."""
    data = record.data
    raw = data[one.offset : one.offset + one.size] if one.size else data[one.offset :]
    if "__data_loc" in one.kind:
        where = int.from_bytes(raw, "little")
        text = data[where & 0xFFFF : (where & 0xFFFF) + (where >> 16)]
        return STRING, text.split(b"\0")[0].decode("utf-8", "replace")
    if one.array:
        if "char" not in one.kind:
            return None
        return STRING, raw.split(b"\0")[0].decode("utf-8", "replace")
    number = int.from_bytes(raw, "little", signed=one.signed)
    if one.name == "end_io" and recording.symbols:
        at = bisect_right(recording.symbols, (number, "\x7f")) - 1
        address, name = recording.symbols[at]
        return STRING, f"{name}+{number - address:#x}"
    if one.kind == "dev_t":
        return UNSIGNED, makedev(number)
    return (SIGNED if one.signed else UNSIGNED), number


def own_fields(record: Record) -> list[Field]:
    return [one for one in record.format.fields if not one.name.startswith("common_")]


def fill_typed(recording: Recording, record: Record, event: FtraceEvent) -> None:
    message = getattr(event, record.format.name)
    message.SetInParent()
    known = message.DESCRIPTOR.fields_by_name
    for one in own_fields(record):
        if one.name not in known:
            continue
        if known[one.name].is_repeated:
            numbers = record.data[one.offset : one.offset + one.size]
            message.args.extend(struct.unpack(f"<{one.size // 8}Q", numbers))
        elif (value := value_of(recording, one, record)) is not None:
            bits = {FieldDescriptor.TYPE_UINT32: 32, FieldDescriptor.TYPE_UINT64: 64}
            number = value[1]
            if isinstance(number, int) and known[one.name].type in bits:
                # The recorder casts a negative number.
                number %= 1 << bits[known[one.name].type]
            setattr(message, one.name, number)


def fill_legacy(recording: Recording, record: Record, event: FtraceEvent) -> None:
    event.generic.event_name = record.format.name
    for one in own_fields(record):
        value = value_of(recording, one, record)
        if value is None:
            continue
        to: GenericFtraceEvent.Field = event.generic.field.add(name=one.name)
        if value[0] == STRING:
            # The recorder writes nothing for an empty text.
            if value[1] or "__data_loc" not in one.kind:
                to.str_value = value[1]
        elif value[0] == SIGNED:
            to.int_value = value[1]
        else:
            to.uint_value = value[1]


def varint(number: int) -> bytes:
    number %= 1 << 64
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def sized(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


class Descriptions:
    """The descriptions of generic events in a trace."""

    def __init__(self, with_groups: bool) -> None:
        self.with_groups = with_groups
        self.numbers: dict[int, int] = {}
        self.written: set[int] = set()

    def fill(
        self, recording: Recording, record: Record, event: FtraceEvent, bundle: FtraceEventBundle
    ) -> None:
        number = self.numbers.setdefault(record.format.number, FIRST_DESCRIBED + len(self.numbers))
        types = {
            STRING: FieldDescriptorProto.TYPE_STRING,
            SIGNED: FieldDescriptorProto.TYPE_INT64,
            UNSIGNED: FieldDescriptorProto.TYPE_UINT64,
        }
        description = DescriptorProto(name=record.format.name)
        content = b""
        for one in own_fields(record):
            value = value_of(recording, one, record)
            if value is None:
                continue
            at = len(description.field) + 1
            description.field.add(name=one.name, number=at, type=types[value[0]])
            if isinstance(value[1], str):
                if value[1] or "__data_loc" not in one.kind:
                    content += sized(at, value[1].encode())
            else:
                content += varint(at << 3) + varint(value[1])
        event.MergeFromString(sized(number, content))
        if number not in self.written:
            # The recorder repeats it in each bundle that has the event; a reader must take the first.
            self.written.add(number)
            group = {"group_name": record.format.system} if self.with_groups else {}
            bundle.generic_event_descriptors.add(
                field_id=number, event_descriptor=description.SerializeToString(), **group
            )


def add_compact(recording: Recording, bundle: FtraceEventBundle, records: list[Record]) -> None:
    """Adds the events of the scheduler as compact sched."""
    sched = bundle.compact_sched
    names: dict[str, int] = {}
    last = {"sched_switch": 0, "sched_waking": 0}
    for record in records:
        name = record.format.name
        values = {one.name: value_of(recording, one, record) for one in own_fields(record)}
        get = {key: value[1] for key, value in values.items() if value is not None}
        comm = str(get["next_comm" if name == "sched_switch" else "comm"])
        index = names.setdefault(comm, len(names))
        delta, last[name] = record.ts - last[name], record.ts
        if name == "sched_switch":
            sched.switch_timestamp.append(delta)
            sched.switch_prev_state.append(get["prev_state"])
            sched.switch_next_pid.append(get["next_pid"])
            sched.switch_next_prio.append(get["next_prio"])
            sched.switch_next_comm_index.append(index)
        else:
            sched.waking_timestamp.append(delta)
            sched.waking_pid.append(get["pid"])
            sched.waking_target_cpu.append(get["target_cpu"])
            sched.waking_prio.append(get["prio"])
            sched.waking_comm_index.append(index)
    sched.intern_table.extend(names)


def transcode(
    recording: Recording,
    generic: str = "legacy",
    compact: bool = False,
    with_groups: bool = True,
    bundle_events: int = 50,
    only_typed: bool = False,
) -> list[TracePacket]:
    """Returns the packets of a trace with the events of a recording. Its times are taken for CLOCK_BOOTTIME."""
    words = recording.uname.split()
    info = TracePacket(trusted_packet_sequence_id=1)
    info.system_info.utsname.sysname = words[0] if words else "Linux"
    if len(words) > 2:
        info.system_info.utsname.release = words[2]
        info.system_info.utsname.machine = words[-1]
    info.system_info.tracing_service_version = "Perfetto v0.0 (transcoded)"
    clocks = TracePacket(trusted_packet_sequence_id=1)
    for clock in (3, 5, 6):
        clocks.clock_snapshot.clocks.add(clock_id=clock, timestamp=1000)
    clocks.clock_snapshot.clocks.add(clock_id=1, timestamp=REALTIME_OFFSET_NS + 1000)
    clocks.clock_snapshot.primary_trace_clock = 6
    tree = TracePacket(trusted_packet_sequence_id=2)
    for tid, comm in recording.comms.items():
        tree.process_tree.threads.add(tid=tid, name=comm)
    packets = [clocks, info, tree]
    queues = {key: list(records) for key, records in recording.records.items() if records}
    descriptions = Descriptions(with_groups)
    while queues:
        # The recorder reads one CPU after the other.
        for key in list(queues):
            taken, queues[key] = queues[key][:bundle_events], queues[key][bundle_events:]
            # A bundle begins where events are lost.
            for at, record in enumerate(taken):
                if at and record.lost:
                    taken, queues[key] = taken[:at], taken[at:] + queues[key]
                    break
            if not queues[key]:
                del queues[key]
            packet = TracePacket(trusted_packet_sequence_id=3 + key[0])
            bundle = packet.ftrace_events
            bundle.cpu = key[1]
            if taken[0].lost:
                bundle.lost_events = True
            sched = []
            for record in taken:
                name, system = record.format.name, record.format.system
                if compact and system == "sched" and name in ("sched_switch", "sched_waking"):
                    sched.append(record)
                    continue
                is_typed = name in TYPED and system not in ("syncline_ops", "wb_tracer")
                is_typed = is_typed and not any(
                    one.name.startswith("__probe") for one in own_fields(record)
                )
                if only_typed and not is_typed:
                    continue
                pid = next(one for one in record.format.fields if one.name == "common_pid")
                event = FtraceEvent(timestamp=record.ts)
                event.pid = int.from_bytes(
                    record.data[pid.offset : pid.offset + pid.size], "little", signed=True
                )
                if is_typed:
                    fill_typed(recording, record, event)
                elif generic == "legacy":
                    fill_legacy(recording, record, event)
                else:
                    descriptions.fill(recording, record, event, bundle)
                bundle.event.append(event)
            if sched:
                add_compact(recording, bundle, sched)
            packets.append(packet)
    return packets


def packets_of_all_kinds() -> list[TracePacket]:
    """A packet of each kind that a reader takes something from, with all its fields."""
    trace = Trace()
    sched = trace.packet.add(trusted_packet_sequence_id=9).ftrace_events
    sched.cpu, sched.ftrace_clock, sched.ftrace_timestamp, sched.boot_timestamp = 1, 3, 5000, 9000
    sched.lost_events = True
    sched.previous_bundle_end_timestamp = 4
    sched.error.add(timestamp=1, status=6)
    compact = sched.compact_sched
    compact.intern_table.extend(["a", "b"])
    for ts, thread in ((4000, 7), (3, 8), (9, 0)):
        compact.switch_timestamp.append(ts)
        compact.switch_prev_state.append(1)
        compact.switch_next_pid.append(thread)
        compact.switch_next_prio.append(120)
        compact.switch_next_comm_index.append(thread % 2)
        compact.waking_timestamp.append(ts)
        compact.waking_pid.append(thread)
        compact.waking_target_cpu.append(0)
        compact.waking_prio.append(120)
        compact.waking_comm_index.append(1)
    event = sched.event.add(timestamp=4010, pid=8)
    event.sched_switch.prev_pid, event.sched_switch.next_pid = 8, 7
    event.sched_switch.prev_comm, event.sched_switch.next_comm = "b", "a"
    event = sched.event.add(timestamp=4011, pid=7)
    event.print.buf = "B|7|mark"
    event = sched.event.add(timestamp=4012, pid=7)
    event.kprobe_event.name = "do_fsync"
    dropped = trace.packet.add(trusted_packet_sequence_id=9, previous_packet_dropped=1)
    dropped.ftrace_events.cpu = 1
    tree = trace.packet.add().process_tree
    tree.threads.add(tid=8, tgid=7, name="b")
    tree.processes.add(pid=7, cmdline=["a"], cmdline_is_comm=True)
    for phase in (1, 2):
        stats = trace.packet.add().ftrace_stats
        stats.phase = phase
        stats.cpu_stats.add(cpu=1, overrun=phase, commit_overrun=phase, dropped_events=phase)
    trace.packet.add().trace_stats.buffer_stats.add(chunks_discarded=1)
    return list(trace.packet)


def to_bytes(packets: list[TracePacket]) -> bytes:
    return Trace(packet=packets).SerializeToString()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dat", type=Path)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--generic", choices=("legacy", "described"), default="described")
    parser.add_argument("--compact", action="store_true")
    args = parser.parse_args()
    data = args.dat.read_bytes()
    recording = read(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    args.trace.write_bytes(to_bytes(transcode(recording, args.generic, args.compact)))


if __name__ == "__main__":
    main()
