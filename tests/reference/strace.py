"""A plain, slow reader of strace logs that works differently from the core.

It first joins the two lines of an unfinished and resumed call, so that each call is one text. Regular
expressions then parse that text. The reader keeps only what `syncline_sync` needs.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

PREFIX = re.compile(
    r"(?:\[pid +(?P<bracket>\d+)(?:<(?P<comm1>[^>]*)>)?\] |(?P<unbracketed>\d{1,7})(?:<(?P<comm2>[^>]*)>)?(?= ))?"
    r" *(?:(?P<clock>\d\d:\d\d:\d\d(?:\.\d+)?)|(?P<number>\d+(?:\.\d+)?)) (?:\(\+[^)]*\) )?"
    r"(?P<text>.*)",
    re.S,
)
UNFINISHED = re.compile(r" ?<(?:unfinished|detached) \.\.\.>$")
RESUMED = re.compile(r"<\.\.\. (?P<name>\S+) resumed>(?P<rest>.*)$", re.S)
CALL = re.compile(r"(?P<name>[a-z_0-9?]+)\((?P<rest>.*)$", re.S)
RESULT = re.compile(
    r"\)\s*= (?P<ret>-?\d+|\?|0x[0-9a-f]+)(?P<file><.*>(?:\(deleted\))?)?"
    r"(?: (?P<error>E[A-Z0-9_]+) \([^)]*\))?(?: \([A-Z]+\))*(?: <(?P<dur>\d+\.\d+)>)?$",
    re.S,
)
STRING = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"(?P<truncated>\.\.\.)?', re.S)
FD = re.compile(
    r"(?P<fd>-?\d+|AT_FDCWD)(?:<(?P<path>(?:/|\\x2f)[^<>]*)(?:<[^>]*>)?>(?P<deleted>\(deleted\))?)?"
)
ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|[0-7]{1,3}|.)", re.S)
CONTROL_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}
SYNCS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
KERNEL_ERRNO = {"ERESTARTSYS": 512, "ERESTARTNOINTR": 513, "ERESTARTNOHAND": 514}
KERNEL_ERRNO |= {"ERESTART_RESTARTBLOCK": 516}


def text_of(data: bytes) -> str:
    """Decodes bytes as the tables show them."""
    return data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def unescape(text: str) -> bytes:
    def replace(match: re.Match[bytes]) -> bytes:
        code = match[1]
        if code[:1] == b"x" and len(code) == 3:
            return bytes([int(code[1:], 16)])
        if code[:1].isdigit():
            return bytes([int(code, 8) & 255])
        return CONTROL_ESCAPES.get(code, code)

    return ESCAPE.sub(replace, text.encode("latin-1"))


def seconds(text: str) -> int:
    """Converts seconds to ns, without floating point."""
    whole, _, fraction = text.partition(".")
    return int(whole) * 10**9 + int(fraction.ljust(9, "0") or 0)


@dataclass
class Task:
    pid: int | None = None
    comm: str | None = None
    # By descriptor: path, whether opened with O_SYNC or O_DSYNC, whether close-on-exec.
    files: dict[int, tuple[bytes | None, bool, bool]] = field(default_factory=dict)
    # Text, time and line of an unfinished call.
    unfinished: tuple[str, int, int] | None = None
    row: Row | None = None
    clone: str | None = None  # arguments of an open clone
    # The files at the entry of the call.
    files_at_entry: dict[int, tuple[bytes | None, bool, bool]] = field(default_factory=dict)


class Reader:
    """Reads a log. `rows` are the rows of `syncline_sync`, in the order of their entries."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.tasks: dict[int | None, Task] = {}
        self.unparsed: list[int] = []
        self.io_uring = 0
        # Whether strace started the program: the first call is execve.
        self.is_tree: bool | None = None

    def read(self, data: bytes) -> Reader:
        last: Row | None = None
        for number, line in enumerate(data.decode("latin-1").split("\n"), 1):
            if line.startswith(" > "):
                if last is not None:
                    last.setdefault("frames", []).append(line[3:])
                continue
            if not line or line.startswith("strace: "):
                continue
            last = None
            match = PREFIX.fullmatch(line)
            if match is None:
                self.unparsed.append(number)
                continue
            last = self.line(match, number)
        return self

    def line(self, match: re.Match[str], number: int) -> Row | None:
        digits = match["bracket"] or match["unbracketed"]
        tid = int(digits) if digits else None
        if match["clock"]:
            hours, minutes, rest = match["clock"].split(":")
            ts = (int(hours) * 60 + int(minutes)) * 60 * 10**9 + seconds(rest)
        else:
            ts = seconds(match["number"])
        text = match["text"]
        call = CALL.match(text)
        if self.is_tree is None and call:
            self.is_tree = call["name"] == "execve"
        if tid not in self.tasks:
            self.tasks[tid] = self.new_task(tid)
        task = self.tasks[tid]
        comm = match["comm1"] or match["comm2"]
        if comm:
            task.comm = text_of(unescape(comm))
        if text.startswith("---"):
            return None
        if text.startswith("+++"):
            del self.tasks[tid]
            return None
        resumed = RESUMED.match(text)
        if resumed:
            unfinished, task.unfinished = task.unfinished, None
            if unfinished is None:
                return None
            return self.call(tid, task, unfinished[0] + resumed["rest"], unfinished[1], number, ts)
        if UNFINISHED.search(text):
            text = UNFINISHED.sub("", text)
            task.unfinished = (text, ts, number)
            self.entry(tid, task, text, ts)
            return None
        self.entry(tid, task, text, ts)
        return self.call(tid, task, text, ts, number)

    def new_task(self, tid: int | None) -> Task:
        """Creates a task for a thread that runs before its clone has returned.

        Its parent is known only if strace started the program and exactly one clone is open.
        """
        if not self.is_tree:
            return Task()
        parents = [task for task in self.tasks.values() if task.clone is not None]
        return self.child(parents[0], tid, parents[0].clone or "") if len(parents) == 1 else Task()

    @staticmethod
    def child(parent: Task, tid: int | None, flags: str) -> Task:
        thread = "CLONE_THREAD" in flags
        shared = thread or "CLONE_FILES" in flags
        files = parent.files if shared else dict(parent.files)
        return Task(parent.pid if thread else tid, parent.comm, files)

    def entry(self, tid: int | None, task: Task, text: str, ts: int) -> None:
        """Applies the effects of a call at its entry."""
        match = CALL.match(text)
        if match is None:
            return
        name, args = match["name"], match["rest"]
        task.files_at_entry = dict(task.files)
        fd = FD.match(args)
        number = int(fd["fd"]) if fd and fd["fd"].lstrip("-").isdigit() else None
        if name in ("clone", "clone3", "fork", "vfork"):
            task.clone = args
        elif name == "close" and number is not None:
            task.files.pop(number, None)
        elif name.startswith("io_uring_") and name != "io_uring_register":
            self.io_uring += 1
        path, is_sync, _ = (
            task.files.get(number, (None, False, False))
            if number is not None
            else (None, False, False)
        )
        has_sync_flag = name == "pwritev2" and re.search(r"RWF_D?SYNC", args) is not None
        if name not in SYNCS and not (name in WRITES and (is_sync or has_sync_flag)):
            return
        if fd and fd["path"] and not (name in WRITES and not has_sync_flag):
            path = unescape(fd["path"]) + (b" (deleted)" if fd["deleted"] else b"")
        task.row = {
            "ts_ns": ts,
            "dur_ns": None,
            "tid": tid,
            "pid": task.pid,
            "comm": task.comm,
            "op": name if name in SYNCS else "write",
            "path": text_of(path)
            if path is not None and name not in ("msync", "sync", "syncfs")
            else None,
            "ret": None,
            "incomplete": "end",
        }
        self.rows.append(task.row)

    def call(
        self,
        tid: int | None,
        task: Task,
        text: str,
        ts: int,
        number: int,
        resumed: int | None = None,
    ) -> Row | None:
        """Applies the effects of a call at its exit. Returns the row of a sync call."""
        match, result = CALL.match(text), RESULT.search(text)
        task.clone = None
        row, task.row = task.row, None
        if match is None:
            self.unparsed.append(number)
            return None
        name, args = match["name"], match["rest"]
        if result is None:
            return None
        ret = self.ret(result)
        if row is not None:
            if ret is not None:
                row["ret"], row["incomplete"] = ret, None
                if result["dur"]:
                    row["dur_ns"] = seconds(result["dur"])
                elif resumed is not None:
                    row["dur_ns"] = resumed - ts
            return row
        if ret is None or ret < 0:
            return None
        self.effect(tid, task, name, args, ret, result)
        return None

    @staticmethod
    def ret(result: re.Match[str]) -> int | None:
        error = result["error"]
        if error:
            return -(KERNEL_ERRNO.get(error) or getattr(errno, error))
        return None if result["ret"] == "?" else int(result["ret"], 0)

    def effect(
        self, tid: int | None, task: Task, name: str, args: str, ret: int, result: re.Match[str]
    ) -> None:
        fd = FD.match(args)
        number = int(fd["fd"]) if fd and fd["fd"].lstrip("-").isdigit() else None
        strings = [
            unescape(m["text"]) + (m["truncated"] or "").encode() for m in STRING.finditer(args)
        ]
        if name in ("open", "openat", "openat2", "creat"):
            path: bytes | None = strings[0]
            returned = FD.match("0" + (result["file"] or ""))
            if returned and returned["path"]:
                path = unescape(returned["path"])
            elif path is not None and not path.startswith(b"/") and name.startswith("openat"):
                folder = task.files_at_entry.get(number, (None,))[0] if number is not None else None
                if fd and fd["path"]:
                    folder = unescape(fd["path"])
                path = folder.rstrip(b"/") + b"/" + path if folder else path
            if "O_TMPFILE" in args:
                path = None
            flags = STRING.sub("", args)
            sync = re.search(r"\bO_D?SYNC\b", flags) is not None
            task.files[ret] = (path, sync, re.search(r"\bO_CLOEXEC\b", flags) is not None)
        elif name in ("dup", "dup2", "dup3") or (name == "fcntl" and "F_DUPFD" in args):
            if number in task.files_at_entry:
                path, sync, _ = task.files_at_entry[number]
                task.files[ret] = (path, sync, "CLOEXEC" in args)
            else:
                task.files.pop(ret, None)
        elif name in ("socket", "accept4", "epoll_create1", "eventfd2", "memfd_create"):
            task.files.pop(ret, None)
        elif name in ("clone", "clone3", "fork", "vfork"):
            # The child may already have run and changed its state. Its parent may be known only now.
            existing = self.tasks.get(ret)
            if existing is None or (existing.pid is None and not self.is_tree):
                child = self.child(task, ret, args)
                if existing is not None:
                    child.files.update(existing.files)
                    child.unfinished, child.row, child.clone, child.comm = (
                        existing.unfinished,
                        existing.row,
                        existing.clone,
                        existing.comm or child.comm,
                    )
                self.tasks[ret] = child
        elif name == "execve":
            task.pid = tid
            task.comm = text_of(strings[0].rsplit(b"/", 1)[-1][:15])
            task.files = {n: file for n, file in task.files.items() if not file[2]}
        elif name == "prctl" and args.startswith("PR_SET_NAME"):
            task.comm = text_of(strings[0])
        elif name == "fcntl" and "F_SETFD" in args and number in task.files:
            path, sync, _ = task.files[number]
            task.files[number] = (path, sync, "FD_CLOEXEC" in args)


def rows(data: bytes) -> list[Row]:
    """The rows of `syncline_sync` for a log."""
    return Reader().read(data).rows
