#!/usr/bin/env bash
# `make record-fixtures`: records cases in the guest, as fixtures for tests/data. Review the recordings before you copy them.
#
# KERNEL: patched or stock. Default: patched if it is built.  RECORDERS: see jobs/record.sh.
# CASES: patterns of cases.tsv.  OUT: folder for the results.
set -euo pipefail
cd "$(dirname "$0")"
RECORDERS=${RECORDERS:-strace,ftrace,trace-cmd,blktrace}
read -ra cases <<<"${CASES:-small1 small4 parallel4 rename sqlite-wal-full small-uring}"
OUT=$(realpath -m "${OUT:-../../build/recordings}")
if [ -z "${KERNEL:-}" ]; then
  KERNEL=stock
  if ./guest.py info | grep -q '^patched  */'; then KERNEL=patched; fi
fi
code=0
./guest.py boot --kernel "$KERNEL" --fs none --job jobs/record.sh --out "$OUT" --time-limit "${TIME_LIMIT:-3600}" -- "$RECORDERS" "${cases[@]}" || code=$?
if [ "$code" = 77 ]; then
  echo "record-fixtures: skipped"
  exit 0
fi
if [ "$code" = 0 ]; then echo "recordings of the $KERNEL kernel: $OUT/recordings"; fi
exit "$code"
