#!/usr/bin/env bash
# Runs cases and compares the report of each workload with strace and the trace events of the kernel.
# Arguments: patterns of case, file system, device or workload. Prints `N passed, N failed`.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
calls=fsync,fdatasync,msync,sync,syncfs,sync_file_range
results=$OUT/truth
rm -rf "$results"
mkdir -p "$results"
# An instance of its own, separate from other tracing.
trace=/sys/kernel/tracing/instances/truth
mkdir -p "$trace"

# 9p is slow for many small writes, so results are collected in memory first.
work=$(mktemp -d)
cases=$(mktemp)
select_cases "$@" >"$cases"
while IFS=$'\t' read -r name setup device workload options <&3; do
  if ! mount_case "$setup" "$device"; then
    echo "no file system $setup on $device" >"$work/$name.err"
    continue
  fi
  read -ra events <<<"$(sync_event "$setup")"
  echo 0 >"$trace/tracing_on"
  echo 0 >"$trace/events/enable"
  echo >"$trace/trace"
  # The root is ext4 too, so filter by device. In the kernel it is major << 20 | minor.
  read -r major minor < <(stat -c '%Hd %Ld' "$DATA")
  for event in "${events[@]}"; do
    if grep -q 'dev_t dev;' "$trace/events/$event/format"; then
      echo "dev == $((major << 20 | minor))" >"$trace/events/$event/filter"
    fi
    echo 1 >"$trace/events/$event/enable"
  done
  echo 1 >"$trace/tracing_on"
  read -ra words <<<"$options"
  begun=$EPOCHREALTIME
  strace -f --seccomp-bpf -qq -c -U name,calls -o "$work/$name.strace" -e trace="$calls" \
    "$PROJECT/tests/workloads/$workload.py" "$DATA/$name" ${words[@]+"${words[@]}"} \
    >"$work/$name.out" 2>"$work/$name.err" || echo "exited with $?" >>"$work/$name.err"
  echo 0 >"$trace/tracing_on"
  cat "$trace"/per_cpu/*/stats | awk '/^(entries|overrun):/ { n += $2 } END { print n + 0 }' >"$work/$name.requests"
  echo "$name: $(((${EPOCHREALTIME/./} - ${begun/./}) / 1000)) ms"
done 3<"$cases"
umount "$DATA"
cp -r "$work/." "$results/"
python3 "$KERNEL_TESTS/compare_truth.py" "$results"
