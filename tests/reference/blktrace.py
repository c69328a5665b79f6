"""A slow second reader of blktrace's binary files, and a writer of files with a known truth.

    python -m tests.reference.blktrace --events N     one file with many writes, for the benchmark

Written only from linux/blktrace_api.h: versions 7 (`struct blk_io_trace`) and 8 (`struct
blk_io_trace2`), in either byte order.
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
NUMBERS = {action: number for number, action in ACTIONS.items()}
NOTES = {0: "process", 1: "timestamp", 2: "m"}
PLUGS = ("P", "U", "UT", "ZP", "ZU")

Row = dict[str, Any]


@dataclass
class Record:
    """The fields of one record; `data` are the bytes that follow the header."""

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
    """A notify record: not an event of the block layer. The kernel gives it no sequence number."""
    return Record(time, cpu, number, NOTIFY, data=data, **fields)


def process(time: int, cpu: int, pid: int, comm: bytes) -> Record:
    return note(time, cpu, 0, comm[:15].ljust(16, b"\0"), pid=pid)


def timestamp(time: int, cpu: int, realtime_ns: int, big_endian: bool = False) -> Record:
    words = divmod(realtime_ns, 10**9)
    return note(time, cpu, 1, struct.pack(">II" if big_endian else "<II", *words))


# The reader.


def records(data: bytes) -> list[Record]:
    """The records of a complete file."""
    result, at = [], 0
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
            # Convert to the bytes that a little-endian machine writes.
            rest = struct.pack("<II", *struct.unpack(">II", rest[:8]))
        result.append(
            Record(
                *(time, cpu, number, action >> 16, sequence, sector, size, pid, device, error),
                *(cgroup, rest),
            )
        )
    return result


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
    """The comm of the thread at that time: from its last process note before, else from its first note."""
    # PID 0 is the idle thread of a CPU.
    notes = [n for n in notes if n.pid == record.pid and (record.pid != 0 or n.cpu == record.cpu)]
    earlier = [n for n in notes if n.time <= record.time]
    chosen = earlier[-1] if earlier else notes[0] if notes else None
    return None if chosen is None else text_of(chosen.data)


def text_of(data: bytes) -> str:
    return data.split(b"\0")[0].decode()


def rows(files: list[bytes]) -> list[Row]:
    """The lines of the low-level log for all files of a recording."""
    merged = [
        (record.time, cpu, at, record)
        for cpu, data in enumerate(files)
        for at, record in enumerate(records(data))
    ]
    merged.sort(key=lambda entry: entry[:3])
    notes: list[Record] = []
    all_records = [entry[3] for entry in merged]
    for record in all_records:
        if record.category & NOTIFY and record.number == 0:
            notes.append(record)
    return [row(record, notes) for record in all_records]


def row(record: Record, notes: list[Record]) -> Row:
    is_note = bool(record.category & NOTIFY)
    names = NOTES if is_note else ACTIONS
    name = names.get(record.number, f"{'note' if is_note else 'action'}_{record.number}")
    columns: Row = {"ts_ns": record.time, "tid": record.pid, "event": name, "cpu": record.cpu}
    comm = comm_of(record, notes)
    if comm is not None:
        columns["comm"] = comm
    if not is_note:
        columns |= {"rwbs": rwbs(record), "sequence": record.sequence}
    device = record.device
    is_remap = name == "A" and len(record.data) >= 16
    if is_remap:
        device_from, device, sector_from = struct.unpack_from(">IIQ", record.data)
        columns |= {"from_dev": dev(device_from), "from_sector": sector_from}
    if device:
        columns["dev"] = dev(device)
    if not is_note and name not in PLUGS:
        columns["sector"] = record.sector
        columns["pc_bytes" if record.category & PC else "bytes"] = record.bytes
    if record.error or name in ("C", "R"):
        columns["error"] = record.error
    if name in ("U", "UT", "ZU") and len(record.data) >= 8:
        columns["requests"] = struct.unpack_from(">Q", record.data)[0]
    elif name == "X" and len(record.data) >= 8:
        columns["new_sector"] = struct.unpack_from(">Q", record.data)[0]
    elif name == "timestamp":
        seconds, ns = struct.unpack_from("<II", record.data)
        columns["realtime_ns"] = seconds * 10**9 + ns
    elif name == "process":
        columns["name"] = text_of(record.data)
    elif name == "m":
        columns["message"] = text_of(record.data)
    elif record.data and not is_remap:
        columns["data"] = f"0x{record.data.hex()}"
    if record.cgroup is not None:
        columns["cgroup"] = record.cgroup
    return columns


def is_used(record: Record) -> bool:
    """Returns whether the record is of something with a place, of a flush, or of the flush after a write."""
    category = record.category
    if category & (PC | NOTIFY):
        return False
    if record.bytes:
        return record.sector < 2**63
    if category & (DISCARD | WRITE_ZEROES):
        return False
    match ACTIONS.get(record.number):
        case "Q" | "I" | "A":
            return bool(category & FLUSH)
        case "D":
            # The request of a flush is no write.
            return bool(category & FLUSH and not category & WRITE)
        case "C":
            return bool(category & (FLUSH | WRITE))
        case _:
            return False


# The writer.


@dataclass
class World:
    """The events on a machine: the records of each CPU in time order."""

    cpus: list[list[Record]] = field(default_factory=list)

    def files(self, version: int = 7, big_endian: bool = False) -> list[bytes]:
        def in_byte_order(record: Record) -> Record:
            if big_endian and record.category & NOTIFY and record.number == 1:
                words = struct.unpack("<II", record.data)
                return replace(record, data=struct.pack(">II", *words))
            return record

        return [
            b"".join(in_byte_order(record).packed(version, big_endian) for record in records)
            for records in self.cpus
        ]


COMMS = [b"wl", b"kworker/0:1H", b"jbd2/vdb-8", b"a b] [c", b"(x) 7", b"bash"]
# The actions of file system requests, as blkparse prints them.
ORDINARY = ["Q", "G", "I", "D", "C", "M", "F", "R", "S", "B"]


def world(
    rng: random.Random, *, events: int = 60, cpus: int = 2, odd: bool = False, zeroes: bool = False
) -> World:
    """Random records; those of each CPU are in order.

    `odd`: also records for which blkparse has no text. `zeroes`: also write-zeroes records, for which
    version 7 has no flag.
    """
    result = World([[] for _ in range(cpus)])
    time = rng.randrange(1, 10**12)
    sequences = [0] * cpus
    named: set[int] = set()
    # blktrace writes the timestamp on the CPU on which it starts.
    result.cpus[0].append(timestamp(time, 0, 1_795_196_997_123_456_789))
    for _ in range(events):
        time += rng.choice([1, 1, 700, 10**5, 2 * 10**9])
        cpu = rng.randrange(cpus)
        pid = rng.choice([11, 12, 13, 14, 4_194_303])
        if pid not in named:
            named.add(pid)
            comm = COMMS[len(named) % len(COMMS)]
            result.cpus[cpu].append(process(time, cpu, pid, comm))
        sequences[cpu] += 1
        common = {"sequence": sequences[cpu], "pid": pid}
        if zeroes and rng.random() < 0.05:
            category = WRITE | WRITE_ZEROES
            fields = common | {"sector": rng.randrange(2**40), "bytes": 4096}
            result.cpus[cpu].append(Record(time, cpu, NUMBERS["Q"], category, **fields))
        else:
            result.cpus[cpu].append(event(rng, time, cpu, odd, common))
        if rng.random() < 0.1:
            text = rng.choice([b"cfq1A put_queue", b"", b"x" * 120])
            cgroup = rng.choice([None, 1]) if odd else None
            result.cpus[cpu].append(note(time + 1, cpu, 2, text, pid=pid, cgroup=cgroup))
            time += 1
    return result


def event(rng: random.Random, time: int, cpu: int, odd: bool, common: dict[str, int]) -> Record:
    def record(action: str, category: int, **fields: Any) -> Record:
        return Record(time, cpu, NUMBERS[action], category, **common | fields)

    sector, size = rng.randrange(2**40), 512 * rng.choice([1, 8, 8, 256, 2**22])
    category = rng.choice(
        [READ, WRITE, WRITE | SYNC, WRITE | SYNC | META, READ | AHEAD, READ | META]
    )
    category |= rng.choice([0, 0, 0, FLUSH, FUA, FLUSH | FUA]) if category & WRITE else 0
    if rng.random() < 0.1:
        category = WRITE | DISCARD
    if rng.random() < 0.1:
        category, sector, size = READ | FLUSH, 0, 0
    fields: dict[str, Any] = {"sector": sector, "bytes": size}
    if odd and rng.random() < 0.2:
        fields["cgroup"] = rng.randrange(1, 2**64)
    chance = rng.random()
    if chance < 0.1:
        return record("P", QUEUE)
    if chance < 0.2:
        action = rng.choice(["U", "UT"])
        return record(action, QUEUE, data=struct.pack(">Q", rng.randrange(1, 100)))
    if chance < 0.28:
        data = struct.pack(">IIQ", 8 << 20 | 1, 253 << 20 | rng.randrange(256), sector // 2)
        return record("A", QUEUE | category, data=data, **fields)
    if chance < 0.34:
        return record("X", category, data=struct.pack(">Q", rng.randrange(2**32)), **fields)
    if chance < 0.42:
        action = rng.choice(["D", "C", "I", "R"])
        fields = {"bytes": rng.choice([0, 36]), "error": 0}
        data = bytes([0x12, 0, 0, rng.randrange(1, 255), 36, 0]) if action != "R" else b""
        return record(action, PC | rng.choice([READ, WRITE]), data=data, **fields)
    if odd and chance < 0.5:
        number = rng.choice([0, 16, 17, 18, 19, 77])
        data = rng.randbytes(rng.choice([0, 3, 8]))
        return Record(time, cpu, number, DRV_DATA, data=data, **common)
    action = rng.choice(ORDINARY)
    error = rng.choice([0, 0, 5, 65531]) if action in ("C", "R") else 0
    kinds = {"C": COMPLETE, "D": ISSUE, "R": REQUEUE}
    return record(action, kinds.get(action, QUEUE) | category, error=error, **fields)


# Damage.


def damaged(rng: random.Random) -> tuple[bytes, list[Record], str]:
    """A file with one fault, the records that must still be read, and a part of the expected warning."""
    originals = [r for r in world(rng, events=12, cpus=1).cpus[0] if not r.category & NOTIFY]
    originals = [replace(record, sequence=at + 1) for at, record in enumerate(originals)]
    packed = [record.packed() for record in originals]
    at = rng.randrange(1, len(originals) - 1)
    before, after = b"".join(packed[:at]), b"".join(packed[at + 1 :])
    place = f"from byte {len(before)}"
    kept = originals[:at] + originals[at + 1 :]
    fault = rng.choice(["garbage", "short", "long", "version", "cut", "cut data"])
    if fault == "garbage":
        data = before + bytes(rng.randrange(1, 90)) + packed[at] + after
        return data, originals, f"{place} of"
    if fault == "short":
        # Bytes 46 and 47 of the header are the length of the data.
        original = replace(originals[at], data=b"12345678", cgroup=None)
        data = original.packed()
        kept[at:at] = [replace(original, data=b"12345")]
        place = f"3 bytes from byte {len(before) + 48 + 5} of"
        return before + data[:46] + struct.pack("<H", 5) + data[48:] + after, kept, place
    if fault == "long":
        data = replace(originals[at], data=b"12345678", cgroup=None).packed()
        length = struct.pack("<H", rng.choice([9, 60_000]))
        return before + data[:46] + length + data[48:] + after, kept, place
    if fault == "version":
        return before + originals[at].packed(9) + after, kept, place
    if fault == "cut":
        return before + packed[at][: rng.randrange(4, 48)], originals[:at], place
    cut = replace(originals[at], data=b"0" * 20, cgroup=None).packed()
    return before + cut[: rng.randrange(48, 68)], originals[:at], place


# For the benchmark.


def bulk(events: int, out: Any) -> None:
    """Writes many writes of eight threads: queued, got, plugged, unplugged, issued, completed."""
    packed = []
    time, sequence = 10**9, 0
    for number in range(events // 6 + 1):
        pid = 100 + number % 8
        if number < 8:
            packed.append(process(time, 0, pid, b"worker-%d" % number).packed())
        sector = number * 8
        for action, category in (
            ("Q", QUEUE),
            ("G", QUEUE),
            ("P", QUEUE),
            ("U", QUEUE),
            ("D", ISSUE),
            ("C", COMPLETE),
        ):
            time += 500
            sequence += 1
            is_plug = action in PLUGS
            record = Record(
                time,
                0,
                NUMBERS[action],
                category if is_plug else category | WRITE | SYNC,
                sequence=sequence,
                sector=0 if is_plug else sector,
                bytes=0 if is_plug else 4096,
                pid=pid,
                data=struct.pack(">Q", 1) if action == "U" else b"",
            )
            packed.append(record.packed())
        if len(packed) > 10_000:
            out.write(b"".join(packed))
            packed.clear()
    out.write(b"".join(packed))


def write(folder: Path, files: list[bytes], name: str = "x") -> list[str]:
    """Writes the per-CPU files of a recording. Returns their paths."""
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
