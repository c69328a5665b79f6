#!/bin/bash
# What others do to a recorder that runs: they stop it for a while, set the clock, remove the control group that it follows, and record at
# the same time. The recording is whole, or says since when it is not, and nothing stays in the kernel. Arguments: the routes; by default
# that of this kernel.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

# The syncs that a program made, which it timed itself, are the rows of the recording: each begins before its row, and ends after it.
# FILE has a line `begin end` for each, in ns since boot.
matches() { # RUN FILE
  syncline convert "$1" -o "$1.csv" &>>"$SAID" || return 1
  python3 - "$1.csv" "$2" <<'END_OF_SCRIPT'
import csv, os, sys
rows = [row for row in csv.DictReader(open(sys.argv[1])) if row["path"].endswith(os.path.basename(sys.argv[2]).removesuffix(".times"))]
whole = [row for row in rows if not row["incomplete"]]
calls = [tuple(map(int, line.split())) for line in open(sys.argv[2])]
begins = sorted(int(row["ts_ns"]) for row in whole)
bad = [ts for ts, (begin, end) in zip(begins, calls) if not begin <= ts <= end]
if len(whole) != len(rows) or len(rows) != len(calls) or bad:
    print(f"{len(calls)} calls, {len(rows)} rows, {len(rows) - len(whole)} incomplete, {len(bad)} at another time", rows[:1])
    sys.exit(1)
END_OF_SCRIPT
}

are_of_group() { # RUN GROUP: the requests are of this control group.
  syncline convert "$1" -o "$1.csv" &>>"$SAID" || return 1
  python3 - "$1.csv" "$2" <<'END_OF_SCRIPT'
import csv, sys
groups = [row["cgroup"] for row in csv.DictReader(open(sys.argv[1]))]
if len(groups) < 5 or set(groups) != {"/" + sys.argv[2]}:
    sys.exit(f"{len(groups)} requests of {set(groups)}")
END_OF_SCRIPT
}

# Syncs a file again and again, and writes when: FILE COUNT SECONDS_BETWEEN.
cat >/tmp/work.py <<'END_OF_SCRIPT'
import os, sys, time
name, count, gap = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
file = os.open(name, os.O_CREAT | os.O_WRONLY)
now = lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME)
with open(f"{name}.times", "w", buffering=1) as times:
    for i in range(count):
        os.write(file, b"x" * 5000)
        begin = now()
        os.fsync(file)
        times.write(f"{begin} {now()}\n")
        time.sleep(gap)
END_OF_SCRIPT

uname -r
mount_case ext4 plain || exit 1
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
dmesg -C

[ $# -gt 0 ] || set -- "$(default_route)"
for route; do
  record() { syncline record --force --route "$route" "$@"; }
  started() { [ -s "$DATA/$1.times" ]; }
  recorder() { pgrep -n -f '^python3 -c from syncline'; }

  # The buffer holds what the kernel records while the recorder is stopped.
  record -o /tmp/stopped -- python3 -u /tmp/work.py "$DATA/stopped" 60 0.1 &>"$SAID" &
  pid=$!
  soon 400 started stopped
  kill -STOP "$(recorder)"
  sleep 3
  kill -CONT "$(pgrep -o -f '^python3 -c from syncline')"
  wait $pid
  check "$route: the recorder is stopped for 3 s: it ends as if it had not been" test $? = 0
  check '... each sync is recorded' matches /tmp/stopped "$DATA/stopped.times"
  check '... and nothing is left' soon 10 nothing_left

  # Times are of the clock that runs on, so no sync is moved or becomes negative.
  record -o /tmp/clock -- python3 -u /tmp/work.py "$DATA/clock" 40 0.1 &>"$SAID" &
  pid=$!
  soon 400 started clock
  now=$(date +%s)
  date -s "@$((now + 7200))" >/dev/null
  sleep 1
  date -s "@$((now - 7200))" >/dev/null
  wait $pid
  check "$route: the clock is set twice: it ends as usual" test $? = 0
  check '... each sync has its time' matches /tmp/clock "$DATA/clock.times"
  date -s "@$((now + 10))" >/dev/null

  # The control group is removed while the recorder follows it.
  if [ "$route" != strace ]; then
    mkdir -p /sys/fs/cgroup/gone
    (
      echo "$BASHPID" >/sys/fs/cgroup/gone/cgroup.procs
      exec python3 -u /tmp/work.py "$DATA/gone" 100000 0.1
    ) &
    work=$!
    soon 60 started gone
    record -o /tmp/gone --cgroup /gone --for 8s &>"$SAID" &
    pid=$!
    soon 400 grep -q '^recording' "$SAID"
    sleep 2
    kill $work
    soon 10 rmdir /sys/fs/cgroup/gone
    wait $pid
    check "$route: the control group is removed: it ends as usual" test $? = 0
    check '... what its processes did before is recorded' are_of_group /tmp/gone gone
    check '... and nothing is left' soon 10 nothing_left
  fi

  # Two recorders, each with a program of its own. Neither has events of the other.
  record -o /tmp/one -- python3 -u /tmp/work.py "$DATA/one" 60 0.1 &>"$SAID" &
  one=$!
  record -o /tmp/two -- python3 -u /tmp/work.py "$DATA/two" 60 0.1 &>"$SAID.two" &
  two=$!
  wait $one
  check "$route: two recordings at once: the first ends as usual" test $? = 0
  wait $two
  check '... the second one too' test $? = 0
  check '... the first has its syncs' matches /tmp/one "$DATA/one.times"
  check '... the second has its own' matches /tmp/two "$DATA/two.times"
  check '... and nothing is left' soon 10 nothing_left
done

dmesg >"$OUT/dmesg"
check 'the kernel has nothing to complain about' sh -c "! grep -E 'BUG|WARNING|Oops|Call Trace|hung task' '$OUT/dmesg'"
counted record-disturbed
