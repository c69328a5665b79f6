#!/bin/bash
# A recorder that ends before it was asked to, on each route: its tracer is killed, its disk is full, it is killed itself. Nothing is lost
# without a word, the command runs on, and nothing stays in the kernel. Arguments: the routes; all by default. One route takes five to eight
# minutes, so boot a guest for each.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

tracing=/sys/kernel/tracing
says() { grep -q -- "$1" "$SAID"; }
# An expression over `manifest`, `known` (the time in ns until which the recording is whole), `rows` and `losses` (the names of the losses
# that the conversion says) of a recording.
holds() { # RUN EXPRESSION
  syncline convert "$1" -o "$1.csv" &>/tmp/converted || {
    tail -3 /tmp/converted
    return 1
  }
  cat /tmp/converted >>"$SAID"
  python3 - "$1" "$2" <<'END_OF_SCRIPT'
import csv, json, re, sys
run = sys.argv[1]
rows = [row for row in csv.DictReader(open(f"{run}.csv")) if "/work" in row["path"]]
losses = set(re.findall(r"(\w+): ", open("/tmp/converted").read()))
manifest = json.load(open(f"{run}/manifest.json"))
known = [one["known_until_ns"] for one in manifest["inputs"] if "known_until_ns" in one]
if not eval(sys.argv[2]):
    print(manifest["ended_by"], manifest["exit_code"], known, len(rows), losses)
    sys.exit(1)
END_OF_SCRIPT
}

# Syncs a file again and again: FILE COUNT SECONDS_BETWEEN. Writes the time of each end, and at last FILE.done.
cat >/tmp/work.py <<'END_OF_SCRIPT'
import os, sys, time
name, count, gap = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
file = os.open(name, os.O_CREAT | os.O_WRONLY)
with open(f"{name}.times", "w", buffering=1) as times:
    for i in range(count):
        os.write(file, b"x" * 5000)
        os.fsync(file)
        times.write(f"{time.clock_gettime_ns(time.CLOCK_BOOTTIME)}\n")
        time.sleep(gap)
open(f"{name}.done", "w").close()
END_OF_SCRIPT
# The syncs that had ended 0.1 s before a time are all in the recording, with all that belongs to them.
complete='sum(int(line) < known[0] - 10**8 for line in open("/mnt/data/work.times")) <= sum(not row["incomplete"] for row in rows) > 0'

uname -r
mount_case ext4 plain || exit 1
mkdir -p /tmp/small
routes=${*:-dynamic-events bpftrace strace}
if [ $# = 0 ] && [ -d $tracing/events/wb_tracer ]; then routes="ring-buffer $routes"; fi
# bpftrace takes half a minute to attach here, and is needed only for its own route.
mount -o bind /dev/null /usr/bin/bpftrace
dmesg -C

for route in $routes; do
  if [ "$route" = bpftrace ]; then umount /usr/bin/bpftrace; fi
  record() { syncline record --force --route "$route" "$@"; }
  started() { [ -s "$DATA/work.times" ]; }

  # The tracer is killed, or tracing is turned off.
  rm -f "$DATA"/work*
  record -o /tmp/killed -- python3 -u /tmp/work.py "$DATA/work" 60 0.1 &>"$SAID" &
  pid=$!
  soon 400 started
  sleep 1
  case $route in
    strace | bpftrace) pkill -9 -x "$route" ;;
    *) echo 0 | tee $tracing/instances/syncline-*/tracing_on >/dev/null ;;
  esac
  wait $pid
  check "$route: the tracer ends: exit code 3" test $? = 3
  cp -r /tmp/killed "$OUT/killed-$route"
  check '... it is said' says 'the recording ended early'
  check '... it is a loss from a time on' holds /tmp/killed 'manifest["ended_by"].startswith("failure: ") and known and "recorder_ended" in losses'
  check '... until then, all is recorded' holds /tmp/killed "$complete"
  if [ "$route" = strace ]; then
    check '... and the command ends as it would have' soon 30 test -e "$DATA/work.done"
  fi
  check '... and nothing is left' soon 10 nothing_left

  # The disk is full for 2 s, then for good.
  for seconds in 2 600; do
    rm -f "$DATA"/work*
    mount -t tmpfs -o size=6m none /tmp/small
    (
      soon 400 started
      sleep 1
      head -c 8M /dev/zero >/tmp/small/filler
      sleep $seconds
      rm -f /tmp/small/filler
    ) 2>/dev/null &
    filler=$!
    record -o /tmp/small/run -- python3 -u /tmp/work.py "$DATA/work" 150 0.1 &>"$SAID"
    code=$?
    kill $filler 2>/dev/null
    rm -f /tmp/small/filler
    rm -rf /tmp/full
    cp -r /tmp/small/run /tmp/full
    if [ $seconds = 2 ] && [ $code = 0 ]; then
      # The few lines of 2 s may fit into the page that the log has already.
      check "$route: the disk is full for $seconds s, and nothing is lost" holds /tmp/full '"recorder_ended" not in losses and sum(not row["incomplete"] for row in rows) == 150'
    else
      check "$route: the disk is full for $seconds s: exit code 3" test $code = 3
      check '... it is said' says 'the recording ended early\|could not be written'
      check '... it ended at once' test ! -e "$DATA/work.done"
      check '... what was recorded until then is a recording with a loss' holds /tmp/full '"recorder_ended" in losses and len(rows) > 0'
    fi
    check '... and nothing is left' soon 10 nothing_left
    umount /tmp/small
  done

  # The recorder is killed.
  rm -f "$DATA"/work*
  record -o /tmp/dead -- python3 -u /tmp/work.py "$DATA/work" 40 0.1 &>"$SAID" &
  pid=$!
  soon 400 started
  kill -9 "$(pgrep -n -f '^python3 -c from syncline')"
  wait $pid 2>/dev/null
  check "$route: the recorder is killed: nothing is left" soon 20 nothing_left
  check '... and the command ends as it would have' soon 60 test -e "$DATA/work.done"
  pkill -f /tmp/work.py
done

dmesg >"$OUT/dmesg"
check 'the kernel has nothing to complain about' sh -c "! grep -E 'BUG|WARNING|Oops|Call Trace|hung task' '$OUT/dmesg'"
counted record-ends
