"""Writes in all ways that the strace source follows. strace recorded it into mixed.log: see README.md."""

import mmap
import os
import sys
import time

folder = sys.argv[1]
block = mmap.mmap(-1, 1 << 20)
a = os.open(f"{folder}/a", os.O_RDWR | os.O_CREAT, 0o600)
for _ in range(6):
    os.write(a, b"x" * 65536)
os.lseek(a, 4096, os.SEEK_SET)
os.write(a, b"y" * 100)
os.pwrite(a, b"z" * 8192, 16384)
os.writev(a, [b"a" * 10, b"b" * 20])
again = os.dup(a)
os.write(again, b"c" * 70)
time.sleep(0.01)
os.fsync(a)
b = os.open(f"{folder}/b", os.O_WRONLY | os.O_CREAT | os.O_DSYNC, 0o600)
os.write(b, b"q" * 5000)
os.pwritev(b, [b"r" * 8192], 8192)
c = os.open(f"{folder}/c", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.write(c, b"s" * 3000)
os.write(c, b"t" * 1000)
d = os.open(f"{folder}/d", os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
for number in (1, 4, 16, 64):
    for _ in range(3):
        os.write(d, memoryview(block)[: number * 4096])
if os.fork() == 0:
    # The child has the descriptors of its parent.
    os.write(c, b"u" * 500)
    os._exit(0)
os.wait()
os.write(1, b"done\n")
