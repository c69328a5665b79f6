#!/usr/bin/env bash
# Formatters and linters for Rust, Python, SQL and shell, and the checks of tests/lint. --fix fixes what a tool can fix;
# --quick leaves out what compiles.
# The last line is `lint: N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
BIN=${BIN:-$PWD/.venv/bin}
passed=0 failed=0

step() {
  local name=$1
  shift
  local output
  if output=$("$@" 2>&1); then
    passed=$((passed + 1))
    echo "lint: $name: ok"
  else
    failed=$((failed + 1))
    echo "lint: $name: FAILED ($*)"
    printf '%s\n' "$output" | tail -n 60
  fi
}

if [ "${1:-}" = --fix ]; then
  cargo fmt --manifest-path converter/Cargo.toml --all
  cargo fmt --manifest-path converter/fuzz/Cargo.toml --all
  "$BIN/ruff" check -q --fix converter tests tools setup.py
  "$BIN/ruff" format -q converter tests tools setup.py
  "$BIN/python" tools/sqlfmt.py
fi

step rustfmt cargo fmt --manifest-path converter/Cargo.toml --all --check
step rustfmt-fuzz cargo fmt --manifest-path converter/fuzz/Cargo.toml --all --check
if [ "${1:-}" = --quick ]; then
  echo "lint: clippy: left out"
else
  step clippy cargo clippy -q --release --manifest-path converter/Cargo.toml --workspace --all-targets -- -D warnings
  if command -v "${CXX:-c++}" >/dev/null; then
    step clippy-fuzz cargo clippy -q --release --manifest-path converter/fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-converter/target}" --all-features -- -D warnings
  else
    echo "lint: clippy-fuzz: skipped, no C++ compiler (apt-get install g++)"
  fi
fi
step ruff-check "$BIN/ruff" check converter tests tools setup.py
step ruff-format "$BIN/ruff" format --check converter tests tools setup.py
step types "$BIN/mypy"
step imports "$BIN/python" -m tests.lint.imports
step notices "$BIN/python" -m tests.lint.notices
step sql "$BIN/python" tools/sqlfmt.py --check
if command -v shellcheck >/dev/null; then
  step shellcheck shellcheck -x tools/*.sh tests/*.sh tests/kernel/*.sh tests/kernel/jobs/*.sh .ci/run
else
  echo "lint: shellcheck: skipped, not installed (apt-get install shellcheck)"
fi
step man "$BIN/python" -m tools.man --check
step words "$BIN/python" -m tests.lint.words
step prose "$BIN/python" -m tests.lint.prose
echo "lint: $passed passed, $failed failed"
[ "$failed" = 0 ]
