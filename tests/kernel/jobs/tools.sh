#!/usr/bin/env bash
# Checks that the guest has the tools for recordings and that each bpftrace attaches a probe. Prints `N passed, N failed`.
set -euo pipefail
passed=0 failed=0
check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    passed=$((passed + 1))
    echo "ok     $name: $(tail -n 1 <<<"$output")"
  else
    failed=$((failed + 1))
    printf 'FAILED %s\n%s\n' "$name" "$output"
  fi
}
for tool in 'trace-cmd list -p' 'strace --version' 'fio --version' 'blkparse --version' 'sqlite3 --version' 'python3 --version'; do
  read -ra words <<<"$tool"
  # Only the first line: some tools print a licence after it.
  check "${words[0]}" bash -o pipefail -c '"$@" 2>&1 | sed -n 1p' bash "${words[@]}"
done
for program in bpftrace /opt/bpftrace-*/run; do
  check "$program" "$program" --version
  # shellcheck disable=SC2016  # the inner shell expands it
  check "$program probes" bash -o pipefail -c \
    '"$1" -e "tracepoint:syscalls:sys_enter_sync { @syncs = count(); }" -c /usr/bin/sync 2>&1 | grep "@syncs: [1-9]"' bash "$program"
done
echo "tools: $passed passed, $failed failed"
[ "$failed" = 0 ]
