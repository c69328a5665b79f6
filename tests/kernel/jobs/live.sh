#!/bin/bash
# Measures what the line costs that `record` shows once a second: the same work with it and with --quiet, alternately, and without a recorder.
#
#   live.sh [TIMES [SECONDS]]
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
mountpoint -q "$DATA" || mount_case ext4 plain

cat >/tmp/live.py <<'END2'
import os, pty, re, signal, subprocess, sys, threading, time
data, times, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
command = [sys.executable, "-c", "from syncline.cli import main; main()", "record", "--force", "-o", "/tmp/live"]
wal = "import os,sys,time\nout=os.open(sys.argv[1],os.O_CREAT|os.O_WRONLY)\nn=0\nuntil=time.monotonic()+float(sys.argv[2])\nwhile time.monotonic()<until:\n os.pwrite(out,b'x'*512,0)\n os.fdatasync(out)\n n+=1\nprint(n)\n"
def work():
    return int(subprocess.run([sys.executable, "-c", wal, f"{data}/wal", str(seconds)], capture_output=True, text=True).stdout)
lines = []
def recorded(*options):
    leader, follower = pty.openpty()
    before = os.times()
    recorder = subprocess.Popen([*command, *options], stderr=follower, env=os.environ | {"COLUMNS": "200"})
    os.close(follower)
    said = bytearray()
    def read():
        try:
            while more := os.read(leader, 4096):
                said.extend(more)
        except OSError:
            pass
    reader = threading.Thread(target=read)
    reader.start()
    until = time.monotonic() + 120
    while b"recording" not in said and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(2)
    count = work()
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    reader.join()
    os.close(leader)
    lines.extend(re.findall(r"\x1b\[K([^\r\n]*syncs/s[^\r\n]*)", said.decode(errors="replace")))
    return count
counts = {"without a recorder": [], "--quiet": [], "with the line": []}
for _ in range(times):
    counts["without a recorder"].append(work())
    counts["--quiet"].append(recorded("--quiet"))
    assert counts["with the line"] or not lines
    counts["with the line"].append(recorded())
for name, found in counts.items():
    print(f"{name}: {found} syncs in {seconds:g} s")
print(*lines[-6:], sep="\n")
sys.exit(not any("in data/wal;" in line for line in lines))
END2
check "the line names the file" python3 /tmp/live.py "$DATA" "${1:-3}" "${2:-8}"
check "nothing is left in the kernel" nothing_left
counted live
