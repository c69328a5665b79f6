"""Small programs that write files in a folder, right or with one planted fault each: `faults.py CASE FOLDER`.

Names that begin with a paper or a tool re-create a bug that it describes; README.md has the sources.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
import threading
from pathlib import Path

WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def write(path: str, *, sync: bool = True, data: bytes = b"new\n") -> None:
    fd = os.open(path, WRITE, 0o644)
    os.write(fd, data)
    if sync:
        os.fsync(fd)
    os.close(fd)


def sync_folder(path: str = ".") -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def replace_right() -> None:
    for _ in range(3):
        write("conf.tmp")
        os.rename("conf.tmp", "conf")
        sync_folder()


def alice_no_folder_sync() -> None:
    write("conf.tmp")
    os.rename("conf.tmp", "conf")


def alice_no_file_sync() -> None:
    write("conf.tmp", sync=False)
    os.rename("conf.tmp", "conf")
    sync_folder()


def alice_append_after_sync() -> None:
    fd = os.open("conf.tmp", WRITE, 0o644)
    os.write(fd, b"head\n")
    os.fsync(fd)
    os.write(fd, b"more\n")
    os.close(fd)
    os.rename("conf.tmp", "conf")
    sync_folder()


def folder_sync_of_last_only() -> None:
    """The folder is synced once, after the second of two replacements of one name."""
    for _ in range(2):
        write("conf.tmp")
        os.rename("conf.tmp", "conf")
    sync_folder()


def sync_before_folder() -> None:
    """The folder is synced before the rename instead of after it."""
    write("conf.tmp")
    sync_folder()
    os.rename("conf.tmp", "conf")


def sync_of_all() -> None:
    write("conf.tmp", sync=False)
    os.sync()
    os.rename("conf.tmp", "conf")
    os.sync()


def rename_twice_right() -> None:
    write("a")
    os.rename("a", "b")
    os.rename("b", "conf")
    sync_folder()


def rename_twice_unsynced() -> None:
    """The write is to the first of three names, so a rule must follow the file."""
    write("a", sync=False)
    os.rename("a", "b")
    os.rename("b", "conf")
    sync_folder()


def rename_over_itself() -> None:
    write("conf")
    sync_folder()
    os.rename("conf", "conf")


def link_unsynced() -> None:
    write("tmp", sync=False)
    os.link("tmp", "conf")
    sync_folder()


def sync_by_duplicate() -> None:
    """The sync is of another descriptor of the same open file, in a child."""
    fd = os.open("conf.tmp", WRITE, 0o644)
    os.write(fd, b"new\n")
    other = os.dup(fd)
    os.close(fd)
    if not (child := os.fork()):
        os.fsync(other)
        os._exit(0)
    os.waitpid(child, 0)
    os.rename("conf.tmp", "conf")
    sync_folder()


def folder_moves() -> None:
    os.mkdir("one")
    write("one/conf.tmp")
    os.rename("one/conf.tmp", "one/conf")
    os.rename("one", "two")
    sync_folder("two")


def mapped() -> None:
    fd = os.open("conf.tmp", os.O_RDWR | os.O_CREAT, 0o644)
    os.truncate(fd, 4096)
    with mmap.mmap(fd, 4096) as memory:
        memory[0:3] = b"new"
    os.fsync(fd)
    os.close(fd)
    os.rename("conf.tmp", "conf")
    sync_folder()


def temporary_file() -> None:
    """A file without a name (O_TMPFILE), which gets one by a link."""
    fd = os.open(".", os.O_WRONLY | os.O_TMPFILE, 0o644)
    os.write(fd, b"new\n")
    os.fsync(fd)
    # With a folder it is linkat, which follows the link of /proc; the folder is not used for an absolute path.
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.link(f"/proc/self/fd/{fd}", "conf", src_dir_fd=folder)
    sync_folder()


def passed_through_socket() -> None:
    """A child gets the descriptor through a socket, and writes after the sync."""
    fd = os.open("conf.tmp", WRITE, 0o644)
    os.write(fd, b"new\n")
    os.fsync(fd)
    one, other = socket.socketpair()
    if not (child := os.fork()):
        os.close(fd)
        _, (got,), _, _ = socket.recv_fds(other, 1, 1)
        os.write(got, b"more\n")
        os._exit(0)
    socket.send_fds(one, [b"x"], [fd])
    os.waitpid(child, 0)
    os.rename("conf.tmp", "conf")
    sync_folder()


def create_right() -> None:
    write("table")
    sync_folder()


def create_without_folder() -> None:
    write("table")


def append_right() -> None:
    fd = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sync_folder()
    for number in range(3):
        os.write(fd, b"record %d\n" % number)
        os.fdatasync(fd)


def append_right_by_flag() -> None:
    fd = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DSYNC, 0o644)
    sync_folder()
    for number in range(3):
        os.write(fd, b"record %d\n" % number)


def lazyfs_unsynced_append() -> None:
    fd = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sync_folder()
    os.write(fd, b"record 0\n")
    os.fdatasync(fd)
    os.write(fd, b"record 1\n")


def lazyfs_torn_append() -> None:
    """A record in two writes, of which only the first is synced."""
    fd = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sync_folder()
    os.write(fd, b"head of the ")
    os.fdatasync(fd)
    os.writev(fd, [b"record", b"\n"])


def acknowledge_right() -> None:
    log = os.open("replies", WRITE, 0o644)
    fd = os.open("data", WRITE, 0o644)
    for number in range(3):
        os.write(fd, b"record %d\n" % number)
        os.fdatasync(fd)
        os.write(log, b"safe %d\n" % number)


def acknowledge_early() -> None:
    log = os.open("replies", WRITE, 0o644)
    fd = os.open("data", WRITE, 0o644)
    os.write(fd, b"record 0\n")
    os.fdatasync(fd)
    os.write(log, b"safe 0\n")
    os.write(fd, b"record 1\n")
    os.write(log, b"safe 1\n")
    os.fdatasync(fd)


def acknowledge_early_to_socket() -> None:
    server, client = socket.socketpair()
    fd = os.open("data", WRITE, 0o644)
    os.write(fd, b"record\n")
    server.send(b"safe\n")
    os.fdatasync(fd)
    client.recv(10)


def acknowledge_by_thread() -> None:
    """Another thread syncs, and the answer waits for it."""
    log = os.open("replies", WRITE, 0o644)
    fd = os.open("data", WRITE, 0o644)
    os.write(fd, b"record\n")
    thread = threading.Thread(target=os.fdatasync, args=(fd,))
    thread.start()
    thread.join()
    os.write(log, b"safe\n")


def cuttlefs_retry() -> None:
    """The first fsync fails (strace injects EIO), and the program tries again."""
    fd = os.open("data", WRITE, 0o644)
    os.write(fd, b"record\n")
    try:
        os.fsync(fd)
    except OSError:
        os.fsync(fd)


def failed_sync_exit() -> None:
    fd = os.open("data", WRITE, 0o644)
    os.write(fd, b"record\n")
    try:
        os.fsync(fd)
    except OSError:
        sys.exit(1)


def failed_sync_reopen() -> None:
    fd = os.open("data", WRITE, 0o644)
    os.write(fd, b"record\n")
    try:
        os.fsync(fd)
    except OSError:
        os.close(fd)
        fd = os.open("data", WRITE, 0o644)
        os.write(fd, b"record\n")
        os.fsync(fd)


def journal_right() -> None:
    _journal(sync_main=True, sync_journal=True)


def journal_removed_early() -> None:
    _journal(sync_main=False, sync_journal=True)


def journal_unsynced() -> None:
    _journal(sync_main=True, sync_journal=False)


def _journal(*, sync_main: bool, sync_journal: bool) -> None:
    write("main")
    write("main-journal", sync=sync_journal)
    sync_folder()
    fd = os.open("main", os.O_WRONLY)
    os.pwrite(fd, b"changed\n", 0)
    if sync_main:
        os.fsync(fd)
    os.unlink("main-journal")
    os.fsync(fd)


def main() -> None:
    case, folder = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    globals()[case]()


if __name__ == "__main__":
    main()
