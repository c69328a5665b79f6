#!/usr/bin/env bash
# A job for the test guest: does each kind of sync on each file system with all wb_tracer events on, and leaves
# one trace and one list of facts for each in the results. check_events.py judges them.
# Arguments: names of rows of tests/kernel/filesystems.tsv, default a list of them.
set -euo pipefail
# shellcheck disable=SC1091
. "$KERNEL_TESTS/guest-lib.sh"
setups=("$@")
[ $# -gt 0 ] || setups=(ext4 ext4-nojournal ext4-fast-commit ext4-journal ext4-inline xfs f2fs btrfs)
trace=/sys/kernel/tracing/instances/events
mkdir -p "$trace"
echo 16384 >"$trace/buffer_size_kb"
echo mono >"$trace/trace_clock"
work=$(mktemp -d)

mark() {
  echo "$*" >"$trace/trace_marker"
}

for setup in "${setups[@]}"; do
  mount_case "$setup" plain
  read -r major minor < <(stat -c '%Hd %Ld' "$DATA")
  echo >"$trace/trace"
  echo 1 >"$trace/events/wb_tracer/enable"
  echo 1 >"$trace/tracing_on"
  mark "begin setup=$setup dev=$major,$minor"
  python3 "$PROJECT/kernel-patch/test/syncs.py" "$DATA" "$trace/trace_marker"
  mark "end"
  # What is in flight belongs to the trace as well.
  sleep 1
  echo 0 >"$trace/tracing_on"
  echo 0 >"$trace/events/wb_tracer/enable"
  cat "$trace/trace" >"$work/$setup.trace"
  cat "$trace"/per_cpu/*/stats | awk '/^(overrun|dropped events):/ { n += $NF } END { print n + 0 }' >"$work/$setup.lost"
  echo "$setup: $(wc -l <"$work/$setup.trace") lines"
done
umount "$DATA"
dmesg >"$work/dmesg"
mkdir -p "$OUT/events"
cp "$work"/* "$OUT/events/"
python3 "$PROJECT/kernel-patch/test/check_events.py" "$OUT/events"
