"""The kinds of texts, each with the signs by which it is recognized, and what is said of it."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from . import stacks

__all__ = ["KINDS", "Explanation", "Kind", "explained", "kind_of"]

_RECORD = "sudo syncline record --for 30s --and-report"
# Each line of the log is then a mark at its time in the recording.
_RECORD_BESIDE = "sudo syncline record --for 30s -o run && syncline report run marks --marks LOG"
_PRINT = "babeltrace2 TRACE >FILE"
_CALLS = "sudo strace -f -ttt -T -yy -p PID -o FILE"


@dataclass(frozen=True)
class Kind:
    """One kind of text.

    `what`: "it is WHAT". `answers`: "it says ANSWERS". `lacks`: "but not LACKS". `record`: the command that records what is missing.
    `signs`: patterns for a part of a line, one of which is enough. `looks_like_log`: its texts may begin like those of a format that Syncline
    reads.
    """

    what: str
    answers: str
    lacks: str
    record: str
    signs: tuple[str, ...]
    looks_like_log: bool = False


@dataclass(frozen=True)
class Explanation:
    """`message` follows what is wrong with the input. `has_lines`: it has several lines."""

    message: str
    hint: str
    has_lines: bool = False


# In this order: a kind comes before those whose signs its texts may hold too.
KINDS = (
    Kind(
        "a stack of a task, by the kernel's log or /proc/PID/stack",
        "in which function each task waited at one moment",
        "since when its sync ran, or how long it took in that function",
        _RECORD,
        stacks.SIGNS,
    ),
    Kind(
        "the summary of perf trace -s",
        "how often each task made each call, and the shortest, mean and longest time of it",
        "which file a slow fsync was for, or what it waited for",
        _RECORD,
        (r"^\s*Summary of events:\s*$", r"^\s*syscall\s+calls\s+(?:errors\s+)?total\s+min\s+avg"),
    ),
    Kind(
        "the summary of strace -c, which adds the calls up",
        "how often each call was made, and its time in total",
        "how long a single fsync took, or of which file",
        _CALLS,
        (r"^% time\s+seconds\s+usecs/call\s+calls\s",),
    ),
    Kind(
        "the output of iostat",
        "how busy each device was, and its mean latency, over each interval",
        "which of these requests an fsync waited for, or who else used the device",
        _RECORD,
        (r"^Device:?\s+(?:\S+\s+)*(?:r/s|tps)(?:\s|$)", r"^avg-cpu:\s+%user"),
    ),
    Kind(
        "the output of iotop",
        "which threads read and wrote how much in an interval",
        "how long an fsync took, or what it waited for",
        _RECORD,
        (
            r"^\s*(?:Total|Actual|Current) DISK READ\s*:",
            r"^\s*(?:TIME\s+)?[TP]ID\s+PRIO\s+USER\s+DISK READ",
        ),
    ),
    Kind(
        "the output of vmstat",
        "how much the machine read, wrote and waited for devices in an interval",
        "which thread waited, or whether an fsync did",
        _RECORD,
        (r"^procs\s+-+memory-+", r"^\s*r\s+b\s+swpd\s+free\s"),
    ),
    Kind(
        "the result of fio",
        "the distribution of the latencies of its own writes and syncs",
        "what they waited for, or how your program syncs",
        "sudo syncline record --and-report -- fio JOB",
        (
            r"^\s*fsync/fdatasync/sync_file_range:",
            r"^\S.*: \(groupid=\d+, jobs=\d+\): err=",
            r"^\S.*: \(g=\d+\): rw=\w+, bs=",
            r'^\s*\{?\s*"fio version"\s*:',
        ),
    ),
    Kind(
        "the result of pg_test_fsync",
        "how many syncs each method of PostgreSQL's WAL reaches in a second on an idle file",
        "what a sync waits for, or how long those of your server take",
        "sudo syncline record --and-report -- pg_test_fsync -f FILE",
        (
            r"^Compare (?:file sync methods|open_sync with)",
            r"^\s*\w[\w ]*\s+[\d.]+ ops/sec(?:\s+\d+ usecs/op)?\s*$",
        ),
    ),
    Kind(
        "a table of PostgreSQL's pg_stat_wal or pg_stat_io",
        "how often the server synced its WAL or its files, and the time in total",
        "how long a single sync took, or what it waited for",
        _RECORD,
        (r"^\s*(?:stats_reset\s*\|)?.*\bwal_(?:records|sync|sync_time)\s*\|", r"\|\s*fsync_time\b"),
    ),
    Kind(
        "PostgreSQL's log of checkpoints",
        "how many files a checkpoint synced, and the longest, mean and total time",
        "which file was slow, or what its sync waited for",
        _RECORD_BESIDE,
        (r"\b(?:checkpoint|restartpoint) complete: wrote \d+ ",),
    ),
    Kind(
        "etcd's log of slow syncs",
        "when a sync of the WAL took longer than etcd expects, and how long",
        "how long the other syncs took, or what the slow one waited for",
        _RECORD_BESIDE,
        (r'"slow fdatasync"', r"\bsync duration of \S+, expected less than "),
    ),
    Kind(
        "Redis' log of delayed syncs",
        "when a write to the append-only file had waited two seconds for its sync",
        "how long that sync took, or what it waited for",
        _RECORD_BESIDE,
        (r"\bAsynchronous AOF fsync is taking too long\b",),
    ),
    Kind(
        "a histogram that biolatency or its relatives print",
        "how many requests or calls took how long",
        "which of them belong to an fsync, or when they were slow",
        _RECORD,
        (r"^\s*\w[\w ]*\s+:\s*count\s+distribution\s*$", r"^\s*\d+ -> \d+\s+: \d+\s+\|[* ]*\|"),
    ),
    Kind(
        "a map that bpftrace prints, which holds counts and no event",
        "how many events fell into each row",
        "when a single one was slow, or what an fsync waited for",
        _RECORD,
        (
            r"^@[\w]*(?:\[.*\])?:\s*(?:-?\d+)?\s*$",
            r"^[\[(](?:-?\d+[KMGTPE]?|\.\.\.)(?:, (?:-?\d+[KMGTPE]?|\.\.\.))?[\])]\s+\d+ \|[@ ]*\|?\s*$",
        ),
        looks_like_log=True,
    ),
    Kind(
        "text of babeltrace2 with other names than it prints by default (`--names`)",
        "what each event holds",
        "in the form that Syncline reads",
        _PRINT,
        (
            # header, scope, and none.
            r"^timestamp = \S+, (?:[\w:]+ = .*, )?name = \w",
            r"^\[[\d: .-]+\] (?:\(\+\S+\) )?[^{}]*: stream\.\w+(?:\.\w+)? = \{",
            r"^\[[\d: .-]+\] (?:\(\+\S+\) )?[^{}]*: \{ [^{}=]*[^{}= ][^{}=]* \}, \{",
        ),
        looks_like_log=True,
    ),
    Kind(
        "the output of sysdig",
        "when each call ended, in older versions also when it began, and for which file",
        "what an fsync waited for, or in newer versions how long it took",
        _RECORD,
        # The time of day, or what `-t` chooses: a date, seconds, or none. `-pc` adds the container.
        (
            r"^\d+ (?:\d{4}-\d\d-\d\d )?(?:(?:\d\d:\d\d:\d\d|\d+)\.\d{9} )?\d+ \S.*? \(\d+(?:[.:]\d+)*\) [<>] \w+",
        ),
    ),
    Kind(
        "a table of fsyncsnoop, which traces the latency of calls",
        "how long each fsync took, for which thread and file",
        "when it began, or what it waited for",
        _RECORD,
        (r"^\s*(?:TIMEs?\s+)?COMM\s+PID\s+LATms\s+FD\s",),
    ),
    Kind(
        "a table of iosnoop, which traces the requests of devices",
        "how long each request took at the device",
        "which of them an fsync waited for, or how long the fsync took",
        _RECORD,
        (r"^\s*(?:\w+\s+)?COMM\s+PID\s+TYPE\s+DEV\s+BLOCK\s",),
        looks_like_log=True,
    ),
    Kind(
        "a table of fileslower, which lists slow reads and writes",
        "which reads and writes took longer than a limit, for which thread and file",
        "how long an fsync took, or what it waited for",
        _RECORD,
        (r"^\s*TIME\(s\)\s+COMM\s+[PT]ID\s+D\s+BYTES\s+LAT\(ms\)",),
    ),
    Kind(
        "a list of samples of threads by xcapture or psn",
        "in which call, and in which function of the kernel, threads were found how often",
        "how long a single fsync took, or which file's was slow",
        _RECORD,
        (
            r"^\s*TIMESTAMP[\s,].*\bTID[\s,]+TGID[\s,].*\bSTATE[\s,].*\bSYSCALL\b",
            r"^\s*TID\s+TGID\s+STATE\s+USERNAME\s+EXE\s+COMM\s+SYSCALL\b",
            r"^\s*samples \| avg_threads \| ",
        ),
    ),
)

_SIGNS = [(kind, re.compile("|".join(f"(?:{sign})" for sign in kind.signs))) for kind in KINDS]
# What terminals, mails and web pages put into a line or before it.
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_QUOTE = re.compile(r"^(?:> ?)+")
_MAX_LINE = 500


def explained(head: bytes, *, looks_like_log: bool = False) -> Explanation | None:
    """Says what a text is, by its beginning, and what records the rest. None if it is of no kind.

    Args:
        looks_like_log: a log, which holds no event. Its lines may quote those of other tools, which a traced program prints.
    """
    lines = _lines(head)
    kind = _kind_of(lines)
    if kind is None or (looks_like_log and not kind.looks_like_log):
        return None
    if kind.signs is stacks.SIGNS:
        said = stacks.said(lines)
        if said is not None:
            return Explanation(said, _hint(kind), has_lines=True)
    return Explanation(
        f"it is {kind.what}. It says {kind.answers}, but not {kind.lacks}.", _hint(kind)
    )


def kind_of(head: bytes) -> Kind | None:
    """The kind of a text, by its beginning."""
    return _kind_of(_lines(head))


def _hint(kind: Kind) -> str:
    if kind.record == _PRINT:
        return f"print the trace again, without `--names`: `{kind.record}`"
    when = " while syncs are slow" if kind.record == _RECORD else ""
    return f"record the single events instead{when}: `{kind.record}`"


def _kind_of(lines: list[str]) -> Kind | None:
    """Returns the kind that the first telling line shows, among the kinds of this line the first one."""
    shown = (next((kind for kind, sign in _SIGNS if sign.search(line)), None) for line in lines)
    return next((kind for kind in shown if kind), None)


def _lines(head: bytes) -> list[str]:
    """The lines of a text, without what pasting has done to them. Not its last one, if that is cut off."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = head.decode("utf-16", "replace")
    else:
        text = head.decode("utf-8", "replace")
    if "\0" in text:
        return []
    if "&lt;" in text or "&gt;" in text or "&quot;" in text:
        text = html.unescape(text)
    text = _COLOUR.sub("", text.replace("\xa0", " "))
    return [_QUOTE.sub("", line[:_MAX_LINE]).rstrip() for line in text.split("\n")]
