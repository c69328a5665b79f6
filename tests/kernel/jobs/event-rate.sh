#!/usr/bin/env bash
# How many events a second the buffer of the route `dynamic-events` takes: [KIB[:GAP_MS[:THREADS[:FILES]]]...]. Sixteen threads sync small
# files on a disk in memory as fast as they can, or with a gap after each sync, recorded with buffers of these sizes for each CPU. A row:
# the size, the gap, threads, events, events a second, and how many were lost. With FILES, the recorder is stopped while they are written,
# and copies nothing: how many events a buffer holds.
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
  IFS=: read -r size gap threads stopped <<<"$setting"
  gap=${gap:-0} threads=${threads:-16}
  # With a gap, fewer files take long enough.
  files=3000
  if [ "$gap" != 0 ]; then files=600; fi
  command=("$PROJECT/tests/workloads/small_files.py" "$DATA/rate" files="${stopped:-$files}" threads="$threads" gap_ms="$gap")
  # The brackets keep pkill from matching its own shell.
  if [ -n "${stopped:-}" ]; then
    command=(sh -c "pkill -STOP -f '[r]ecord --force'; ${command[*]}; pkill -CONT -f '[r]ecord --force'")
  fi
  rm -rf "$DATA/rate" /tmp/run
  sync
  buffer=()
  if [ "$size" != default ]; then buffer=(--buffer "${size}K"); fi
  syncline record --force --route dynamic-events ${buffer[@]+"${buffer[@]}"} -o /tmp/run -- \
    "${command[@]}" >/tmp/truth.json 2>"$SAID" || true
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
cpus = {cpu: counts["entries"] + counts["read events"] for cpu, counts in entry["cpus"].items()}
print(f"{sys.argv[1]} KiB, {sys.argv[2]} ms, {sys.argv[3]} threads: {events} events, {rate:.0f} a second, {entry['lost']} lost, kept by CPU: {cpus}")
END
done
