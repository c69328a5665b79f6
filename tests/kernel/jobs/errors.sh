#!/usr/bin/env bash
# Records syncs whose data the device refused, or with `journal` ones for which the journal failed: errors.sh [journal] [FILE_SYSTEM...]. The
# folders are in OUT, each with what the program returned and found (truth.json), with `journal` also after the next mount (on_disk.json).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

program=failed_sync.py files=()
if [ "${1:-}" = journal ]; then
  program=failed_journal.py files=(--files)
  shift
fi
[ $# -gt 0 ] || set -- ext4 xfs btrfs f2fs
# bpftrace attaches for half a minute on an emulated CPU.
mount -o bind /dev/null /usr/bin/bpftrace
uname -r

for fs; do
  mount_case "$fs" flakey
  directory=$DATA/file
  [ "$program" = failed_sync.py ] || directory=$DATA
  printf '%q %q >%q\n' "$PROJECT/tests/workloads/$program" "$directory" "/tmp/$fs.json" >/tmp/program.sh
  syncline record --force --route dynamic-events "${files[@]}" -o "/tmp/$fs" -- bash /tmp/program.sh || echo "$fs: the program failed"
  cp -r "/tmp/$fs" "$OUT/$fs"
  cp "/tmp/$fs.json" "$OUT/$fs/truth.json"
  cat "/tmp/$fs.json"
  grep " $DATA " /proc/mounts || true
  [ "$program" = failed_journal.py ] || continue
  read -r device kind < <(findmnt -n -o SOURCE,FSTYPE "$DATA")
  umount "$DATA"
  mount -t "$kind" "$device" "$DATA" || { echo "$fs: it cannot be mounted again" && MOUNTED='' && continue; }
  "$PROJECT/tests/workloads/$program" "$DATA" case=look >"$OUT/$fs/on_disk.json"
  cat "$OUT/$fs/on_disk.json"
done
