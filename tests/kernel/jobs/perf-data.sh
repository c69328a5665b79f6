#!/usr/bin/env bash
# Records one case with perf, once for each form of perf.data: perf-data.sh CASE.
# Results: perf-data/, each recording with the text of `perf script` for it. `killed.data` is what is left of perf after `kill -KILL`.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"

IFS=$'\t' read -r name setup device workload options < <(select_cases "$1")
read -ra words <<<"$options"
work=$(mktemp -d)
cd "$work"

# Prints the text of a recording: with the process of each thread, and without the names of functions, which perf.data does not hold.
print_text() {
  local fields=comm,pid,tid,cpu,time,event,trace
  # `-F +pid` would leave out the stacks.
  if [ "$1" = stacks ]; then fields+=,ip,sym,dso; fi
  mkdir -p empty
  perf script --header --ns --symfs empty --show-lost-events -F "$fields" -i "$1.data" >"$1.txt" 2>"$1.err"
}

# Records the workload into NAME.data: record NAME OPTION...
record() {
  local to=$1 disk major minor dev point
  shift
  mount_case "$setup" "$device"
  disk=$(findmnt -n -o SOURCE "$DATA")
  # The number of the device inside the kernel. Other disks are left out.
  read -r major minor < <(stat -L -c '%Hr %Lr' "$disk")
  dev=$((major << 20 | minor))
  local -a points=()
  for point in ext4:ext4_sync_file_{enter,exit} syscalls:sys_{enter,exit}_{fsync,fdatasync}; do points+=(-e "$point"); done
  for point in block:block_bio_queue block:block_rq_complete; do points+=(-e "$point" --filter "dev == $dev"); done
  for point in jbd2:jbd2_{start,end}_commit; do points+=(-e "$point" --filter "dev == $dev"); done
  # Else the report would be in the pipe.
  local -a run=(sh -c "exec \"\$0\" \"\$@\" >$to.json" "$PROJECT/tests/workloads/$workload.py" "$DATA/$name" ${words[@]+"${words[@]}"})
  if [ "$to" = pipe ]; then
    perf record -q -a -B -N -o - "$@" "${points[@]}" -- "${run[@]}" >"$to.data"
  else
    perf record -q -a -B -N -o "$to.data" "$@" "${points[@]}" -- "${run[@]}"
  fi
  grep -q '^{' "$to.json"
  print_text "$to"
  umount "$DATA"
  drop_device "${MOUNTED#* }"
  MOUNTED=''
}

record stacks -g -k mono
record packed -z
record pipe
record lost -m 1 -e 'sched:*'
perf record -q -a -o killed.data -e syscalls:sys_enter_fsync -- sleep 100000 2>/dev/null &
sleep 3
pkill -KILL -x perf || true
wait || true
pkill -x sleep || true
ls -l
mkdir -p "$OUT/perf-data"
cp -r . "$OUT/perf-data/"
