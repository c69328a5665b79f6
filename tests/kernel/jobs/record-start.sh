#!/bin/bash
# Measures how long `syncline record` takes from its start to the first event, and from its end to its exit, and where that time goes.
#
#   record-start.sh [TIMES]
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
mountpoint -q "$DATA" || mount_case ext4 plain

cat >/tmp/measure.py <<'END2'
import os, re, subprocess, sys, tempfile, time
times = int(sys.argv[1])
command = [sys.executable, "-c", "from syncline.cli import main; main()", "record", "--for", "2s", "-o"]
for _ in range(times):
    began, cpu = time.monotonic(), os.times()
    recorder = subprocess.Popen([*command, f"{tempfile.mkdtemp()}/run"], stderr=subprocess.PIPE, text=True)
    at, said = {}, []
    for line in recorder.stderr:
        said.append(line)
        word = re.match(r"route|probes|recording|draining", line)
        if word:
            at.setdefault(word[0], time.monotonic())
    if recorder.wait() or "draining" not in at:
        sys.exit("".join(said))
    ended, used = time.monotonic(), os.times()
    parts = [f"{name} {at[name] - began:.2f}" for name in ("route", "probes", "recording", "draining") if name in at]
    print(", ".join(parts), f"exit {ended - began:.2f} (stop {ended - at['draining']:.2f}), CPU {sum(used[2:4]) - sum(cpu[2:4]):.2f} s", flush=True)
END2
python3 /tmp/measure.py "${1:-3}"
echo "--- where the time goes"
python3 -X importtime -c 'import syncline.cli.record, syncline.record.session' 2>&1 | sort -t'|' -k2 -n | tail -n 12
cat >/tmp/where.py <<'END2'
import cProfile, pstats, sys
from syncline.record.request import Request
from syncline.record import session
from pathlib import Path
def run():
    with session.recorded(Request(Path("/tmp/profiled"), seconds=1), print):
        pass
profile = cProfile.Profile()
profile.runcall(run)
for order in ("cumulative", "tottime"):
    pstats.Stats(profile).sort_stats(order).print_stats(45 if order == "cumulative" else 20)
END2
python3 /tmp/where.py >"$OUT/profile.txt" 2>&1
head -n 75 "$OUT/profile.txt"
