"""Measures speed and memory, as ratios to peers in the same run. Asserts nothing.

    make bench                          everything: 1 GB of log, 10 GB through a pipe
    python tests/bench/run.py --size 1e8 --pipe 0

All peers process the same events:
- `grep -c` on the same file, as the lower limit that reading sets;
- btetto, a Rust converter of bpftrace's JSON (`cargo install btetto`);
- `trace-cmd report` on a trace.dat (`apt-get install trace-cmd`);
- `blkparse` on the files of blktrace (`apt-get install blktrace`).

The output names the peers that are not installed; their rows are omitted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.measure import Cost, measure, print_run  # noqa: E402
from tests.reference import blktrace, thesis  # noqa: E402

BULK = [sys.executable, "-m", "tests.reference.loggen", "--bulk"]
SYNCLINE = shutil.which("syncline", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
FTRACE = [sys.executable, "-m", "tests.reference.ftrace"]
TRACE_DAT = [sys.executable, "-m", "tests.reference.tracedat"]
STRACE = [sys.executable, "-m", "tests.reference.stracegen", "--bulk"]
# What makes the engine load a trace.
LOAD = "SELECT COUNT(*) FROM slice"
DISTINCT_STACKS = 300_000
# Bytes of --size for each generated event.
BYTES_PER_EVENT = 500
BLKTRACE = [sys.executable, "-m", "tests.reference.blktrace"]
RECORDED_BLOCKS = sorted((ROOT / "tests" / "data" / "blktrace").glob("small4.blktrace.?"))
RECORDED_TRACE_DAT = ROOT / "tests" / "data" / "tracecmd" / "small4.dat"
BUFFER = 3  # option id in a trace.dat
RECORDED_PERF = ROOT / "tests" / "data" / "several-recorders" / "perf.txt.gz"
RECORDED_FTRACE = ROOT / "tests" / "data" / "ftrace" / "small4.trace.txt.gz"
# btetto keeps its whole input in memory, so it gets only a part of the log.
BTETTO_BYTES = 20_000_000
JSON_BYTES = 200_000_000
PERF_BYTES = 200_000_000


def as_btetto(log: bytes) -> tuple[bytes, int]:
    """Converts the events of a log to btetto's convention: calls and ends are slices, other events instants."""
    events, _ = thesis.parse(log, thesis.Losses("bench"))
    kinds = {"call": "BEGIN", "end": "END"}
    lines = []
    for event in events:
        fields = [
            ["name", event.kind],
            ["type", kinds.get(event.kind, "INSTANT")],
            ["ts", event.ts],
        ]
        fields += [["pid", event.pid], ["tid", event.pid], ["thread_name", event.comm]]
        fields += [[key, str(value)] for key, value in event.fields.items()]
        lines.append(json.dumps({"type": "value", "data": ["track_event", *fields]}))
    return ("\n".join(lines) + "\n").encode(), len(events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=1e9, help="bytes of the log on disk")
    parser.add_argument(
        "--pipe", type=float, default=1e10, help="bytes of the log through a pipe; 0: skip"
    )
    parser.add_argument(
        "--times", type=int, default=5, help="runs of each command; the fastest counts"
    )
    options = parser.parse_args()
    if SYNCLINE is None:
        raise SystemExit("syncline is not installed; run `make .venv/.installed` first")

    with tempfile.TemporaryDirectory(prefix="syncline-bench-") as folder:
        # The first run compiles the Python modules, which an installed program has compiled already.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/pycache"
        bench(Path(folder), options)


def bench(folder: Path, options: argparse.Namespace) -> None:
    log, trace = folder / "bench.log", folder / "bench.pftrace"
    with log.open("wb") as out:
        subprocess.run([*BULK, str(int(options.size))], stdout=out, cwd=ROOT, check=True)
    size = log.stat().st_size
    summary = subprocess.run(
        [SYNCLINE, "convert", str(log), "-o", str(trace)],
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    events = int(summary.stderr.split()[0].replace(",", ""))
    print(
        f"log of {size / 1e9:.2f} GB, {events:,} events, {os.cpu_count()} cores, page cache warm; best of {options.times}\n"
    )

    grep = measure(["grep", "-c", "bio_submit", str(log)], options.times)
    print_run("grep -c bio_submit", grep)
    convert = measure([SYNCLINE, "convert", "-q", str(log), "-o", str(trace)], options.times)
    print_run(
        "syncline convert, log to trace",
        convert,
        f"{convert.wall_s / grep.wall_s:.2f} x grep (aim: 2)",
    )
    null = measure(
        [SYNCLINE, "convert", "-q", str(log), "-o", "-", "--to", "pftrace"], options.times
    )
    print_run("the same, trace to /dev/null", null, f"{null.wall_s / grep.wall_s:.2f} x grep")
    tables = measure([SYNCLINE, "convert", "-q", str(log), "-o", f"{folder}/tables/"], 1)
    print_run("log to Parquet tables", tables, f"{tables.wall_s / grep.wall_s:.2f} x grep")
    print(
        f"{'':44} {events / convert.wall_s / 1e6:.2f} M events/s; size of the trace: {trace.stat().st_size / size:.2f} x the log"
    )

    bench_reports(folder, log, trace, options)
    bench_stacks(folder, log, options)
    bench_btetto(folder, log, events / convert.wall_s)
    bench_json(folder, log, options)
    bench_ftrace(folder, options)
    bench_trace_dat(folder, options)
    bench_strace(folder, options)
    bench_perf(folder, options)
    bench_blktrace(folder, options)
    if options.pipe:
        bench_pipe(options, convert)
    bench_stages(log)


def bench_reports(folder: Path, log: Path, trace: Path, options: argparse.Namespace) -> None:
    """Reads the trace, the tables and the log. The aims are for 1.03 GB of log, and in proportion for others."""
    print()
    scale = log.stat().st_size / 1.03e9
    rows = [
        ("trace loaded by the embedded engine", 16, 1000, ["query", str(trace), LOAD]),
        ("report summary, of the trace", 3, 300, ["report", str(trace), "summary"]),
        ("report summary, of the tables", 0.5, None, ["report", f"{folder}/tables/", "summary"]),
        ("report summary, of the log", 2.5, None, ["report", str(log), "summary"]),
    ]
    for name, aim_s, aim_mb, command in rows:
        run = measure([SYNCLINE, *command], min(options.times, 3))
        note = f"{run.wall_s / (aim_s * scale):.2f} x the aim of {aim_s * scale:.2f} s"
        if aim_mb:
            note += f", {run.peak_bytes / (aim_mb * 1e6):.2f} x {aim_mb} MB"
        print_run(name, run, note)
    run = measure([SYNCLINE, "--version"], 10)
    python = measure([sys.executable, "-c", ""], 10)
    print_run("syncline --version", run, f"{run.wall_s / python.wall_s:.1f} x python -c ''")


def bench_stacks(folder: Path, log: Path, options: argparse.Namespace) -> None:
    """Converts a log in which each call has another stack."""
    text, count, previous = folder / "stacks.log", 0, b""
    with log.open("rb") as lines, text.open("wb") as out:
        for line in lines:
            # The frame after the call's line gets an address of its own.
            if line.startswith(b"\t") and not previous.startswith(b"\t"):
                count += 1
                out.write(b"\t%x 0x%x ([unknown])\n" % (count << 12, count << 12))
            out.write(line)
            previous = line
            if count >= DISTINCT_STACKS:
                break
    command = [SYNCLINE, "convert", "-q", str(text), "-o", str(folder / "stacks.pftrace")]
    run = measure(command, 1)
    note = f"{run.peak_bytes / 100e6:.2f} x 100 MB"
    print_run(f"{count:,} distinct stacks to trace", run, note)
    text.unlink()


def bench_btetto(folder: Path, log: Path, rate: float) -> None:
    btetto = shutil.which("btetto", path=f"{Path.home()}/.cargo/bin:{os.environ['PATH']}")
    if btetto is None:
        print("\nbtetto: not installed (cargo install btetto)")
        return
    with log.open("rb") as stream:
        head = stream.read(BTETTO_BYTES)
    lines, count = as_btetto(head[: head.rindex(b"\n") + 1])
    events = folder / "btetto.json"
    events.write_bytes(lines)
    run = measure([btetto, str(events)], 3, cwd=folder)
    print()
    print_run(
        f"btetto, {count:,} events",
        run,
        f"{run.peak_bytes / len(lines):.1f} bytes of memory per byte of input",
    )
    btetto_rate = count / run.wall_s
    print(
        f"{'':44} {btetto_rate / 1e6:.2f} M events/s; syncline {rate / btetto_rate:.0f} x btetto (aim: 60)"
    )
    # syncline pairs few events of this file: most event names are not those of scripts for btetto.
    syncline_run = measure(
        [SYNCLINE, "convert", "-q", str(events), "-o", str(folder / "x.events.jsonl")], 3
    )
    print_run(
        "the same file to low-level log",
        syncline_run,
        f"{run.wall_s / syncline_run.wall_s:.0f} x btetto",
    )


def bench_json(folder: Path, log: Path, options: argparse.Namespace) -> None:
    """Converts a log as text and as `bpftrace -f json` writes it."""
    text, as_json = folder / "x.log", folder / "x.json"
    with log.open("rb") as lines, text.open("wb") as plain, as_json.open("wb") as out:
        for line in lines:
            if plain.tell() >= JSON_BYTES:
                break
            plain.write(line)
            quoted = json.dumps(line.decode("latin-1")).encode()
            out.write(b'{"type": "printf", "data": %s}\n' % quoted)
    print()
    runs = [
        measure(
            [SYNCLINE, "convert", "-q", str(file), "-o", str(folder / "x.pftrace")], options.times
        )
        for file in (text, as_json)
    ]
    print_run(f"log as text, {text.stat().st_size / 1e6:.0f} MB", runs[0])
    print_run(
        f"the same as JSON, {as_json.stat().st_size / 1e6:.0f} MB",
        runs[1],
        f"{runs[1].wall_s / runs[0].wall_s:.1f} x the text, {as_json.stat().st_size / runs[1].wall_s / 1e6:.0f} MB/s",
    )


def repeat_pages(data: bytes, times: int, out: BinaryIO) -> None:
    """Writes an uncompressed trace.dat of version 7 with its pages repeated, each copy later in time."""
    at = data.index(b"\0", 10) + 7
    for _ in range(2):
        at = data.index(b"\0", at) + 1
    (section,) = struct.unpack_from("<Q", data, at)
    while True:
        (size,) = struct.unpack_from("<Q", data, section + 8)
        key, length = struct.unpack_from("<HI", data, section + 16)
        if key == BUFFER:
            break
        (section,) = struct.unpack_from("<Q", data, section + 16 + size - 8)
    option = data[section + 22 : section + 22 + length]
    table = option.index(b"\0", option.index(b"\0", 8) + 1) + 1
    page_bytes, count = struct.unpack_from("<II", option, table)
    cpus = [struct.unpack_from("<IQQ", option, table + 8 + 20 * cpu) for cpu in range(count)]
    pages = {
        cpu: [data[at : at + page_bytes] for at in range(offset, offset + size, page_bytes)]
        for cpu, offset, size in cpus
    }
    page_times = [
        struct.unpack_from("<Q", page)[0] for cpu_pages in pages.values() for page in cpu_pages
    ]
    span = max(page_times) - min(page_times) + 500_000_000
    out.write(data[:section] + bytes(-section % page_bytes))
    table_entries = b""
    for cpu, cpu_pages in pages.items():
        offset = out.tell()
        for number in range(times):
            for page in cpu_pages:
                (ts,) = struct.unpack_from("<Q", page)
                out.write(struct.pack("<Q", ts + number * span) + page[8:])
        table_entries += struct.pack("<IQQ", cpu, offset, out.tell() - offset)
    option = option[: table + 8] + table_entries
    options = struct.pack("<HI", BUFFER, len(option)) + option + struct.pack("<HIQ", 0, 8, 0)
    new = out.tell()
    out.write(struct.pack("<HHIQ", 0, 0, 0, len(options)) + options)
    # Point the reference to the old options at the new ones.
    out.seek(data.rindex(struct.pack("<HIQ", 0, 8, section), 0, section) + 6)
    out.write(struct.pack("<Q", new))


def bench_ftrace(folder: Path, options: argparse.Namespace) -> None:
    """Converts a text of generated events, most of them paired, and a repeated recording, most of it not paired."""
    print()
    generated, recorded = folder / "generated.txt", folder / "recorded.txt"
    with generated.open("wb") as out:
        subprocess.run(
            [*FTRACE, "--bytes", str(int(options.size))], stdout=out, cwd=ROOT, check=True
        )
    lines = gzip.decompress(RECORDED_FTRACE.read_bytes()).splitlines(keepends=True)
    events = [line for line in lines if not line.startswith(b"#")]
    at = [line.index(b"] ", 16) + 8 for line in events]
    times = [
        int(line[n : line.index(b": ", n)].replace(b".", b""))
        for line, n in zip(events, at, strict=True)
    ]
    with recorded.open("wb") as out:
        for number in range(int(options.size / sum(map(len, lines)))):
            shift = number * (max(times) - min(times) + 1000)
            for line, n, us in zip(events, at, times, strict=True):
                time = f"{(us + shift) // 10**6:5}.{(us + shift) % 10**6:06}".encode()
                out.write(line[:n] + time + line[line.index(b": ", n) :])
    for name, text in {"generated": generated, "recorded": recorded}.items():
        grep = measure(["grep", "-c", "bio_submit", str(text)], options.times)
        command = [SYNCLINE, "convert", "-q", str(text), "-o", "-", "--to", "pftrace"]
        run = measure(command, options.times)
        print_run(f"grep -c bio_submit ({name}, {text.stat().st_size / 1e6:.0f} MB)", grep)
        ratio = run.wall_s / grep.wall_s
        print_run(f"text of the ring buffer ({name}) to trace", run, f"{ratio:.1f} x grep (aim: 4)")


def bench_trace_dat(folder: Path, options: argparse.Namespace) -> None:
    """Converts generated events, most of them paired, and a repeated recording; `trace-cmd report` prints both."""
    trace_cmd = shutil.which("trace-cmd")
    print()
    files = {"generated": folder / "generated.dat"}
    with files["generated"].open("wb") as out:
        command = [*TRACE_DAT, "--events", str(int(options.size / BYTES_PER_EVENT))]
        subprocess.run(command, stdout=out, cwd=ROOT, check=True)
    if trace_cmd:
        plain, files["recorded"] = folder / "plain.dat", folder / "recorded.dat"
        files["recorded, zstd"] = folder / "packed.dat"
        change = [trace_cmd, "convert", "--file-version", "7", "--compression"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
        subprocess.run([*change, "none", "-i", RECORDED_TRACE_DAT, "-o", plain], **quiet)
        times = max(1, int(options.size / BYTES_PER_EVENT / 3377))
        with files["recorded"].open("wb") as out:
            repeat_pages(plain.read_bytes(), times, out)
        command = [*change, "zstd", "-i", files["recorded"], "-o", files["recorded, zstd"]]
        subprocess.run(command, **quiet)
    else:
        print("trace-cmd: not installed (apt-get install trace-cmd)")
    for name, dat in files.items():
        summary = subprocess.run(
            [SYNCLINE, "convert", str(dat), "-o", str(folder / "dat.csv")],
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
        events = int(summary.stderr.split()[0].replace(",", ""))
        command = [SYNCLINE, "convert", "-q", str(dat), "-o", "-", "--to"]
        runs = {to: measure([*command, to], options.times) for to in ("pftrace", "events.jsonl")}
        report = measure([trace_cmd, "report", str(dat)], options.times) if trace_cmd else None
        for to, run in runs.items():
            ratio = f", {report.wall_s / run.wall_s:.1f} x trace-cmd report" if report else ""
            aim = " (aim: 10)" if report and to == "pftrace" else ""
            print_run(
                f"trace.dat ({name}) to {to}",
                run,
                f"{events / run.wall_s / 1e6:.2f} M events/s{ratio}{aim}",
            )
        if report:
            size = dat.stat().st_size / 1e6
            print_run(f"trace-cmd report ({name})", report, f"{events:,} events, {size:.0f} MB")


def bench_strace(folder: Path, options: argparse.Namespace) -> None:
    """Converts small files written by four threads: with all calls, and with only the calls around syncs."""
    log = folder / "strace.log"
    for kind, others in (("all calls", 54), ("calls around syncs", 0)):
        command = [*STRACE, str(int(options.size)), "--others", str(others)]
        with log.open("wb") as out:
            subprocess.run(command, stdout=out, cwd=ROOT, check=True)
        print()
        grep = measure(["grep", "-c", "fsync", str(log)], options.times)
        size = log.stat().st_size / 1e9
        print_run(f"grep -c fsync, {size:.2f} GB of strace", grep, f"1 sync in {6 + others} lines")
        for to in ("pftrace", "folded"):
            convert = [SYNCLINE, "convert", "-q", str(log), "-o", "-", "--to", to]
            run = measure(convert, options.times)
            aim = " (aim: 4)" if to == "pftrace" else ""
            print_run(
                f"strace ({kind}) to {to}", run, f"{run.wall_s / grep.wall_s:.2f} x grep{aim}"
            )


def bench_perf(folder: Path, options: argparse.Namespace) -> None:
    """Converts a repeated recording, with and without its stacks. The copies are 100 s apart."""
    text = gzip.decompress(RECORDED_PERF.read_bytes())
    body = text[text.index(b"\next4lazyinit") + 1 :]
    plain = re.sub(rb"(?m)^(\t.*)?\n", b"", body)
    for kind, part in (("with stacks", body), ("without stacks", plain)):
        file = folder / "perf.txt"
        with file.open("wb") as out:
            for n in range(PERF_BYTES // len(part) + 1):
                later = rb"\g<1>%d\g<2>" % (n * 100)
                out.write(re.sub(rb"(?m)^(\S.*\] +)\d+(\.\d{9}: )", later, part))
        grep = measure(["grep", "-c", "fdatasync", str(file)], options.times)
        command = [SYNCLINE, "convert", "-q", str(file), "-o", "-", "--to", "pftrace"]
        run = measure(command, options.times)
        print_run(
            f"perf's text ({kind}) to pftrace",
            run,
            f"{run.wall_s / grep.wall_s:.2f} x grep (aim: 4)",
        )


def repeat_records(times: int, path: Path) -> None:
    """Writes the files of a recording with their records repeated, each copy with later times and sequence numbers."""
    cpus = [blktrace.records(file.read_bytes()) for file in RECORDED_BLOCKS]
    record_times = [record.time for records in cpus for record in records]
    span = max(record_times) - min(record_times) + 500_000_000
    for cpu, records in enumerate(cpus):
        last = max(record.sequence for record in records)
        with path.with_name(f"{path.name}.blktrace.{cpu}").open("wb") as out:
            for number in range(times):
                for record in records:
                    record.time += span if number else 0
                    record.sequence += last if number and record.sequence else 0
                out.write(b"".join(record.packed() for record in records))


def bench_blktrace(folder: Path, options: argparse.Namespace) -> None:
    """Converts generated writes, all of them paired, and a repeated recording. Also converts blkparse's text of both."""
    blkparse = shutil.which("blkparse")
    print()
    if blkparse is None:
        print("blkparse: not installed (apt-get install blktrace)")
    events = int(options.size / BYTES_PER_EVENT)
    with (folder / "generated.blktrace.0").open("wb") as out:
        subprocess.run([*BLKTRACE, "--events", str(events)], stdout=out, cwd=ROOT, check=True)
    repeat_records(max(1, events // 1899), folder / "recorded")
    for name in ("generated", "recorded"):
        first = str(folder / f"{name}.blktrace.0")
        summary = subprocess.run(
            [SYNCLINE, "convert", first, "-o", str(folder / "blocks.csv")],
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
        count = int(summary.stderr.split()[0].replace(",", ""))
        command = [SYNCLINE, "convert", "-q", first, "-o", "-", "--to"]
        runs = {to: measure([*command, to], options.times) for to in ("pftrace", "events.jsonl")}
        blkparse_run = None
        if blkparse:
            blkparse_run = measure([blkparse, "-q", "-i", name], options.times, cwd=folder)
        for to, run in runs.items():
            ratio = f", {blkparse_run.wall_s / run.wall_s:.1f} x blkparse" if blkparse_run else ""
            aim = " (aim: 10)" if blkparse_run and to == "pftrace" else ""
            rate = f"{count / run.wall_s / 1e6:.2f} M events/s{ratio}{aim}"
            print_run(f"blktrace ({name}) to {to}", run, rate)
        if not blkparse:
            continue
        size = sum(file.stat().st_size for file in folder.glob(f"{name}.blktrace.?")) / 1e6
        print_run(f"blkparse ({name})", blkparse_run, f"{count:,} events, {size:.0f} MB")
        text = folder / f"{name}.txt"
        with text.open("wb") as out:
            subprocess.run([blkparse, "-q", "-i", name], cwd=folder, stdout=out, check=True)
        grep = measure(["grep", "-c", " Q ", str(text)], options.times)
        run = measure(
            [SYNCLINE, "convert", "-q", str(text), "-o", "-", "--to", "pftrace"], options.times
        )
        print_run(
            f"text of blkparse ({name}) to pftrace",
            run,
            f"{run.wall_s / grep.wall_s:.2f} x grep -c",
        )


def bench_pipe(options: argparse.Namespace, on_disk: Cost) -> None:
    def feeder() -> subprocess.Popen:
        return subprocess.Popen([*BULK, str(int(options.pipe))], stdout=subprocess.PIPE, cwd=ROOT)

    run = measure([SYNCLINE, "convert", "-q", "-", "-o", "-", "--to", "pftrace"], 1, feeder)
    print()
    print_run(
        f"{options.pipe / 1e9:.0f} GB through a pipe",
        run,
        f"{run.peak_bytes / on_disk.peak_bytes:.2f} x the memory of the log on disk (limit: 100 MB)",
    )


def bench_stages(log: Path) -> None:
    if shutil.which("cargo") is None:
        print("\nstages: skipped, cargo is not installed")
        return
    command = ["cargo", "run", "-q", "--release", "--example", "stages", "--", str(log)]
    print("\nstages, one thread each:", flush=True)
    subprocess.run(command, cwd=ROOT / "converter", check=True)


if __name__ == "__main__":
    main()
