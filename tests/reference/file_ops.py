"""A second reader of the operations on files in a log of strace, for logs that name each thread, and have a duration for each call.

The reader of syncs joins the lines of a call and follows descriptors; this one turns each joined call into a row of `syncline_file_op`.
"""

from __future__ import annotations

import errno
import re
from typing import Any

from tests.reference.strace import (
    CALL,
    FD,
    RESULT,
    STRING,
    Reader,
    Row,
    Task,
    seconds,
    text_of,
    unescape,
)

# Name -> operation, and its arguments: `d` a folder and a path in it, `p` a path, `t` the text of a link, `f` a descriptor, `-` another one,
# `o` an offset, `l` a length, `g` flags. An upper-case letter is of the new name.
CALLS = {
    "open": ("open", "pg"),
    "openat": ("open", "dg"),
    "openat2": ("open", "dg"),
    "creat": ("open", "p"),
    "write": ("write", "f"),
    "writev": ("write", "f"),
    "pwrite64": ("write", "f--o"),
    "pwritev": ("write", "f--o"),
    "pwritev2": ("write", "f--og"),
    "sendfile": ("write", "f"),
    "copy_file_range": ("write", "--f"),
    "sendto": ("send", "f"),
    "truncate": ("truncate", "po"),
    "ftruncate": ("truncate", "fo"),
    "fallocate": ("allocate", "fgol"),
    "rename": ("rename", "pP"),
    "renameat": ("rename", "dD"),
    "renameat2": ("rename", "dDg"),
    "link": ("link", "pP"),
    "linkat": ("link", "dDg"),
    "symlink": ("symlink", "tp"),
    "symlinkat": ("symlink", "td"),
    "unlink": ("unlink", "p"),
    "unlinkat": ("unlink", "dg"),
    "rmdir": ("rmdir", "p"),
    "mkdir": ("mkdir", "p"),
    "mkdirat": ("mkdir", "d"),
    "close": ("close", "f"),
    "dup": ("dup", "f"),
    "dup2": ("dup", "f"),
    "dup3": ("dup", "f-g"),
    "exit_group": ("exit", ""),
    "exit": ("exit", ""),
}
DURATION = re.compile(r" <(\d+\.\d+)>$")
END = re.compile(r"\+\+\+ (?:exited with|killed by (?P<signal>\w+))")
ANNOTATED = re.compile(r"-?\w+<(?P<inside>.*)>(?P<deleted>\(deleted\))?", re.S)


def arguments(text: str) -> list[str]:
    """Splits at the commas outside of quotes, brackets and names of files."""
    found, depth, start = [], 0, 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|<[^>]*>|[\[\](){},]', text, re.S):
        token = match[0]
        depth += (token in "[({") - (token in "])}")
        if token == "," and depth == 0:
            found.append(text[start : match.start()].strip())
            start = match.end()
    return [*found, text[start:].strip()]


class FileReader(Reader):
    """`ops` are the rows of `syncline_file_op`, in the order in which each thread made them."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Row] = []
        # By process. A child begins where its parent is.
        self.cwd: dict[int | None, bytes] = {}
        # Threads whose last call ends them.
        self.exiting: set[int | None] = set()

    def line(self, match: re.Match[str], number: int) -> Row | None:
        found = END.match(match["text"])
        tid = int(match["bracket"] or match["unbracketed"] or 0) or None
        if found is None or tid in self.exiting:
            self.exiting.discard(tid)
            return super().line(match, number)
        # It is ended by another thread, or by a signal.
        task = self.tasks.get(tid) or self.new_task(tid)
        row: Row = dict.fromkeys(("fd", "path", "to_path", "offset_bytes", "length"))
        row |= {"op": "exit", "flags": found["signal"], "confidence": "exact"}
        clock = match["clock"].split(":") if match["clock"] else None
        ts = (
            (int(clock[0]) * 60 + int(clock[1])) * 60 * 10**9 + seconds(clock[2])
            if clock
            else seconds(match["number"])
        )
        self.finish(tid, task, row, ts, None)
        return super().line(match, number)

    def folder_of(self, arg: str, task: Task) -> bytes | None:
        """The folder of a descriptor, or the working directory."""
        match = FD.fullmatch(arg)
        if match is not None and match["path"] is not None:
            return unescape(match["path"])
        number = arg.split("<")[0]
        if number == "AT_FDCWD":
            return self.cwd.get(task.pid)
        return task.files_at_entry.get(int(number), (None,))[0]

    def op(self, task: Task, name: str, args: list[str]) -> Row:
        op, kinds = CALLS[name]
        row: dict[str, Any] = dict.fromkeys(
            ("fd", "path", "to_path", "flags", "offset_bytes", "length")
        )
        row["op"], known = op, []
        rest = list(args)
        for kind in kinds:
            arg = rest.pop(0) if rest else ""
            if kind in "pPdDt":
                folder = arg if kind in "dD" else "AT_FDCWD"
                if folder.startswith("AT_FDCWD<"):
                    self.cwd[task.pid] = unescape(FD.fullmatch(folder)["path"])
                text = rest.pop(0) if kind in "dD" else arg
                string = STRING.fullmatch(text)
                assert string is not None, text
                path = unescape(string["text"])
                shown = kind == "t" or path.startswith(b"/") or "<" in folder
                if kind != "t" and not path.startswith(b"/"):
                    base = self.folder_of(folder, task)
                    steps = [s for s in path.split(b"/") if s not in (b"", b".")]
                    path = b"/".join((base.rstrip(b"/"), *steps)) if base else path
                row["to_path" if kind in "PDt" else "path"] = text_of(path)
                known.append("exact" if shown else "inferred")
            elif kind == "f":
                row["fd"] = int(arg.split("<")[0])
                inside = ANNOTATED.fullmatch(arg)
                if inside is not None:
                    path = unescape(re.sub(r"<.*", "", inside["inside"]))
                    row["path"] = text_of(path + (b" (deleted)" if inside["deleted"] else b""))
                    known.append("exact")
                else:
                    of_table = task.files_at_entry.get(row["fd"], (None,))[0]
                    row["path"] = None if of_table is None else text_of(of_table)
                    known.append("unknown" if of_table is None else "inferred")
            elif kind == "g":
                inner = re.match(r"\{flags=([^,}]*)", arg)
                row["flags"] = inner[1] if inner else (arg if arg not in ("0", "") else None)
            elif kind == "o":
                row["offset_bytes"] = int(arg) if int(arg) >= 0 else None
            elif kind == "l":
                row["length"] = int(arg)
        if name == "creat":
            row["flags"] = "O_WRONLY|O_CREAT|O_TRUNC"
        if name == "unlinkat" and row["flags"] == "AT_REMOVEDIR":
            row["op"] = "rmdir"
        order = ("exact", "inferred", "unknown")
        row["confidence"] = max(known, key=order.index, default="exact")
        return row

    def call(
        self,
        tid: int | None,
        task: Task,
        text: str,
        ts: int,
        number: int,
        resumed: int | None = None,
    ) -> Row | None:
        match, result = CALL.match(text), RESULT.search(text)
        name = match["name"] if match else ""
        if match and name == "fcntl" and "F_DUPFD" in text:
            row = self.op(task, "dup", arguments(match["rest"])[:1])
            row["flags"] = "F_DUPFD_CLOEXEC" if "F_DUPFD_CLOEXEC" in text else None
            self.finish(tid, task, row, ts, result)
        elif name in ("chdir", "getcwd") and result and (self.ret(result) or 0) >= 0:
            path = unescape(STRING.search(text)["text"])
            old = self.cwd.get(task.pid)
            if path.startswith(b"/") or old:
                self.cwd[task.pid] = path if path.startswith(b"/") else (old or b"") + b"/" + path
        elif name in ("clone", "clone3", "fork", "vfork") and result and task.pid in self.cwd:
            self.cwd.setdefault(self.ret(result), self.cwd[task.pid])
        elif match and name in CALLS:
            rest = text[match.end("name") + 1 : result.start() if result else len(text)]
            row = self.op(task, name, arguments(rest.strip()))
            self.finish(tid, task, row, ts, result)
        return super().call(tid, task, text, ts, number, resumed)

    def finish(
        self,
        tid: int | None,
        task: Task,
        row: Row,
        ts: int,
        result: re.Match[str] | None,
    ) -> None:
        ret = self.ret(result) if result else None
        duration = DURATION.search(result[0]) if result else None
        op, flags, length = row["op"], row["flags"] or "", row.pop("length")
        done = ret is not None and ret >= 0
        creates = {"mkdir": True, "link": True, "symlink": True}.get(op)
        if op == "open":
            names = flags.split("|")
            creates = None if "O_CREAT" in names and "O_EXCL" not in names else "O_CREAT" in names
            if "O_TMPFILE" in flags:
                creates, row["path"], row["confidence"] = True, None, "unknown"
            row["fd"] = ret if done else None
            returned = FD.match("0" + ((result and result["file"]) or ""))
            if returned and returned["path"]:
                deleted = b" (deleted)" if returned["deleted"] else b""
                row["path"] = text_of(unescape(returned["path"]) + deleted)
                row["confidence"] = "exact"
        is_asked = op in ("open", "mkdir", "link", "symlink")
        if not is_asked or ret is None:
            created = None
        elif creates is False:
            created = False
        elif done:
            created = creates
        else:
            created = False if ret == -errno.EEXIST else None
        row |= {
            "created": created,
            "ts_ns": ts,
            "dur_ns": seconds(duration[1]) if duration and ret is not None else None,
            "tid": tid,
            "pid": task.pid,
            "comm": task.comm,
            "ret": ret,
            "bytes": {"write": ret, "send": ret, "allocate": length}.get(op) if done else None,
            "incomplete": "end" if ret is None and op != "exit" else None,
        }
        self.ops.append(row)
        if op == "exit":
            self.exiting.add(tid)


def rows(data: bytes) -> list[Row]:
    """The rows of `syncline_file_op` for a log, without `op_id` and `stack`."""
    return FileReader().read(data).ops
