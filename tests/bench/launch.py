"""Runs a command, and writes its wall time, CPU time and peak memory to a file descriptor, as JSON.

python -I -S launch.py FD COMMAND...

A process inherits the peak resident memory of the process that starts it. This one is small, so that memory of less than
about 10 MB is the only one that it hides.
"""

import os
import sys
import time

out = int(sys.argv[1])
os.set_inheritable(out, False)
began = time.perf_counter()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
wall = time.perf_counter() - began
code = os.waitstatus_to_exitcode(status)
result = f"[{wall}, {usage.ru_utime + usage.ru_stime}, {usage.ru_maxrss * 1024}, {code}]"
os.write(out, result.encode())
