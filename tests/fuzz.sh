#!/usr/bin/env bash
# Runs the fuzz targets of converter/fuzz: tests/fuzz.sh [same|SECONDS [TARGET...]]
#
# `same`, as `make test` does it: the seeds, and some thousand inputs like them for each target (tests/fuzz_mutants.py). They are the
# same each time and on every machine, so that it fails for what was changed. libFuzzer's own search is steered by the very code
# that is tested, by addresses and by the clock, and finds something else each time.
# SECONDS: libFuzzer's search, so long for each target. What it finds on the way is kept in converter/fuzz/corpus, and the next one begins there;
# SYNCLINE_FUZZ_SEED=N makes it another one.
#
# Stable Rust is enough, and so is a C++ compiler for libFuzzer itself; converter/fuzz/rustc.sh says how. A crash is kept in
# converter/fuzz/artifacts, and its command to run again is printed.
# The last line is `fuzz: N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
BIN=${BIN:-$PWD/.venv/bin}
how=${1:-same}
shift || true
targets=${*:-pair source_thesis source_events_jsonl source_ftrace source_perf source_trace_dat source_strace source_bpftrace_json source_blktrace source_blkparse convert join}
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
artifacts=converter/fuzz/artifacts
built=${CARGO_TARGET_DIR:-converter/target}/release

if ! command -v "${CXX:-c++}" >/dev/null; then
  echo "fuzz: skipped: $targets (no C++ compiler, which libFuzzer needs: apt-get install g++)"
  echo "fuzz: 0 passed, 0 failed"
  exit 0
fi

# In the main workspace's folder, where most of what is needed has been built already.
if ! RUSTC_WRAPPER=$PWD/converter/fuzz/rustc.sh cargo build -q --release \
  --manifest-path converter/fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-converter/target}"; then
  echo "fuzz: 0 passed, 1 failed"
  exit 1
fi
"$BIN/python" -m tests.fuzz_seeds "$work/seeds" || exit 1
[ "$how" != same ] || "$BIN/python" -m tests.fuzz_mutants "$work/seeds" "$work/mutants" 8000 || exit 1
mkdir -p "$artifacts"

passed=0 failed=0
for target in $targets; do
  begun=$SECONDS
  if [ "$how" = same ]; then
    inputs=("$work/seeds/$target" "$work/mutants/$target" -runs=0)
  else
    mkdir -p "converter/fuzz/corpus/$target"
    inputs=("converter/fuzz/corpus/$target" "$work/seeds/$target" -max_total_time="$how" -seed="${SYNCLINE_FUZZ_SEED:-1}")
  fi
  # What a target writes to standard output is what it converts to.
  if output=$("$built/$target" "${inputs[@]}" -max_len=10000 -timeout=20 -rss_limit_mb=2048 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="$artifacts/$target-" 2>&1 >/dev/null); then
    passed=$((passed + 1))
    runs=$(sed -n 's/.*number_of_executed_units: *//p' <<<"$output")
    echo "fuzz: $target: ok, ${runs:-?} runs in $((SECONDS - begun)) s"
  else
    failed=$((failed + 1))
    echo "fuzz: $target: FAILED"
    grep -aE -A 4 'panicked at|ERROR: libFuzzer' <<<"$output" | cut -c 1-400 | head -n 20
    crash=$(grep -aoE "$artifacts/[^ ]+" <<<"$output" | tail -n 1)
    echo "  again: $built/$target ${crash:-$artifacts/...}"
  fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" = 0 ]
