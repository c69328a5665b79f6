#!/usr/bin/env bash
# The steps of action.yml: tools/action.sh install|record|baseline|compare. Any CI can call them, since they take environment variables.
set -euo pipefail

out=${SYNCLINE_OUT:-syncline-results}
venv=${SYNCLINE_VENV:-${RUNNER_TEMP:-/tmp}/syncline-venv}
export PATH=$venv/bin:$PATH

# GitHub shows such a line at the job; elsewhere it is a line of the log.
fail() {
  echo "::error title=Syncline::$1"
  exit "${2:-2}"
}

output() {
  if [ -n "${GITHUB_OUTPUT:-}" ]; then echo "$1=$2" >>"$GITHUB_OUTPUT"; fi
}

summary() {
  cat >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
}

install() {
  local wanted=${SYNCLINE_WHEEL:-syncline} found machine
  machine=$(uname -m)
  if [[ $wanted == *.whl ]]; then
    # A runner of one architecture may find the wheels of several.
    mapfile -t found < <(compgen -G "$wanted" || true)
    [ ${#found[@]} -gt 0 ] || fail "there is no wheel $wanted: build it with \`make wheel\`, or download the artifact that holds it first"
    wanted=
    for wheel in "${found[@]}"; do
      case $wheel in *"_$machine.whl" | *-any.whl) wanted=$wheel ;; esac
    done
    [ -n "$wanted" ] || fail "no wheel for this runner, which is $machine: ${found[*]}"
  fi
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or later is needed: add actions/setup-python before this action"
  python3 -m venv "$venv" || fail "no virtual environment can be made: apt-get install python3-venv"
  "$venv/bin/pip" install -q --disable-pip-version-check "$wanted" || fail "cannot install $wanted: the lines above say why"
  if [ -n "${GITHUB_PATH:-}" ]; then echo "$venv/bin" >>"$GITHUB_PATH"; fi
  syncline --version
}

record() {
  local run code sudo=()
  if [ "$(id -u)" != 0 ] && sudo -n true 2>/dev/null; then sudo=(sudo -n "PATH=$PATH"); fi
  [[ ${SYNCLINE_RUNS:-5} =~ ^[1-9][0-9]*$ ]] || fail "runs is '$SYNCLINE_RUNS', and must be a number from 1 on"
  # A runner of your own still has the files of the last job.
  "${sudo[@]}" rm -rf "$out/new"
  mkdir -p "$out/new"
  for ((run = 1; run <= ${SYNCLINE_RUNS:-5}; run++)); do
    "${sudo[@]}" "$venv/bin/syncline" record -o "$out/new/$run" -- bash -c "$SYNCLINE_COMMAND" ||
      fail "run $run was not recorded: \`syncline doctor\` on this runner says what is missing" $?
    # What a benchmark that failed did is no measurement of the change.
    code=$("${sudo[@]}" python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["exit_code"] or 0)' "$out/new/$run/manifest.json")
    [ "$code" = 0 ] || fail "the command failed in run $run with exit code $code: mend it, or let it end with \`|| true\`" "$code"
  done
}

# Downloads the artifact of the last run of this workflow that succeeded on the base branch.
baseline() {
  local id
  command -v gh >/dev/null || fail "the baseline of ${GITHUB_BASE_REF:-the base branch} is an artifact, and gh is not installed here: install it, or give baseline"
  rm -rf "$out/base"
  mkdir -p "$out/base"
  id=$(gh run list --workflow "$GITHUB_WORKFLOW" --branch "$GITHUB_BASE_REF" --status success --limit 1 --json databaseId --jq '.[0].databaseId // empty') ||
    fail "gh cannot list the runs of $GITHUB_BASE_REF: the job needs permissions: {actions: read}"
  if [ -z "$id" ]; then
    echo "no run of $GITHUB_WORKFLOW has succeeded on $GITHUB_BASE_REF yet"
  elif ! gh run download "$id" --name "$SYNCLINE_ARTIFACT" --dir "$out/base"; then
    echo "run $id of $GITHUB_BASE_REF has no artifact $SYNCLINE_ARTIFACT, or it has expired"
  fi
}

# Says which figures of the gate got worse, of the table in diff.md, which has the column `gate` only where rows are outside of it.
worse() {
  awk -F' *[|] *' '
    $2 == "scope" { for (i = 1; i <= NF; i++) at[$i] = i }
    at["verdict"] && $at["verdict"] == "regression" && (!at["gate"] || $at["gate"] == "gate") {
      printf "%s%s %s -> %s (%s)", (count++ ? "; " : ""), $at["metric"], $at["base"], $at["new"], $at["change"]
    }' "$out/diff.md"
}

compare() {
  local new=${SYNCLINE_RECORDINGS:-} base=${SYNCLINE_BASELINE:-} code=0 verdict words=() sides=() options=()
  mkdir -p "$out"
  if [ -z "$new" ]; then new=$out/new; fi
  # Patterns are for the shell, and a folder that does not exist is an error of its own.
  mapfile -t sides < <(compgen -G "$new" || true)
  [ ${#sides[@]} -gt 0 ] || fail "there are no recordings at $new: give command, or make them before this action and give recordings"
  read -ra options <<<"${SYNCLINE_OPTIONS:-}"

  # Saved first: a regression must not keep the next job from having a baseline.
  syncline baseline save "${sides[@]}" -o "$out/baseline.json.gz" || fail "the recordings at $new cannot be read: the lines above say why" $?
  output baseline "$out/baseline.json.gz"

  if [ -z "$base" ]; then base=$(find "$out/base" -type f 2>/dev/null | head -n 1 || true); fi
  if [ -z "$base" ] || [ ! -e "$base" ]; then
    { echo "## Syncline: why fsync takes its time" && echo && syncline report "${sides[0]}" --format md; } | summary
    if [ -z "${GITHUB_BASE_REF:-}" ] && [ -z "${SYNCLINE_BASELINE:-}" ]; then
      output verdict "baseline saved"
      echo "nothing to compare with on this branch: the baseline of this commit is $out/baseline.json.gz"
      return
    fi
    output verdict "no baseline"
    if [ "${SYNCLINE_MISSING:-fail}" = pass ]; then
      echo "::warning title=Syncline::there is no baseline yet, so nothing was compared"
      return
    fi
    # Only who named a file or a folder knows how it is made.
    local how="run this workflow on ${GITHUB_BASE_REF:-the base branch} once"
    [ -z "$base" ] || how="make it before this action, or leave baseline out to use that of the base branch"
    fail "there is no baseline${base:+ at $base}: $how, or set missing-baseline: pass" 5
  fi

  for side in "${sides[@]}"; do words+=(--new "$side"); done
  syncline diff --base "$base" "${words[@]}" "${options[@]}" -o "$out/diff.md" -o "$out/diff.xml" -o "$out/diff.json" || code=$?
  case $code in
    0) verdict="no regression" ;;
    1) verdict=regression ;;
    5) verdict="can't tell" ;;
    *) fail "syncline diff failed with exit code $code: the lines above say why" "$code" ;;
  esac
  summary <"$out/diff.md"
  output verdict "$verdict"
  output exit-code "$code"
  output junit "$out/diff.xml"
  if [ "$code" = 5 ]; then
    local unclear="no verdict on whether fsync got slower, because the runs are too few or too noisy: make more runs, or use a quieter machine"
    if [ "${SYNCLINE_CANT_TELL:-fail}" = pass ]; then
      echo "::warning title=Syncline::$unclear"
      return
    fi
    echo "::error title=Syncline::$unclear; cant-tell: pass lets the job pass"
  fi
  if [ "$code" = 1 ]; then echo "::error title=Syncline::regression: $(worse). The job summary says where"; fi
  return "$code"
}

case ${1:-} in
  install | record | baseline | compare) "$1" ;;
  *) fail "usage: tools/action.sh install|record|baseline|compare" ;;
esac
