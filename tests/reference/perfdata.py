"""Writes perf.data files with known events, as tools/perf/Documentation/perf.data-file-format.txt specifies.

The contents are a `World` of `tests.reference.tracedat`, whose tracepoints and formats are the same
in a perf.data. A gap is a PERF_RECORD_LOST, or without a count a PERF_RECORD_THROTTLE.

    python -m tests.reference.perfdata --events 1000000 > big.data
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
from dataclasses import dataclass, field

from tests.reference import tracedat
from tests.reference.tracedat import Event, World, compressed

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD = (1 << bit for bit in range(9))
STREAM_ID, RAW, IDENTIFIER = 1 << 9, 1 << 10, 1 << 16
SAMPLE_FIELDS = (IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD, READ, CALLCHAIN, RAW)
TRAILER_FIELDS = (TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER)
FREQ, SAMPLE_ID_ALL, USE_CLOCKID = 10, 18, 25

MMAP, LOST, COMM, EXIT, THROTTLE, FORK, SAMPLE, MMAP2, LOST_SAMPLES = 1, 2, 3, 4, 5, 7, 9, 10, 13
HEADER_ATTR, TRACING_DATA, FINISHED_ROUND, AUXTRACE, HEADER_FEATURE = 64, 66, 68, 71, 80
COMPRESSED, COMPRESSED2 = 81, 83
HOSTNAME, OSRELEASE, VERSION, ARCH, EVENT_DESC, CLOCK_DATA = 3, 4, 5, 6, 12, 29
USER, KERNEL = 2**64 - 512, 2**64 - 128


@dataclass
class PerfShape(tracedat.Shape):
    """The encoding of a file. Only those fields of `tracedat.Shape` apply that describe records."""

    pipe: bool = False
    # How a sample names its event: `identifier`, first in each; `id`, at the same place in each; `none`, for one event.
    ids: str = "identifier"
    mixed_fields: bool = False  # each event has other fields in its samples
    group_read: bool = False
    rounds: int = 3  # how often the buffers of all CPUs are read
    packing: int = 0  # 0, or COMPRESSED, or COMPRESSED2
    clockid: int | None = None
    is_sampled: bool = False
    tracing_data: bool = True
    attr_bytes: int = 128
    # Records without a time, before and after all others.
    head: tuple[tuple[int, int, bytes], ...] = ()
    tail: tuple[tuple[int, int, bytes], ...] = ()
    # Innermost first.
    chains: dict[str, list[int]] = field(default_factory=dict)
    # Other records, by time.
    timed: tuple[tuple[int, int, int, bytes], ...] = ()


class Writer(tracedat.Writer):
    """Writes one file."""

    shape: PerfShape

    def __init__(self, world: World, shape: PerfShape) -> None:
        super().__init__(world, shape)
        self.names = sorted({event.name for event in world.events})
        self.sample_types = [self.sample_type(name) for name in self.names]
        self.read_format = 8 | 4 | 16 | 1 if shape.group_read else 4

    def words(self, *values: int) -> bytes:
        return b"".join(self.number(8, value) for value in values)

    def halves(self, *values: int) -> bytes:
        return b"".join(self.number(4, value) for value in values)

    def sample_type(self, name: str) -> int:
        chosen = TID | TIME | CPU | PERIOD | RAW | IP
        chosen |= {"identifier": IDENTIFIER, "id": ID, "none": 0}[self.shape.ids]
        if self.shape.mixed_fields:
            # ID is at one place in all events only if what precedes it in a sample, and follows it in a trailer, is the same.
            more = (ADDR, ID, STREAM_ID) if self.shape.ids == "identifier" else ()
            for bit in (READ, *more):
                chosen |= bit * self.rng.randrange(2)
        if self.shape.group_read:
            chosen |= READ
        return chosen | (CALLCHAIN if name in self.shape.chains else 0)

    def id_of(self, number: int, cpu: int) -> int:
        return 1000 + number * self.world.cpus + cpu

    # ------------------------------------------------------------ metadata

    def attr(self, number: int) -> bytes:
        shape = self.shape
        bits = [SAMPLE_ID_ALL]
        bits += [FREQ] if shape.is_sampled else []
        bits += [USE_CLOCKID] if shape.clockid is not None else []
        flags = sum(1 << (63 - bit if shape.big_endian else bit) for bit in bits)
        out = self.halves(2, shape.attr_bytes) + self.words(self.ids[self.names[number]], 1)
        out += self.words(self.sample_types[number], self.read_format, flags)
        out += self.halves(1, 0) + bytes(36) + self.halves(shape.clockid or 0)
        return (out + bytes(shape.attr_bytes))[: shape.attr_bytes]

    def ids_of(self, number: int) -> bytes:
        return self.words(*(self.id_of(number, cpu) for cpu in range(self.world.cpus)))

    def text(self, text: str) -> bytes:
        data = text.encode() + b"\0"
        return self.sized(4, data + bytes(-len(data) % 64))

    def tracing_data(self) -> bytes:
        out = tracedat.MAGIC + b"0.6\0" + bytes([self.shape.big_endian, self.shape.long])
        out += self.number(4, 4096) + self.header_info() + self.number(4, 0)
        return out + self.event_formats() + self.sized(4, b"") * 2 + self.cmdlines()

    def features(self) -> dict[int, bytes]:
        names = self.halves(len(self.names), self.shape.attr_bytes)
        for number, name in enumerate(self.names):
            ids = self.ids_of(number)
            names += self.attr(number) + self.halves(len(ids) // 8) + self.text(name) + ids
        found = {
            HOSTNAME: self.text("guest"),
            OSRELEASE: self.text("6.12.0-made"),
            VERSION: self.text("0.0.made"),
            ARCH: self.text("x86_64"),
            EVENT_DESC: names,
        }
        if self.shape.clockid is not None:
            moment = self.words(1_700_000_000 * 10**9 + 7, 5 * 10**9)
            found[CLOCK_DATA] = self.halves(1, self.shape.clockid) + moment
        return found

    # ------------------------------------------------------------ records

    def perf_record(self, kind: int, body: bytes, misc: int = 0) -> bytes:
        return self.halves(kind) + self.number(2, misc) + self.number(2, 8 + len(body)) + body

    def side_record(self, kind: int, body: bytes, misc: int = 0, ts: int = 0) -> bytes:
        """A record of the kernel, with a trailer; of perf itself, if it has no time."""
        wanted = self.sample_types[0]
        event_id = self.id_of(0, 0) if ts else 0
        values = {TID: self.halves(0, 0), TIME: self.words(ts), CPU: self.halves(0, 0)}
        trailer = b"".join(
            values.get(bit, self.words(event_id)) for bit in TRAILER_FIELDS if wanted & bit
        )
        return self.perf_record(kind, body + bytes(-len(body) % 8) + trailer, misc)

    def sample(self, event: Event) -> bytes:
        number = self.names.index(event.name)
        chain = self.shape.chains.get(event.name, [])
        raw = self.record(event)
        raw += bytes(-(len(raw) + 4) % 8)
        event_id = self.id_of(number, event.cpu)
        read = self.words(3, event_id)
        if self.shape.group_read:
            # Two counters: how many, the time, and of each its value, its id and its losses.
            read = self.words(2, 99, 3, event_id, 0, 4, event_id + 1, 0)
        values = {
            IP: self.words(0xFFFF_FFFF_8100_0000),
            TID: self.halves(pid_of(event.tid), event.tid),
            TIME: self.words(event.ts),
            ADDR: self.words(0),
            CPU: self.halves(event.cpu, 0),
            PERIOD: self.words(1),
            READ: read,
            CALLCHAIN: self.words(len(chain), *chain),
            RAW: self.sized(4, raw),
        }
        wanted = self.sample_types[number]
        body = b"".join(
            values.get(bit, self.words(event_id)) for bit in SAMPLE_FIELDS if wanted & bit
        )
        return self.perf_record(SAMPLE, body, misc=1)

    def by_cpu(self) -> list[list[tuple[int, bytes]]]:
        """The records in the buffer of each CPU, with their times."""
        gaps = {gap.before: gap for gap in self.world.gaps}
        buffers: list[list[tuple[int, bytes]]] = [[] for _ in range(self.world.cpus)]
        for number, event in enumerate(self.world.events):
            buffer = buffers[event.cpu]
            if gap := gaps.get(number):
                event_id = self.id_of(self.names.index(event.name), event.cpu)
                kind, body = LOST, self.words(event_id, gap.count or 0)
                if gap.count is None:
                    kind, body = THROTTLE, self.words(event.ts, event_id, event_id)
                buffer.append((event.ts, self.side_record(kind, body, ts=event.ts)))
            buffer.append((event.ts, self.sample(event)))
        for ts, kind, misc, body in self.shape.timed:
            buffers[0].append((ts, self.side_record(kind, body, misc, ts)))
        return [sorted(buffer, key=lambda pair: pair[0]) for buffer in buffers]

    def data(self) -> bytes:
        out = b""
        for tid, comm in self.world.comms.items():
            name = comm.encode()[:15] + b"\0"
            out += self.side_record(COMM, self.halves(pid_of(tid), tid) + name) if tid else b""
        for kind, misc, body in self.shape.head:
            out += self.side_record(kind, body, misc)
        buffers = self.by_cpu()
        times = sorted(ts for buffer in buffers for ts, _ in buffer)
        taken = [0] * len(buffers)
        packed = []
        for number in range(1, self.shape.rounds + 1):
            last = number == self.shape.rounds
            part = b""
            for cpu, buffer in enumerate(buffers):
                # Each buffer is read a little later than the one before it.
                index = min(len(times) - 1, len(times) * number // self.shape.rounds + cpu)
                begin = taken[cpu]
                while taken[cpu] < len(buffer) and (last or buffer[taken[cpu]][0] <= times[index]):
                    taken[cpu] += 1
                part += b"".join(record for _, record in buffer[begin : taken[cpu]])
            packed.append(part)
        rounds = self.pack(packed) if self.shape.packing else packed
        for part in rounds:
            out += part + self.perf_record(FINISHED_ROUND, b"")
        return out + b"".join(
            self.perf_record(kind, body, misc) for kind, misc, body in self.shape.tail
        )

    def pack(self, parts: list[bytes]) -> list[bytes]:
        """All parts become one stream, whose pieces end anywhere, also within a record."""
        whole = compressed("zstd", b"".join(parts))
        step = -(-len(whole) // len(parts))
        found = []
        for begin in range(0, step * len(parts), step):
            piece, out = whole[begin : begin + step], b""
            for at in range(0, len(piece), 5000):
                body = piece[at : at + 5000]
                if self.shape.packing == COMPRESSED2:
                    body = self.words(len(body)) + body + bytes(-len(body) % 8)
                out += self.perf_record(self.shape.packing, body)
            found.append(out)
        return found

    # ------------------------------------------------------------ the file

    def file(self) -> bytes:
        magic = b"PERFILE2"[::-1] if self.shape.big_endian else b"PERFILE2"
        return magic + (self.piped() if self.shape.pipe else self.seekable())

    def piped(self) -> bytes:
        out = self.words(16)
        for key, data in self.features().items():
            out += self.perf_record(HEADER_FEATURE, self.words(key) + data)
        for number in range(len(self.names)):
            out += self.perf_record(HEADER_ATTR, self.attr(number) + self.ids_of(number))
        if self.shape.tracing_data:
            data = self.tracing_data()
            data += bytes(-len(data) % 8)
            out += self.perf_record(TRACING_DATA, self.halves(len(data))) + data
        out += self.perf_record(AUXTRACE, self.words(24, 0, 0) + self.halves(0, 0, 0, 0)) + bytes(
            24
        )
        return out + self.data()

    def seekable(self) -> bytes:
        ids_at = 104
        ids = [self.ids_of(number) for number in range(len(self.names))]
        attrs_at = ids_at + sum(map(len, ids))
        attrs, at = b"", ids_at
        for number, own in enumerate(ids):
            attrs += self.attr(number) + self.words(at, len(own))
            at += len(own)
        data_at, data = attrs_at + len(attrs), self.data()
        features = self.features()
        if self.shape.tracing_data:
            features[1] = self.tracing_data()
        bits = sum(1 << key for key in features)
        out = self.words(104, self.shape.attr_bytes + 16, attrs_at, len(attrs))
        out += self.words(data_at, len(data), 0, 0, bits, 0, 0, 0)
        out += b"".join(ids) + attrs + data
        at = 8 + len(out) + 16 * len(features)
        table, contents = b"", b""
        for _, content in sorted(features.items()):
            table += self.words(at + len(contents), len(content))
            contents += content
        return out + table + contents


def pid_of(tid: int) -> int:
    """The process of a thread."""
    return tid - tid % 10


def file(world: World, shape: PerfShape) -> bytes:
    return Writer(world, shape).file()


def mapped(
    order: str, pid: int, start: int, size: int, path: str, is_second: bool = False
) -> bytes:
    """The body of a PERF_RECORD_MMAP, or of a PERF_RECORD_MMAP2."""
    out = struct.pack(f"{order}IIQQQ", pid, pid, start, size, 0)
    if is_second:
        out += struct.pack(f"{order}IIQQII", 254, 1, 12, 0, 5, 2)
    return out + path.encode() + b"\0"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1000, help="at least this many")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    made = tracedat.world(random.Random(args.seed), requests=args.events // 6, cpus=4)
    sys.stdout.buffer.write(file(made, PerfShape(rounds=max(3, args.events // 5000))))


if __name__ == "__main__":
    main()
