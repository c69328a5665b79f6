"""Speed and memory, as ratios to peers measured in the same run; nothing here is asserted.

    make bench                          the whole of it: 1 GB of log, 10 GB through a pipe
    python tests/bench/run.py --size 1e8 --pipe 0

Peers: `grep -c` on the same file, as the limit that reading sets, and btetto (`cargo install btetto`), a Rust converter of
bpftrace's JSON, on the same events. What is not installed is left out, and said.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.reference import thesis  # noqa: E402

BULK = [sys.executable, "-m", "tests.reference.loggen", "--bulk"]
SYNCLINE = shutil.which("syncline", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
# btetto keeps all in memory, so it gets a part of the log.
BTETTO_BYTES = 20_000_000


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
