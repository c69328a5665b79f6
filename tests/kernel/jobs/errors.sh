#!/usr/bin/env bash
# Records syncs whose data the device refused: errors.sh [FILE_SYSTEM...]. The folders are in OUT, each with what the program returned and found
# (truth.json).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

[ $# -gt 0 ] || set -- ext4 xfs btrfs f2fs
# bpftrace attaches for half a minute on an emulated CPU.
mount -o bind /dev/null /usr/bin/bpftrace
uname -r

for fs; do
  mount_case "$fs" flakey
  printf '%q %q >%q\n' "$PROJECT/tests/workloads/failed_sync.py" "$DATA/file" "/tmp/$fs.json" >/tmp/program.sh
  syncline record --force --route dynamic-events -o "/tmp/$fs" -- bash /tmp/program.sh || echo "$fs: the program failed"
  cp -r "/tmp/$fs" "$OUT/$fs"
  cp "/tmp/$fs.json" "$OUT/$fs/truth.json"
  cat "/tmp/$fs.json"
  grep " $DATA " /proc/mounts || true
done
