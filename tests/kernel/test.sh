#!/usr/bin/env bash
# `make kernel-test`: tests workloads and recorders in a guest. The last line is `kernel: N passed, N failed, N skipped`.
#
# KERNEL: stock; patched or patched-SERIES, which is built if needed. Default: stock, and patched if it is built.
# CASES: patterns of cases.tsv. Default: the quick cases below; CASES='*' is all.
set -uo pipefail
cd "$(dirname "$0")" || exit
# One case for each kind of sync and for each file system.
cases=(
  small4 small-uring parallel4 overwrite-unaligned-cold rename msync odsync rwf-sync empty syncfs ranges odd-names
  sqlite-wal-full valkey io-error small4-null-cache small4-nojournal small4-fast-commit small4-xfs small4-btrfs small4-f2fs
)
if [ -n "${CASES:-}" ]; then read -ra cases <<<"${CASES//$'\n'/ }"; fi
if [ ! -e ../../.venv/.installed ]; then
  echo "kernel: the checkout is not built, and the guest runs it: make kernel-test builds it first"
  echo "kernel: 0 passed, 1 failed, 0 skipped"
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

skip() {
  echo "kernel: skipped: $1"
  skipped=$((skipped + 1))
}

# step NAME KERNEL JOB [ARGUMENT...]: runs a job in a guest. The last line of a job that counts checks is `N passed, N failed`. Any other job counts as one check.
step() {
  local name=$1 kernel=$2 job=$3 out code line p=0 f=0 begun=$SECONDS
  shift 3
  out=$work/$name
  mkdir "$out"
  echo "== $name"
  ./guest.py boot --kernel "$kernel" --fs none --job "$job" --out "$out" --time-limit "${TIME_LIMIT:-3000}" -- "$@" 2>"$out/host.log"
  code=$?
  cat "$out/host.log" >&2
  if [ $code = 77 ]; then
    skip "$name: $(sed -n 's/^guest: skipped: //p' "$out/host.log")"
  else
    line=$(tail -n 1 "$out/job.log" 2>/dev/null)
    if [[ $line =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]}; fi
    if [ $code != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ $code = 0 ] && [ "$p" = 0 ]; then p=1; fi
    passed=$((passed + p)) failed=$((failed + f))
    echo "== $name: $p passed, $f failed, $((SECONDS - begun)) s"
  fi
}

# First, because it takes minutes and prints its progress.
./guest.py prepare >/dev/null
code=$?
if [ $code = 77 ]; then
  skip "everything that needs a guest; see the line above"
  echo "kernel: 0 passed, 0 failed, 1 skipped"
  exit 0
elif [ $code != 0 ]; then
  echo "kernel: 0 passed, 1 failed, 0 skipped"
  exit 1
fi

if [[ ${KERNEL:-stock} != patched* ]]; then
  step tools stock jobs/tools.sh
  step truth stock jobs/truth.sh "${cases[@]}"
  step dynamic-events stock jobs/dynamic-events.sh
  step record-obstacles stock jobs/record-obstacles.sh
  for route in dynamic-events bpftrace strace; do step "record-ends-$route" stock jobs/record-ends.sh "$route"; done
  step record-luck stock jobs/record-luck.sh
  step record-luck-bpftrace stock jobs/record-luck.sh bpftrace
  step record-filters stock jobs/record-filters.sh 'dynamic-events bpftrace'
  step record-disturbed stock jobs/record-disturbed.sh
fi

if [[ ${KERNEL:-} == patched* ]]; then
  series=()
  [ "$KERNEL" = patched ] || series=(--series "${KERNEL#patched-}")
  # The last line of its output is the path. It builds only what is out of date.
  patched=$(nice ../../kernel-patch/build.sh "${series[@]}" | tail -n 1)
else
  patched=$(./guest.py info | sed -n 's/^patched  *\(\/.*\)/\1/p')
fi
if [ "${KERNEL:-}" != stock ]; then
  if [ -f "$patched" ]; then
    step patched-truth "$patched" jobs/truth.sh small4 small-uring parallel4 rename msync odsync empty
    step patched-record-luck "$patched" jobs/record-luck.sh
    step patched-record-filters "$patched" jobs/record-filters.sh
    step patched-record-ends "$patched" jobs/record-ends.sh ring-buffer
    step patched-record-disturbed "$patched" jobs/record-disturbed.sh
    events=../../kernel-patch/test/events.sh
    if [ -f "$events" ]; then step patched-events "$patched" "$events"; fi
  else
    skip "no patched kernel (an hour on two cores): make kernel-test KERNEL=patched builds it with kernel-patch/build.sh"
  fi
fi

echo "kernel: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
