#!/usr/bin/env bash
# All tests, the quick ones first; `make test` calls it. The last line is `N passed, N failed`.
#
# SYNCLINE_FUZZ_SECONDS: how long each fuzz target searches (not at all: the same inputs each time).
set -uo pipefail
cd "$(dirname "$0")/.." || exit
export BIN=${BIN:-$PWD/.venv/bin}
export CARGO_TERM_COLOR=never
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
passed=0 failed=0

# Runs a step, shows its output, and adds what it counts: the numbers before `passed` and `failed` in the lines that PATTERN picks.
count() {
  local name=$1 pattern=$2 code p f begun=$SECONDS
  shift 2
  echo "== $name"
  "$@" 2>&1 | tee "$log/$name"
  code=${PIPESTATUS[0]}
  p=$(grep -E "$pattern" "$log/$name" | grep -oE '[0-9]+ passed' | awk '{s += $1} END {print s + 0}')
  f=$(grep -E "$pattern" "$log/$name" | grep -oE '[0-9]+ (failed|error)' | awk '{s += $1} END {print s + 0}')
  # A step that broke before it could count has failed.
  if [ "$code" != 0 ] && [ "$f" = 0 ]; then f=1; fi
  passed=$((passed + p)) failed=$((failed + f))
  echo "== $name: $p passed, $f failed, $((SECONDS - begun)) s"
}

# As root, what only root can install; otherwise the tests that need it say what they skip.
if [ "$(id -u)" = 0 ] && ! command -v chromium >/dev/null && command -v apt-get >/dev/null; then
  echo "== installing chromium for the browser tests"
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >"$log/apt" 2>&1 ||
    { echo "could not install chromium; the browser tests are skipped:"; tail -n 3 "$log/apt"; }
fi

count lint '^lint: [0-9]+ passed' tests/lint.sh
count cargo '^test result:' cargo test -q --release --manifest-path converter/Cargo.toml --workspace --exclude syncline-binding
count pytest ' in [0-9.]+s' "$BIN/python" -m pytest -m 'not ui' -rs
count browser ' in [0-9.]+s' "$BIN/python" -m pytest -m ui -rs tests/ui
count fuzz '^fuzz: [0-9]+ passed' tests/fuzz.sh "${SYNCLINE_FUZZ_SECONDS:-same}"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
