# shellcheck shell=bash
# Functions for jobs that run `syncline` in the guest and count checks. The Python packages are those of the checkout's environment.

PACKAGES=$(echo "$PROJECT"/.venv/lib/python3*/site-packages)
export PYTHONPATH=$PROJECT/converter:$PACKAGES PYTHONDONTWRITEBYTECODE=1
# The last output of the program under test.
SAID=/tmp/said
passed=0 failed=0

if ! python3 -c 'import syncline.cli, syncline._core' 2>"$SAID"; then
  tail -n 1 "$SAID"
  echo "the checkout is not built; type on the host: make .venv/.installed"
  echo "record-lib: 0 passed, 1 failed"
  exit 1
fi

# With a limit, because a command that hangs would take the time of the whole job.
syncline() { timeout --foreground -k 30 900 python3 -c 'from syncline.cli import main; main()' "$@"; }

# The route that `record` chooses on this kernel.
default_route() { if [ -d /sys/kernel/tracing/events/wb_tracer ]; then echo ring-buffer; else echo dynamic-events; fi; }

check() { # WHAT COMMAND...: passes if the command succeeds
  local what=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    echo "ok: $what"
  else
    failed=$((failed + 1))
    echo "FAILED: $what"
    tail -5 "$SAID" 2>/dev/null
  fi
}

# Nothing of a recorder is in the kernel, and no tracer runs.
nothing_left() {
  [ -z "$(ls /sys/kernel/tracing/instances)" ] && ! grep -q syncline /sys/kernel/tracing/dynamic_events && ! pgrep -x 'strace|bpftrace' >/dev/null
}

soon() { # SECONDS COMMAND...: waits until a command succeeds
  local until=$((SECONDS + $1))
  shift
  while ! "$@"; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.2
  done
}

# Prints the last line of a job that counts checks.
counted() { # NAME
  echo "$1: $passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}

# steady_log: begins a program that appends to $DATA/wal and syncs it, twenty times a second. It prints when each sync began and ended to
# $OUT/wal.truth. Its process id is in $wal.
steady_log() {
  cat >/tmp/wal.py <<'END'
import os, sys, time
out = os.open(sys.argv[1] + "/wal", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
while True:
    os.write(out, b"x" * 512)
    began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    os.fdatasync(out)
    print(began, time.clock_gettime_ns(time.CLOCK_BOOTTIME), flush=True)
    time.sleep(0.05)
END
  python3 /tmp/wal.py "$DATA" >"$OUT/wal.truth" &
  # shellcheck disable=SC2034  # jobs use it
  wal=$!
}
