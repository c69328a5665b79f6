#!/usr/bin/env python3
"""A write-ahead log that syncs, with and without a neighbour, alternately; prints each wait as a line of JSON.

    load.py prepare DIRECTORY
    load.py run DIRECTORY NEIGHBOUR,... SYNCS [SETTING=VALUE]

The log is in the control group `/wal`, a neighbour in `/neigh-NAME`, whose setting is written as `io.max=wbps=1048576` or `cpu.max=20000 100000`.
A phase is a log of its own. The first one is not counted. Then come two rounds, in which a phase without a neighbour precedes that of each neighbour.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
# Longer than the gap after which the report takes a neighbour for quiet.
PAUSE_S = 1.5
GAP_S = 0.03


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def timed(call: str, fd: int, phase: int, neighbour: str | None) -> None:
    start = now()
    getattr(os, call)(fd)
    row = {"phase": phase, "neighbour": neighbour, "op": call, "start_ns": start, "end_ns": now()}
    print(json.dumps(row))


def log(folder: Path, syncs: int, phase: int, neighbour: str | None) -> None:
    """Appends 2 to 8 KiB to preallocated files, and syncs each time, as etcd does. Each phase has the same sizes."""
    folder.mkdir()
    sizes = random.Random(7)
    fd, size, number = -1, 0, 0
    for _ in range(syncs):
        if fd < 0 or size > 256 << 10:
            if fd >= 0:
                os.close(fd)
            fd = os.open(folder / f"{number:08x}.wal", os.O_CREAT | os.O_RDWR, 0o600)
            os.posix_fallocate(fd, 0, 1 << 20)
            timed("fsync", fd, phase, neighbour)
            size, number = 0, number + 1
        size += os.write(fd, b"w" * sizes.randint(2048, 8192))
        timed("fdatasync", fd, phase, neighbour)
        time.sleep(GAP_S)
    os.close(fd)


def small(folder: Path) -> None:
    """Two threads create files of 20,000 bytes, and sync each."""

    def work(thread: int) -> None:
        for number in range(1 << 20):
            fd = os.open(
                folder / f"{thread}-{number % 64}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644
            )
            os.write(fd, b"s" * 20000)
            os.fsync(fd)
            os.close(fd)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def sqlite(folder: Path) -> None:
    """A database with a rollback journal, whose transactions each sync the database, the journal and the folder."""
    connection = sqlite3.connect(folder / "app.db", isolation_level=None)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t (number, value)")
    for number in range(1 << 20):
        connection.execute("INSERT INTO t VALUES (?, ?)", (number, os.urandom(500)))


def meta(folder: Path) -> None:
    """Creates and removes files without a sync."""
    for number in range(1 << 30):
        path = folder / f"m{number % 500}"
        if path.exists():
            path.unlink()
        else:
            path.touch()


def burn(folder: Path) -> None:
    """Four processes compute."""
    for _ in range(3):
        if os.fork() == 0:
            break
    while True:
        sum(range(10000))


# Neighbours that are commands; those that are functions have their names.
COMMANDS = {
    "write": "while :; do dd if=/dev/zero of=bulk bs=256k count=160 2>/dev/null; sleep 0.2; done",
    "direct": "while :; do dd if=/dev/zero of=../big bs=128k count=256 oflag=direct conv=notrunc 2>/dev/null; done",
    "read": "while :; do dd if=../big of=/dev/null bs=256k iflag=direct 2>/dev/null; done",
    "nocache": "while :; do dd if=../big of=/dev/null bs=64k iflag=nocache 2>/dev/null; done",
}
FUNCTIONS = {"small": small, "sqlite": sqlite, "meta": meta, "burn": burn}


def group(name: str) -> Path:
    path = GROUPS / name
    path.mkdir(exist_ok=True)
    return path


def start(kind: str, folder: Path, settings: list[str]) -> subprocess.Popen[bytes]:
    folder.mkdir()
    its = group(f"neigh-{kind}")
    for setting in settings:
        file, value = setting.split("=", 1)
        if file == "io.max":
            number = folder.stat().st_dev
            value = f"{os.major(number)}:{os.minor(number)} {value}"
        (its / file).write_text(value)
    command = ["sh", "-c", COMMANDS.get(kind, "")]
    if kind in FUNCTIONS:
        command = [sys.executable, __file__, "neighbour", str(folder), kind]

    def enter() -> None:
        (its / "cgroup.procs").write_text(str(os.getpid()))

    return subprocess.Popen(command, cwd=folder, preexec_fn=enter)


def stop(process: subprocess.Popen[bytes], kind: str, folder: Path) -> None:
    """Kills it, and empties its files: pages that it left dirty would be written during the next phase.

    The files stay. The file system would give their inode numbers to the next log, and the recorder knows a file by that number.
    """
    while pids := (GROUPS / f"neigh-{kind}" / "cgroup.procs").read_text().split():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.02)
    process.wait()
    for path in folder.iterdir():
        os.truncate(path, 0)


def main() -> None:
    what, directory, *more = sys.argv[1:]
    folder = Path(directory)
    if what == "neighbour":
        FUNCTIONS[more[0]](folder)
        return
    if what == "prepare":
        folder.mkdir(parents=True)
        with (folder / "big").open("wb") as file:
            for _ in range(32):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
        return
    kinds, syncs, settings = more[0].split(","), int(more[1]), more[2:]
    (group("wal") / "cgroup.procs").write_text(str(os.getpid()))
    log(folder / "log-0", 3, 0, None)
    phase = 0
    for kind in [*kinds, *kinds]:
        time.sleep(PAUSE_S)
        log(folder / f"log-{phase + 1}", syncs, phase + 1, None)
        phase += 2
        time.sleep(PAUSE_S)
        its = folder / f"neighbour-{phase}"
        process = start(kind, its, settings)
        # It is at work before the log begins, also where Python starts slowly.
        time.sleep(3 if kind in FUNCTIONS else 1)
        log(folder / f"log-{phase}", syncs, phase, kind)
        stop(process, kind, its)


if __name__ == "__main__":
    main()
