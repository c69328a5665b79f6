#!/usr/bin/env bash
# Records cases of known-truth.tsv by the route that `record` chooses: [PATTERN...]. Each becomes the folder OUT/CASE: a run directory, with
# truth.json: what was set, and what the workload itself measured.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

# Without bpftrace: it attaches for half a minute on an emulated CPU, and no stack is needed.
mount -o bind /dev/null /usr/bin/bpftrace
route=$(default_route)
workload=$PROJECT/tests/workloads/known_truth.py

# setting FILE: prints a setting of the device of $DATA in /sys, empty if it has none.
setting() { cat "/sys/dev/block/$(stat -c '%Hd:%Ld' "$DATA")/queue/$1" 2>/dev/null || true; }

# truth CASE FILE_SYSTEM DEVICE: joins the report of the workload with the set-up.
truth() {
  python3 - "$@" "$(table_row devices.tsv "$3")" "$(setting write_cache)" "$(setting fua)" "$(setting scheduler)" <<'END'
import json, os, sys
case, setup, device, row, cache, fua, scheduler = sys.argv[1:]
kind, *numbers = row.split("\n")
names = {"delay": ["read_ms", "write_ms", "flush_ms", "stable_writes"], "null": ["request_us", "cache_mib", "queue_depth", "has_fua", "request_kib", "size_mib"], "busy": ["every_nth"]}.get(kind, [])
values = [int(number) for number in " ".join(numbers).split()]
number = os.stat(os.environ["DATA"]).st_dev
of_device = {"name": device, "kind": kind, "dev": f"{os.major(number)},{os.minor(number)}"} | dict(zip(names, values))
of_device |= {"write_cache": cache or None, "fua": fua or None, "scheduler": scheduler or None}
print(json.dumps({"case": case, "file_system": setup, "device": of_device} | json.load(open("/tmp/truth.json"))))
END
}

# shown TRUTH: one line about what was measured.
shown() {
  python3 - "$1" <<'END'
import json, sys
truth = json.load(open(sys.argv[1]))
syncs = [row for row in truth["calls"] if "sync" in row["op"]]
lengths = [round((row["end_ns"] - row["start_ns"]) / 1e6, 1) for row in syncs]
print(truth["case"], len(syncs), "syncs, ms:", *lengths[:24], "errors:", truth["errors"], "neighbour:", truth.get("neighbour", {}).get("bytes"))
END
}

failures=0
while IFS=$'\t' read -r name setup device options <&3; do
  [[ $name == \#* ]] && continue
  [[ $name == *-patched && $route != ring-buffer ]] && continue
  for pattern in "${@:-*}"; do
    # shellcheck disable=SC2053  # this is a pattern
    [[ $name == $pattern ]] || continue
    read -ra words <<<"$options"
    begun=$SECONDS
    rm -rf "/tmp/runs/$name" "${OUT:?}/$name" /tmp/truth.json
    mkdir -p /tmp/runs
    if mount_case "$setup" "$device" && "$workload" "$DATA/$name" step=prepare "${words[@]}" >/dev/null &&
      syncline record --force --route "$route" -o "/tmp/runs/$name" -- "$workload" "$DATA/$name" "${words[@]}" \
        >/tmp/truth.json 2>"$SAID" && truth "$name" "$setup" "$device" >"/tmp/runs/$name/truth.json"; then
      cp -r "/tmp/runs/$name" "$OUT/"
      shown "$OUT/$name/truth.json"
      grep -v '^probes:\|^recorded\|^recording' "$SAID" || true
    else
      echo "$name failed"
      cat "$SAID" /tmp/truth.json || true
      failures=$((failures + 1))
    fi
    rm -rf "/tmp/runs/$name" "${DATA:?}/$name" "$DATA/$name.neighbour"
    echo "$name: $((SECONDS - begun)) s"
    break
  done
done 3<"$KERNEL_TESTS/known-truth.tsv"
if mountpoint -q "$DATA"; then umount "$DATA"; fi
[ "$failures" = 0 ]
