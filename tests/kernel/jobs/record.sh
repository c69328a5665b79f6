#!/usr/bin/env bash
# Records cases with several recorders, each in a run of its own:
#   record.sh RECORDER[,RECORDER...] [xTIMES] [PATTERN...]
# RECORDER: strace, strace-y, ftrace, trace-cmd, perf, blktrace, none, or bpf:SCRIPT[@VERSION], a file SCRIPT.bt in the results' folder or
# in bpf/ with the bpftrace of the guest or another version (0.17, 0.27); bpf-json:... the same with `-f json`. Results:
# recordings/RECORDER/CASE.*, where CASE.json is the report of the workload. With x8 each case runs eight times, CASE.1.* to CASE.8.*; the
# cases alternate, so that a drift over time affects all of them.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
IFS=, read -ra recorders <<<"${1:?which recorder?}"
shift
times=0
if [[ ${1:-} =~ ^x([0-9]+)$ ]]; then
  times=${BASH_REMATCH[1]}
  shift
fi
calls=fsync,fdatasync,msync,sync,syncfs,sync_file_range
tracing=/sys/kernel/tracing
work=$(mktemp -d)
failed=0

# Prints the events of writeback that this kernel has.
events() {
  local event
  for event in wb_tracer jbd2 ext4/ext4_sync_file_enter ext4/ext4_sync_file_exit ext4/ext4_writepages ext4/ext4_writepages_result \
    ext4/ext4_fc_commit_start ext4/ext4_fc_commit_stop xfs/xfs_file_fsync xfs/xfs_dir_fsync btrfs/btrfs_sync_file \
    f2fs/f2fs_sync_file_enter f2fs/f2fs_sync_file_exit block/block_bio_queue block/block_rq_issue block/block_rq_complete \
    syscalls/sys_{enter,exit}_{fsync,fdatasync,msync,sync,syncfs,sync_file_range}; do
    if [ -d "$tracing/events/$event" ]; then echo "$event"; fi
  done
}

# Runs the workload, then waits until the log has not grown for 3 s: an emulated CPU drains slowly. After five minutes it is not waited for.
run_and_drain() {
  local log=$1 size=-1 now tries
  shift
  "$@" >"$prefix.json"
  for ((tries = 0; tries < 100; tries++)); do
    now=$(stat -c %s "$log" 2>/dev/null || echo 0)
    [ "$now" != "$size" ] || break
    size=$now
    sleep 3
  done
}

record() {
  local recorder=$1 prefix=$2 event script version program device
  shift 2
  case $recorder in
    none) "$@" >"$prefix.json" ;;
    strace | strace-y)
      # -y: descriptors with their paths.
      local -a how=(-f -ttt -T)
      if [ "$recorder" = strace-y ]; then how+=(-y); fi
      strace "${how[@]}" -e trace="$calls,openat,write,pwrite64,rename,unlink,close" -o "$prefix.strace" "$@" >"$prefix.json"
      ;;
    ftrace)
      echo >"$tracing/trace"
      echo 16384 >"$tracing/buffer_size_kb"
      for event in $(events); do echo 1 >"$tracing/events/$event/enable"; done
      "$@" >"$prefix.json"
      echo 0 >"$tracing/events/enable"
      # Not trace_pipe, which would record its own reads and writes.
      cat "$tracing/trace" >"$prefix.ftrace"
      ;;
    trace-cmd)
      local -a chosen=()
      for event in $(events); do chosen+=(-e "${event/\//:}"); done
      trace-cmd record -q -o "$prefix.dat" "${chosen[@]}" "$@" >"$prefix.json"
      trace-cmd report -i "$prefix.dat" >"$prefix.report.txt"
      ;;
    perf)
      local -a points=()
      for event in $(events); do
        case $event in
          */*) points+=(-e "${event/\//:}") ;;
          *) points+=(-e "$event:*") ;;
        esac
      done
      perf record -q -a -g -k mono -m 16M -o "$prefix.perf.data" "${points[@]}" -- "$@" >"$prefix.json"
      perf script --header --ns -i "$prefix.perf.data" >"$prefix.perf.txt"
      ;;
    blktrace)
      device=$(findmnt -n -o SOURCE "$DATA")
      # An absolute path in -o fails with a misleading message.
      (cd "$(dirname "$prefix")" && exec blktrace -d "$device" -o "$(basename "$prefix")") >"$prefix.blktrace.log" 2>&1 &
      local tracer=$!
      sleep 2
      "$@" >"$prefix.json"
      sleep 2
      kill -INT "$tracer"
      wait_for_exit "$tracer"
      (cd "$(dirname "$prefix")" && blkparse -q -i "$(basename "$prefix")" >"$(basename "$prefix").blkparse.txt")
      ;;
    bpf:* | bpf-json:*)
      local format=text
      if [[ $recorder == bpf-json:* ]]; then format=json; fi
      script=${recorder#*:} version=''
      if [[ $script == *@* ]]; then version=${script#*@} script=${script%@*}; fi
      if [ -f "$OUT/$script.bt" ]; then script=$OUT/$script.bt; else script=$PROJECT/bpf/$script.bt; fi
      program=bpftrace
      if [ -n "$version" ]; then program=/opt/bpftrace-$version/run; fi
      # -c: the workload starts when all probes are attached.
      {
        # Not by the environment, because sh, which is in between, drops functions.
        declare -f run_and_drain
        printf 'prefix=%q\nrun_and_drain %q' "$prefix" "$prefix.log"
        printf ' %q' "$@"
      } >"$work/command"
      # The longest string of 0.17. Later versions have a sufficient default, and the scripts do not fit the stack with a shorter one.
      if [ "$version" = 0.17 ]; then export BPFTRACE_STRLEN=200; fi
      # bpftrace starts only ELF files.
      "$program" -f "$format" "$script" -c "/bin/bash $work/command" >"$prefix.log" 2>"$prefix.err"
      ;;
    *)
      echo "no recorder $recorder" >&2
      return 1
      ;;
  esac
  # A recorder that starts the workload may hide that it failed.
  grep -q '^{' "$prefix.json"
}

# Prints the selected cases, once or as often as requested.
cases() {
  local round
  if [ "$times" = 0 ]; then select_cases "$@"; fi
  for ((round = 1; round <= times; round++)); do
    select_cases "$@" | awk -F '\t' -v OFS='\t' -v round="$round" '{ $1 = $1 "." round } 1'
  done
}

for recorder in "${recorders[@]}"; do
  folder=${recorder//[:@]/-}
  mkdir -p "$work/$folder"
  while IFS=$'\t' read -r name setup device workload options <&3; do
    # A new file system for each, so that a recording does not depend on the previous ones.
    if [ -n "$MOUNTED" ]; then umount "$DATA"; drop_device "${MOUNTED#* }"; MOUNTED=''; fi
    mount_case "$setup" "$device"
    read -ra words <<<"$options"
    # Runs that are compared use the same file names.
    place=$name
    if [ "$times" != 0 ]; then place=$workload; fi
    begun=$EPOCHREALTIME
    # Not in a condition of the shell, which would disable `set -e` inside.
    set +e
    (set -e; record "$recorder" "$work/$folder/$name" "$PROJECT/tests/workloads/$workload.py" "$DATA/$place" ${words[@]+"${words[@]}"})
    code=$?
    set -e
    if [ $code != 0 ]; then
      failed=$((failed + 1))
      cat "$work/$folder/$name.err" 2>/dev/null || true
    fi
    echo "$recorder $name: $(((${EPOCHREALTIME/./} - ${begun/./}) / 1000)) ms$([ $code = 0 ] || echo ", FAILED with $code")"
    # Copied after each run, so that a failure of a later one does not lose it.
    if [ "$times" != 0 ]; then
      mkdir -p "$OUT/recordings/$folder"
      cp "$work/$folder/$name".* "$OUT/recordings/$folder/"
    fi
  done 3< <(cases "$@")
  mkdir -p "$OUT/recordings"
  cp -r "$work/$folder" "$OUT/recordings/"
done
umount "$DATA"
[ "$failed" = 0 ]
