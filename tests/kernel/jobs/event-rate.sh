#!/usr/bin/env bash
# How many events a second the buffer of the route `dynamic-events` takes: [KIB[:GAP_MS[:THREADS]]...]. Sixteen threads sync small files on
# a disk in memory as fast as they can, or with a gap after each sync, recorded with buffers of these sizes for each CPU. A row: the size,
# the gap, threads, events, events a second, and how many were lost.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

mount -o bind /dev/null /usr/bin/bpftrace
mount_case ext4 null-fast
# The workload keeps all its files open.
ulimit -n 16384
[ $# -gt 0 ] || set -- 64 256 1024 default
for setting in "$@"; do
  IFS=: read -r size gap threads <<<"$setting"
  gap=${gap:-0} threads=${threads:-16}
  # With a gap, fewer files take long enough.
  files=3000
  if [ "$gap" != 0 ]; then files=600; fi
  rm -rf "$DATA/rate" /tmp/run
  sync
  buffer=()
  if [ "$size" != default ]; then buffer=(--buffer "${size}K"); fi
  syncline record --force --route dynamic-events ${buffer[@]+"${buffer[@]}"} -o /tmp/run -- \
    "$PROJECT/tests/workloads/small_files.py" "$DATA/rate" files="$files" threads="$threads" gap_ms="$gap" >/tmp/truth.json 2>"$SAID" || true
  if [ ! -s /tmp/truth.json ]; then
    cat "$SAID"
    exit 1
  fi
  python3 - "$size" "$gap" "$threads" <<'END'
import json, sys
manifest = json.load(open("/tmp/run/manifest.json"))
entry, wall_ms = manifest["inputs"][0], json.load(open("/tmp/truth.json"))["wall_ms"]
events = entry["entries"] + entry["lost"]
rate = events / wall_ms * 1000
print(f"{sys.argv[1]} KiB, {sys.argv[2]} ms, {sys.argv[3]} threads: {events} events, {rate:.0f} a second, {entry['lost']} lost")
END
done
