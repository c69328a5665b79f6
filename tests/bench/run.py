"""Speed and memory, as ratios to peers measured in the same run; nothing here is asserted.

    make bench                          the whole of it: 1 GB of log, 10 GB through a pipe
    python tests/bench/run.py --size 1e8 --pipe 0

Peers: `grep -c` on the same file (a log, a text of the ring buffer), as the limit that reading sets, btetto (`cargo install btetto`), a Rust converter of
bpftrace's JSON, `trace-cmd report` (`apt-get install trace-cmd`) on a trace.dat and `blkparse` (`apt-get install blktrace`) on the
files of blktrace, on the same events. What is not installed is left out, and said.
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
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.reference import blktrace, thesis  # noqa: E402

BULK = [sys.executable, "-m", "tests.reference.loggen", "--bulk"]
SYNCLINE = shutil.which("syncline", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
FTRACE = [sys.executable, "-m", "tests.reference.ftrace"]
TRACE_DAT = [sys.executable, "-m", "tests.reference.tracedat"]
STRACE = [sys.executable, "-m", "tests.reference.stracegen", "--bulk"]
# One event for so many bytes of the log.
TRACE_DAT_SHARE = 500
BLKTRACE = [sys.executable, "-m", "tests.reference.blktrace"]
RECORDED_BLOCKS = sorted((ROOT / "tests" / "data" / "blktrace").glob("small4.blktrace.?"))
RECORDED = ROOT / "tests" / "data" / "tracecmd" / "small4.dat"
BUFFER = 3
PERF_RECORDED = ROOT / "tests" / "data" / "ways" / "perf.txt.gz"
FTRACE_RECORDED = ROOT / "tests" / "data" / "ftrace" / "small4.trace.txt.gz"
# btetto keeps all in memory, so it gets a part of the log.
BTETTO_BYTES = 20_000_000
JSON_BYTES = 200_000_000
PERF_BYTES = 200_000_000


@dataclass
class Run:
    """The best of some runs: wall and CPU seconds, and the peak of resident memory."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def measure(
    command: list[str],
    times: int,
    stdin: Callable[[], subprocess.Popen] | None = None,
    cwd: Path | None = None,
) -> Run:
    """Runs a command several times; its output is read and thrown away (grep stops early when it goes to /dev/null)."""
    best = None
    for _ in range(times):
        feeder = stdin() if stdin else None
        sink = subprocess.Popen(["sh", "-c", "cat > /dev/null"], stdin=subprocess.PIPE)
        begun = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=feeder.stdout if feeder else subprocess.DEVNULL,
            stdout=sink.stdin,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
        )
        if feeder:
            feeder.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        sink.communicate()
        if feeder:
            feeder.wait()
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
        run = Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
        if best is None or run.wall_s < best.wall_s:
            best = run
    return best


def say(what: str, run: Run, note: str = "") -> None:
    print(
        f"{what:44} {run.wall_s:8.3f} s wall {run.cpu_s:8.3f} s CPU {run.peak_bytes / 1e6:8.1f} MB  {note}",
        flush=True,
    )


def as_btetto(log: bytes) -> tuple[bytes, int]:
    """The events of a log in btetto's convention: what begins and ends is a slice, the rest are instants."""
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
        "--pipe", type=float, default=1e10, help="bytes of the log through a pipe; 0: none"
    )
    parser.add_argument(
        "--times", type=int, default=5, help="runs of each, of which the best counts"
    )
    options = parser.parse_args()
    if SYNCLINE is None:
        raise SystemExit("syncline is not installed; run `make .venv/.installed` first")

    with tempfile.TemporaryDirectory(prefix="syncline-bench-") as folder:
        # Modules are compiled by the first run, as those of an installed program are.
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
        f"a log of {size / 1e9:.2f} GB, {events:,} events, {os.cpu_count()} cores, page cache warm; best of {options.times}\n"
    )

    grep = measure(["grep", "-c", "bio_submit", str(log)], options.times)
    say("grep -c bio_submit", grep)
    convert = measure([SYNCLINE, "convert", "-q", str(log), "-o", str(trace)], options.times)
    say(
        "syncline convert, log to trace",
        convert,
        f"{convert.wall_s / grep.wall_s:.2f} x grep (aim: 2)",
    )
    null = measure(
        [SYNCLINE, "convert", "-q", str(log), "-o", "-", "--to", "pftrace"], options.times
    )
    say("the same, trace to /dev/null", null, f"{null.wall_s / grep.wall_s:.2f} x grep")
    tables = measure([SYNCLINE, "convert", "-q", str(log), "-o", f"{folder}/tables/"], 1)
    say("log to Parquet tables", tables, f"{tables.wall_s / grep.wall_s:.2f} x grep")
    print(
        f"{'':44} {events / convert.wall_s / 1e6:.2f} M events/s; the trace is {trace.stat().st_size / size:.2f} of the log"
    )

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
    say(
        f"btetto, {count:,} events",
        run,
        f"{run.peak_bytes / len(lines):.1f} bytes of memory per byte of input",
    )
    theirs = count / run.wall_s
    print(f"{'':44} {theirs / 1e6:.2f} M events/s; syncline {rate / theirs:.0f} x that (aim: 60)")
    # Of the same file syncline makes no syncs of most: its names are not btetto's users'.
    ours = measure(
        [SYNCLINE, "convert", "-q", str(events), "-o", str(folder / "x.events.jsonl")], 3
    )
    say("the same file to low-level log", ours, f"{run.wall_s / ours.wall_s:.0f} x btetto")


def bench_json(folder: Path, log: Path, options: argparse.Namespace) -> None:
    """A log as `bpftrace -f json` writes it, against the same as text."""
    text, made = folder / "x.log", folder / "x.json"
    # Line by line: what this process has had in memory at its most counts as the peak of those that it starts, too.
    with log.open("rb") as lines, text.open("wb") as plain, made.open("wb") as out:
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
        for file in (text, made)
    ]
    say(f"log as text, {text.stat().st_size / 1e6:.0f} MB", runs[0])
    say(
        f"the same as JSON, {made.stat().st_size / 1e6:.0f} MB",
        runs[1],
        f"{runs[1].wall_s / runs[0].wall_s:.1f} x the text, {made.stat().st_size / runs[1].wall_s / 1e6:.0f} MB/s",
    )


def repeat_pages(data: bytes, times: int, out: BinaryIO) -> None:
    """A trace.dat of version 7, not packed, whose pages follow again and again."""
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
        cpu: [data[at : at + page_bytes] for at in range(place, place + size, page_bytes)]
        for cpu, place, size in cpus
    }
    begun = [struct.unpack_from("<Q", page)[0] for own in pages.values() for page in own]
    span = max(begun) - min(begun) + 500_000_000
    out.write(data[:section] + bytes(-section % page_bytes))
    places = b""
    for cpu, own in pages.items():
        place = out.tell()
        for number in range(times):
            for page in own:
                (ts,) = struct.unpack_from("<Q", page)
                out.write(struct.pack("<Q", ts + number * span) + page[8:])
        places += struct.pack("<IQQ", cpu, place, out.tell() - place)
    option = option[: table + 8] + places
    options = struct.pack("<HI", BUFFER, len(option)) + option + struct.pack("<HIQ", 0, 8, 0)
    new = out.tell()
    out.write(struct.pack("<HHIQ", 0, 0, 0, len(options)) + options)
    # What pointed to the old options points to the new ones.
    out.seek(data.rindex(struct.pack("<HIQ", 0, 8, section), 0, section) + 6)
    out.write(struct.pack("<Q", new))


def bench_ftrace(folder: Path, options: argparse.Namespace) -> None:
    """A text of made events, most of which are paired, and a recording again and again, most of which are not."""
    print()
    made, recorded = folder / "made.txt", folder / "recorded.txt"
    with made.open("wb") as out:
        subprocess.run(
            [*FTRACE, "--bytes", str(int(options.size))], stdout=out, cwd=ROOT, check=True
        )
    lines = gzip.decompress(FTRACE_RECORDED.read_bytes()).splitlines(keepends=True)
    events = [line for line in lines if not line.startswith(b"#")]
    at = [line.index(b"] ", 16) + 8 for line in events]
    times = [
        int(line[n : line.index(b": ", n)].replace(b".", b""))
        for line, n in zip(events, at, strict=True)
    ]
    with recorded.open("wb") as out:
        for number in range(int(options.size / sum(map(len, lines)))):
            moved = number * (max(times) - min(times) + 1000)
            for line, n, us in zip(events, at, times, strict=True):
                time = f"{(us + moved) // 10**6:5}.{(us + moved) % 10**6:06}".encode()
                out.write(line[:n] + time + line[line.index(b": ", n) :])
    for name, text in {"made": made, "recorded": recorded}.items():
        grep = measure(["grep", "-c", "bio_submit", str(text)], options.times)
        command = [SYNCLINE, "convert", "-q", str(text), "-o", "-", "--to", "pftrace"]
        run = measure(command, options.times)
        say(f"grep -c bio_submit ({name}, {text.stat().st_size / 1e6:.0f} MB)", grep)
        ratio = run.wall_s / grep.wall_s
        say(f"text of the ring buffer ({name}) to trace", run, f"{ratio:.1f} x grep (aim: 4)")


def bench_trace_dat(folder: Path, options: argparse.Namespace) -> None:
    """Pages of a recording again and again, and made events, most of which are paired; `trace-cmd report` makes text of them."""
    trace_cmd = shutil.which("trace-cmd")
    print()
    files = {"made": folder / "made.dat"}
    with files["made"].open("wb") as out:
        command = [*TRACE_DAT, "--events", str(int(options.size / TRACE_DAT_SHARE))]
        subprocess.run(command, stdout=out, cwd=ROOT, check=True)
    if trace_cmd:
        plain, files["recorded"] = folder / "plain.dat", folder / "recorded.dat"
        files["recorded, zstd"] = folder / "packed.dat"
        change = [trace_cmd, "convert", "--file-version", "7", "--compression"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
        subprocess.run([*change, "none", "-i", RECORDED, "-o", plain], **quiet)
        times = max(1, int(options.size / TRACE_DAT_SHARE / 3377))
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
        theirs = measure([trace_cmd, "report", str(dat)], options.times) if trace_cmd else None
        for to, run in runs.items():
            ratio = f", {theirs.wall_s / run.wall_s:.1f} x trace-cmd report" if theirs else ""
            aim = " (aim: 10)" if theirs and to == "pftrace" else ""
            say(
                f"trace.dat ({name}) to {to}",
                run,
                f"{events / run.wall_s / 1e6:.2f} M events/s{ratio}{aim}",
            )
        if theirs:
            size = dat.stat().st_size / 1e6
            say(f"trace-cmd report ({name})", theirs, f"{events:,} events, {size:.0f} MB")


def bench_strace(folder: Path, options: argparse.Namespace) -> None:
    """Small files by four threads: all calls, or those alone that tell of syncs; grep reads the same file."""
    log = folder / "strace.log"
    for what, others in (("all calls", 54), ("its own calls", 0)):
        command = [*STRACE, str(int(options.size)), "--others", str(others)]
        with log.open("wb") as out:
            subprocess.run(command, stdout=out, cwd=ROOT, check=True)
        print()
        grep = measure(["grep", "-c", "fsync", str(log)], options.times)
        size = log.stat().st_size / 1e9
        say(f"grep -c fsync, {size:.2f} GB of strace", grep, f"1 sync in {6 + others} lines")
        for to in ("pftrace", "folded"):
            convert = [SYNCLINE, "convert", "-q", str(log), "-o", "-", "--to", to]
            run = measure(convert, options.times)
            aim = " (aim: 4)" if to == "pftrace" else ""
            say(f"strace ({what}) to {to}", run, f"{run.wall_s / grep.wall_s:.2f} x grep{aim}")


def bench_perf(folder: Path, options: argparse.Namespace) -> None:
    """A recording over and over, 100 s apart, with its stacks and without."""
    text = gzip.decompress(PERF_RECORDED.read_bytes())
    body = text[text.index(b"\next4lazyinit") + 1 :]
    plain = re.sub(rb"(?m)^(\t.*)?\n", b"", body)
    for what, piece in (("with stacks", body), ("without", plain)):
        file = folder / "perf.txt"
        with file.open("wb") as out:
            for n in range(PERF_BYTES // len(piece) + 1):
                moved = rb"\g<1>%d\g<2>" % (n * 100)
                out.write(re.sub(rb"(?m)^(\S.*\] +)\d+(\.\d{9}: )", moved, piece))
        grep = measure(["grep", "-c", "fdatasync", str(file)], options.times)
        command = [SYNCLINE, "convert", "-q", str(file), "-o", "-", "--to", "pftrace"]
        run = measure(command, options.times)
        say(
            f"perf's text ({what}) to pftrace",
            run,
            f"{run.wall_s / grep.wall_s:.2f} x grep (aim: 4)",
        )


def repeat_records(times: int, to: Path) -> None:
    """A recording's files again and again, with later times and higher numbers."""
    own = [blktrace.records(file.read_bytes()) for file in RECORDED_BLOCKS]
    every = [record.time for records in own for record in records]
    span = max(every) - min(every) + 500_000_000
    for cpu, records in enumerate(own):
        last = max(record.sequence for record in records)
        with to.with_name(f"{to.name}.blktrace.{cpu}").open("wb") as out:
            for number in range(times):
                for record in records:
                    record.time += span if number else 0
                    record.sequence += last if number and record.sequence else 0
                out.write(b"".join(record.packed() for record in records))


def bench_blktrace(folder: Path, options: argparse.Namespace) -> None:
    """Writes that are all paired, and a recording again and again; blkparse makes text of them, which is read too."""
    blkparse = shutil.which("blkparse")
    print()
    if blkparse is None:
        print("blkparse: not installed (apt-get install blktrace)")
    events = int(options.size / TRACE_DAT_SHARE)
    with (folder / "made.blktrace.0").open("wb") as out:
        subprocess.run([*BLKTRACE, "--events", str(events)], stdout=out, cwd=ROOT, check=True)
    repeat_records(max(1, events // 1899), folder / "recorded")
    for name in ("made", "recorded"):
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
        theirs = None
        if blkparse:
            theirs = measure([blkparse, "-q", "-i", name], options.times, cwd=folder)
        for to, run in runs.items():
            ratio = f", {theirs.wall_s / run.wall_s:.1f} x blkparse" if theirs else ""
            aim = " (aim: 10)" if theirs and to == "pftrace" else ""
            rate = f"{count / run.wall_s / 1e6:.2f} M events/s{ratio}{aim}"
            say(f"blktrace ({name}) to {to}", run, rate)
        if not blkparse:
            continue
        size = sum(file.stat().st_size for file in folder.glob(f"{name}.blktrace.?")) / 1e6
        say(f"blkparse ({name})", theirs, f"{count:,} events, {size:.0f} MB")
        text = folder / f"{name}.txt"
        with text.open("wb") as out:
            subprocess.run([blkparse, "-q", "-i", name], cwd=folder, stdout=out, check=True)
        grep = measure(["grep", "-c", " Q ", str(text)], options.times)
        run = measure(
            [SYNCLINE, "convert", "-q", str(text), "-o", "-", "--to", "pftrace"], options.times
        )
        say(f"its text ({name}) to pftrace", run, f"{run.wall_s / grep.wall_s:.2f} x grep -c")


def bench_pipe(options: argparse.Namespace, on_disk: Run) -> None:
    def feeder() -> subprocess.Popen:
        return subprocess.Popen([*BULK, str(int(options.pipe))], stdout=subprocess.PIPE, cwd=ROOT)

    run = measure([SYNCLINE, "convert", "-q", "-", "-o", "-", "--to", "pftrace"], 1, feeder)
    print()
    say(
        f"{options.pipe / 1e9:.0f} GB through a pipe",
        run,
        f"{run.peak_bytes / on_disk.peak_bytes:.2f} x the memory of the log on disk (limit: 100 MB)",
    )


def bench_stages(log: Path) -> None:
    if shutil.which("cargo") is None:
        print("\nstages: no cargo")
        return
    command = ["cargo", "run", "-q", "--release", "--example", "stages", "--", str(log)]
    print("\nstages, one thread each:", flush=True)
    subprocess.run(command, cwd=ROOT / "converter", check=True)


if __name__ == "__main__":
    main()
