#!/bin/bash
# Tests the filters of `syncline record`, and the processes and stack frames in a recording: two workloads run, and one is selected.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
mountpoint -q "$DATA" || mount_case ext4 plain

workload=$PROJECT/tests/workloads/small_files.py

# Evaluates a Python expression over the requests of a recording: `rows`, with the columns of docs/reference/tables.md.
rows() { # RUN EXPRESSION
  syncline convert "$1" -o "$1.csv" &>>"$SAID" || return 1
  python3 - "$1.csv" "$2" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
result = eval(sys.argv[2])
if not result:
    print({key: sorted({row[key] for row in rows}) for key in ("path", "pid", "process", "comm", "stack")}, len(rows))
sys.exit(not result)
END
}

nothing() { # RUN: it holds no request, or no event at all
  rows "$1" 'not rows' || grep -q 'no event' "$SAID"
}

mkdir -p "$DATA/a" "$DATA/b"
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/test.slice/{a,b}
# Long enough that /proc is scanned while both run: bpftrace does not record the process of a thread.
cat >/tmp/both <<END
$workload $DATA/a files=60 & $workload $DATA/b files=90; wait
END

for route in ${1:-$(default_route)}; do
  record() { syncline record --force --route "$route" "$@"; }

  record -o /tmp/all -- sh /tmp/both &>"$SAID"
  check "$route: both are recorded" rows /tmp/all 'len([r for r in rows if r["path"].startswith(("/mnt/data/a/", "/mnt/data/b/"))]) == 150'
  check "$route: processes have names" rows /tmp/all 'all(r["pid"] and r["process"] == "python3" for r in rows if "/mnt/data/" in r["path"])'
  # Since glibc 2.41 a stripped libc does not name its innermost function.
  check "$route: stacks have names" rows /tmp/all 'not any("0x" in r["stack"] for r in rows if "/mnt/data/" in r["path"])'

  record -o /tmp/path --path "$DATA/a" -- sh /tmp/both &>"$SAID"
  check "$route: --path" rows /tmp/path 'len(rows) == 60 and all(r["path"].startswith("/mnt/data/a/") for r in rows)'

  record -o /tmp/slow --min-latency 60s -- sh /tmp/both &>"$SAID"
  check "$route: --min-latency" rows /tmp/slow 'not rows'

  record -o /tmp/comm --comm nobody -- sh /tmp/both &>"$SAID"
  check "$route: --comm" nothing /tmp/comm

  # Until the process exits, and only its requests.
  endless=()
  for name in b a; do
    python3 -c 'import os, sys, time
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
while os.pwrite(fd, b"x", 0):
    os.fsync(fd)
    time.sleep(0.05)' "$DATA/$name/endless" &
    endless+=($!)
    echo $! >"/sys/fs/cgroup/test.slice/$name/cgroup.procs"
  done
  pid=$!
  record -o /tmp/pid --pid $pid --for 3s &>"$SAID"
  record -o /tmp/cgroup --cgroup /test.slice/a --for 3s &>"$SAID"
  record -o /tmp/cgroups --cgroup /test.slice --for 3s &>"$SAID"
  kill "${endless[@]}"
  for each in "${endless[@]}"; do wait_for_exit "$each"; done
  # A sync that is in progress when the recording starts has no start event, and therefore no path.
  check "$route: --pid" rows /tmp/pid "len(rows) > 3 and all(r['path'].startswith('/mnt/data/a') or r['incomplete'] == 'start' for r in rows)"
  check "$route: --cgroup" rows /tmp/cgroup "len(rows) > 3 and all(r['path'].startswith('/mnt/data/a') or r['incomplete'] == 'start' for r in rows)"
  check "$route: --cgroup with groups in it" rows /tmp/cgroups "{'/mnt/data/a/endless', '/mnt/data/b/endless'} <= {r['path'] for r in rows}"
  cp -r /tmp/all /tmp/pid "$OUT/"
done

counted record-filters
