#!/usr/bin/env bash
# Records cases with the events of the patch and dynamic events in one buffer: [PATTERN...]. `python -m tools.agreement OUT/*.dat` on the
# host compares the two kinds. Needs a patched kernel.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

if [ ! -d /sys/kernel/tracing/events/wb_tracer ]; then
  echo "this kernel is not patched: guest.py boot --kernel patched"
  exit 1
fi
# Without bpftrace: stacks are not compared, and it attaches for half a minute.
mount -o bind /dev/null /usr/bin/bpftrace
while IFS=$'\t' read -r name setup device workload options <&3; do
  # A new file system for each, so that a recording does not depend on the previous ones.
  if [ -n "$MOUNTED" ]; then umount "$DATA"; drop_device "${MOUNTED#* }"; MOUNTED=''; fi
  if ! mount_case "$setup" "$device" 2>/dev/null; then
    check "$name: $setup on $device" false
    continue
  fi
  read -ra words <<<"$options"
  rm -rf /tmp/run
  timeout --foreground -k 30 900 python3 "$KERNEL_TESTS/record_both.py" record --force --route dynamic-events -o /tmp/run -- \
    "$PROJECT/tests/workloads/$workload.py" "$DATA/$name" ${words[@]+"${words[@]}"} >/tmp/truth.json 2>"$SAID" || true
  check "$name" test -s /tmp/run/trace.dat
  if [ -e /tmp/run/trace.dat ]; then cp /tmp/run/trace.dat "$OUT/$name.dat"; fi
  cp /tmp/truth.json "$OUT/$name.json"
  cp "$SAID" "$OUT/$name.said"
done 3< <(select_cases "$@")
counted both-kinds
