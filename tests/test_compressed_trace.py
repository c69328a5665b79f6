"""Traces of more than 512 KiB: their packets are compressed, in blocks, and mean the same to all readers."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
from syncline.engine import EngineError, open_trace
from syncline.inputs import opened
from syncline.reading import Reading, convert_trace

from tests.coretools import tables
from tests.reference import loggen
from tests.test_own_trace import refusal
from tests.test_trace import check_packets
from tests.warm_cli import WarmCli

BLOCK_BYTES = 512 << 10
# The trace has several blocks, and packets that do not fill one.
LOG_BYTES = 4_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, its tables, and its trace with and without compressed packets."""
    folder = tmp_path_factory.mktemp("compressed")
    with (folder / "x.log").open("wb") as out:
        loggen.bulk(LOG_BYTES, 3, out)
    for name in ("x.pftrace", "x.pftrace.gz", "tables/"):
        Reading().convert([str(folder / "x.log")], f"{folder}/{name}")
    return folder


def blocks_of(data: bytes) -> list[bytes]:
    """Returns the packets of each block of a trace, as one text."""
    return [
        zlib.decompress(packet.compressed_packets)
        for packet in Trace.FromString(data).packet
        if packet.HasField("compressed_packets")
    ]


def in_block(packets: bytes) -> bytes:
    return Trace(packet=[{"compressed_packets": zlib.compress(packets, 1)}]).SerializeToString()


def test_full_blocks_are_compressed_and_hold_whole_packets(folder: Path) -> None:
    data = (folder / "x.pftrace").read_bytes()
    blocks = blocks_of(data)
    assert len(blocks) > 1
    assert all(BLOCK_BYTES <= len(block) < 2 * BLOCK_BYTES for block in blocks)
    whole = gzip.decompress((folder / "x.pftrace.gz").read_bytes())
    # The official classes write lengths without padding, so the packets are compared, not the bytes.
    rest = Trace.FromString(data).packet[len(blocks) :]
    assert [*(p for block in blocks for p in Trace.FromString(block).packet), *rest] == list(
        Trace.FromString(whole).packet
    )
    assert whole.startswith(b"".join(blocks))
    assert len(data) - (len(whole) - sum(map(len, blocks))) < 0.45 * sum(map(len, blocks))
    check_packets(whole)


def test_the_rows_are_those_of_the_log(folder: Path, tmp_path: Path) -> None:
    want = tables(folder / "tables")
    assert len(want["sync"]) > 1000
    for trace in (folder / "x.pftrace", folder / "x.pftrace.gz"):
        convert_trace(str(trace), f"{tmp_path}/{trace.name}-tables/")
        assert tables(tmp_path / f"{trace.name}-tables") == want


def test_the_trace_processor_reads_the_same_slices(folder: Path) -> None:
    found = []
    for name in ("x.pftrace", "x.pftrace.gz"):
        with open_trace(folder / name, engine="embedded") as engine:
            assert engine.stats() == []
            sql = "SELECT COUNT(*), SUM(dur), SUM(ts), COUNT(arg_set_id) FROM slice"
            found.append(engine.query(sql).rows)
    assert found[0] == found[1]
    assert found[0][0][0] > 10_000


def test_damaged_blocks_are_refused(folder: Path, tmp_path: Path) -> None:
    data = (folder / "x.pftrace").read_bytes()
    blocks = blocks_of(data)
    rng = random.Random(2)
    wrong = tmp_path / "wrong.pftrace"
    for _ in range(60):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        wrong.write_bytes(flipped)
        assert refusal(wrong, tmp_path)
    for length in (20, 100_000, len(data) - 1):
        wrong.write_bytes(data[:length])
        assert refusal(wrong, tmp_path), length
    # The trace processor says so too.
    wrong.write_bytes(data[:100_000])
    with pytest.raises(EngineError), opened(str(wrong), Reading()):
        pass
    whole = gzip.decompress((folder / "x.pftrace.gz").read_bytes())
    last = b"".join(map(in_block, blocks[1:])) + whole[sum(map(len, blocks)) :]
    cases = {
        "a block in a block": in_block(in_block(blocks[0])) + last,
        "a block is missing": last,
        "a block is there twice": in_block(blocks[0]) * 2 + last,
        "a block is larger than any that is written": in_block(blocks[0])
        + in_block(blocks[1] * 3)
        + last,
        "a block expands to a thousand times its size": in_block(bytes(64 << 20)) + last,
        "a block ends within a packet": in_block(blocks[0][:-1]) + last,
    }
    for name, damaged in cases.items():
        wrong.write_bytes(damaged)
        assert refusal(wrong, tmp_path), name
    # The same by another compressor is as good.
    wrong.write_bytes(in_block(blocks[0]) + last)
    assert refusal(wrong, tmp_path) is None


def test_a_trace_to_standard_output_is_the_same(folder: Path) -> None:
    arguments = ["convert", "-q", f"{folder}/x.log", "-o", "-", "--to", "pftrace"]
    code, out, _ = WarmCli().run(arguments, b"", None)
    assert (code, out) == (0, (folder / "x.pftrace").read_bytes())
