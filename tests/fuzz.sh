#!/usr/bin/env bash
# Runs the fuzz targets of converter/fuzz: tests/fuzz.sh [same|SECONDS|xN [TARGET...]]
#
# `same`, which `make test` uses: the seeds, and 8000 mutants of them for each target (tests/fuzz_mutants.py). These inputs are
# the same on each run and on every machine, so that only a change of the code can make a target fail. It also runs
# tests/growth.py: the work for an input must not grow faster than the input. One build does both.
# SECONDS: libFuzzer searches for this time on each target. The inputs that it finds are kept in converter/fuzz/corpus, from which the
# next search starts. SYNCLINE_FUZZ_SEED=N seeds the search. It depends on the tested code, on addresses and on the clock, so it differs
# on each run. An input that takes two seconds is a failure.
# xN, such as x100000000: rounds of the search, a minute a target, each followed by five minutes of mutants of what it has found, until the
# executions add up to N. Mutants run without counters of branches, which take most of the time of a search, and most are small: so there
# are many times as many. More than 2 s of CPU time for one is a failure. The counts are kept in converter/fuzz/corpus/executions.tsv
# (target, executions, seed, kind), so a run that was stopped continues where it was. Remove the file to count from 0.
#
# Stable Rust is enough (converter/fuzz/rustc.sh says why); libFuzzer itself needs a C++ compiler. An input that crashes a target is kept
# in converter/fuzz/artifacts, and the command that repeats the crash is printed.
# The last line is `fuzz: N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
BIN=${BIN:-$PWD/.venv/bin}
mode=${1:-same}
shift || true
targets="pair source_bpftrace source_events_jsonl source_ftrace source_function_graph source_perf source_perf_data source_perf_trace source_babeltrace source_biosnoop source_perfetto source_slower source_syncsnoop source_trace_dat source_strace source_bpftrace_json source_blktrace source_blkparse own_trace convert join"
targets="$targets round_trip order writes"
# Only the runs on the same inputs have it.
if [ "$mode" = same ]; then targets="$targets growth"; fi
targets=${*:-$targets}
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
artifacts=converter/fuzz/artifacts
bin_folder=${CARGO_TARGET_DIR:-converter/target}/release

# Builds in the main workspace's target folder, which has most dependencies already.
build() {
  RUSTC_WRAPPER=$PWD/converter/fuzz/rustc.sh cargo build -q --release \
    --manifest-path converter/fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-converter/target}" "$@"
}
if [ "$mode" = same ]; then
  # The core that counts steps has other settings, so that cargo keeps both. Counters hold back most optimizations: the first level, and one
  # codegen unit, whose parts need no optimization across units, compile in a quarter less CPU time, and run as fast.
  SYNCLINE_COUNT_STEPS=1 build --features count --bin growth --bin inputs --config 'profile.release.package.syncline-core.opt-level=1' \
    --config 'profile.release.package.syncline-fuzz.opt-level=1'
elif command -v "${CXX:-c++}" >/dev/null; then
  build --features search --bin search && {
    [[ $mode != x* ]] || SYNCLINE_FUZZ_PLAIN=1 build --bin mutants --config 'profile.release.package.syncline-core.codegen-units=3'
  }
else
  echo "fuzz: skipped: $targets (libFuzzer needs a C++ compiler: apt-get install g++)"
  echo "fuzz: 0 passed, 0 failed"
  exit 0
fi || {
  echo "fuzz: 0 passed, 1 failed"
  exit 1
}
"$BIN/python" -m tests.fuzz_seeds "$work/seeds" || exit 1
[ "$mode" != same ] || "$BIN/python" -m tests.fuzz_mutants "$work/seeds" "$work/mutants" 8000 || exit 1
mkdir -p "$artifacts"

passed=0 failed=0
counts=converter/fuzz/corpus/executions.tsv

# Runs a command that tests a target, and counts its result. Its output is then in `output`.
counted() {
  local target=$1 start=$SECONDS
  shift
  # A target writes nothing to standard output but what it converts.
  if output=$("$@" 2>&1 >/dev/null); then
    passed=$((passed + 1))
    echo "fuzz: $target: ok, $((SECONDS - start)) s"
  else
    failed=$((failed + 1))
    echo "fuzz: $target: FAILED"
    grep -aE -A 2 'panicked at|ERROR: libFuzzer|: (panicked|took)|memory allocation' <<<"$output" | cut -c 1-400 | head -n 20
    return 1
  fi
}

# Runs a target on the seeds and their mutants.
same() {
  local target=$1 input
  # An input may not make the core take more than 4 GB of addresses.
  if counted "$target" bash -c 'ulimit -v 4194304; exec "$@"' - "$bin_folder/inputs" "$target" "$work/seeds/$target" \
    "$work/mutants/$target"; then return; fi
  # The first input that failed.
  input=$(grep -aoE "^$work/.*: (panicked|took)" <<<"$output" | head -n 1 | sed 's/: [a-z]*$//')
  if [ -n "$input" ]; then
    rm -rf "${artifacts:?}/$target"
    mkdir -p "$artifacts/$target"
    cp "$input" "$artifacts/$target/"
  fi
  echo "  again: $bin_folder/inputs $target $artifacts/$target"
}

growth() {
  local output
  if output=$("$BIN/python" -m tests.growth "$bin_folder/growth"); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
  # shellcheck disable=SC2001
  sed 's/^/fuzz: /' <<<"$output"
}

# Searches for SECONDS on a target, from the inputs that earlier searches have found. Its executions are then in `runs`.
search() {
  local target=$1 seconds=$2 seed=$3 crash
  mkdir -p "converter/fuzz/corpus/$target"
  if counted "$target" env SYNCLINE_FUZZ_TARGET="$target" "$bin_folder/search" "converter/fuzz/corpus/$target" "$work/seeds/$target" \
    -max_total_time="$seconds" -seed="$seed" -timeout=2 -max_len=10000 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$artifacts/$target-"; then
    runs=$(sed -n 's/.*number_of_executed_units: *//p' <<<"$output")
    return
  fi
  runs=0
  crash=$(grep -aoE "$artifacts/[^ ]+" <<<"$output" | tail -n 1)
  echo "  again: SYNCLINE_FUZZ_TARGET=$target $bin_folder/search ${crash:-$artifacts/...}"
}

# Runs SECONDS of mutants of what searches for a target have found. Their number is then in `runs`.
mutants() {
  local target=$1 seconds=$2 seed=$3 artifact=$artifacts/$1-mutant-$3/input
  mkdir -p "${artifact%/*}"
  if counted "$target: mutants" "$bin_folder/mutants" "$target" "$seconds" "$seed" "$artifact" "converter/fuzz/corpus/$target" \
    "$work/seeds/$target"; then
    rmdir "${artifact%/*}"
  else
    echo "  again: SYNCLINE_FUZZ_TARGET=$target $bin_folder/search $artifact"
  fi
  runs=$(sed -n 's/^executions: //p' <<<"$output")
}

executed() {
  [ -f "$counts" ] && awk '{s += $2} END {printf "%d", s}' "$counts" || echo 0
}

seed=${SYNCLINE_FUZZ_SEED:-1}
case $mode in
same)
  for target in $targets; do
    if [ "$target" = growth ]; then growth; else same "$target"; fi
  done
  ;;
x*)
  # Each round needs another seed.
  seed=$((seed + $([ -f "$counts" ] && wc -l <"$counts" || echo 0)))
  while [ "$(executed)" -lt "${mode#x}" ] && [ "$failed" = 0 ]; do
    for target in $targets; do
      [ "$target" = growth ] && continue
      search "$target" "$((${SYNCLINE_FUZZ_ROUND:-300} / 5))" "$seed"
      printf '%s\t%s\t%s\tsearch\n' "$target" "${runs:-0}" "$seed" >>"$counts"
      mutants "$target" "${SYNCLINE_FUZZ_ROUND:-300}" "$seed"
      printf '%s\t%s\t%s\tmutants\n' "$target" "${runs:-0}" "$seed" >>"$counts"
      seed=$((seed + 1))
    done
    echo "fuzz: $(executed) of ${mode#x} executions"
  done
  ;;
*)
  for target in $targets; do
    if [ "$target" = growth ]; then growth; else search "$target" "$mode" "$seed"; fi
  done
  ;;
esac
echo "fuzz: $passed passed, $failed failed"
[ "$failed" = 0 ]
