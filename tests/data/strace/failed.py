"""Syncs of which some fail: of a pipe, of a full device, and those that strace makes fail."""

import contextlib
import os

_, pipe = os.pipe()
file = os.open("/data/f", os.O_CREAT | os.O_RDWR)
durable = os.open("/data/f", os.O_WRONLY | os.O_SYNC)
full = os.open("/dev/full", os.O_WRONLY | os.O_SYNC)
for number in range(6):
    os.write(file, b"x" * 4096)
    with contextlib.suppress(OSError):
        os.fdatasync(file)  # Every second one fails with EIO.
    os.write(durable, b"y" * 100)
    with contextlib.suppress(OSError):
        os.write(full, b"z")
    if number < 2:
        with contextlib.suppress(OSError):
            os.fsync(pipe)
os.fsync(file)
