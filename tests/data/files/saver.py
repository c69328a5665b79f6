"""Saves files in several ways.

Run in an empty folder: strace -f -y -T -ttt -s 0 -e trace=%file,%desc,%process -o LOG python3 -I -S saver.py
"""

# The calls themselves are what matters here.
# ruff: noqa: PTH102, PTH103, PTH104, PTH106, PTH108, PTH211, SIM105
import os
import sys

FOLDER = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else ".")


def right():
    """As it should be: write, fsync, rename, fsync of the folder."""
    fd = os.open("a.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, b"x" * 100)
    os.pwrite(fd, b"yy", 4096)
    os.fsync(fd)
    os.close(fd)
    os.rename("a.tmp", "a")
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def unsynced():
    """Nothing is synced."""
    fd = os.open("b", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, b"z" * 10)
    os.ftruncate(fd, 5)
    os.close(fd)


def folder_missing():
    """The data is synced, the name is not."""
    fd = os.open("sub/c.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, b"c" * 30)
    os.fdatasync(fd)
    os.close(fd)
    os.rename("sub/c.tmp", "sub/c")


def written_after():
    """A part is written after the last sync, through a duplicate of the descriptor."""
    fd = os.open("d", os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(fd, b"d" * 50)
    os.fsync(fd)
    other = os.dup(fd)
    os.write(other, b"e" * 7)
    os.close(other)
    os.close(fd)
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def durable():
    """Each write is a sync."""
    fd = os.open("e", os.O_WRONLY | os.O_CREAT | os.O_DSYNC, 0o644)
    os.write(fd, b"f" * 20)
    os.close(fd)


def others():
    os.mkdir("k")
    os.rmdir("k")
    os.symlink("a", "s")
    os.link("a", "l")
    os.unlink("s")
    fd = os.open("b", os.O_RDWR)
    os.posix_fallocate(fd, 0, 8192)
    os.close(fd)
    for wrong in ("no", "sub"):
        try:
            os.rename(wrong, "a" if wrong == "sub" else "x")
        except OSError:
            pass


os.chdir(FOLDER)
os.makedirs("sub", exist_ok=True)
right()
unsynced()
folder_missing()
written_after()
durable()
others()
