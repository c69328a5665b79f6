"""Compares conversions of a folder of logs with other tools: `python -m tools.corpus FOLDER [--csv FILE]`.

The folder holds logs that the project may not copy: downloaded ones, or a user's. Nothing of them
is kept. Each log is converted to its low-level log, which has a line for each event, and to a trace.
The events are counted by name and compared with

- `trace-cmd report` for trace.dat,
- `blkparse` for the files of blktrace, all CPUs of a device together,
- a search by regular expressions for every format of text.

The table has a row for each log, and below it each event whose counts differ, with the reason if
Syncline gives one. The exit code is 1 if a count differs without a reason, or a conversion fails in
another way than by refusing the log.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from syncline import _core

# Records of blktrace that are no events of the device: who submits, and the time of day.
RECORDS_OF_THE_TRACER = {"process", "timestamp"}
# Marks that a low-level log has besides events.
NOTES = {
    "unparsed_line",
    "lost",
    "lost_by_tracer",
    "counted",
    "end",
    "missing",
    "truncated",
    "io_uring",
}
# `TASK-PID [CPU] FLAGS TIME: NAME: ...` of ftrace and trace-cmd. `sys_fsync -> 0x0` has no colon after the name.
FTRACE = re.compile(r"^\s*.*?-\d+\s+(?:\(\s*[\d-]+\)\s+)?\[\d+\]\s.*?\b\d+(?:\.\d+)?:\s+(\S.*)$")
NAME = re.compile(r"^(?:\w+:)?(\w+)(?:(\()| (->))?")
# Not the modifiers of `cycles:u`.
SYSTEM = re.compile(r"^\w+:(?=\w{5})")
PERF = re.compile(r"^\s*\S.*?\s[\d/-]+\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:\d+\s+)?(\S+?):(?=\s|$)")
BLKPARSE = re.compile(r"^\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+(\w+)\s")
STRACE = re.compile(
    r"^(?:\[pid\s+)?(?:\d+(?:<[^>]*>)?\]?\s+)?(?:[\d:.]+\s+)(?:\(\+\s*[\d.]+\)\s+)?"
    r"(?:<\.\.\. )?(\w+|\+\+\+|---)(?:\(| resumed>| SIG| stopped| exited| killed| superseded)"
)
# The return of a sync call has an event of its own, which is not counted.
SYNC_RETURN = re.compile(r"<\.\.\. (?:fsync|fdatasync|msync|sync|syncfs|sync_file_range) resumed>")
STRACE_NAMES = {"+++": "ended", "---": "signal"}
BPFTRACE = re.compile(
    r"^\d+\s+\d+\s+.*?\s"
    r"(bio_add_folio|bio_submit|bio_complete|start|exit|sync_fs_start|sync_fs_end|wb_start|wb_end"
    r"|(?:commit|commit_wait|fc|fc_wait|flush)_(?:start|end)"
    r"|(?:fsync|fdatasync|msync|sync|syncfs|sync_file_range|write)(?:_exit)?)"
    r"(?:\s|$)"
)
PATTERNS = {"perf": PERF, "blkparse": BLKPARSE, "strace": STRACE, "bpftrace": BPFTRACE}
COMPARED = {*PATTERNS, "ftrace", "trace-dat", "blktrace"}
PER_CPU = re.compile(r"^(.*\.blktrace)\.\d+$")


@dataclass
class Result:
    """A log: the counts of both sides by name of the event."""

    name: str
    format: str
    size: int
    seconds: float = 0.0
    ours: Counter[str] = field(default_factory=Counter)
    theirs: Counter[str] = field(default_factory=Counter)
    requests: int | None = None
    # What Syncline says about events that it did not use.
    reasons: list[str] = field(default_factory=list)
    # The error of a log that Syncline refuses.
    refused: str = ""
    failed: str = ""

    def differences(self) -> list[tuple[str, int, int]]:
        if self.refused:
            return []
        names = sorted(self.ours.keys() | self.theirs.keys())
        counts = [(name, self.ours[name], self.theirs[name]) for name in names]
        return [found for found in counts if found[1] != found[2]]

    def is_explained(self) -> bool:
        return not self.failed and (not self.differences() or bool(self.reasons))


def logs(folder: Path) -> Iterator[list[Path]]:
    """The logs in a folder, each with all of its files."""
    by_cpu: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or ".git" in path.parts or path.stat().st_size == 0:
            continue
        match = PER_CPU.match(str(path))
        if match:
            by_cpu.setdefault(match[1], []).append(path)
        else:
            yield [path]
    yield from by_cpu.values()


def compare(paths: list[Path], root: Path) -> Result:
    """Converts a log, and counts its events with the other tool."""
    name = str(paths[0].relative_to(root)) + (
        f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    )
    result = Result(name, "?", sum(path.stat().st_size for path in paths))
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/out.events.jsonl"
        began = time.monotonic()
        try:
            summary = _core.convert([str(path) for path in paths], log, one_of_several=True)
        except _core.CoreError as error:
            result.refused = str(error.args[0])
            result.seconds = time.monotonic() - began
            return result
        result.seconds = time.monotonic() - began
        result.format = summary["source"]
        if result.format not in COMPARED:
            result.refused = f"{result.format}, which no other tool reads"
            return result
        with Path(log).open(encoding="utf-8") as lines:
            result.ours = count_ours(lines, result.format)
        result.reasons = reasons(summary)
        if result.format == "strace" and drop_returns(result.ours):
            result.reasons.append(
                "a durable write on two lines: its second line is an event of its own"
            )
        _convert_to_trace(paths, folder, result)
    result.theirs = count_theirs(paths, result.format)
    return result


def _convert_to_trace(paths: list[Path], folder: str, result: Result) -> None:
    try:
        summary = _core.convert([str(path) for path in paths], f"{folder}/out.pftrace")
    except _core.CoreError as error:
        # Most public logs have no sync in them.
        if not any(text in str(error.args[0]) for text in ("no event", "none of its")):
            result.failed = f"to a trace: {error.args[0]}"
    else:
        result.requests = summary["requests"]


def count_ours(lines: Iterable[str], source: str) -> Counter[str]:
    """Counts the events of a low-level log by the tracer's names."""
    counts: Counter[str] = Counter()
    for line in lines:
        event = json.loads(line)
        name = event["event"]
        # What a torn line was about is a note with the time of the line.
        if name == "torn_line" or (name in NOTES and "ts_ns" not in event):
            continue
        if source == "bpftrace":
            # A recorded return of a call looks like the call, with `exit` after it.
            name = name.split(" ")[0]
        elif source == "blktrace" and name in RECORDS_OF_THE_TRACER:
            continue
        counts[name] += 1
    return counts


def drop_returns(counts: Counter[str]) -> bool:
    """Drops the returns of sync calls, which strace prints on the line of their call or on one of their own.

    Returns whether some are of writes, whose second lines are counted on the other side.
    """
    returns = [name for name in counts if name.endswith("_exit")]
    for name in returns:
        del counts[name]
    return any("write" in name for name in returns)


def reasons(summary: dict[str, object]) -> list[str]:
    """What Syncline says about lines that it could not use and events that the tracer lost."""
    losses: list[dict[str, object]] = summary["losses"]  # type: ignore[assignment]
    unparsed: list[str] = summary["unparsed"]  # type: ignore[assignment]
    found = [f"{loss['count']:,} {loss['reason']}" for loss in losses if loss["severity"] == "loss"]
    causes = Counter(line.rsplit("(", 1)[-1].rstrip(")") for line in unparsed)
    return found + [f"unparsed: {cause}" for cause in causes]


def count_theirs(paths: list[Path], source: str) -> Counter[str]:
    """Counts the events with another tool."""
    if source == "trace-dat":
        text = _run(["trace-cmd", "report", "-i", str(paths[0])])
        return _count_ftrace(text.splitlines())
    if source == "blktrace":
        base = re.sub(r"\.blktrace\.\d+$", "", str(paths[0]))
        counts = _count(_run(["blkparse", "-q", "-i", base]).splitlines(), BLKPARSE)
        if not counts and len(paths) == 1:
            # A file with the events of all CPUs, as `blktrace -o -` writes it. blkparse reads it from stdin only.
            counts = _count(_run(["blkparse", "-q", "-i", "-"], paths[0]).splitlines(), BLKPARSE)
        return counts
    lines = _lines(paths[0])
    if source == "ftrace":
        return _count_ftrace(lines)
    if source == "strace":
        counts = _count((line for line in lines if not SYNC_RETURN.search(line)), STRACE)
        return Counter({STRACE_NAMES.get(name, name): count for name, count in counts.items()})
    return _count(lines, PATTERNS[source])


def _run(command: list[str], stdin: Path | None = None) -> str:
    text = stdin.read_bytes() if stdin else b""
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    return done.stdout.decode(errors="replace")


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if is_gzip else path.open("rb") as file:
        for line in file:
            yield line.decode(errors="replace").rstrip("\r\n")


def _count(lines: Iterable[str], pattern: re.Pattern[str]) -> Counter[str]:
    found = (pattern.match(line) for line in lines)
    # perf writes `SYSTEM:EVENT`.
    return Counter(SYSTEM.sub("", match[1]) for match in found if match)


def _count_ftrace(lines: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        match = FTRACE.match(line)
        name = match and NAME.match(match[1])
        if name and name[1].startswith("sys_") and (name[2] or name[3]):
            # The kernel's text of system calls has names of its own.
            counts["sys_" + ("enter_" if name[2] else "exit_") + name[1].removeprefix("sys_")] += 1
        elif name:
            counts[name[1]] += 1
    return counts


def show(results: list[Result]) -> None:
    print(f"{'events':>12} {'other tool':>12} {'requests':>9} {'MB':>8} {'s':>7}  format      log")
    for result in results:
        ours, theirs = sum(result.ours.values()), sum(result.theirs.values())
        requests = "-" if result.requests is None else f"{result.requests:,}"
        size = f"{result.size / 1e6:8.2f} {result.seconds:7.2f}"
        print(f"{ours:12,} {theirs:12,} {requests:>9} {size}  {result.format:10}  {result.name}")
        if result.refused:
            print(f"{'':26}refused: {result.refused}")
        if result.failed:
            print(f"{'':26}FAILED: {result.failed}")
        for name, mine, other in result.differences():
            print(f"{mine:12,} {other:12,}   {name}")
        if result.differences():
            print(f"{'':26}{'; '.join(result.reasons) or 'NO REASON'}")


def write_csv(results: list[Result], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["log", "format", "bytes", "seconds", "event", "syncline", "other_tool", "reasons"]
        )
        for one in results:
            head = [one.name, one.format, one.size, round(one.seconds, 3)]
            why = one.refused or one.failed or "; ".join(one.reasons)
            for name in sorted(one.ours.keys() | one.theirs.keys()) or [""]:
                writer.writerow([*head, name, one.ours[name], one.theirs[name], why])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--csv", type=Path, help="write all counts to this file")
    arguments = parser.parse_args()
    missing = [tool for tool in ("trace-cmd", "blkparse") if not shutil.which(tool)]
    if missing:
        print(
            f"{' and '.join(missing)} not found: apt-get install trace-cmd blktrace",
            file=sys.stderr,
        )
        return 2
    results = [compare(paths, arguments.folder) for paths in logs(arguments.folder)]
    show(results)
    if arguments.csv:
        write_csv(results, arguments.csv)
    bad = [result for result in results if not result.is_explained()]
    refused = sum(bool(result.refused) for result in results)
    print(
        f"{len(results)} logs, {refused} refused, {len(bad)} with a difference that has no reason"
    )
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
