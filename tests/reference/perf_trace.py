"""The sync calls of perf trace's text, by one regular expression: the reference for `perf_trace.rs`."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass

SYNCS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")
_LINE = re.compile(
    r"\s*(?P<at>\?|\d+\.\d{3}) \(\s*(?:(?P<dur>\d+\.\d{3}) ms|)\s*\): "
    r"(?:(?P<comm>[^/]*(?:/[^/ ]*)*?)/(?P<tid>\d+) )?\s*(?P<rest>\.\.\. \[continued\]: )?"
    r"(?P<call>\w+)\((?P<args>.*?)\)?\s*(?:(?P<open>\.\.\.)|\)?\s+= (?P<ret>-?\d+|0x[0-9a-f]+)(?: (?P<error>E\w+) \(.*\))?)\s*$"
)


@dataclass
class Call:
    """A sync call. Times are in ns; `None` if the text does not say."""

    op: str
    tid: int | None
    comm: str | None
    path: str | None
    entered: int | None
    dur: int | None = None
    ret: int | None = None


def _ns(text: str | None) -> int | None:
    return None if text in (None, "?") else int(str(text).replace(".", "")) * 1000


def read(text: str) -> list[Call]:
    """The calls in the order of the lines in which they are first named. An end goes to the open call of its thread and name."""
    calls: list[Call] = []
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is None or found["call"] not in SYNCS:
            continue
        tid = int(found["tid"]) if found["tid"] else None
        comm = None if found["comm"] in (None, "", f":{tid}") else found["comm"]
        ret = None if found["ret"] is None else int(found["ret"], 0)
        if found["error"]:
            ret = -getattr(errno, found["error"])
        if found["rest"]:
            of = [
                call
                for call in calls
                if (call.tid, call.op) == (tid, found["call"]) and call.ret is None
            ]
            if of:
                of[-1].dur, of[-1].ret = _ns(found["dur"]), ret
            continue
        path = re.match(r"fd: \d+<(/.*?)>(?:, |$)", found["args"])
        calls.append(
            Call(
                *(found["call"], tid, comm, path[1] if path else None, _ns(found["at"])),
                *(_ns(found["dur"]), ret),
            )
        )
    return calls
