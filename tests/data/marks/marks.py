"""Two threads sync their files in marks of their own, then one syncs in an asynchronous mark."""

import os
import sys
import threading

MARKER, RAW, FOLDER = sys.argv[1:4]
marker, raw, pid = os.open(MARKER, os.O_WRONLY), os.open(RAW, os.O_WRONLY), os.getpid()


def mark(text):
    os.write(marker, text.encode())


def work(thread):
    for number in range(3):
        mark(f"B|{pid}|txn {thread}.{number}")
        fd = os.open(f"{FOLDER}/file{thread}", os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(fd, b"x" * 5000)
        (os.fsync if number % 2 else os.fdatasync)(fd)
        os.close(fd)
        mark(f"E|{pid}")


mark("phase one")
threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
mark("phase two\n")
mark(f"S|{pid}|load|7")
work(9)
mark(f"C|{pid}|heap|4096")
os.write(raw, b"\x2a\0\0\0raw data")
mark(f"F|{pid}|load|7")
mark(f"I|{pid}|done")
