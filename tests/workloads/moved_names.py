"""Gives files other names while they are dirty, in all ways of Linux. After each step it writes a page to a file that states how many
pages of the files before are dirty by then.

moved_names.py DIR
"""

# The calls themselves matter.
# ruff: noqa: PTH103, PTH104, PTH108, PTH109

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

PAGE = 4096
RENAMEAT2, AT_FDCWD, EXCHANGE = 316, -100, 2
library = ctypes.CDLL(None, use_errno=True)


class Dirty:
    """Counts dirty pages by construction."""

    def __init__(self) -> None:
        self.pages = 0
        self.number = 0

    def now(self, change: int, what: str) -> None:
        """Writes a page to a new file, whose name is the number of dirty pages and what was done."""
        self.pages += change + 1
        self.number += 1
        file = os.open(f"{self.number} {self.pages} {what}", os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(file, b"x" * PAGE)
        os.close(file)


def write(name: str, pages: int, flags: int = 0) -> int:
    """Writes pages to a file, and returns its descriptor."""
    file = os.open(name, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    os.write(file, b"x" * (pages * PAGE))
    return file


def written(name: str, pages: int) -> None:
    """Writes a file."""
    os.close(write(name, pages))


def in_child(work: Callable[[], None]) -> tuple[int, int, int]:
    """Forks. The child works when the parent writes to the first descriptor, and then writes to the second. Returns both and its pid."""
    read, go = os.pipe()
    done, say = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.close(done)
        os.read(read, 1)
        work()
        os.write(say, b"x")
        os.read(read, 1)
        os._exit(0)
    os.close(read)
    os.close(say)
    return go, done, child


def ended(go: int, child: int) -> None:
    """Ends a child that waits."""
    os.close(go)
    os.waitpid(child, 0)


def names(dirty: Dirty) -> None:
    """Renames, links and deletes."""
    written("old", 3)
    file = write("tmp", 5)
    os.fsync(file)
    os.close(file)
    dirty.now(3, "the old file")
    os.rename("tmp", "old")
    dirty.now(-3, "rename of a clean file over a dirty one")

    written("base", 3)
    written("next", 5)
    os.rename("next", "base")
    dirty.now(5, "rename of a dirty file over a dirty one")
    written("base", 1)
    dirty.now(0, "a rewrite by the new name")
    written("next", 2)
    dirty.now(2, "a new file of the old name")
    os.unlink("base")
    dirty.now(-5, "deletion by the new name")
    os.unlink("next")
    dirty.now(-2, "deletion of the new file")

    written("a", 2)
    os.link("a", "b")
    os.unlink("a")
    dirty.now(2, "one of two names deleted")
    os.unlink("b")
    dirty.now(-2, "both names deleted")

    written("a", 2)
    os.link("a", "kept")
    written("tmp", 1)
    os.rename("tmp", "a")
    dirty.now(3, "rename over one of two names")
    os.link("kept", "again")
    os.rename("kept", "again")
    os.unlink("kept")
    dirty.now(0, "rename over another name of the same file does nothing")
    os.unlink("again")
    dirty.now(-2, "its last name deleted")

    written("x", 1)
    written("y", 4)
    if library.syscall(RENAMEAT2, AT_FDCWD, b"x", AT_FDCWD, b"y", EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
    os.unlink("x")
    dirty.now(1, "exchanged, and the other one deleted")

    os.makedirs("d/e")
    written("d/e/f", 2)
    written("dd", 1)
    os.rename("d", "g")
    os.unlink("g/e/f")
    dirty.now(1, "renamed folder, and a file below deleted")

    folder = os.open("g/e", os.O_RDONLY)
    file = os.open("h", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)
    os.write(file, b"x" * PAGE)
    os.close(file)
    os.rename("h", "i", src_dir_fd=folder, dst_dir_fd=folder)
    os.rename("g", "d")
    os.unlink("i", dir_fd=folder)
    dirty.now(0, "deleted by a descriptor of its folder, which was renamed")
    os.close(folder)

    written("ä\n.tmp", 2)
    os.rename("ä\n.tmp", 'ä>"\\')
    dirty.now(2, "renamed to a name with escapes")
    os.unlink(os.getcwd() + '/./ä>"\\')
    dirty.now(-2, "deleted by it")

    os.chdir("d")
    written("r", 2)
    os.chdir("..")
    written("r", 1)
    os.unlink("d//r")
    dirty.now(1, "relative names of two folders")


def without_names(dirty: Dirty) -> None:
    """Files of O_TMPFILE, and deleted files that are open."""
    file = os.open(".", os.O_WRONLY | os.O_TMPFILE, 0o600)
    os.write(file, b"x" * (2 * PAGE))
    dirty.now(2, "a file of O_TMPFILE")
    os.close(file)
    dirty.now(-2, "closed")
    file = os.open(".", os.O_WRONLY | os.O_TMPFILE, 0o600)
    os.write(file, b"x" * (2 * PAGE))
    # With a folder, Python calls linkat.
    os.link(f"/proc/self/fd/{file}", "named", src_dir_fd=file, follow_symlinks=True)
    os.close(file)
    dirty.now(2, "one that got a name")
    os.unlink("named")
    dirty.now(-2, "deleted by it")

    file = write("open", 2)
    same = os.dup(file)
    os.unlink("open")
    os.close(file)
    dirty.now(2, "deleted and open")
    os.closerange(same, same + 1)
    dirty.now(-2, "closed by close_range")


def processes(dirty: Dirty) -> None:
    """Ends of processes close descriptors."""
    file = write("held", 2)
    go, done, child = in_child(lambda: None)
    os.close(file)
    os.unlink("held")
    dirty.now(2, "held by a child")
    ended(go, child)
    dirty.now(-2, "the child has exited")

    file = write("held", 2)
    go, done, child = in_child(lambda: None)
    os.close(file)
    os.unlink("held")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    dirty.now(0, "the child was killed")
    os.close(go)
    os.close(done)

    for flag, left in ((os.O_CLOEXEC, 0), (0, 2)):
        file = write("held", 2)
        os.set_inheritable(file, not flag)
        read, go = os.pipe()
        done, say = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(read, 0)
            os.dup2(say, 1)
            os.execv("/bin/sh", ["sh", "-c", "echo; read x; exit 0"])
        os.close(file)
        os.unlink("held")
        os.read(done, 1)
        dirty.now(left, f"the child has called exec, with flag {flag}")
        os.write(go, b"\n")
        os.waitpid(child, 0)
        dirty.now(-left, "and has exited")

    file = write("held", 2)
    os.unlink("held")
    thread = threading.Thread(target=lambda: os.write(file, b"x"))
    thread.start()
    thread.join()
    # The byte is on a page of its own.
    dirty.now(3, "a thread has ended, and its process has not")
    os.close(file)
    dirty.now(-3, "closed")


def main() -> None:
    """Does all of it below a folder."""
    os.chdir(sys.argv[1])
    dirty = Dirty()
    names(dirty)
    without_names(dirty)
    processes(dirty)


main()
