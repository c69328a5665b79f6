"""The recorder as a program of its own, with nothing but Python: `python3 syncline-recorder.pyz --for 30s -o run`."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

from syncline.printable import printable
from syncline.record import armed, guard, session
from syncline.record.errors import OutputError, RecordError
from syncline.record.request import Request
from syncline.run_directory import Filter

_WRONG_USE, _BAD_INPUT = 2, 3
_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_UNITS_KB = {"K": 1, "M": 1 << 10, "G": 1 << 20}
_DESCRIPTION = """Records the syncs of this machine into a run directory, which `syncline report DIR` takes on any machine.
The recording ends when CMD or the process of --pid exits, when the time of --for has passed, or with Ctrl-C. With --slower-than,
it keeps the newest events only, and saves them into a folder in DIR when a sync takes longer."""


def main() -> None:
    """Runs the command line of this process."""
    if sys.argv[1:2] == ["--guard"]:
        guard.main(sys.argv[2:])
        return
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Records as the arguments say. Returns the exit code."""
    given = _parser().parse_args(arguments)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if command and given.pid is not None:
        return _fail("both a command and --pid are given", "leave one of them out", _WRONG_USE)
    if os.geteuid() != 0:
        return _fail("tracing the kernel needs root", f"sudo python3 {sys.argv[0]} ...")
    path = given.path and os.path.realpath(given.path) + "/" * given.path.endswith("/")
    request = Request(
        folder=Path(given.output or time.strftime("syncline-%Y%m%d-%H%M%S")),
        command=command,
        seconds=None if given.duration is None else given.duration / 1e9,
        route=given.route,
        filter=Filter(given.pid, given.comm, path or None, None, given.min_latency, given.cgroup),
        buffer_kb=given.buffer,
        force=given.force,
        has_writes=given.writes,
        has_reads=given.reads == "all",
        has_files=given.files,
        is_alone=True,
        disk_bytes=None
        if given.slower_than is not None or given.disk is None
        else given.disk * 1024,
    )
    try:
        if given.slower_than is not None:
            return _armed(request, given)
        with session.recorded(request, _say) as (_, manifest):
            files = ", ".join(one["file"] for one in manifest["inputs"])
            _say(f"recorded in {request.folder}: {files}")
            if str(manifest["ended_by"]).startswith("failure"):
                why = manifest["ended_by"].partition(": ")[2]
                return _fail(
                    f"the recording ended early: {why}",
                    f"what was recorded until then is in {request.folder}",
                )
            _say(f"hint: where Syncline is installed: syncline report {request.folder}")
    except RecordError as error:
        hint = "" if "syncline doctor" in error.hint else error.hint
        return _fail(
            error.message, hint, _WRONG_USE if isinstance(error, OutputError) else _BAD_INPUT
        )
    return 0


def _armed(request: Request, given: argparse.Namespace) -> int:
    if request.command or request.force:
        what = "a command" if request.command else "--force"
        return _fail(f"--slower-than does not go together with {what}", "leave it out", _WRONG_USE)
    times = {
        f"{name}_s": getattr(given, name) / 1e9
        for name in ("keep", "after", "every")
        if getattr(given, name) is not None
    }
    disk = {} if given.disk is None else {"disk_bytes": given.disk * 1024}
    armed.armed(
        request,
        armed.Arming(slower_than_ns=given.slower_than, captures=given.captures, **times, **disk),
        _say,
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python3 {Path(sys.argv[0]).name}", description=_DESCRIPTION, allow_abbrev=False
    )
    add = parser.add_argument
    add(
        "-o",
        "--output",
        metavar="DIR",
        help="new folder for the recording; syncline-DATE-TIME by default",
    )
    add(
        "--for",
        dest="duration",
        type=_duration,
        metavar="TIME",
        help="stop after this time: 30s, 5min",
    )
    add("--route", choices=armed.ROUTES, help="how to record; the best one by default")
    add("--buffer", type=_size, default="16M", metavar="SIZE", help="ring buffer of each CPU (16M)")
    add("--pid", type=int, metavar="N", help="record only requests of this process, until it ends")
    add("--comm", metavar="NAME", help="only requests of threads with this name")
    add("--path", metavar="TEXT", help="only requests for files whose path begins with TEXT")
    add(
        "--min-latency",
        type=_duration,
        metavar="TIME",
        help="only requests that took at least this long",
    )
    add(
        "--cgroup",
        metavar="NAME",
        help="only requests of processes in this control group or below it",
    )
    add("--writes", action="store_true", help="also record each write")
    add("--reads", choices=("all", "none"), default="all", help="which bios that read are recorded")
    add("--files", action="store_true", help="also record what is done to files")
    add(
        "--slower-than",
        type=_duration,
        metavar="TIME",
        help="wait for a sync that takes longer: 200ms",
    )
    add("--keep", type=_duration, metavar="TIME", help="how much is saved before it (20s)")
    add("--after", type=_duration, metavar="TIME", help="how much is saved after it (2s)")
    add("--captures", type=int, metavar="N", help="end after so many of them")
    add("--every", type=_duration, metavar="TIME", help="save at most one in this time")
    add("--disk", type=_size, metavar="SIZE", help="size of all of them (1G), or of the recording")
    add("--force", action="store_true", help="replace the recording in DIR")
    add("command", nargs=argparse.REMAINDER, metavar="-- CMD", help="a command to record")
    return parser


def _duration(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s|min)", text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a duration; write 500ms or 5s")
    return round(float(found[1]) * _UNITS_NS[found[2]])


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG])B?", text.strip().upper())
    if found is None or not 0 < int(found[1]) * _UNITS_KB[found[2]] <= 1 << 24:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write 64M")
    return int(found[1]) * _UNITS_KB[found[2]]


def _say(text: str) -> None:
    sys.stderr.write(f"syncline: {printable(text)}\n")


def _fail(message: str, hint: str, code: int = _BAD_INPUT) -> int:
    sys.stderr.write(f"syncline: error: {printable(message, chr(10))}\n")
    if hint:
        _say(f"hint: {hint}")
    return code
