import os
import threading
import time

d = os.environ.get("DATA", "/mnt")


def work(n):
    fd = os.open(f"{d}/file-{n}", os.O_RDWR | os.O_CREAT, 0o644)
    for i in range(6):
        os.pwrite(fd, b"x" * (4096 * (n + 1)), i * 8192 * (n + 1))
        (os.fsync if i % 2 else os.fdatasync)(fd)
        time.sleep(0.01)
    os.close(fd)


t = [threading.Thread(target=work, args=(n,)) for n in range(3)]
[x.start() for x in t]
[x.join() for x in t]
os.sync()
