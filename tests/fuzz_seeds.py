"""Writes the seeds of the fuzzers in converter/fuzz: `python -m tests.fuzz_seeds FOLDER`.

Seeds are the heads of real recordings, small generated logs and the bad inputs, each also as the
low-level log that the core writes for it; small files of trace-cmd and of blktrace, good and bad;
parts of bpftrace's JSON and of perf's text; pairs of logs; and traces. A target reads its options from the
last byte or the last two bytes of an input.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import itertools
import random
import struct
import sys
import tempfile
import zlib
from pathlib import Path

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket
from syncline import _core

from tests.reference import (
    badinputs,
    badtracedat,
    blktrace,
    bpftrace_json,
    ftrace,
    loggen,
    perfdata,
    perfettotrace,
    stracegen,
    tracedat,
)

DATA = Path(__file__).parent / "data" / "thesis"
TEXTS = Path(__file__).parent / "data" / "ftrace"
PROBES = Path(__file__).parent / "data" / "dynamic-events"
STRACE = Path(__file__).parent / "data" / "strace"
BPFTRACE = Path(__file__).parent / "data" / "bpftrace-json"
SEVERAL_RECORDERS = Path(__file__).parent / "data" / "several-recorders"
BLKTRACE = Path(__file__).parent / "data" / "blktrace"
HEAD_BYTES = 3000
# The texts that are wrapped as atrace does.
_WRAPPED = ("small1.trace.txt", "small4.trace.txt", "more")
# Text events that no recording contains.
EXTRA_EVENTS = (
    'fsync_enter: (ext4_sync_file+0x4/0x219 [ext4]) dev=266338320 ino=7 gen=1 n0="a b" n1="c n2=" n2="/"',
    "fsync_exit: (vfs_fsync+0x10/0x20 <- ext4_sync_file) ret=-5",
    "bio_add_folio: (bio_add_folio+0x4/0x3b) bio=0xff11000000896e40 ino=7 index=0 len=4096 off=0",
    "bio_add_page: (bio_add_page+0x4/0x3b) bio=0xff11000000896e40 page=0xffd4000000149040 len=4096 off=0",
    "bio: (submit_bio+0x4/0xa6) bio=0xff11000000896e40 dev=266338320 sector=8 bytes=4096 opf=2049 end_io=ext4_end_bio+0x0/0x131 [ext4]",
    "bio_end: (bio_endio+0x4/0x103) bio=0xff11000000896e40 status=10 remaining=2 private=0xff11",
    "wait_commit: (jbd2_log_wait_commit+0x4/0x17f) tid=5",
    "wait_commit_end: (jbd2_complete_transaction+0x7c/0x82 <- jbd2_log_wait_commit) ret=0",
    "sys_enter: NR 74 (3, 0, 0, 0, 0, 0)",
    "sys_exit: NR 74 = -5",
    "block_bio_remap: 254,16 W 100 + 8 <- (254,1) 36",
    "block_split: 254,16 W 100 / 120 [wl]",
    "block_bio_queue: dev=266338320 sector=8 nr_sector=8 rwbs=FWFS comm=a b",
    "f2fs_sync_file_enter: dev = (254,16), ino = 4, pino = 3, i_size = 12288",
    "f2fs_sync_file_exit: dev = (254,16), ino = 4, cp_reason: no needed, datasync = 1, ret = 0",
    "xfs_file_fsync: dev 254:16 ino 0x83 iflags 0x0",
    "btrfs_sync_file: 6c7b62a1-4e2f: root=5(FS_TREE) ino=257 parent=256 datasync=1",
    "sync_start: id=1 start=0 end=9 datasync=1 dev=0,28 ino=13 op=fsync fs=btrfs path=/a\\012b",
    "bio_submit: id=7 bio=0xff11000000896e40x dev=254,16 sector=8 bytes=512 opf=0x801 origin=none",
    "commit_end: id=9 dev=254,16 tid=2 ret=0",
    "sync_fs_start: id=9 dev=254,16 fs=ext4 wait=1 pass=all op=sync",
    "vfs_fsync_range <-do_fsync",
    "x: [FAILED TO PARSE] a=1 b=0x10",
    "tracing_mark_write: a b",
    "tracing_mark_write: B|9|a",
    "tracing_mark_write: E|9",
    "tracing_mark_write: S|9|a|1",
    "print: tracing_mark_write: F|9|a|1",
    "do_fsync+0x10/0x20: a",
    "f2fs_sync_file_exit: dev = (254,16), ino = 4, checkpoint is not needed, datasync = 1, ret = 0",
    "btrfs_sync_file: 6c7b62a1-4e2f: root = 5(FS_TREE), ino = 257, parent = 256, datasync = 1",
    "read: (submit_bio+0x4/0xa6) disk=266338320 sector=8 bytes=4096 opf=2048 mapping=0xff11 own=0xff11 mode=33188 dev=266338320 ino=13 gen=1",
    "buffer_wait: (out_of_line_wait_on_bit+0x4/0x9) bit=2 dev=266338320 mapping=0xff11 own=0xff11 mode=33188 file_dev=266338320 ino=13 block=1 size=4096",
    "buffer_wait_end: (__wait_on_buffer+0x1/0x9 <- out_of_line_wait_on_bit)",
    "page_read: (submit_bio_wait+0x4/0x9) opf=2048 mapping=0xff11 own=0xff11 mode=33188 dev=266338320 ino=13",
    "page_read_end: (iomap_write_begin+0x4/0x9 <- submit_bio_wait)",
    "page_lock: (__folio_lock+0x4/0x9) mapping=0xff11 own=0xff11 mode=33188 dev=266338320 ino=13",
    "page_lock_end: (f2fs_write_begin+0x4/0x9 <- __folio_lock)",
)
MAX_BYTES = 20_000
# Between the logs of a pair.
SEPARATOR = b"\n----\n"
# The formats in the order in which the target round_trip counts them.
FORMATS = (
    "trace-dat",
    "perf-data",
    "blktrace",
    "perfetto",
    "bpftrace-json",
    "events-jsonl",
    "function-graph",
    "ftrace",
    "perf",
    "perf-trace",
    "babeltrace",
    "slower",
    "syncsnoop",
    "biosnoop",
    "strace",
    "blkparse",
    "bpftrace",
)
# Options at the end of a seed: how the target reads and splits the text, or which output it writes. See converter/fuzz/src/targets.
SUFFIXES = {
    "source_bpftrace": (b"\x04\x50", b"\x07\x00"),
    "source_events_jsonl": (b"\x04\x50",),
    "source_ftrace": (b"\x04\x50", b"\x24\x07"),
    "convert": (b"\x00\x00", b"\x22\x40", b"\x60\x00", b"\x04\x07", b"\x20\x0d"),
}


@functools.cache
def logs() -> dict[str, bytes]:
    """Short texts in the thesis's format or in no known format."""
    seeds = {}
    for file in sorted(DATA.glob("*.log")):
        data = file.read_bytes()[:HEAD_BYTES]
        seeds[file.name] = data[: data.rfind(b"\n") + 1]
    for name, make in badinputs.INPUTS.items():
        data = make().data
        seeds[name] = data if len(data) <= MAX_BYTES else data[:HEAD_BYTES]
    for seed in range(12):
        rng = random.Random(seed)
        params = loggen.random_params(rng)
        params.requests = 4
        seeds[f"generated-{seed}"] = loggen.generate(params, rng).log[:MAX_BYTES]
    return seeds


def ftraces() -> dict[str, bytes]:
    """Short ring buffer texts: parts of recordings, and events in each layout."""
    seeds = {}
    for file in sorted([*TEXTS.glob("*.txt.gz"), *PROBES.glob("*-both.txt.gz")]):
        data = gzip.decompress(file.read_bytes())
        for number, at in enumerate((0, len(data) // 2)):
            begin = data.rfind(b"\n", 0, at) + 1
            part = data[begin : begin + HEAD_BYTES]
            seeds[f"{file.name}-{number}"] = part[: part.rfind(b"\n") + 1]
    world = tracedat.world(random.Random(3), requests=2)
    world = tracedat.replace(world, gaps=[tracedat.Gap(1, 3, 9), tracedat.Gap(0, 5, None)])
    layouts = {
        "kernel": ftrace.Layout(digits=6, tgid=True),
        "latency": ftrace.Layout(latency=True, crlf=True),
        "trace-cmd": ftrace.Layout(trace_cmd=True, diff=True, prefix="a.dat: "),
        "raw": ftrace.Layout(trace_cmd=True, raw=True),
    }
    for name, layout in layouts.items():
        seeds[name] = ftrace.write(world, layout).encode()
    seeds["more"] = "".join(
        f"              wl-262     [000] .....    20.527240: {e}\n" for e in EXTRA_EVENTS
    ).encode()
    seeds["stack"] = (
        b"              wl-262     [000] .....    20.5: <stack trace>\n => f\n=> g\n"
        b"# entries-in-buffer/entries-written: 3/9   #P:2\nCPU 1 is empty\n[LOST 3 EVENTS]\n"
    )
    return seeds


def write_texts() -> dict[str, bytes]:
    """Short texts of the ring buffer with events of writes, and their low-level logs."""
    start = "(ext4_file_write_iter+0x0/0x10) dev=266338320 ino={} gen=7 offset={} ki_flags={} file_size=9"
    end = "(vfs_write+0x1/0x10 <- ext4_file_write_iter) ret=4096 nr_dirty=11 nr_writeback=2"
    events = [
        "global_dirty_state: dirty=10 writeback=0 bg_thresh=2048 thresh=8192 limit=8192 dirtied=1 written=1",
        f'write_enter: {start.format(12, 0, 2)} n0="f" n1="/" n2="/"',
        "fsync_enter: (ext4_sync_file+0x0/0x10) dev=266338320 ino=12 gen=7 start=0 end=99 datasync=1",
        "fsync_exit: (vfs_fsync_range+0x0/0x10 <- ext4_sync_file) ret=0",
        f"write_exit: {end}",
        f'write_enter: {start.format(13, 4096, 16)} n0="a" n1="b" n2="c" n3="d"',
        f'write_enter: {start.format(13, 4096, 0).replace("338320", "338321")} n0="f"',
        f"write_exit: {end}",
        f"write_exit: {end}",
        "sync_inodes: (sync_inodes_sb+0x0/0x10) dev=266338320",
        "sync_inodes_end: (sync_inodes_one_sb+0x0/0x10 <- sync_inodes_sb)",
        f'write_enter: {start.format(14, 0, 0)} n0="g"',
    ]
    lines = [
        f" wl-{7 + n // 9} [000] .....  1.0001{n:02}: {event}" for n, event in enumerate(events)
    ]
    damaged = [*lines[:3], "CPU:0 [LOST 7 EVENTS]", *lines[4:9], "x", *lines[9:], *lines[1:3]]
    texts = {"writes": lines, "damaged writes": damaged}
    seeds = {
        name: ("# tracer: nop\n" + "".join(f"{line}\n" for line in text)).encode()
        for name, text in texts.items()
    }
    logs = {f"{name}-jsonl": low_level(text) for name, text in seeds.items()}
    return seeds | {name: log for name, log in logs.items() if log is not None}


@functools.cache
def trace_dats() -> dict[str, bytes]:
    """Small files of trace-cmd: a few events and pages, and only the formats of these events."""
    seeds = {name: make().data for name, make in badtracedat.BAD.items()}
    seeds = {name: data for name, data in seeds.items() if len(data) <= 2 * MAX_BYTES}
    world = tracedat.world(random.Random(1), requests=1, cpus=2)
    gaps = [tracedat.Gap(world.events[3].cpu, 3, 9), tracedat.Gap(world.events[6].cpu, 6, None)]
    world = tracedat.replace(world, gaps=gaps)
    mixed = {"p_extend": 0.2, "p_discarded": 0.2, "p_length": 0.2, "p_new_page": 0.1}
    for version, compression in ((6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")):
        for big_endian, long in ((False, 8), (True, 4)):
            shape = tracedat.Shape(
                version=version,
                compression=compression,
                big_endian=big_endian,
                long=long,
                page_bytes=512,
                offset="0x10",
                undescribed=tuple(
                    name for name in tracedat.EVENTS if name not in {e.name for e in world.events}
                ),
                stats="overrun: 7\ndropped events: 3",
                **mixed,
            )
            contents = badtracedat.in_buffers(world) if compression == "zlib" else world
            name = f"generated-{version}-{compression}-{big_endian}"
            seeds[name] = tracedat.file(contents, shape)
    return seeds


def perfetto_traces() -> dict[str, bytes]:
    """Small system traces of Perfetto: a run of every kind of generic event, compact sched, and packets of all that is read."""
    seeds = {}
    for seed in range(3):
        world = tracedat.world(random.Random(seed), requests=2, cpus=2)
        recording = perfettotrace.read(tracedat.file(world, tracedat.Shape(version=6)))
        for generic in ("legacy", "described"):
            made = perfettotrace.transcode(recording, generic, bundle_events=4)
            made += perfettotrace.packets_of_all_kinds()
            seeds[f"{generic}-{seed}"] = perfettotrace.to_bytes(made)
    packed = [TracePacket(compressed_packets=zlib.compress(seeds["legacy-0"]))]
    return seeds | {"packed": perfettotrace.to_bytes(packed)}


def straces() -> dict[str, bytes]:
    """The ends of real recordings, where most of the syncs are, and small generated logs."""
    seeds = {}
    for file in [*STRACE.glob("*.log"), *STRACE.glob("odd-each.*")]:
        data = file.read_bytes()[-HEAD_BYTES:]
        seeds[file.name] = data[data.find(b"\n") + 1 :]
    for seed in range(8):
        rng = random.Random(seed)
        style = stracegen.Style(
            clock=("ttt", "tt", "r", "ns")[seed % 4], lengths=seed % 3 > 0, decorate=seed % 2 > 0
        )
        seeds[f"generated-{seed}"] = stracegen.generate(rng, style, 6).text[:HEAD_BYTES]
    return seeds


@functools.cache
def bpftrace_jsons() -> dict[str, bytes]:
    """Heads and ends of bpftrace's JSON, and short logs split into objects anywhere."""
    seeds = {}
    for file in sorted(BPFTRACE.glob("*.json.gz")):
        data = gzip.decompress(file.read_bytes())
        seeds[file.name] = data[data.find(b"\n", len(data) - HEAD_BYTES) + 1 :]
        seeds[f"{file.name}-head"] = data[: data.rfind(b"\n", 0, HEAD_BYTES) + 1]
    for number, (name, data) in enumerate(logs().items()):
        version, rng = (17, 27)[number % 2], random.Random(number)
        output = bpftrace_json.write(data[:HEAD_BYTES], rng, version, signed=number % 3 > 0)
        seeds[name] = output[:MAX_BYTES]
    return seeds


def blktraces() -> dict[str, bytes]:
    """Small generated files of blktrace, good and bad, and the heads of real ones."""
    seeds = {}
    for seed in range(8):
        for version, big_endian in ((7, False), (7, True), (8, False)):
            zeroes = version == 8
            world = blktrace.world(random.Random(seed), events=30, cpus=1, odd=True, zeroes=zeroes)
            seeds[f"generated-{seed}-{version}-{big_endian}"] = world.files(version, big_endian)[0]
        seeds[f"damaged-{seed}"] = blktrace.damaged(random.Random(seed))[0][:MAX_BYTES]
    for file in sorted(BLKTRACE.glob("*.blktrace.*")):
        seeds[file.name] = file.read_bytes()[:HEAD_BYTES]
    return seeds


def function_graphs() -> dict[str, bytes]:
    """Recordings of function_graph, and a line of each kind."""
    lines = [
        "   13.912734 |   1)  python3-213   |               |  __x64_sys_fsync() {",
        "   13.912734 |   1)  python3-213   |  d..1. |               |    ext4_sync_file [ext4](file=0x1, start=0) {",
        "   13.914085 |   1)  python3-213   | # 7404.829 us |      file_write_and_wait_range();",
        " ------------------------------------------",
        " 1)  python3-213   =>  python3-215  ",
        "   16.071655 |   1)                |        /* block_bio_queue: 254,16 WS 270464 + 128 [python3] */",
        "   13.934687 |   1)  python3-213   | * 12530.53 us |      } /* jbd2_log_wait_commit [jbd2] ret=0x0 */",
        "   13.934690 |   1)  python3-213   | * 21483.00 us |    }",
        " 0)   ==========> |",
        "CPU:1 [LOST 7 EVENTS]",
        "         wl-247   [000] ...1.    35.398705: funcgraph_entry:                   |  f2fs_sync_file() {",
        "         wl-247   [000] .....    35.399403: block_bio_queue:      254,16 WS 270464 + 128 [wl]",
        "         wl-247   [000] ...1.    35.399769: funcgraph_entry:      + 16.512 us  |    f2fs_issue_flush();",
        "         wl-247   [000] .....    35.407221: funcgraph_exit:       # 7429.482 us |  }",
    ]
    seeds = {"lines": ("\n".join(lines) + "\n").encode()}
    for file in sorted((DATA.parent / "function-graph").glob("*.txt")):
        seeds[file.stem] = file.read_bytes()[:MAX_BYTES]
    return seeds


def perf_traces() -> dict[str, bytes]:
    """Recordings of perf trace, and a line of each kind."""
    lines = [
        "     0.000 (185.882 ms): python3/219 fdatasync(fd: 4</data/a, b>)        = 0",
        "   301.064 (         ): python3/221 fsync(fd: 6)                     ...",
        "   301.064 (65.862 ms): python3/221  ... [continued]: fsync())        = -1 EIO (Input/output error)",
        "         ? (         ): :213/213  ... [continued]: fdatasync())       = 0",
        "   400.001 ( 0.010 ms): msync(start: 0x7f00, len: 4096, flags: SYNC)  = 0",
        "LOST 12 events!",
    ]
    seeds = {"lines": ("\n".join(lines) + "\n").encode()}
    for file in sorted((DATA.parent / "perf-trace").glob("*.txt")):
        seeds[file.stem] = file.read_bytes()[:MAX_BYTES]
    return seeds


def slowers() -> dict[str, bytes]:
    """Recordings of the tables of slow calls, and a line of each kind."""
    lines = [
        "Tracing ext4 operations slower than 10 ms... Hit Ctrl-C to end.",
        "TIME     COMM             PID     T BYTES   OFF_KB   LAT(ms) FILENAME",
        "23:59:59 Web Content      2211    F LL_MAX  0          61.22 two  blanks",
        "00:00:01 postgres         2211    R -11     4        5000.00 a",
        "Tracing XFS operations",
        "TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME",
        "00:00:02 a 7 S 0 0 0.01 2211   S 4294967291 0          61.22 wal",
        "00:00:02 db 7 W 4096 8 0.50 wal",
        "lost 7 events on CPU #1",
    ]
    csv = [
        "ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE",
        "87847348,postgres,2211,S,0,0,61220,0000000100000001",
        "ENDTIME_ns,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE",
        "87847348000,a,b,2211,F,LL_MAX,0,61220,1,2,S,3",
        "Possibly lost 3 samples",
    ]
    seeds = {
        "lines": ("\n".join(lines) + "\n").encode(),
        "csv": ("\n".join(csv) + "\n").encode(),
    }
    for file in sorted((DATA.parent / "slower").glob("*.txt")):
        seeds[file.stem] = file.read_bytes()[:MAX_BYTES]
    return seeds


def syncsnoops() -> dict[str, bytes]:
    """Recordings of syncsnoop, and a line of each kind."""
    lines = [
        "Attaching 7 probes...",
        "Tracing sync syscalls... Hit Ctrl-C to end.",
        "TIME      PID    COMM             EVENT",
        "23:59:59  27933  a b 7 S 0        tracepoint:syscalls:sys_enter_sync_file_range2",
        "00:00:01  27933  sync             tracepoint:syscalls:sys_enter_sync",
        "Lost 7 events",
    ]
    since_boot = [
        "TIME(s)            COMM             CALL",
        "1173253.856512000  worker           fdatasync       ",
        "16458.148611000    sync()",
        "Lost 3 events on CPU #1!",
    ]
    seeds = {
        "lines": ("\n".join(lines) + "\n").encode(),
        "since-boot": ("\n".join(since_boot) + "\n").encode(),
    }
    for file in sorted((DATA.parent / "syncsnoop").glob("*.txt")):
        seeds[file.stem] = file.read_bytes()[:MAX_BYTES]
    return seeds


def biosnoops() -> dict[str, bytes]:
    """Recordings of biosnoop, and a table of each form with lines that are damaged."""
    rows = [
        "TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)",
        "0.000000    a b vdb R 7    369     vdb     WS   266240     16384     0.012  10.622",
        "-0.000127   ?              0       <unknown> FF   -1         0         0.000   0.541",
        "lost 3 events on CPU #1",
        "0.000001    wal            369     dm-0    R    7          4096      7,423",
        "TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)",
    ]
    of_day = [
        "TIMESTAMP    COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)",
        "23:59:59.999 wal            402     vdb     WS   266240     16384     8.250",
        "00:00:00.001 jbd2/vd        302     vdb     WSM  1048824    8192      1.388",
        "0.000000    wal            369     vdb     WS   266240     16384    10.622",
    ]
    seeds = {
        "lines": ("\n".join(rows) + "\n").encode(),
        "of-day": ("\n".join(of_day) + "\n").encode(),
    }
    for file in sorted((DATA.parent / "biosnoop").glob("*.txt")):
        seeds[file.stem] = file.read_bytes()[:MAX_BYTES]
    return seeds


def babeltraces() -> dict[str, bytes]:
    """Heads of recordings that babeltrace2 printed, and a line of each kind."""
    context = '{ cpu_id = 1 }, { procname = "a \\"b\\" }", pid = 7, tid = 8 }'
    lines = [
        f"[23:59:59.900000000] (+?.?????????) db1 syscall_entry_fsync: {context}, {{ fd = 3 }}",
        f"[23:59:59.910000000] (+0.010000000) db1 ext4_sync_file_enter: {context}, {{ dev = 8388624, ino = 12, parent = 2, datasync = 0 }}",
        f'[23:59:59.920000000] (+0.010000000) db1 block_bio_queue: {context}, {{ dev = 8388624, sector = 64, nr_sector = 8, rwbs = 33, tid = 8, comm = "a" }}',
        f'[23:59:59.920000001] (+0.000000001) db1 block_rq_issue: {context}, {{ dev = 8388624, sector = 64, nr_sector = 8, bytes = 4096, tid = 8, rwbs = ( "W", "S" : container = 33 ), comm = "a" }}',
        f"[00:00:00.100000000] (+0.180000000) db1 block_rq_complete: {context}, {{ dev = 8388624, sector = 64, nr_sector = 8, error = -5, rwbs = 1569 }}",
        f"[00:00:00.100000001] (+0.000000001) db1 jbd2_start_commit: {context}, {{ dev = 8388624, sync_commit = 1, transaction = 7 }}",
        f"[00:00:00.100000002] (+0.000000001) db1 ext4_sync_file_exit: {context}, {{ dev = 8388624, ino = 12, ret = 0 }}",
        f"[00:00:00.100000003] (+0.000000001) db1 syscall_exit_fsync: {context}, {{ ret = 0 }}",
        f'[00:00:00.100000004] (+0.000000001) db1 sched_switch: {context}, {{ prev_comm = "a", prev_tid = 8, prev_prio = 20, prev_state = 2, next_comm = "b", next_tid = 0, next_prio = 20 }}',
        '[00:00:00.100000005] (+0.000000001) db1 writeback_start: { cpu_id = 1 }, { name = "8:16" }',
        "[??:??:??.?????????] (+0.000000001) db1 x: { cpu_id = 1 }, { }",
        'WARNING: Tracer discarded 3 events between [00:00:00.1] and [00:00:00.2] in trace "x"',
        'WARNING: Tracer may have discarded events (unknown time range) in trace "x"',
    ]
    of_perf = [
        "[2026-11-30 10:11:12.000000001] syscalls:sys_enter_fsync: { cpu_id = 0 }, { perf_ip = 0x7F, perf_tid = 8, perf_pid = 7, perf_callchain = [ [0] = 0xFF, [1] = 0x0 ], fd = 3 }",
        "[2026-11-30 10:11:12.000000002] syscalls:sys_exit_fsync: { cpu_id = 0 }, { perf_tid = 8, perf_pid = 7, ret = 0 }",
    ]
    seeds = {
        "lines": ("\n".join(lines) + "\n").encode(),
        "of-perf": ("\n".join(of_perf) + "\n").encode(),
    }
    for file in sorted((DATA.parent / "babeltrace").glob("*.txt.gz")):
        seeds[file.stem] = gzip.decompress(file.read_bytes())[:MAX_BYTES]
    return seeds


def blkparses() -> dict[str, bytes]:
    """Heads and ends of blkparse's output, and a line of each kind."""
    lines = [
        "8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]",
        "254,16   0        2     0.000300700    12  D   R 36 (12 00 00 e6 24 00 ..) [a b] [c]",
        "254,16   1       28    20.001404925 4194303  C   W (12 00 00 ce 24 00 ..) [0]",
        "253,20   1       25    18.001204923    14  A FWFS 8 + 8 <- (8,1) 0",
        "254,16   0       25    18.001304925    11  X   R 373744080096 / 3253053337 [(null)]",
        "254,16   0       25    20.001504926    14 UT   N [bash] 15",
        "254,16   1        0    18.001104218     0  m   N cfq1A put_queue",
        "254,16   1        5     0.000092969  2967  D  WS 274736 + 8 (   25993) [wl]",
        "254,16   1        6     0.002927018  2967  C  WS 274736 + 8 ( 2834049) [0]",
        "Skips: 2 forward (1,234 -   0.1%)",
    ]
    seeds = {"lines": ("\n".join(lines) + "\n").encode()}
    for file in sorted(BLKTRACE.glob("*.blkparse.txt.gz")):
        text = gzip.decompress(file.read_bytes())
        seeds[file.name] = text[:HEAD_BYTES] + text[-HEAD_BYTES:]
    return seeds


def perfs() -> dict[str, bytes]:
    """The output of perf, with and without its header."""
    text = gzip.decompress((SEVERAL_RECORDERS / "perf.txt.gz").read_bytes())
    events = text.index(b"\tffff")
    sync = text.index(b"syscalls:sys_enter_")
    lines = [f"wl  7/8 [000]  {n}.000001: x:{event}" for n, event in enumerate(EXTRA_EVENTS, 1)]
    lines += [
        "wl  7 [000]  99.000001:  1 cycles:u:  7f12 fsync+0x7 (/a)",
        "PERF_RECORD_LOST lost 3",
    ]
    return {
        "perf-head": text[:1500] + text[events:][:HEAD_BYTES],
        "perf-sync": text[sync - 80 :][: 2 * HEAD_BYTES],
        "perf-lines": ("\n".join(lines) + "\n").encode(),
    }


def perf_datas() -> dict[str, bytes]:
    """Small generated perf.data, as files and as pipes: a few events, and only the formats of these."""
    world = tracedat.world(random.Random(1), requests=1, cpus=2)
    gaps = [tracedat.Gap(world.events[3].cpu, 3, 9), tracedat.Gap(world.events[6].cpu, 6, None)]
    world = tracedat.replace(world, gaps=gaps)
    undescribed = tuple(set(tracedat.EVENTS) - {event.name for event in world.events})
    chains = {"wb_tracer:sync_start": [perfdata.USER, 0x1010], world.events[1].name: [0x1011]}
    seeds = {}
    for number, packing in enumerate((0, perfdata.COMPRESSED, perfdata.COMPRESSED2)):
        for pipe, big_endian in itertools.product((False, True), repeat=2):
            order = ">" if big_endian else "<"
            comm = struct.pack(f"{order}II", 7, 8) + b"child\0"
            fork = struct.pack(f"{order}IIIIQ", 8, 7, 8, 7, 0)
            shape = perfdata.PerfShape(
                pipe=pipe,
                big_endian=big_endian,
                packing=packing,
                ids=("identifier", "id")[number % 2],
                mixed_fields=pipe,
                chains=chains,
                undescribed=undescribed,
                attr_bytes=(128, 96)[number % 2],
                clockid=1 if pipe else None,
                head=((perfdata.MMAP, 0, perfdata.mapped(order, 7, 0x1000, 64, "/a")),),
                timed=(
                    (world.events[2].ts, perfdata.FORK, 0, fork),
                    (world.events[4].ts, perfdata.COMM, 1 << 13, comm),
                ),
                tail=((perfdata.LOST_SAMPLES, 0, struct.pack(f"{order}Q", 99)),),
            )
            seeds[f"generated-{packing}-{pipe}-{big_endian}"] = perfdata.file(world, shape)
    return seeds


def joins() -> dict[str, bytes]:
    """Pairs of logs, as of one run."""
    perf = perfs()["perf-sync"]
    strace = (SEVERAL_RECORDERS / "strace.log").read_bytes()
    strace = strace[strace.index(b"fdatasync") - 40 :][:HEAD_BYTES]
    bpftrace = (SEVERAL_RECORDERS / "run" / "events.log").read_bytes()
    head = bpftrace[: bpftrace.index(b"fdatasync")]
    logs = {
        "perf": perf[perf.index(b"\n") + 1 :],
        "strace": strace[strace.index(b"\n") + 1 :],
        "bpftrace": head + bpftrace[len(head) :][:HEAD_BYTES],
        "thesis": (DATA / "parallel4.log").read_bytes()[:HEAD_BYTES],
    }
    pairs = itertools.product(logs.items(), repeat=2)
    seeds = {f"{a}-{b}": left + SEPARATOR + right for (a, left), (b, right) in pairs}
    # Logs of different threads, whose order must not matter.
    calls = [line for line in (STRACE / "small4.log").read_bytes().splitlines() if b"sync" in line]
    calls = calls[:20]
    ring = [
        b"      wl-%d  [000] .....  %d.%06d: sys_fsync%s" % (tid, at // 10, at, end)
        for at, (tid, end) in enumerate(
            itertools.product((9000001, 9000002), (b"(fd: 3)", b" -> 0x0"))
        )
    ]
    threads = (b"\n".join(lines) + b"\n" for lines in (calls, ring))
    return {**seeds, "threads": SEPARATOR.join(threads)}


def low_level(data: bytes) -> bytes | None:
    """Returns the low-level log of a log, or None if it contains no event."""
    with tempfile.TemporaryDirectory() as folder:
        log, out = Path(folder, "log"), Path(folder, "out.events.jsonl")
        log.write_bytes(data)
        try:
            _core.convert([str(log)], str(out), source="bpftrace")
        except _core.CoreError:
            return None
        return out.read_bytes()[:MAX_BYTES]


def own_traces() -> dict[str, bytes]:
    """Traces of the heads of logs, and one that holds all values of its rows and no checksum."""
    seeds = {}
    # A trace names its log in the examples of losses, so another folder on each run would make other seeds.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        log, out = Path("x.log"), Path("x.pftrace")
        for name, data in logs().items():
            log.write_bytes(data[: data.rfind(b"\n", 0, HEAD_BYTES) + 1])
            try:
                _core.convert([str(log)], str(out), source="bpftrace")
            except _core.CoreError:
                continue
            seeds[name] = out.read_bytes()
            out.unlink()
    # Only large traces have compressed packets. Here one holds a whole trace.
    name, data = max(seeds.items(), key=lambda seed: len(seed[1]))
    packets = {"compressed_packets": zlib.compress(data)}
    seeds[f"compressed-{name}"] = Trace(packet=[packets]).SerializeToString()
    for file in sorted((DATA.parent / "own-trace").glob("*.pftrace.gz")):
        seeds[file.name] = gzip.decompress(file.read_bytes())
    return seeds


def atraces() -> dict[str, bytes]:
    """Texts of the ring buffer as atrace and systrace wrap them: after a header, compressed, cut off, and in a web page."""
    seeds = {}
    for name, text in ftraces().items():
        if not name.startswith(_WRAPPED):
            continue
        header = b"capturing trace... done\nTRACE:\n"
        script = b'<script class="trace-data" type="application/text">\n%s</script>\n'
        page = b"<!DOCTYPE html>\n<html>\n<body>\n%s</body>\n</html>\n"
        seeds[f"plain-{name}"] = header + text
        seeds[f"packed-{name}"] = header + zlib.compress(text)
        seeds[f"stored-{name}"] = header + zlib.compress(text, 0)
        seeds[f"cut-{name}"] = (header + zlib.compress(text))[:-9]
        seeds[f"page-{name}"] = page % (script % (b"TRACE:\n" + text) + script % b"{}\n" + script % text[:500])  # fmt: skip
    return seeds


def round_trips() -> dict[str, bytes]:
    """Logs of every format, with the number of their format."""
    low_levels = {name: low_level(data) for name, data in logs().items()}
    seeds = {
        "trace-dat": {
            name: data for name, data in trace_dats().items() if name.startswith("generated")
        },
        "blktrace": blktraces(),
        "bpftrace-json": bpftrace_jsons(),
        "events-jsonl": {name: data for name, data in low_levels.items() if data},
        "ftrace": ftraces(),
        "perf": perfs(),
        "perf-trace": perf_traces(),
        "babeltrace": babeltraces(),
        "slower": slowers(),
        "syncsnoop": syncsnoops(),
        "biosnoop": biosnoops(),
        "function-graph": function_graphs(),
        "strace": straces(),
        "blkparse": blkparses(),
        "bpftrace": logs(),
    }
    return {
        f"{name}-{seed}-{how}": data + bytes((how, FORMATS.index(name)))
        for name, texts in seeds.items()
        for seed, data in texts.items()
        for how in (0x00, 0x27)
    }


def main(folder: Path) -> None:
    (folder / "round_trip").mkdir(parents=True, exist_ok=True)
    for name, data in round_trips().items():
        (folder / "round_trip" / name).write_bytes(data)
    (folder / "own_trace").mkdir(parents=True, exist_ok=True)
    for name, data in own_traces().items():
        (folder / "own_trace" / name).write_bytes(data)
    for target, suffixes in SUFFIXES.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in logs().items():
            texts = {"log": data, "jsonl": low_level(data)}
            if target == "source_ftrace":
                continue
            if target == "source_bpftrace":
                del texts["jsonl"]
            if target == "source_events_jsonl":
                del texts["log"]
            for kind, text in texts.items():
                for number, suffix in enumerate(suffixes):
                    if text is not None:
                        seed = folder / target / f"{name}-{kind}-{number}"
                        seed.write_bytes(text + suffix)
    for name, data in ftraces().items():
        for number, suffix in enumerate(SUFFIXES["source_ftrace"]):
            (folder / "source_ftrace" / f"{name}-{number}").write_bytes(data + suffix)
        for number, suffix in enumerate(SUFFIXES["convert"]):
            (folder / "convert" / f"ftrace-{name}-{number}").write_bytes(data + suffix)
    for name, data in atraces().items():
        for number, suffix in enumerate(SUFFIXES["convert"]):
            (folder / "convert" / f"atrace-{name}-{number}").write_bytes(data + suffix)
    (folder / "source_trace_dat").mkdir(parents=True, exist_ok=True)
    for name, data in trace_dats().items():
        for number, options in enumerate((b"\x00", b"\x04")):
            (folder / "source_trace_dat" / f"{name}-{number}").write_bytes(data + options)
            if name.startswith("generated"):
                (folder / "convert" / f"{name}-{number}").write_bytes(data + options + b"\x03")
    (folder / "source_perf_data").mkdir(parents=True, exist_ok=True)
    for name, data in perf_datas().items():
        for number, options in enumerate((b"\x00", b"\x04")):
            (folder / "source_perf_data" / f"{name}-{number}").write_bytes(data + options)
            (folder / "convert" / f"perf-data-{name}-{number}").write_bytes(
                data + options + b"\x03"
            )
    (folder / "source_perfetto").mkdir(parents=True, exist_ok=True)
    for name, data in perfetto_traces().items():
        for number, options in enumerate((b"\x00", b"\x04")):
            (folder / "source_perfetto" / f"{name}-{number}").write_bytes(data + options)
            (folder / "convert" / f"perfetto-{name}-{number}").write_bytes(data + options + b"\x03")
    (folder / "source_strace").mkdir(parents=True, exist_ok=True)
    for name, data in straces().items():
        for number, options in enumerate((b"\x00\x50", b"\x04\x07")):
            (folder / "source_strace" / f"{name}-{number}").write_bytes(data + options)
        for number, options in enumerate((b"\x00\x00", b"\x28\x03", b"\x04\x07")):
            (folder / "convert" / f"{name}-{number}").write_bytes(data + options)
    (folder / "source_bpftrace_json").mkdir(parents=True, exist_ok=True)
    for name, data in bpftrace_jsons().items():
        for number, options in enumerate((b"\x00\x50", b"\x04\x07")):
            (folder / "source_bpftrace_json" / f"{name}-{number}").write_bytes(data + options)
        # A low-level log lacks the losses that follow from the header and the own counts of Syncline's recorders.
        if b"# syncline-log" in data or b"@events" in data:
            continue
        for number, options in enumerate((b"\x00\x00", b"\x04\x07")):
            (folder / "convert" / f"json-{name}-{number}").write_bytes(data + options)
    for target, seeds in (
        ("source_blktrace", blktraces()),
        ("source_blkparse", blkparses()),
        ("source_perf_trace", perf_traces()),
        ("source_babeltrace", babeltraces()),
        ("source_function_graph", function_graphs()),
        ("source_slower", slowers()),
        ("source_syncsnoop", syncsnoops()),
        ("source_biosnoop", biosnoops()),
    ):
        (folder / target).mkdir(parents=True, exist_ok=True)
        options = (b"\x00", b"\x04") if target == "source_blktrace" else (b"\x00\x20", b"\x04\xff")
        for name, data in seeds.items():
            for number, suffix in enumerate(options):
                (folder / target / f"{name}-{number}").write_bytes(data + suffix)
                output = b"\x00\x07" if number else b"\x00\x03"
                (folder / "convert" / f"{name}-{number}").write_bytes(data + output)
    for target, seeds in (("source_perf", perfs()), ("join", joins()), ("order", joins())):
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            options = (b"\x00\x50", b"\x04\x07") if target == "source_perf" else (b"\x00", b"\x07")
            for number, suffix in enumerate(options):
                (folder / target / f"{name}-{number}").write_bytes(data + suffix)
    for name, data in perfs().items():
        for number, options in enumerate((b"\x00\x00", b"\x04\x07")):
            (folder / "convert" / f"{name}-{number}").write_bytes(data + options)
    (folder / "pair").mkdir(parents=True, exist_ok=True)
    for seed in range(20):
        (folder / "pair" / f"random-{seed}").write_bytes(random.Random(seed).randbytes(91))
    (folder / "writes").mkdir(parents=True, exist_ok=True)
    for seed in range(20):
        (folder / "writes" / f"random-{seed}").write_bytes(random.Random(seed).randbytes(120))
    for name, data in write_texts().items():
        for number, suffix in enumerate((b"\x00\x80", b"\x40\x80")):
            (folder / "writes" / f"{name}-{number}").write_bytes(data + suffix)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
