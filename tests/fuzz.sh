#!/usr/bin/env bash
# Runs the fuzz targets of converter/fuzz: tests/fuzz.sh [same|SECONDS [TARGET...]]
#
# `same`, which `make test` uses: the seeds, and 8000 mutants of them for each target (tests/fuzz_mutants.py). These inputs are
# the same on each run and on every machine, so that only a change of the code can make a target fail. libFuzzer's own search
# depends on the tested code, on addresses and on the clock, and differs on each run.
# SECONDS: libFuzzer searches for this time on each target. The inputs that it finds are kept in converter/fuzz/corpus, from which the
# next search starts. SYNCLINE_FUZZ_SEED=N seeds the search.
#
# Stable Rust is enough (converter/fuzz/rustc.sh says why); libFuzzer itself needs a C++ compiler. An input that crashes a target is kept
# in converter/fuzz/artifacts, and the command that repeats the crash is printed.
# The last line is `fuzz: N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
BIN=${BIN:-$PWD/.venv/bin}
mode=${1:-same}
shift || true
targets=${*:-pair source_thesis source_events_jsonl source_ftrace source_perf source_perf_data source_trace_dat source_strace source_bpftrace_json source_blktrace source_blkparse convert join}
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
artifacts=converter/fuzz/artifacts
bin_folder=${CARGO_TARGET_DIR:-converter/target}/release

if ! command -v "${CXX:-c++}" >/dev/null; then
  echo "fuzz: skipped: $targets (libFuzzer needs a C++ compiler: apt-get install g++)"
  echo "fuzz: 0 passed, 0 failed"
  exit 0
fi

# In the main workspace's target folder, which has most dependencies already.
if ! RUSTC_WRAPPER=$PWD/converter/fuzz/rustc.sh cargo build -q --release \
  --manifest-path converter/fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-converter/target}"; then
  echo "fuzz: 0 passed, 1 failed"
  exit 1
fi
"$BIN/python" -m tests.fuzz_seeds "$work/seeds" || exit 1
[ "$mode" != same ] || "$BIN/python" -m tests.fuzz_mutants "$work/seeds" "$work/mutants" 8000 || exit 1
mkdir -p "$artifacts"

passed=0 failed=0
for target in $targets; do
  start=$SECONDS
  if [ "$mode" = same ]; then
    inputs=("$work/seeds/$target" "$work/mutants/$target" -runs=0)
  else
    mkdir -p "converter/fuzz/corpus/$target"
    inputs=("converter/fuzz/corpus/$target" "$work/seeds/$target" -max_total_time="$mode" -seed="${SYNCLINE_FUZZ_SEED:-1}")
  fi
  # A target writes the converted log to standard output.
  if output=$("$bin_folder/$target" "${inputs[@]}" -max_len=10000 -timeout=20 -rss_limit_mb=2048 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="$artifacts/$target-" 2>&1 >/dev/null); then
    passed=$((passed + 1))
    runs=$(sed -n 's/.*number_of_executed_units: *//p' <<<"$output")
    echo "fuzz: $target: ok, ${runs:-?} runs in $((SECONDS - start)) s"
  else
    failed=$((failed + 1))
    echo "fuzz: $target: FAILED"
    grep -aE -A 4 'panicked at|ERROR: libFuzzer' <<<"$output" | cut -c 1-400 | head -n 20
    crash=$(grep -aoE "$artifacts/[^ ]+" <<<"$output" | tail -n 1)
    echo "  again: $bin_folder/$target ${crash:-$artifacts/...}"
  fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" = 0 ]
