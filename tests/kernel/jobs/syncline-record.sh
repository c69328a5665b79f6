#!/bin/bash
# Runs `syncline record` in the guest: ROUTES WORKLOAD [ARGUMENT...]. ROUTES is a list with commas.
set -euo pipefail

routes=${1:-ring-buffer,bpftrace,strace}
workload=${2:-small_files.py}
shift 2 || true
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
export PYTHONUNBUFFERED=1

code=0
for route in ${routes//,/ }; do
  echo "== $route"
  mkdir -p "$DATA/$route"
  if syncline record --route "$route" -o "/tmp/$route" -- \
    "$PROJECT/tests/workloads/$workload" "$DATA/$route" "$@"; then
    cp -r "/tmp/$route" "$OUT/"
  else
    code=1
  fi
  ls /sys/kernel/tracing/instances
done
exit $code
