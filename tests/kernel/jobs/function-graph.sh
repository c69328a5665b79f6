#!/usr/bin/env bash
# Records the functions of a few syncs with the tracer function_graph, on four file systems and in the forms in which people print them.
# Results: function-graph/, each text with what the program did (NAME.truth).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"

trace=/sys/kernel/tracing
program=$PROJECT/tests/data/function-graph/threads.py
to=$OUT/function-graph
mkdir -p "$to" "$DATA"
mountpoint -q "$trace" || mount -t tracefs nodev "$trace"

# record NAME FUNCTION: the text of `trace`, of this function and what it calls, with the options that are set.
record() {
  echo >"$trace/trace"
  echo "$2" >"$trace/set_graph_function"
  echo function_graph >"$trace/current_tracer"
  python3 "$program" "$DATA" 3 >"$to/$1.truth"
  echo 0 >"$trace/tracing_on"
  cat "$trace/trace" >"$to/$1.txt"
  echo nop >"$trace/current_tracer"
  echo 1 >"$trace/tracing_on"
}
# A short list of functions, so that the texts stay small.
functions='ext4_sync_file file_write_and_wait_range __filemap_fdatawait_range ext4_fc_commit jbd2_complete_transaction jbd2_log_wait_commit
  blkdev_issue_flush xfs_file_fsync xfs_log_force_seq btrfs_sync_file btrfs_sync_log btrfs_commit_transaction f2fs_sync_file f2fs_issue_flush
  f2fs_issue_checkpoint f2fs_write_checkpoint __x64_sys_fsync __x64_sys_fdatasync do_writepages'
echo mono >"$trace/trace_clock"
echo 1 >"$trace/options/funcgraph-abstime"
echo 1 >"$trace/options/funcgraph-proc"
for fs in ext4 xfs btrfs f2fs; do
  if mountpoint -q "$DATA"; then umount "$DATA"; fi
  wipefs -q -a "$DISK"
  make_fs "$fs" "$DISK" "$DATA"
  : >"$trace/set_ftrace_filter"
  for function in $functions; do echo "$function" >>"$trace/set_ftrace_filter" 2>/dev/null || true; done
  case $fs in
    ext4) top=ext4_sync_file ;; xfs) top=xfs_file_fsync ;; btrfs) top=btrfs_sync_file ;; f2fs) top=f2fs_sync_file ;;
  esac
  record "$fs" "$top"
  if [ "$fs" = ext4 ]; then
    record calls "__x64_sys_fsync __x64_sys_fdatasync"
    echo 1 >"$trace/options/funcgraph-tail"
    echo 1 >"$trace/options/funcgraph-retval" 2>/dev/null || true
    echo 1 >"$trace/events/block/block_rq_complete/enable"
    echo 1 >"$trace/events/block/block_bio_queue/enable"
    record events ext4_sync_file
    echo 0 >"$trace/events/enable"
    echo 0 >"$trace/options/funcgraph-tail"
    echo 0 >"$trace/options/funcgraph-retval" 2>/dev/null || true
    echo 0 >"$trace/options/funcgraph-proc"
    record no-task ext4_sync_file
    echo 0 >"$trace/options/funcgraph-abstime"
    record no-time ext4_sync_file
    echo 1 >"$trace/options/funcgraph-abstime"
    echo 1 >"$trace/options/funcgraph-proc"
    # All functions, to a small depth.
    : >"$trace/set_ftrace_filter"
    echo 4 >"$trace/max_graph_depth"
    record all ext4_sync_file
    echo 0 >"$trace/max_graph_depth"
    (cd /tmp && trace-cmd record -q -C mono -p function_graph -g ext4_sync_file --max-graph-depth 4 -e block_rq_complete -e block_bio_queue \
      -o graph.dat python3 "$program" "$DATA" 3 >"$to/trace-cmd.truth" && trace-cmd report graph.dat >"$to/trace-cmd.txt" 2>/dev/null \
      && cp graph.dat "$to/trace-cmd.dat") || true
    : >"$trace/set_ftrace_filter"
  fi

done
ls -l "$to"
