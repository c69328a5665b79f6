#!/usr/bin/env bash
# Records cases by each route of `syncline record`, and runs them without recording: ROUTES [PATTERN...]. ROUTES is a list with commas.
# tests/kernel/compare_routes.py compares the recordings with the reports of the workloads.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"

routes=$1
shift
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
work=$(mktemp -d)
while IFS=$'\t' read -r name setup device workload options <&3; do
  read -ra words <<<"$options"
  for route in none ${routes//,/ }; do
    to=$work/$name/$route
    mkdir -p "$to"
    mount_case "$setup" "$device" 2>/dev/null || continue 2
    # So that a database starts without the files of the previous run.
    rm -rf "${DATA:?}/$name"
    sync
    command=("$PROJECT/tests/workloads/$workload.py" "$DATA/$name" ${words[@]+"${words[@]}"})
    begun=$EPOCHREALTIME
    if [ "$route" = none ]; then
      "${command[@]}" >"$to/truth.json" 2>"$to/said" || true
    else
      syncline record --force --route "$route" -o "$to/run" -- \
        "${command[@]}" >"$to/truth.json" 2>"$to/said" || true
    fi
    echo "$name $route: $(((${EPOCHREALTIME/./} - ${begun/./}) / 1000)) ms"
  done
  rm -rf "$OUT/${name:?}"
  cp -r "$work/$name" "$OUT/"
  rm -rf "${work:?}/$name"
done 3< <(select_cases "$@")
umount "$DATA"
