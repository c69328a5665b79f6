"""Syncs files that are named relative to folders, in threads and a child: `cwd.py FOLDER`."""

import fcntl
import os
import sys
import threading

os.chdir(sys.argv[1])


def sync(name: str, **where: int) -> None:
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644, **where)
    os.write(fd, b"x")
    os.fsync(fd)
    copies = [os.dup(fd), fcntl.fcntl(fd, fcntl.F_DUPFD, 20), os.dup2(fd, 30)]
    os.close(fd)
    for copy in copies:
        os.fdatasync(copy)
        os.close(copy)


sync("a")
for folder in ("sub", "sub/deep"):
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
start = os.open(".", os.O_RDONLY)
sub = os.open("sub", os.O_RDONLY | os.O_DIRECTORY)
sync("b", dir_fd=sub)
os.chdir("sub")
sync("c")
os.chdir("deep")
sync("./d")
try:
    os.chdir("missing")
except FileNotFoundError:
    sync("e")
os.fchdir(start)
sync("f")
if (child := os.fork()) == 0:
    os.chdir("sub")
    sync("g")
    os._exit(0)
os.waitpid(child, 0)
sync("h")
# All threads have one working directory.
thread = threading.Thread(target=os.fchdir, args=(sub,))
thread.start()
thread.join()
sync("i")
