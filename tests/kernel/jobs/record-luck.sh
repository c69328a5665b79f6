#!/bin/bash
# `syncline record` with failures, by one route ([ROUTE], by default that of this kernel): Ctrl-C, kill -9, a full disk, an overflow, a command that fails, no root, another user. None changes the machine.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
mountpoint -q "$DATA" || mount_case ext4 plain

workload=$PROJECT/tests/workloads/small_files.py
route=${1:-$(default_route)}

record() { syncline record --route "$route" "$@"; }

says() { grep -q -- "$1" "$SAID"; }

nothing_left() { # no instance, no tracer, and the other tracing of the machine unchanged
  local state
  state=$(cat /sys/kernel/tracing/{tracing_on,current_tracer,set_event,buffer_size_kb})
  [ -z "$(ls /sys/kernel/tracing/instances)" ] && [ -z "$(cat /sys/kernel/tracing/dynamic_events)" ] && [ "$state" = "$before" ] && ! pgrep -x bpftrace >/dev/null
}

echo 1 >/sys/kernel/tracing/events/sched/sched_process_exit/enable
before=$(cat /sys/kernel/tracing/{tracing_on,current_tracer,set_event,buffer_size_kb})

record -o /tmp/fails -- sh -c 'exit 7' &>"$SAID"
check 'a command that fails: its exit code is reported' says 'the command exited with 7'
check '... and nothing is left' nothing_left

record -o /tmp/none -- /no/such/program &>"$SAID"
check 'a command that does not exist is reported' says 'cannot run /no/such/program'
check '... no folder, and nothing is left' test ! -e /tmp/none -a "$(nothing_left && echo y)" = y

# A recorder that fails does not say that it records.
started() { says 'recording' || has_exited "$recorder"; }

record -o /tmp/ctrlc &>"$SAID" &
recorder=$!
wait_until 300 started
"$workload" "$DATA" files=20 >/dev/null
pkill -INT -f 'record --route'
wait_for_exit $recorder
check 'Ctrl-C: the recording is complete' grep -q '"ended_by": "SIGINT"' /tmp/ctrlc/manifest.json
check '... and nothing is left' nothing_left

record -o /tmp/killed &>"$SAID" &
recorder=$!
wait_until 300 started
pkill -KILL -f 'record --route'
wait_for_exit $recorder
pkill -INT -x bpftrace
sleep 2
record -o /tmp/after -- true &>"$SAID"
if [ "$route" != bpftrace ]; then
  check 'kill -9: the next recording removes its instance' says 'the tracing instance of a recorder that was killed'
fi
check '... and nothing is left' nothing_left

children=$(mktemp)
cat >"$children" <<END
for i in \$(seq 200); do (echo x >$DATA/fork-\$i; sync $DATA/fork-\$i) & done; wait
END
record -o /tmp/forks -- sh "$children" &>"$SAID"
check 'two hundred children' test -s /tmp/forks/manifest.json
check '... and nothing is left' nothing_left

# Another user owns the folder above the run directory, and exchanges the run directory while root records into it.
mkdir /tmp/theirs "$DATA/exchanged"
chown nobody /tmp/theirs
echo precious >/tmp/victim
cat >/tmp/exchange <<END
cd /tmp/theirs && mv run moved && mkdir run
for name in manifest.json events.log stacks.log trace.dat .trace.dat.part tasks.json; do ln -s /tmp/victim run/\$name; done
exec $workload $DATA/exchanged files=20
END
record -o /tmp/theirs/run -- sh /tmp/exchange &>"$SAID"
check 'an exchanged run directory: nothing is written through it' grep -qx precious /tmp/victim
syncline convert /tmp/theirs/moved -o /tmp/moved.csv &>"$SAID"
check '... and the recording is complete' test "$(grep -c "$DATA/exchanged/" /tmp/moved.csv)" -ge 20
check '... and nothing is left' nothing_left

if [ "$route" != bpftrace ]; then
  mkdir /tmp/small
  mount -t tmpfs -o size=300k none /tmp/small
  record -o /tmp/small/run -- "$workload" "$DATA" files=400 threads=4 &>"$SAID"
  check 'a full disk is reported' says 'No space left on device'
  check '... and nothing is left' nothing_left
  umount /tmp/small

  # Pages are not copied for a while, and a CPU has 4 KB for them. The brackets keep pkill from matching its own shell.
  mkdir "$DATA/many"
  record --buffer 4K -o /tmp/overflow -- sh -c \
    "pkill -STOP -f '[r]ecord --route'; $workload $DATA/many files=200 threads=4; pkill -CONT -f '[r]ecord --route'" &>"$SAID"
  check 'an overflow is reported' says 'the kernel lost [1-9].* events because its ring buffer was full'
  syncline convert /tmp/overflow -o /tmp/overflow.csv &>"$SAID"
  check '... and by the converter' says 'lost_by_tracer'
  cp -r /tmp/overflow "$OUT/"
fi

su -s /bin/sh nobody -c "PYTHONPATH=$PYTHONPATH python3 -c 'from syncline.cli import main; main()' record -o /tmp/nobody -- true" &>"$SAID"
check 'without root: strace, and what it cannot see' says 'it cannot see anything inside the kernel'

echo 0 >/sys/kernel/tracing/events/sched/sched_process_exit/enable
counted record-luck
