"""Four threads write, rename and sync at once, so that strace breaks their calls into two lines.

Run in an empty folder: strace -f -y -T -ttt -s 0 -e trace=%file,%desc,%process -o LOG python3 -I -S threads.py
"""

# The calls themselves are what matters here.
# ruff: noqa: PTH104
import os
import threading


def work(name):
    for n in range(5):
        fd = os.open(f"{name}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(fd, b"x" * (100 + n))
        if name % 2:
            os.fsync(fd)
        os.close(fd)
        os.rename(f"{name}.tmp", f"{name}")


threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
