#!/usr/bin/env bash
# Records syncs whose cause the set-up forces: a limit on CPU time with a program next to it that uses it up, fsync for overwrites of a preallocated
# file, and programs and workers of io_uring that live for a moment. The recordings are in OUT. Run it with --fs ext4.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

# Without bpftrace: it attaches for half a minute on an emulated CPU, and no stack is needed.
mount -o bind /dev/null /usr/bin/bpftrace
route=$(default_route)

# syncs FILE COUNT [BLOCKS]: appends, or with BLOCKS overwrites these many in an order of its own, each with fsync.
cat >/tmp/syncs.py <<'EOF'
import os, sys, time
path, count, blocks = sys.argv[1], int(sys.argv[2]), int(*sys.argv[3:] or [0])
fd = os.open(path, os.O_RDWR | os.O_CREAT)
for k in range(count):
    os.pwrite(fd, os.urandom(4096), 4096 * (k * 7 % blocks if blocks else k))
    os.fsync(fd)
    time.sleep(0.03 if blocks else 0.02)
EOF
printf '#!/bin/bash\nwhile :; do :; done\n' >/tmp/burn.sh
chmod +x /tmp/burn.sh

# recorded NAME ARGUMENT...: records into OUT/NAME.
recorded() {
  local name=$1
  shift
  syncline record --force --route "$route" -o "/tmp/$name" "$@" >"$SAID" 2>&1 && cp -r "/tmp/$name" "$OUT/"
}

fallocate -l 4M "$DATA/written"
dd if=/dev/zero of="$DATA/written" bs=1M count=4 conv=notrunc,fsync status=none
sync
check "fsync of overwrites" recorded fsync-prealloc -- python3 /tmp/syncs.py "$DATA/written" 24 12

# A fifth of one CPU for a program that syncs and for one that only computes.
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/limited
echo '20000 100000' >/sys/fs/cgroup/limited/cpu.max
in_limited='echo $$ >/sys/fs/cgroup/limited/cgroup.procs; exec "$@"'
bash -c "$in_limited" - /tmp/burn.sh &
burner=$!
check "a limit on CPU time" recorded cpu-max -- bash -c "$in_limited" - python3 /tmp/syncs.py "$DATA/limited" 24
cp /sys/fs/cgroup/limited/cpu.stat "$OUT/cpu-max/"
kill "$burner"
wait "$burner" 2>/dev/null

recorded short-lived --for 25s &
recorder=$!
wait_until 60 grep -q '^recording' "$SAID"
sleep 1
for k in $(seq 30); do dd if=/dev/zero of="$DATA/short$k" bs=4k count=1 conv=fsync status=none; done
"$PROJECT/tests/workloads/small_files_uring.py" "$DATA/uring" files=16 >/dev/null
check "programs that live for a moment" wait "$recorder"
counted causes
