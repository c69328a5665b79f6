"""Syncs files with odd names, from threads and from a child process, as a workload for strace. See README.md."""

# Imports few modules, because strace also records the system calls of each import.
# ruff: noqa: PTH103, PTH108, SIM105

import ctypes
import os
import signal
import sys
import threading
import time

FOLDER = "/tmp/odd (x) > y"
NAMES = [f'{FOLDER}/a <{n}>\n"q\\ é) = 3' for n in range(3)]
PR_SET_NAME = 15


def save(path: str, barrier: threading.Barrier) -> None:
    barrier.wait()
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(fd, b'hello "x" \n\0\xff' * 3)
    os.fsync(fd)
    other = os.dup(fd)
    os.close(fd)
    os.unlink(path)
    os.fdatasync(other)
    os.close(other)


os.makedirs(FOLDER, exist_ok=True)
barrier = threading.Barrier(len(NAMES))
threads = [threading.Thread(target=save, args=(name, barrier)) for name in NAMES]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
os.chdir(FOLDER)
fd = os.open("rel", os.O_RDWR | os.O_CREAT | os.O_DSYNC)
os.pwrite(fd, b"abc", 0)
os.pwritev(fd, [b"x"], 0, os.RWF_SYNC)
os.close(fd)
fd = os.open("plain", os.O_RDWR | os.O_CREAT)
os.pwrite(fd, b"abc", 0)
os.pwritev(fd, [b"x"], 0, os.RWF_SYNC)
try:
    os.fsync(99)
except OSError:
    pass
pid = os.fork()
if pid == 0:
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"a b>) =", 0, 0, 0)
    os.fdatasync(fd)
    os.sync()
    os._exit(3)
os.waitpid(pid, 0)
time.sleep(0.01)
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGTERM)
