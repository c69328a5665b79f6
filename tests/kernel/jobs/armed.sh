#!/bin/bash
# Tests an armed recording: a log is synced steadily, and a neighbour writes a burst at a moment that only this job knows.
#
#   armed.sh [SECONDS [LIMIT]]: how long the recording runs (60), and the limit of a slow sync (an eighth of a second)
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
mountpoint -q "$DATA" || mount_case ext4 plain

seconds=${1:-60} limit=${2:-125ms}

cat >/tmp/wal.py <<'END'
import os, sys, time
out = os.open(sys.argv[1] + "/wal", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
while True:
    os.write(out, b"x" * 512)
    began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    os.fdatasync(out)
    print(began, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - began, flush=True)
    time.sleep(0.05)
END
# A name by which the report can name it.
cp "$(command -v dd)" /tmp/burst

is_clean() { # nothing is left in the kernel
  [ -z "$(find /sys/kernel/tracing/instances -name 'syncline*')" ] && ! grep -q syncline /sys/kernel/tracing/dynamic_events /sys/kernel/tracing/synthetic_events
}

python3 /tmp/wal.py "$DATA" >"$OUT/wal.truth" &
wal=$!
syncline record --slower-than "$limit" --keep 8s --after 1s --every 5s --for "${seconds}s" -o "$OUT/captures" &>"$OUT/armed.said" &
recorder=$!
until grep -q ^armed "$OUT/armed.said"; do sleep 0.2; done
sleep $((seconds / 2))
burst_at=$(awk '{printf "%d", $1 * 1e9}' /proc/uptime)
/tmp/burst if=/dev/zero of="$DATA/burst" bs=1M count=96 conv=fsync 2>/dev/null
wait "$recorder"
kill "$wal"
echo "$burst_at" >"$OUT/burst.truth"
cat "$OUT/armed.said"
check "the burst is captured" test -n "$(ls "$OUT/captures")"
check "nothing is left in the kernel" is_clean
first=$(find "$OUT/captures" -mindepth 1 -maxdepth 1 | sort | head -n 1)
# The guest has no DuckDB: docs/reference/armed.md says how the captures are reported on the host.
check "a capture can be converted" syncline convert "$first" -o /tmp/first.pftrace
is_whole() { ! grep -q lost "$OUT/armed.said"; }
check "nothing is lost" is_whole

# Idle: nobody syncs.
syncline record --slower-than 10s --for 40s -o /tmp/idle &>/tmp/idle.said &
recorder=$!
until grep -q ^armed /tmp/idle.said; do sleep 0.2; done
recorder_python=$(pgrep -f 'syncline.*record --slower-than 10s' | tail -n 1)
sleep 5
before=$(awk '{print $14 + $15}' "/proc/$recorder_python/stat")
sleep 20
after=$(awk '{print $14 + $15}' "/proc/$recorder_python/stat")
echo "idle: $((after - before)) ticks of CPU time in 20 s; $(grep -E 'VmRSS' "/proc/$recorder_python/status")"
wait "$recorder"
cat /tmp/idle.said
counted armed
