#!/usr/bin/env bash
# record.sh CASE...: records cases of faults.py with strace, into tests/data/check/CASE.strace.gz. The folder of the run is
# /tmp/syncline-check, so that paths are the same everywhere. Lines before the program is in its folder are left out: they
# are those of the start of Python.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=/tmp/syncline-check
for name in "$@"; do
  rm -rf "$work" && mkdir -p "$work"
  inject=()
  case $name in cuttlefs_retry | failed_sync_*) inject=(-e inject=fsync:error=EIO:when=1) ;; esac
  strace -f -y -T -ttt -s 0 -e trace=%file,%desc,%process,%network,sync "${inject[@]}" -o "$work.log" \
    "${PYTHON:-python3}" -S -E "$here/faults.py" "$name" "$work/$name" || true
  awk '/chdir\("\/tmp\/syncline-check/ { on = 1 } on || /execve\(/' "$work.log" | gzip -9n >"$here/../${name//_/-}.strace.gz"
  rm -rf "$work" "$work.log"
done
