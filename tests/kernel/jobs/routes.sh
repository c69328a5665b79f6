#!/usr/bin/env bash
# Records cases by each route of `syncline record`, and runs them without recording: ROUTES [xTIMES] [PATTERN...]. ROUTES is a list with
# commas. tests/kernel/compare_routes.py compares the recordings with the reports of the workloads. With x5 each case runs five times with
# each route, alternately, and tests/kernel/overhead.py compares the times.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"

routes=$1
shift
times=1
if [[ ${1:-} =~ ^x([0-9]+)$ ]]; then
  times=${BASH_REMATCH[1]}
  shift
fi
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
work=$(mktemp -d)

# run_case FOLDER CASE ROUTE WORKLOAD [OPTION...]: runs the workload with a route, or without recording (none), into OUT/FOLDER/ROUTE.
run_case() {
  local folder=$1 name=$2 route=$3 workload=$4 begun to=$work/$1/$3
  shift 4
  local -a command=("$PROJECT/tests/workloads/$workload.py" "$DATA/$name" "$@")
  mkdir -p "$to"
  # So that a database starts without the files of the previous run.
  rm -rf "${DATA:?}/$name"
  sync
  begun=$EPOCHREALTIME
  if [ "$route" = none ]; then
    "${command[@]}" >"$to/truth.json" 2>"$to/said" || true
  else
    syncline record --force --route "$route" -o "$to/run" -- "${command[@]}" >"$to/truth.json" 2>"$to/said" || true
  fi
  echo "$folder $route: $(((${EPOCHREALTIME/./} - ${begun/./}) / 1000)) ms"
  # /tmp of the guest is in memory, so nothing is left there.
  rm -rf "$OUT/${folder:?}/$route"
  mkdir -p "$OUT/$folder"
  mv "$to" "$OUT/$folder/"
}

while IFS=$'\t' read -r name setup device workload options <&3; do
  read -ra words <<<"$options"
  mount_case "$setup" "$device" 2>/dev/null || continue
  for ((round = 1; round <= times; round++)); do
    folder=$name
    if [ "$times" != 1 ]; then folder=$name.$round; fi
    for route in none ${routes//,/ }; do
      run_case "$folder" "$name" "$route" "$workload" ${words[@]+"${words[@]}"}
    done
  done
done 3< <(select_cases "$@")
umount "$DATA"
