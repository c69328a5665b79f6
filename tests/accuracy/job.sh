#!/usr/bin/env bash
# Makes the recordings of tests/accuracy/cases.tsv whose name matches a pattern: [PATTERN...]. Each becomes the folder OUT/NAME: a run directory, with
# waits.jsonl: how long each sync of the log waited, as the log itself measured it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../kernel/guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../kernel/record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
# Without the limit of record-lib.sh: with `-icount` the time of the guest passes faster than that of the host.
syncline() { python3 -c 'from syncline.cli import main; main()' "$@"; }

# Without bpftrace: it attaches for half a minute on an emulated CPU, and no stack is needed.
mount -o bind /dev/null /usr/bin/bpftrace
load=$PROJECT/tests/accuracy/load.py
cp "$load" /run/load.py
# Page cache is written back while a phase lasts, not after it.
echo 4194304 >/proc/sys/vm/dirty_background_bytes
echo 20 >/proc/sys/vm/dirty_writeback_centisecs
echo '+cpu +io +memory' >/sys/fs/cgroup/cgroup.subtree_control || true

failures=0
while IFS=$'\t' read -r name setup device kinds _ syncs setting <&3; do
  [[ $name == \#* ]] && continue
  for pattern in "${@:-*}"; do
    # shellcheck disable=SC2053  # this is a pattern
    [[ $name == $pattern ]] || continue
    begun=$SECONDS
    # Each has a file system of its own.
    if mountpoint -q "$DATA"; then umount "$DATA"; drop_device "${MOUNTED#* }"; MOUNTED=''; fi
    rm -rf /tmp/run "${OUT:?}/$name"
    settings=()
    [ "$setting" = - ] || settings=("$setting")
    if mount_case "$setup" "$device" && python3 /run/load.py prepare "$DATA/load" && sync && echo 3 >/proc/sys/vm/drop_caches &&
      syncline record --force --route dynamic-events -o /tmp/run -- \
        python3 /run/load.py run "$DATA/load" "$kinds" "$syncs" "${settings[@]}" >/tmp/waits.jsonl 2>"$SAID"; then
      cp /tmp/waits.jsonl /tmp/run/
      cp "$SAID" /tmp/run/said
      cp -r /tmp/run "$OUT/$name"
      echo "$name: $((SECONDS - begun)) s, $(wc -l </tmp/waits.jsonl) syncs"
    else
      echo "$name failed"
      tail -n 20 "$SAID" || true
      failures=$((failures + 1))
    fi
    break
  done
done 3<"$PROJECT/tests/accuracy/cases.tsv"
if mountpoint -q "$DATA"; then umount "$DATA"; fi
[ "$failures" = 0 ]
