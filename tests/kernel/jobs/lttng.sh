#!/usr/bin/env bash
# Records a program with LTTng and sysdig, and at the same time with ftrace, so that the same run can be read both ways.
# Needs in OUT what is no package of the guest (tests/data/babeltrace/README.md says how to get it): `modules/`, the modules of both tools for
# this kernel; `lttng-root/`, the files of lttng-tools and its libraries; `sysdig/`, sysdig with its libraries and its loader.
# Results: lttng/, CTF traces, sysdig's files, the recordings of ftrace beside them (NAME.dat), and what the program did (NAME.truth).
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"

program=$PROJECT/tests/data/function-graph/threads.py
to=$OUT/lttng
root=/tmp/lttng
events=block_bio_queue,block_bio_remap,block_bio_complete,block_rq_insert,block_rq_issue,block_rq_complete
events+=,jbd2_start_commit,jbd2_commit_locking,jbd2_commit_flushing,jbd2_commit_logging,jbd2_end_commit
events+=,ext4_sync_file_enter,ext4_sync_file_exit,writeback_start,writeback_written,writeback_balance_dirty_pages
calls=fsync,fdatasync,sync,syncfs,msync,sync_file_range
mkdir -p "$to" "$DATA"

# The folder of modules is read-only.
modprobe -q overlay
mkdir -p /tmp/upper /tmp/work
mount -t overlay overlay -o lowerdir=/usr/lib/modules,upperdir=/tmp/upper,workdir=/tmp/work /usr/lib/modules
mkdir -p "/usr/lib/modules/$(uname -r)/updates"
cp "$OUT"/modules/*.ko "/usr/lib/modules/$(uname -r)/updates/"
depmod -a
cp -r "$OUT/lttng-root" "$root"
export HOME=/root PATH=$root/usr/bin:$PATH LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu

make_fs ext4 "$DISK" "$DATA"

# traced NAME ROUNDS: runs the program, recorded by ftrace too.
traced() {
  trace-cmd record -q -C mono -o "/tmp/$1.dat" -e ext4:ext4_sync_file_enter -e ext4:ext4_sync_file_exit -e jbd2:jbd2_start_commit \
    -e jbd2:jbd2_end_commit -e block:block_bio_queue -e block:block_rq_issue -e block:block_rq_complete -e sched:sched_switch \
    -e syscalls:sys_enter_fsync -e syscalls:sys_exit_fsync -e syscalls:sys_enter_fdatasync -e syscalls:sys_exit_fdatasync \
    -e syscalls:sys_enter_sync -e syscalls:sys_exit_sync \
    sh -c "python3 '$program' '$DATA' $2 >'$to/$1.truth'; sync" >/dev/null 2>"$to/$1.err"
  cp "/tmp/$1.dat" "$to/"
}

modprobe lttng_tracer
export LTTNG_SESSION_CONFIG_XSD_PATH=$root/usr/share/xml/lttng
lttng-sessiond --consumerd64-path="$root/usr/lib/x86_64-linux-gnu/lttng/libexec/lttng-consumerd" \
  --consumerd64-libdir="$root/usr/lib/x86_64-linux-gnu" >"$to/sessiond.log" 2>&1 &
if ! wait_until 60 test -S /run/lttng/client-lttng-sessiond; then tail -n 30 "$to/sessiond.log"; fi
# lttng_session NAME CONTEXTS OPTION...: a session with a channel of these options, and the contexts.
lttng_session() {
  local name=$1 contexts=$2
  shift 2
  lttng --no-sessiond create "$name" --output="/tmp/$name.ctf"
  lttng enable-channel --kernel channel0 "$@"
  lttng enable-event --kernel --channel channel0 --syscall "$calls"
  # The kernel has not all of them.
  local event
  for event in ${events//,/ } ${EXTRA:-}; do lttng enable-event --kernel --channel channel0 "$event" || true; done
  local context
  for context in $contexts; do lttng add-context --kernel --channel channel0 --type "$context"; done
  lttng start
}
lttng_end() {
  lttng stop
  lttng destroy "$1"
  tar -C "/tmp" -cf "$to/$1.ctf.tar" "$1.ctf"
}

lttng_session contexts "procname pid tid"
traced contexts 4
lttng_end contexts

lttng_session bare ""
traced bare 2
lttng_end bare

EXTRA="sched_switch sched_waking" lttng_session sched "procname pid tid"
traced sched 2
lttng_end sched

EXTRA="sched_switch sched_waking" lttng_session lost "procname pid tid" --subbuf-size 4096 --num-subbuf 2
lttng enable-event --kernel --channel channel0 --syscall --all
traced lost 3
lttng_end lost
ls -l "$to"

modprobe scap
unset LD_LIBRARY_PATH
cp -r "$OUT/sysdig" /tmp/sysdig
sysdig() { /tmp/sysdig/lib/ld-linux-x86-64.so.2 --library-path /tmp/sysdig/lib /tmp/sysdig/sysdig "$@"; }
sysdig -w /tmp/calls.scap "evt.type in (fsync, fdatasync, sync, syncfs, msync)" >"$to/sysdig.err" 2>&1 &
tool=$!
sleep 8
traced calls 4
sleep 3
pkill -INT -f calls.scap
wait_for_exit "$tool" 20
cp /tmp/calls.scap "$to/"
sysdig -r /tmp/calls.scap >"$to/calls.sysdig.txt"
timeout -s INT 40 /tmp/sysdig/lib/ld-linux-x86-64.so.2 --library-path /tmp/sysdig/lib /tmp/sysdig/sysdig -w /tmp/all.scap >"$to/sysdig-all.err" 2>&1 &
tool=$!
sleep 8
traced all 2
wait_for_exit "$tool" 60
sysdig -r /tmp/all.scap "proc.name startswith python" >"$to/all.sysdig.txt"
wc -l "$to"/*.txt
ls -l "$to"
