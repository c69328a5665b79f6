#!/usr/bin/env bash
# All tests: tests/run.sh; `make test` calls it. tests/run.sh --quick (`make test-quick`) runs a part of each kind.
# The last line is `N passed, N failed`.
#
# The steps run in three lanes side by side: pytest; the browser tests; and the others one after another, because the target folder of
# cargo has one lock. The browser tests are one process that waits much, so behind another step they would leave CPUs idle at the end.
# A step's output is printed when the step is over.
#
#   SYNCLINE_FUZZ_SECONDS   how long libFuzzer searches for each target; by default each run has the same inputs
#   PYTEST_WORKERS          processes of pytest; by default one for each CPU
set -uo pipefail
cd "$(dirname "$0")/.." || exit
export BIN=${BIN:-$PWD/.venv/bin}
export CARGO_TERM_COLOR=never
# Each of some thousand commands would otherwise compile its modules again where PYTHONDONTWRITEBYTECODE is set: a tenth of its time.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$PWD/build/pycache
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
# Lanes ignore an interrupt from the keyboard, as background jobs of a script do.
trap 'trap "" TERM; kill 0; exit 130' INT TERM

# Runs a step, then prints its output and its counts: the numbers before `passed` and `failed` in the lines that PATTERN picks.
count() {
  local name=$1 pattern=$2 code p f begun=$SECONDS
  shift 2
  echo "== $name: started"
  "$@" >"$log/$name" 2>&1
  code=$?
  p=$(grep -E "$pattern" "$log/$name" | grep -oE '[0-9]+ passed' | awk '{s += $1} END {print s + 0}')
  f=$(grep -E "$pattern" "$log/$name" | grep -oE '[0-9]+ (failed|error)' | awk '{s += $1} END {print s + 0}')
  # A step that ended before it could count has failed.
  if [ "$code" != 0 ] && [ "$f" = 0 ]; then f=1; fi
  echo "$p $f" >"$log/$name.counts"
  {
    echo "== $name"
    cat "$log/$name"
    echo "== $name: $p passed, $f failed, $((SECONDS - begun)) s"
  } >"$log/$name.block"
  # One write for each block, so that blocks of the lanes do not mix.
  flock "$log" cat "$log/$name.block"
}

# Installs packages that tests need. Only root can; for others, and where it fails, a line says what is skipped.
install_tools() {
  local program package missing=() packages=()
  while read -r program package; do
    command -v "$program" >/dev/null || { missing+=("$program") && packages+=("$package"); }
  done <<'TOOLS'
trace-cmd trace-cmd
blkparse blktrace
strace strace
shellcheck shellcheck
c++ g++
TOOLS
  "$BIN/python" -c 'import sys; from tests.ui import browser; sys.exit(browser.chromium() is None)' || {
    missing+=(chromium) && packages+=(chromium-headless-shell)
  }
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "== apt-get installs ${packages[*]} (you are root): without ${missing[*]}, tests would be skipped"
    apt-get update -qq >"$log/apt" 2>&1
    # Some distributions have the browser, and not its shell without windows.
    apt-cache show chromium-headless-shell >/dev/null 2>&1 || packages=("${packages[@]/chromium-headless-shell/chromium}")
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >>"$log/apt" 2>&1 && return
    tail -n 3 "$log/apt"
  fi
  echo "== skipped: tests that need ${missing[*]}; to run them: apt-get install ${packages[*]}"
}

pytest() {
  "$BIN/python" -m pytest -rs "$@"
}

# The tests in Rust run on a core without optimization, which compiles in a sixth of the CPU time, and with checks of overflows. Cargo keeps
# this core and the optimized one.
core=profile.release.package.syncline-core
unoptimized=(--config "$core.opt-level=0" --config "$core.overflow-checks=true" --config "$core.codegen-units=16")
parallel=(-n "${PYTEST_WORKERS:-$(nproc)}" --dist worksteal)

# Installs what its lock file names, unless the build of the plugin has.
plugin_tests() {
  [ -d perfetto-ui-plugin/node_modules/vitest ] || (cd perfetto-ui-plugin && npm ci --no-audit --no-fund --loglevel=error) || return
  (cd perfetto-ui-plugin && NO_COLOR=1 npm test --silent)
}

# Compiles with the warnings of clippy, and takes each as an error. `cargo clippy`, which `make lint` runs, would check all dependencies
# once more: a tenth of the CPU time of all tests.
with_clippy() {
  RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings "$@"
}

cargo_lane() {
  count lint '^lint: [0-9]+ passed' tests/lint.sh --quick
  count cargo '^test result:' with_clippy cargo test -q --release --manifest-path converter/Cargo.toml --workspace "${unoptimized[@]}"
  count plugin '^ *Tests ' plugin_tests
  count fuzz '^fuzz: [0-9]+ passed' with_clippy tests/fuzz.sh "${SYNCLINE_FUZZ_SECONDS:-same}"
  # These tests run cargo too. In the other lane they would wait for its lock.
  count packaging ' in [0-9.]+s' pytest tests/test_packaging.py
}

browser_lane() {
  count browser ' in [0-9.]+s' pytest -m ui tests/ui
}

pytest_lane() {
  count pytest ' in [0-9.]+s' pytest -m 'not ui' "${parallel[@]}" --ignore tests/test_packaging.py
}

quick_cargo_lane() {
  count lint '^lint: [0-9]+ passed' tests/lint.sh --quick
  count cargo '^test result:' cargo test -q --release --manifest-path converter/Cargo.toml --workspace --lib "${unoptimized[@]}"
}

quick_pytest_lane() {
  local tests
  mapfile -t tests < <(grep -v '^#' tests/quick.txt)
  count pytest ' in [0-9.]+s' pytest -m 'not ui' "${parallel[@]}" "${tests[@]}"
}

if [ "${1:-}" = --quick ]; then
  quick_cargo_lane &
  quick_pytest_lane &
else
  install_tools
  echo "== skipped: Spark on a cluster of workers; to run it: make spark-test"
  cargo_lane &
  browser_lane &
  pytest_lane &
fi
wait
read -r passed failed < <(cat "$log"/*.counts | awk '{p += $1; f += $2} END {print p + 0, f + 0}')
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
