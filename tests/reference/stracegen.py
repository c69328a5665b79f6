"""Generates strace logs with a known truth, from threads that open, dup, close and sync files.

python -m tests.reference.stracegen --bulk BYTES [--others N]     a long log for tests/bench
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

US = 1000
BEGIN_NS = 1_795_196_963_000_000_000
ERRORS = {"EIO": (5, "Input/output error"), "ENOSPC": (28, "No space left on device")}
ERRORS |= {"ERESTARTSYS": (512, "To be restarted if SA_RESTART is set")}
ALPHABET = b'abcXYZ019 ._-/()<>=",\\\n\t\x00\x7f\xc3\xa9\xff;#'


@dataclass(frozen=True)
class Style:
    """The options with which strace runs."""

    clock: str = "ttt"  # ttt, tt, r, ns
    lengths: bool = True  # -T
    decorate: bool = True  # -y
    bracket: bool = False  # [pid N]
    hex: bool = False  # -xx
    exits: bool = True  # prints the exits of threads


@dataclass
class Call:
    """A call of a thread. `args` and `result` are printed."""

    tid: int
    begin: int
    end: int
    name: str
    args: str = ""
    result: str = "0"
    row: dict[str, Any] | None = None


@dataclass
class Log:
    text: bytes
    # The columns of syncline_sync that strace records, in the order of the entries.
    rows: list[dict[str, Any]]


@dataclass
class Process:
    pid: int
    # By descriptor: path, whether opened with O_DSYNC, whether close-on-exec.
    files: dict[int, tuple[bytes, bool, bool]]


@dataclass
class Thread:
    tid: int
    process: Process
    comm: bytes
    now: int
    left: int
    call: Call | None = None
    on_return: Any = None  # applies the effects of the call and returns its result


@dataclass
class World:
    """Runs threads in time order, one step at a time."""

    rng: random.Random
    style: Style
    calls: int
    threads: list[Thread] = field(default_factory=list)
    log: list[tuple[int, str, Call]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    next_tid: int = 1000

    # The format of strace.

    def escape(self, data: bytes, more: bytes = b"") -> str:
        out = []
        for i, byte in enumerate(data):
            digit = data[i + 1 : i + 2].isdigit()
            if self.style.hex:
                out.append(f"\\x{byte:02x}")
            elif byte in b'"\\':
                out.append("\\" + chr(byte))
            elif byte in b"\n\t":
                out.append({10: "\\n", 9: "\\t"}[byte])
            elif 32 <= byte < 127 and byte not in more:
                out.append(chr(byte))
            else:
                out.append(f"\\{byte:03o}" if digit else f"\\{byte:o}")
        return "".join(out)

    def string(self, data: bytes) -> str:
        return f'"{self.escape(data)}"'

    def fd(self, number: int, path: bytes | None) -> str:
        if path is None or not self.style.decorate:
            return str(number)
        return f"{number}<{self.escape(path, b'<>')}>"

    # The actions of threads.

    def path(self) -> bytes:
        size = self.rng.randint(1, 12)
        name = bytes(self.rng.choice(ALPHABET) for _ in range(size)).replace(b"\0", b"0")
        return b"/" + name.strip(b"/") + str(self.rng.randint(0, 9)).encode()

    def child(self, parent: Thread, thread: bool, now: int) -> Thread:
        tid = self.next_tid
        self.next_tid += self.rng.choice((1, 1, 7))
        process = parent.process if thread else Process(tid, dict(parent.process.files))
        child = Thread(tid, process, parent.comm, now, self.rng.randint(1, self.calls))
        self.threads.append(child)
        return child

    def run(self) -> Log:
        first = Process(self.next_tid, {})
        self.threads = [Thread(self.next_tid, first, b"", BEGIN_NS, self.calls)]
        self.next_tid += 1
        self.exec(self.threads[0])
        while self.threads:
            thread = min(self.threads, key=lambda t: (t.now, t.tid))
            if thread.call is not None:
                self.end_call(thread)
            elif thread.left <= 0:
                self.threads.remove(thread)
                if self.style.exits:
                    end = Call(thread.tid, thread.now, thread.now, "+++")
                    self.log.append((thread.now, "end", end))
            else:
                thread.left -= 1
                self.act(thread)
        return Log(self.text(), [row for row in self.rows if row])

    def begin_call(self, thread: Thread, name: str, args: str, on_return: Any = None) -> Call:
        took = self.rng.choice((0, 1, 3, 40, 500, 9000)) * US
        call = Call(thread.tid, thread.now, thread.now + took, name, args)
        thread.call, thread.on_return = call, on_return
        thread.now = call.end
        self.log.append((call.begin, "begin", call))
        return call

    def end_call(self, thread: Thread) -> None:
        call, on_return = thread.call, thread.on_return
        assert call is not None
        if on_return is not None:
            call.result = on_return()
        self.log.append((call.end, "return", call))
        thread.call = None
        thread.now = call.end + self.rng.choice((1, 2, 30, 1000)) * US

    def exec(self, thread: Thread) -> None:
        comm = self.path().rsplit(b"/", 1)[-1] or b"x"
        path = b"/usr/bin/" + comm

        def on_return() -> str:
            thread.comm = comm[:15]
            files = thread.process.files
            for number in [n for n, file in files.items() if file[2]]:
                del files[number]
            return "0"

        self.begin_call(
            thread,
            "execve",
            f"{self.string(path)}, [{self.string(path)}], 0x7ffc /* 3 vars */",
            on_return,
        )

    def act(self, thread: Thread) -> None:
        files = thread.process.files
        action = self.rng.choice(
            ("open", "open", "sync", "sync", "sync", "write", "close", "dup", "child", "other")
        )
        if action in ("sync", "write", "close", "dup") and not files:
            action = "open"
        # An exec by another thread than the main one changes its thread id, so no such thread calls it.
        is_single_thread = thread.tid == thread.process.pid
        is_single_thread &= sum(t.process is thread.process for t in self.threads) == 1
        if action == "open":
            self.open(thread)
        elif action == "child":
            if len(self.threads) < 5:
                self.clone(thread)
            elif is_single_thread:
                self.exec(thread)
            else:
                self.other(thread)
        elif action == "other":
            self.other(thread)
        else:
            number = self.rng.choice(sorted(files))
            getattr(self, action)(thread, number, files[number])

    def open(self, thread: Thread) -> None:
        path, sync, cloexec = self.path(), self.rng.random() < 0.2, self.rng.random() < 0.5
        flags = "O_RDWR|O_CREAT" + ("|O_DSYNC" if sync else "") + ("|O_CLOEXEC" if cloexec else "")

        def on_return() -> str:
            if self.rng.random() < 0.1:
                return "-1 ENOENT (No such file or directory)"
            files = thread.process.files
            number = next(n for n in range(3, 10_000) if n not in files)
            files[number] = (path, sync, cloexec)
            return self.fd(number, path)

        dir = "AT_FDCWD</cwd>" if self.style.decorate else "AT_FDCWD"
        self.begin_call(thread, "openat", f"{dir}, {self.string(path)}, {flags}, 0644", on_return)

    def close(self, thread: Thread, number: int, file: tuple[bytes, bool, bool]) -> None:
        del thread.process.files[number]
        self.begin_call(thread, "close", self.fd(number, file[0]))

    def dup(self, thread: Thread, number: int, file: tuple[bytes, bool, bool]) -> None:
        cloexec = self.rng.random() < 0.5

        def on_return() -> str:
            files = thread.process.files
            copy = next(n for n in range(3, 10_000) if n not in files)
            files[copy] = (file[0], file[1], cloexec)
            return self.fd(copy, file[0])

        command = "F_DUPFD_CLOEXEC" if cloexec else "F_DUPFD"
        self.begin_call(thread, "fcntl", f"{self.fd(number, file[0])}, {command}, 0", on_return)

    def clone(self, thread: Thread) -> None:
        # The log does not record when fork copies the descriptors, so a process with several threads,
        # which may change them meanwhile, creates only threads.
        is_single_thread = sum(t.process is thread.process for t in self.threads) == 1
        is_thread = not is_single_thread or self.rng.random() < 0.6
        flags = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD" if is_thread else "SIGCHLD"
        call = self.begin_call(
            thread, "clone", f"child_stack=NULL, flags={flags}, child_tidptr=0x7f"
        )
        # The child may run before clone returns. Then no other clone is open, so that its parent is known.
        open_clones = [
            t for t in self.threads if t is not thread and t.call and t.call.name == "clone"
        ]
        starts_early = not open_clones and call.end > call.begin
        child = self.child(thread, is_thread, call.begin + US if starts_early else call.end + US)
        if starts_early:
            for other in self.threads:
                if other not in (thread, child) and other.call is None and other.now < call.end:
                    other.now = call.end + US
        thread.on_return = lambda: str(child.tid)

    def other(self, thread: Thread) -> None:
        text = bytes(self.rng.choice(ALPHABET) for _ in range(8))
        self.begin_call(thread, "read", f"{self.fd(0, b'/dev/null')}, {self.string(text)}, 8")

    def row(self, thread: Thread, op: str, path: bytes | None, call: Call) -> dict[str, Any]:
        return {
            "ts_ns": call.begin,
            "dur_ns": call.end - call.begin,
            "tid": thread.tid,
            "pid": thread.process.pid,
            "comm": thread.comm,
            "op": op,
            "path": path,
        }

    def sync(self, thread: Thread, number: int, file: tuple[bytes, bool, bool]) -> None:
        op = self.rng.choice(("fsync", "fdatasync", "syncfs", "sync", "sync_file_range"))
        more = ", 0, 4096, SYNC_FILE_RANGE_WRITE" if op == "sync_file_range" else ""
        args = "" if op == "sync" else self.fd(number, file[0]) + more
        call = self.begin_call(thread, op, args)
        call.row = self.row(thread, op, file[0] if op not in ("sync", "syncfs") else None, call)
        self.rows.append(call.row)
        error = self.rng.choice([None] * 8 + list(ERRORS))
        call.row["ret"] = -ERRORS[error][0] if error else 0
        if error:
            code = "?" if ERRORS[error][0] >= 512 else "-1"
            call.result = f"{code} {error} ({ERRORS[error][1]})"

    def write(self, thread: Thread, number: int, file: tuple[bytes, bool, bool]) -> None:
        text = bytes(self.rng.choice(ALPHABET) for _ in range(self.rng.randint(0, 9)))
        has_sync_flag = self.rng.random() < 0.2
        fd = self.fd(number, file[0])
        if has_sync_flag:
            args = f"{fd}, [{{iov_base={self.string(text)}..., iov_len=40}}], 1, 0, RWF_DSYNC"
            call = self.begin_call(thread, "pwritev2", args)
        else:
            call = self.begin_call(thread, "write", f"{fd}, {self.string(text)}..., 40")
        call.result = "40"
        if has_sync_flag or file[1]:
            call.row = self.row(thread, "write", file[0], call) | {"ret": 40}
            self.rows.append(call.row)

    # The log.

    def text(self) -> bytes:
        style, lines, last = self.style, [], None
        order = sorted(range(len(self.log)), key=lambda i: (self.log[i][0], i))
        events = [self.log[i] for i in order]
        skip = False
        for i, (ts, step, call) in enumerate(events):
            if skip:
                skip = False
                continue
            if step == "end":
                line = "+++ exited with 0 +++"
            elif step == "begin":
                following = events[i + 1] if i + 1 < len(events) else None
                if following is not None and following[1] == "return" and following[2] is call:
                    skip = True
                    line = f"{call.name}({call.args})"
                    line = f"{line:<{self.rng.choice((0, 16))}} = {call.result}"
                    if style.lengths:
                        line += f" <{self.seconds(call.end - call.begin)}>"
                    elif call.row is not None:
                        call.row["dur_ns"] = None
                else:
                    line = f"{call.name}({call.args} <unfinished ...>"
            else:
                line = f"<... {call.name} resumed>) = {call.result}"
                if style.lengths:
                    line += f" <{self.seconds(call.end - call.begin)}>"
            number = f"[pid {call.tid:5}] " if style.bracket else f"{call.tid:<5} "
            lines.append(number + self.time(ts, last) + line)
            last = ts
            if self.rng.random() < 0.05:
                number = f"[pid {call.tid:5}] " if style.bracket else f"{call.tid:<5} "
                lines.append(
                    number + self.time(ts, last) + "--- SIGCHLD {si_signo=SIGCHLD, si_status=0} ---"
                )
        clock_origin = {"tt": BEGIN_NS - self.since_midnight(BEGIN_NS), "r": BEGIN_NS}.get(
            style.clock, 0
        )
        for row in self.rows:
            row["ts_ns"] -= clock_origin
        return ("\n".join(lines) + "\n").encode("latin-1")

    @staticmethod
    def since_midnight(ts: int) -> int:
        return ts % (86_400 * 10**9)

    def seconds(self, ns: int) -> str:
        digits = 9 if self.style.clock == "ns" else 6
        return f"{ns // 10**9}.{ns % 10**9 // 10 ** (9 - digits):0{digits}d}"

    def time(self, ts: int, last: int | None) -> str:
        if self.style.clock == "r":
            return f"{self.seconds(ts - (ts if last is None else last)):>13} "
        if self.style.clock == "tt":
            ns = self.since_midnight(ts)
            second = ns // 10**9
            return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{ns % 10**9 // US:06d} "
        return self.seconds(ts) + " "


def generate(rng: random.Random, style: Style, calls: int = 30) -> Log:
    """Generates a log and its rows."""
    return World(rng, style, calls).run()


OTHERS = (
    "futex(0x7f2d34e6f0, FUTEX_WAIT_BITSET_PRIVATE, 0, {tv_sec=12312, tv_nsec=59676}, FUTEX_BITSET_MATCH_ANY) = 0 <0.000063>",
    'pread64(5, "SQLite format 3\\0\\20\\0\\1\\1\\0@  \\0\\0\\0\\1"..., 100, 0) = 100 <0.000009>',
    "lseek(5, 0, SEEK_CUR) = 8192 <0.000002>",
    'newfstatat(5, "", {st_mode=S_IFREG|0644, st_size=8192, ...}, AT_EMPTY_PATH) = 0 <0.000003>',
    "epoll_wait(4, [{events=EPOLLIN, data={u32=7, u64=7}}], 64, -1) = 1 <0.000912>",
    'recvfrom(7, "Q\\0\\0\\0\\33select 1\\0", 8192, 0, NULL, NULL) = 28 <0.000004>',
)


# The number of files in a bulk log.
FILES = 4096


def bulk(size: int, others: int = 0) -> Iterator[bytes]:
    """A long log in the format of `strace -f -ttt -T`, of four threads that open, write, sync and close small files.

    `others`: number of lines of other calls for each sync.
    """
    ts, number, written = BEGIN_NS, 0, 0
    while written < size:
        lines = []
        for _ in range(1000):
            number += 1
            tid, fd = 2694 + number % 4, 3 + number % 4
            ts += 150_000
            time = f"{ts // 10**9}.{ts % 10**9 // US:06d}"
            this_thread, next_thread = f"{tid}  {time}", f"{2694 + (number + 1) % 4}  {time}"
            path = f"/run/mnt/s4/small-{number % FILES:08}"
            lines += [
                f'{this_thread} openat(AT_FDCWD, "{path}", O_WRONLY|O_CREAT|O_TRUNC, 0644) = {fd} <0.000707>\n',
                f'{this_thread} write({fd}, "{"b" * 32}"..., 200) = 200 <0.000046>\n',
                f"{this_thread} fsync({fd} <unfinished ...>\n",
                f"{next_thread} futex(0x7f2d34e6f0, FUTEX_WAKE_PRIVATE, 1) = 0 <0.000012>\n",
                f"{this_thread} <... fsync resumed>) = 0 <0.000089>\n",
                f"{this_thread} close({fd}) = 0 <0.000010>\n",
            ]
            lines += [f"{next_thread} {OTHERS[n % len(OTHERS)]}\n" for n in range(others)]
        block = "".join(lines).encode()
        written += len(block)
        yield block


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bulk", type=float, required=True, help="bytes of the log")
    parser.add_argument("--others", type=int, default=0, help="lines of other calls for each sync")
    options = parser.parse_args()
    for block in bulk(int(options.bulk), options.others):
        sys.stdout.buffer.write(block)
