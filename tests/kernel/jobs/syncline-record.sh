#!/bin/bash
# `syncline record` in the guest: WORKLOAD [ARGUMENT...], with the routes in $ROUTES (all by default).
#
# Its Python packages are those of the checkout's environment; click is all that a recording needs.
set -euo pipefail

workload=${1:-small_files.py}
shift || true
packages=$(echo "$PROJECT"/.venv/lib/python3*/site-packages)
export PYTHONPATH=$PROJECT/converter:$packages PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

for route in ${ROUTES:-ring-buffer bpftrace strace}; do
  echo "== $route"
  mkdir -p "$DATA/$route"
  if python3 -c 'from syncline.cli import main; main()' record --route "$route" -o "/tmp/$route" -- \
    "$PROJECT/tests/workloads/$workload" "$DATA/$route" "$@"; then
    cp -r "/tmp/$route" "$OUT/"
  fi
  ls /sys/kernel/tracing/instances
done
