#!/usr/bin/env bash
# Records one run of one case with five recorders at once: several-recorders.sh CASE.
# Results: several-recorders/, with the report of the workload.
#
# The recorders use different clocks: bpftrace CLOCK_BOOTTIME, trace-cmd and perf CLOCK_MONOTONIC, blktrace its own, strace the time
# of day.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

IFS=$'\t' read -r name setup device workload options < <(select_cases "$1")
mount_case "$setup" "$device"
read -ra words <<<"$options"
disk=$(findmnt -n -o SOURCE "$DATA")
# The number of the device inside the kernel. Other disks are left out, because blktrace records only this one.
read -r major minor < <(stat -L -c '%Hr %Lr' "$disk")
dev=$((major << 20 | minor))
of_perf=() of_ring=()
for point in ext4:ext4_sync_file_{enter,exit} syscalls:sys_{enter,exit}_{fsync,fdatasync}; do
  of_perf+=(-e "$point")
  of_ring+=(-e "$point")
done
for point in block:block_bio_queue block:block_rq_{issue,complete}; do
  of_perf+=(-e "$point" --filter "dev == $dev")
  of_ring+=(-e "$point" -f "dev == $dev")
done
# clone: shows that threads share their files.
calls=fsync,fdatasync,msync,sync,syncfs,sync_file_range,openat,write,pwrite64,rename,unlink,close,clone,clone3,execve
work=$(mktemp -d)
cd "$work"

blktrace -d "$disk" -o disk >blktrace.log 2>&1 &
blktrace=$!
perf record -q -a -g -k mono -m 16M -o perf.data "${of_perf[@]}" -- sleep 100000 2>perf.log &
perf=$!
# perf always waits for the command that it starts.
trace-cmd start -C mono -b 16384 "${of_ring[@]}"
sleep 5
syncline record --route bpftrace -o run -- strace -f -ttt -T -e trace="$calls" -o strace.log \
  "$PROJECT/tests/workloads/$workload.py" "$DATA/$name" ${words[@]+"${words[@]}"} >truth.json 2>said || { cat said; exit 1; }
trace-cmd stop
kill -INT "$blktrace"
wait_for_exit "$blktrace"
pkill -INT -x perf
wait_for_exit "$perf"
perf script --header --ns -i perf.data >perf.txt
# trace-cmd would store the names of all kernel functions: most of the file, and not used by these events.
mount --bind /dev/null /proc/kallsyms
trace-cmd extract -o ring.dat >extract.log 2>&1
trace-cmd report -i ring.dat >ring.report.txt
blkparse -q -i disk >disk.blkparse.txt
ls -l . run
mkdir -p "$OUT/several-recorders"
cp -r . "$OUT/several-recorders/"
grep -q '^{' truth.json
