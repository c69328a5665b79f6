"""Measures reports on large datasets: time, memory, temporary files, bytes for each request.

    python tests/bench/dataset.py make FOLDER --runs 100 --requests 1000000
    python tests/bench/dataset.py link FOLDER --times 10
    python tests/bench/dataset.py measure FOLDER --runs 1 10 100 --memory 2G [--reports summary files]
    python tests/bench/dataset.py shuffle FOLDER --runs 1 10 [--reports summary files]
    python tests/bench/dataset.py fit RESULTS.jsonl
    python tests/bench/dataset.py operations LOG --requests 1000000

`make` repeats a recording of PostgreSQL, by SQL and not by conversion. Each copy comes later, is slower or faster by
a factor of its own, and names files of its own. So relations between the tables stay true, and values do not repeat.
`link` adds each run again under other names, with links to its files: more requests on the same disk.
`operations` writes a log of strace for `check` and the report `unsynced`: ten operations on each file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import duckdb
from syncline.dataset import index, ingest, layout
from syncline.dataset.layout import TableFile
from syncline.dataset.spark import open_spark
from syncline.dataset.store import open_store
from syncline.engine import EngineError, SqlError
from syncline.engine.run_files import TABLES
from syncline.kinds import resolve
from syncline.reading import Reading
from syncline.report import run_report

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "data" / "known-truth" / "postgres.tar.xz"
# Times are multiplied by a fraction from 1 to 2 with this denominator.
DENOMINATOR = 10_007
TIMES = ("ts_ns", "start_ns")
KEYS = ("sync_id", "call_sync_id", "bio_id", "call_id", "commit_id", "transaction_id")


def make(folder: Path, runs: int, requests: int) -> None:
    store = open_store(str(folder))
    ingest.create(store)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        with tarfile.open(RECORDING) as archive:
            archive.extractall(temporary, filter="data")
        recording = Path(temporary, "postgres")
        base_store = open_store(f"{temporary}/base")
        ingest.create(base_store)
        base = ingest.ingest(
            resolve(str(recording)), base_store, Reading(), ingest.Described()
        ).entry
        source = Path(temporary, "base", base.partition)
        copies = -(-requests // base.requests)
        for number in range(runs):
            rows_id = hashlib.sha256(f"{requests} {number}".encode()).hexdigest()
            run = layout.run_id(f"generated{number}", rows_id)
            if any(name.startswith(run) for name in store.sizes(layout.ENTRIES)):
                continue
            target = Path(temporary, run)
            target.mkdir()
            tables = {}
            for table in TABLES:
                file = target / layout.table_name(table)
                generate(source / file.name, file, table, number, copies)
                rows, size = count(file), file.stat().st_size
                sums = hashlib.sha256(file.read_bytes()).hexdigest()
                tables[table] = TableFile(size, rows, sums, columns_of(file))
            entry = replace(
                base,
                run=run,
                host=f"db{number % 10}",
                day=f"2026-{1 + number // 28 % 12:02}-{1 + number % 28:02}",
                rows_id=rows_id,
                input_id=rows_id,
                tables=tables,
            )
            (target / layout.ENTRY).write_bytes(layout.serialized(entry))
            store.publish(target, entry.partition)
            store.write(f"{layout.ENTRIES}/{entry.file}", layout.serialized(entry))
            print(run, entry.requests, entry.bytes, flush=True)


def link(folder: Path, times: int) -> None:
    """Adds each run of a dataset again, `times` - 1 times."""
    store = open_store(str(folder))
    entries, _ = index.read_entries(store)
    for entry in entries:
        for number in range(1, times):
            rows_id = hashlib.sha256(f"{entry.rows_id} {number}".encode()).hexdigest()
            run = layout.run_id(f"linked{number}", rows_id)
            again = replace(entry, run=run, rows_id=rows_id, input_id=rows_id)
            target = folder / again.partition
            target.mkdir(parents=True)
            for table in entry.tables:
                name = layout.table_name(table)
                os.link(folder / entry.partition / name, target / name)
            store.write(f"{again.partition}/{layout.ENTRY}", layout.serialized(again))
            store.write(f"{layout.ENTRIES}/{again.file}", layout.serialized(again))


def count(file: Path) -> int:
    with duckdb.connect() as db:
        return db.execute(f"SELECT COUNT(*) FROM '{file}'").fetchone()[0]


def columns_of(file: Path) -> dict[str, str]:
    with duckdb.connect() as db:
        return {name: kind for name, kind, *_ in db.execute(f"DESCRIBE FROM '{file}'").fetchall()}


def generate(source: Path, target: Path, table: str, number: int, copies: int) -> None:
    """Writes `copies` copies of a table."""
    columns = columns_of(source)
    with duckdb.connect(config={"memory_limit": "3GB", "threads": 2}) as db:
        if table in ("loss", "mark", "meta"):
            db.execute(f"COPY (FROM '{source}') TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
            return
        sync = source.with_name(layout.table_name("sync"))
        first, last = db.execute(
            f"SELECT MIN(ts_ns), MAX(ts_ns + COALESCE(dur_ns, 0)) FROM '{sync}'"
        ).fetchone()
        seed = f"(copy + {number * copies})"
        factor = f"({DENOMINATOR} + {seed} * 7919 % {DENOMINATOR})"

        def scaled(value: str) -> str:
            return f"(({value}) * {factor} // {DENOMINATOR})"

        parts = []
        for name, kind in columns.items():
            value = f'"{name}"'
            if name in TIMES:
                value = f"{first} + copy * {2 * (last - first)} + {scaled(f'{value} - {first}')}"
            elif name == "dur_ns":
                value = f"COALESCE({scaled(f'ts_ns + dur_ns - {first}')} - {scaled(f'ts_ns - {first}')}, {scaled('dur_ns')})"
            elif name.endswith("_ns"):
                value = scaled(value)
            elif name in KEYS or name == "id":
                value = f"{value} + copy * 1000"
            elif name == "path":
                value = f"{value} || '.' || (copy % 100)"
            parts.append(f'CAST({value} AS {kind}) AS "{name}"')
        db.execute(
            f"COPY (SELECT {', '.join(parts)} FROM range({copies}) AS copies(copy) CROSS JOIN '{source}')"
            f" TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        )


def measure(folder: Path, runs: list[int], memory: str, reports: list[str]) -> None:
    """Prints a line of JSON for each report and number of runs."""
    entries, _ = index.read_entries(open_store(str(folder)))
    for number in runs:
        chosen = entries[:number]
        requests = sum(entry.requests for entry in chosen)
        names = ", ".join(f"'{entry.run}'" for entry in chosen)
        for report in reports:
            with tempfile.TemporaryDirectory(dir=folder) as temporary:
                done = threading.Event()
                peak = [0]
                watch = threading.Thread(target=watch_size, args=(temporary, done, peak))
                watch.start()
                env = {**os.environ, "SYNCLINE_MEMORY": memory, "TMPDIR": temporary}
                command = [str(Path(sys.executable).with_name("syncline"))]
                command += ["report", str(folder), report, "--where", f"run IN ({names})"]
                begun = time.monotonic()
                process = subprocess.Popen([*command, "--format", "json"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
                # In pieces: the rows of `scatter` are more than the memory that is measured.
                rows = 0
                while piece := process.stdout.read(1 << 20):  # type: ignore[union-attr]
                    rows += piece.count(b"\n")
                error = process.stderr.read()  # type: ignore[union-attr]
                _, status, usage = os.wait4(process.pid, 0)
                done.set()
                watch.join()
            print(
                json.dumps(
                    {
                        "requests": requests,
                        "runs": number,
                        "report": report,
                        "wall_s": round(time.monotonic() - begun, 1),
                        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
                        "rss_bytes": usage.ru_maxrss * 1024,
                        "temporary_bytes": peak[0],
                        "code": os.waitstatus_to_exitcode(status),
                        "rows": rows,
                        "error": error.decode()[-300:] if status else "",
                    }
                ),
                flush=True,
            )


def shuffle(folder: Path, runs: list[int], reports: list[str]) -> None:
    """Prints what Spark says of the bytes that it reads and shuffles, a line of JSON for each report and number of runs."""
    entries, _ = index.read_entries(open_store(str(folder)))
    for number in runs:
        names = ", ".join(f"'{entry.run}'" for entry in entries[:number])
        requests = sum(entry.requests for entry in entries[:number])
        spans = []
        with tempfile.TemporaryDirectory() as temporary:
            events = Path(temporary, "events")
            events.mkdir()
            Path(temporary, "spark-defaults.conf").write_text(
                f"spark.eventLog.enabled true\nspark.eventLog.dir {events.as_uri()}\n"
                "spark.eventLog.compress false\n"
            )
            # Spark reads it when it starts.
            os.environ["SPARK_CONF_DIR"] = temporary
            with open_spark(str(folder), f"run IN ({names})", "local[2]") as engine:
                for report in reports:
                    begun = time.time()
                    try:
                        run_report(engine, report)
                        error = ""
                    except (EngineError, SqlError) as failed:
                        error = str(failed)[-300:]
                    spans.append((report, begun * 1000, time.time() * 1000, error))
            tasks = [
                one
                for file in events.rglob("events_*")
                if file.is_file()
                for one in map(json.loads, file.open())
                if one["Event"] == "SparkListenerTaskEnd" and one.get("Task Metrics")
            ]
        for report, begun, ended, error in spans:
            keys = ("tasks", "input", "shuffle", "shuffle_records", "spilled", "cpu_ns")
            sums = dict.fromkeys(keys, 0)
            for one in tasks:
                # Reports run one after the other.
                if not begun <= one["Task Info"]["Launch Time"] <= ended:
                    continue
                metrics = one["Task Metrics"]
                written = metrics["Shuffle Write Metrics"]
                sums["tasks"] += 1
                sums["input"] += metrics["Input Metrics"]["Bytes Read"]
                sums["shuffle"] += written["Shuffle Bytes Written"]
                sums["shuffle_records"] += written["Shuffle Records Written"]
                sums["spilled"] += metrics["Disk Bytes Spilled"]
                sums["cpu_ns"] += metrics["Executor CPU Time"]
            told = {"requests": requests, "report": report, "wall_s": round((ended - begun) / 1000, 1)}  # fmt: skip
            print(json.dumps(told | sums | {"error": error}), flush=True)


def operations(log: Path, number: int) -> None:
    """Writes a log of strace with so many operations, ten on each file, by eight threads in turn."""
    time_us = 1_700_000_000_000_000
    with log.open("w") as out:
        for file in range(number // 10):
            name = f"/w/{file % 100}/f{file}"
            opened = f"3<{name}.new>"
            sync = (f"fsync({opened})", "0")
            # A third of the files is renamed, a third is removed, and a third is synced twice.
            end = ([(f'rename("{name}.new", "{name}")', "0")], [(f'unlink("{name}.new")', "0")], [])
            calls = [
                (
                    f'openat(AT_FDCWD</w>, "{name}.new", O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0644)',
                    opened,
                ),
                *[(f'write({opened}, ""..., 4096)', "4096")] * 6,
                sync,
                *([sync] if file % 3 == 2 else []),
                (f"close({opened})", "0"),
                *end[file % 3],
            ]
            for call, result in calls:
                seconds, micros = divmod(time_us, 1_000_000)
                out.write(f"{100 + file % 8} {seconds}.{micros:06} {call} = {result} <0.000010>\n")
                time_us += 20


def watch_size(folder: str, done: threading.Event, peak: list[int]) -> None:
    """Notes the largest size of the files in a folder, in bytes."""
    while not done.wait(0.5):
        size = 0
        for parent, _, files in os.walk(folder):
            for name in files:
                try:
                    size += Path(parent, name).stat().st_blocks * 512
                except OSError:
                    continue
        peak[0] = max(peak[0], size)


def fit(results: Path) -> None:
    """Prints the fit cpu_s = a * requests^b of each report, and what it says of 10^9 requests."""
    points: dict[str, list[tuple[float, float]]] = {}
    for line in results.read_text().splitlines():
        one = json.loads(line)
        if one["code"] == 0:
            points.setdefault(one["report"], []).append((one["requests"], one["cpu_s"]))
    for report, found in points.items():
        if len(found) < 2:
            continue
        xs, ys = [math.log(x) for x, _ in found], [math.log(y) for _, y in found]
        x, y = sum(xs) / len(xs), sum(ys) / len(ys)
        slope = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum(
            (a - x) ** 2 for a in xs
        )
        worst = max(abs(b - y - slope * (a - x)) for a, b in zip(xs, ys, strict=True))
        at = math.exp(y + slope * (math.log(1e9) - x))
        print(f"{report}\t{slope:.2f}\t{math.expm1(worst) * 100:.0f} %\t{at:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("make", "link", "measure", "shuffle", "fit", "operations"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, nargs="+", default=[1])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--memory", default="2G")
    parser.add_argument("--reports", nargs="+", default=["summary"])
    chosen = parser.parse_args()
    if chosen.what == "make":
        make(chosen.folder, chosen.runs[0], chosen.requests)
    elif chosen.what == "link":
        link(chosen.folder, chosen.times)
    elif chosen.what == "measure":
        measure(chosen.folder, chosen.runs, chosen.memory, chosen.reports)
    elif chosen.what == "shuffle":
        shuffle(chosen.folder, chosen.runs, chosen.reports)
    elif chosen.what == "operations":
        operations(chosen.folder, chosen.requests)
    else:
        fit(chosen.folder)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
