"""blktrace's binary files in plain Python: a slow second reader, and a writer of files with a known truth.

    python -m tests.reference.blktrace --events N     one file with many writes, for the benchmark

Written from linux/blktrace_api.h alone: versions 7 (`struct blk_io_trace`) and 8 (`struct
blk_io_trace2`), either byte order.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

MAGIC = 0x65617400
# Categories, by bit.
READ, WRITE, FLUSH, SYNC, QUEUE, REQUEUE, ISSUE, COMPLETE, FS, PC, NOTIFY = (
    1 << bit for bit in range(11)
)
AHEAD, META, DISCARD, DRV_DATA, FUA = (1 << bit for bit in range(11, 16))
WRITE_ZEROES = 1 << 22
CGROUP = 0x100
ACTIONS = {
    1: "Q",
    2: "M",
    3: "F",
    4: "G",
    5: "S",
    6: "R",
    7: "D",
    8: "C",
    9: "P",
    10: "U",
    11: "UT",
    12: "I",
    13: "X",
    14: "B",
    15: "A",
    16: "abort",
    17: "drv_data",
    18: "ZP",
    19: "ZU",
}
NUMBERS = {word: number for number, word in ACTIONS.items()}
NOTES = {0: "process", 1: "timestamp", 2: "m"}
PLUGS = ("P", "U", "UT", "ZP", "ZU")

Row = dict[str, Any]


@dataclass
class Record:
    """One record, as its fields; `data` is what follows it."""

    time: int
    cpu: int
    number: int
    category: int
    sequence: int = 0
    sector: int = 0
    bytes: int = 0
    pid: int = 0
    device: int = 254 << 20 | 16
    error: int = 0
    cgroup: int | None = None
    data: bytes = b""

    def packed(self, version: int = 7, big_endian: bool = False) -> bytes:
        order = ">" if big_endian else "<"
        data = self.data
        number = self.number
        if self.cgroup is not None:
            data = struct.pack(order + "Q", self.cgroup) + data
            number |= CGROUP
        action = self.category << 16 | number
        head = (MAGIC | version, self.sequence, self.time, self.sector, self.bytes)
        tail = (self.device, self.cpu, self.error, len(data))
        if version == 7:
            return struct.pack(order + "IIQQIIIIIHH", *head, action, self.pid, *tail) + data
        return struct.pack(order + "IIQQIIQIIHH12x", *head, self.pid, action, *tail) + data


def note(time: int, cpu: int, number: int, data: bytes, **fields: Any) -> Record:
    """A record that is no event of the block layer; the kernel gives it no number."""
    return Record(time, cpu, number, NOTIFY, data=data, **fields)


def process(time: int, cpu: int, pid: int, comm: bytes) -> Record:
    return note(time, cpu, 0, comm[:15].ljust(16, b"\0"), pid=pid)


def timestamp(time: int, cpu: int, realtime_ns: int, big_endian: bool = False) -> Record:
    words = divmod(realtime_ns, 10**9)
    return note(time, cpu, 1, struct.pack(">II" if big_endian else "<II", *words))


# The reader.


def records(data: bytes) -> list[Record]:
    """The records of a file that is whole."""
    found, at = [], 0
    while at < len(data):
        (magic,) = struct.unpack_from("<I", data, at)
        order = "<"
        if magic >> 8 != MAGIC >> 8:
            (magic,) = struct.unpack_from(">I", data, at)
            order = ">"
        assert magic >> 8 == MAGIC >> 8, f"no record at byte {at}"
        if magic & 0xFF == 7:
            sequence, time, sector, size, action, pid, device, cpu, error, length = (
                struct.unpack_from(order + "IQQIIIIIHH", data, at + 4)
            )
            at += 48
        else:
            assert magic & 0xFF == 8
            sequence, time, sector, size, pid, action, device, cpu, error, length = (
                struct.unpack_from(order + "IQQIIQIIHH", data, at + 4)
            )
            at += 64
        rest = data[at : at + length]
        assert len(rest) == length
        at += length
        cgroup = None
        if action & CGROUP and length >= 8:
            (cgroup,) = struct.unpack_from(order + "Q", rest)
            rest = rest[8:]
        number = action & 0xFFFF & ~CGROUP
        if action >> 16 & NOTIFY and number == 1 and order == ">":
            # As a little-endian machine would have written it.
            rest = struct.pack("<II", *struct.unpack(">II", rest[:8]))
        found.append(
            Record(
                *(time, cpu, number, action >> 16, sequence, sector, size, pid, device, error),
                *(cgroup, rest),
            )
        )
    return found


def rwbs(record: Record) -> str:
    category = record.category
    text = "F" if category & FLUSH else ""
    if category & DISCARD:
        text += "D"
    elif category & WRITE_ZEROES:
        text += "WZ"
    elif category & WRITE:
        text += "W"
    else:
        text += "R" if record.bytes else "N"
    for bit, letter in ((FUA, "F"), (AHEAD, "A"), (SYNC, "S"), (META, "M")):
        text += letter if category & bit else ""
    return text


def dev(number: int) -> str:
    return f"{number >> 20},{number & 0xFFFFF}"


def comm_of(record: Record, notes: list[Record]) -> str | None:
    """What the thread was called then: by its last note before, else by its first."""
    own = [n for n in notes if n.pid == record.pid and (record.pid != 0 or n.cpu == record.cpu)]
    before = [n for n in own if n.time <= record.time]
    chosen = before[-1] if before else own[0] if own else None
    return None if chosen is None else text_of(chosen.data)


def text_of(data: bytes) -> str:
    return data.split(b"\0")[0].decode()


def rows(files: list[bytes]) -> list[Row]:
    """The lines of the low-level log that all files of a recording give."""
    merged = [
        (record.time, cpu, at, record)
        for cpu, data in enumerate(files)
        for at, record in enumerate(records(data))
    ]
    merged.sort(key=lambda entry: entry[:3])
    notes: list[Record] = []
    found = []
    everything = [entry[3] for entry in merged]
    for record in everything:
        if record.category & NOTIFY and record.number == 0:
            notes.append(record)
    for record in everything:
        found.append(row(record, notes))
    return found


def row(record: Record, notes: list[Record]) -> Row:
    is_note = bool(record.category & NOTIFY)
    words = NOTES if is_note else ACTIONS
    word = words.get(record.number, f"{'note' if is_note else 'action'}_{record.number}")
    found: Row = {"ts_ns": record.time, "tid": record.pid, "event": word, "cpu": record.cpu}
    comm = comm_of(record, notes)
    if comm is not None:
        found["comm"] = comm
    if not is_note:
        found |= {"rwbs": rwbs(record), "sequence": record.sequence}
    device = record.device
    remap = word == "A" and len(record.data) >= 16
    if remap:
        device_from, device, sector_from = struct.unpack_from(">IIQ", record.data)
        found |= {"from_dev": dev(device_from), "from_sector": sector_from}
    if device:
        found["dev"] = dev(device)
    if not is_note and word not in PLUGS:
        found["sector"] = record.sector
        found["pc_bytes" if record.category & PC else "bytes"] = record.bytes
    if record.error or word in ("C", "R"):
        found["error"] = record.error
    if word in ("U", "UT", "ZU") and len(record.data) >= 8:
        found["requests"] = struct.unpack_from(">Q", record.data)[0]
    elif word == "X" and len(record.data) >= 8:
        found["new_sector"] = struct.unpack_from(">Q", record.data)[0]
    elif word == "timestamp":
        seconds, ns = struct.unpack_from("<II", record.data)
        found["realtime_ns"] = seconds * 10**9 + ns
    elif word == "process":
        found["name"] = text_of(record.data)
    elif word == "m":
        found["message"] = text_of(record.data)
    elif record.data and not remap:
        found["data"] = f"0x{record.data.hex()}"
    if record.cgroup is not None:
        found["cgroup"] = record.cgroup
    return found


def is_write(record: Record) -> bool:
    """Of the file system's, with data."""
    what = record.category
    return bool(
        what & WRITE
        and record.bytes
        and not what & (DISCARD | WRITE_ZEROES | PC | NOTIFY)
        and record.sector < 2**63
    )


# The writer.


@dataclass
class World:
    """What happened on a machine: records of each CPU in the order of their times."""

    cpus: list[list[Record]] = field(default_factory=list)

    def files(self, version: int = 7, big_endian: bool = False) -> list[bytes]:
        def order(record: Record) -> Record:
            if big_endian and record.category & NOTIFY and record.number == 1:
                words = struct.unpack("<II", record.data)
                return replace(record, data=struct.pack(">II", *words))
            return record

        return [
            b"".join(order(record).packed(version, big_endian) for record in own)
            for own in self.cpus
        ]


COMMS = [b"wl", b"kworker/0:1H", b"jbd2/vdb-8", b"a b] [c", b"(x) 7", b"bash"]
# What blkparse prints of requests of the file system, each with the flags that it may have.
ORDINARY = ["Q", "G", "I", "D", "C", "M", "F", "R", "S", "B"]


def world(
    rng: random.Random, *, events: int = 60, cpus: int = 2, odd: bool = False, zeroes: bool = False
) -> World:
    """Random records, each CPU's in order.

    `odd`: also what blkparse has no text for; `zeroes`: also what version 7 has no place for.
    """
    made = World([[] for _ in range(cpus)])
    time = rng.randrange(1, 10**12)
    sequences = [0] * cpus
    named: set[int] = set()
    # Of CPU 0, as the one on which it was started.
    made.cpus[0].append(timestamp(time, 0, 1_795_196_997_123_456_789))
    for _ in range(events):
        time += rng.choice([1, 1, 700, 10**5, 2 * 10**9])
        cpu = rng.randrange(cpus)
        pid = rng.choice([11, 12, 13, 14, 4_194_303])
        if pid not in named:
            named.add(pid)
            comm = COMMS[len(named) % len(COMMS)]
            made.cpus[cpu].append(process(time, cpu, pid, comm))
        sequences[cpu] += 1
        common = {"sequence": sequences[cpu], "pid": pid}
        if zeroes and rng.random() < 0.05:
            what = WRITE | WRITE_ZEROES
            fields = common | {"sector": rng.randrange(2**40), "bytes": 4096}
            made.cpus[cpu].append(Record(time, cpu, NUMBERS["Q"], what, **fields))
        else:
            made.cpus[cpu].append(event(rng, time, cpu, odd, common))
        if rng.random() < 0.1:
            text = rng.choice([b"cfq1A put_queue", b"", b"x" * 120])
            cgroup = rng.choice([None, 1]) if odd else None
            made.cpus[cpu].append(note(time + 1, cpu, 2, text, pid=pid, cgroup=cgroup))
            time += 1
    return made


def event(rng: random.Random, time: int, cpu: int, odd: bool, common: dict[str, int]) -> Record:
    def made(word: str, category: int, **fields: Any) -> Record:
        return Record(time, cpu, NUMBERS[word], category, **common | fields)

    sector, size = rng.randrange(2**40), 512 * rng.choice([1, 8, 8, 256, 2**22])
    what = rng.choice([READ, WRITE, WRITE | SYNC, WRITE | SYNC | META, READ | AHEAD, READ | META])
    what |= rng.choice([0, 0, 0, FLUSH, FUA, FLUSH | FUA]) if what & WRITE else 0
    if rng.random() < 0.1:
        what = WRITE | DISCARD
    if rng.random() < 0.1:
        what, sector, size = READ | FLUSH, 0, 0
    fields: dict[str, Any] = {"sector": sector, "bytes": size}
    if odd and rng.random() < 0.2:
        fields["cgroup"] = rng.randrange(1, 2**64)
    chance = rng.random()
    if chance < 0.1:
        return made("P", QUEUE)
    if chance < 0.2:
        word = rng.choice(["U", "UT"])
        return made(word, QUEUE, data=struct.pack(">Q", rng.randrange(1, 100)))
    if chance < 0.28:
        data = struct.pack(">IIQ", 8 << 20 | 1, 253 << 20 | rng.randrange(256), sector // 2)
        return made("A", QUEUE | what, data=data, **fields)
    if chance < 0.34:
        return made("X", what, data=struct.pack(">Q", rng.randrange(2**32)), **fields)
    if chance < 0.42:
        word = rng.choice(["D", "C", "I", "R"])
        fields = {"bytes": rng.choice([0, 36]), "error": 0}
        data = bytes([0x12, 0, 0, rng.randrange(1, 255), 36, 0]) if word != "R" else b""
        return made(word, PC | rng.choice([READ, WRITE]), data=data, **fields)
    if odd and chance < 0.5:
        number = rng.choice([0, 16, 17, 18, 19, 77])
        data = rng.randbytes(rng.choice([0, 3, 8]))
        return Record(time, cpu, number, DRV_DATA, data=data, **common)
    word = rng.choice(ORDINARY)
    error = rng.choice([0, 0, 5, 65531]) if word in ("C", "R") else 0
    kinds = {"C": COMPLETE, "D": ISSUE, "R": REQUEUE}
    return made(word, kinds.get(word, QUEUE) | what, error=error, **fields)


# Damage.


def damaged(rng: random.Random) -> tuple[bytes, list[Record], str]:
    """A file with one fault, the records that are still to be read, and what is to be said of the fault."""
    own = [r for r in world(rng, events=12, cpus=1).cpus[0] if not r.category & NOTIFY]
    own = [replace(record, sequence=at + 1) for at, record in enumerate(own)]
    packed = [record.packed() for record in own]
    at = rng.randrange(1, len(own) - 1)
    before, after = b"".join(packed[:at]), b"".join(packed[at + 1 :])
    place = f"from byte {len(before)}"
    kept = own[:at] + own[at + 1 :]
    fault = rng.choice(["garbage", "short", "long", "version", "cut", "cut data"])
    if fault == "garbage":
        data = before + bytes(rng.randrange(1, 90)) + packed[at] + after
        return data, own, f"{place} of"
    if fault == "short":
        # The length of the data, in the last two bytes of the record before them.
        lies = replace(own[at], data=b"12345678", cgroup=None)
        data = lies.packed()
        kept[at:at] = [replace(lies, data=b"12345")]
        place = f"3 bytes from byte {len(before) + 48 + 5} of"
        return before + data[:46] + struct.pack("<H", 5) + data[48:] + after, kept, place
    if fault == "long":
        data = replace(own[at], data=b"12345678", cgroup=None).packed()
        length = struct.pack("<H", rng.choice([9, 60_000]))
        return before + data[:46] + length + data[48:] + after, kept, place
    if fault == "version":
        return before + own[at].packed(9) + after, kept, place
    if fault == "cut":
        return before + packed[at][: rng.randrange(4, 48)], own[:at], place
    cut = replace(own[at], data=b"0" * 20, cgroup=None).packed()
    return before + cut[: rng.randrange(48, 68)], own[:at], place


# For the benchmark.


def bulk(events: int, out: Any) -> None:
    """Writes of eight threads: queued, got, issued, completed."""
    packed = []
    time, sequence = 10**9, 0
    for number in range(events // 6 + 1):
        pid = 100 + number % 8
        if number < 8:
            packed.append(process(time, 0, pid, b"worker-%d" % number).packed())
        sector = number * 8
        for word, what in (
            ("Q", QUEUE),
            ("G", QUEUE),
            ("P", QUEUE),
            ("U", QUEUE),
            ("D", ISSUE),
            ("C", COMPLETE),
        ):
            time += 500
            sequence += 1
            plug = word in PLUGS
            made = Record(
                time,
                0,
                NUMBERS[word],
                what if plug else what | WRITE | SYNC,
                sequence=sequence,
                sector=0 if plug else sector,
                bytes=0 if plug else 4096,
                pid=pid,
                data=struct.pack(">Q", 1) if word == "U" else b"",
            )
            packed.append(made.packed())
        if len(packed) > 10_000:
            out.write(b"".join(packed))
            packed.clear()
    out.write(b"".join(packed))


def write(folder: Path, files: list[bytes], name: str = "x") -> list[str]:
    """Per-CPU files of a recording; their paths."""
    paths = []
    for cpu, data in enumerate(files):
        path = folder / f"{name}.blktrace.{cpu}"
        path.write_bytes(data)
        paths.append(str(path))
    return paths


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, required=True)
    bulk(parser.parse_args().events, sys.stdout.buffer)
