#!/usr/bin/env bash
# Records reads: neighbour|rate|overwrite [FILE_SYSTEM...].
#   neighbour  dd reads a file, uncached, beside a program that syncs. The folder is in OUT.
#   rate       fio reads at random beside a program that syncs, recorded with reads and without. A row: reads a second, events a second, bytes
#              of trace.dat, and how many events were lost.
#   overwrite  tests/workloads/overwrite.py, aligned and unaligned, cold and warm. The folders, and logs of strace, are in OUT.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

what=${1:-neighbour}
shift || true
[ $# -gt 0 ] || set -- ext4
# bpftrace attaches for half a minute on an emulated CPU.
mount -o bind /dev/null /usr/bin/bpftrace
uname -r

neighbour() {
  mount_case "$1" "$(if [ "$1" = ext4 ]; then echo null-queue-1; else echo null-queue-1-400; fi)"
  dd if=/dev/zero of="$DATA/backup" bs=64K count=160 conv=fsync status=none
  # At first nobody reads.
  cat >/tmp/beside.sh <<END
"$PROJECT/tests/workloads/append.py" "$DATA/log" records=25 size=4096
touch /tmp/reading
while [ -e /tmp/reading ]; do dd if="$DATA/backup" of=/dev/null bs=64K iflag=direct status=none; done &
"$PROJECT/tests/workloads/append.py" "$DATA/log" records=25 size=4096
rm /tmp/reading
wait
END
  syncline record --force --route dynamic-events -o "/tmp/$1" -- bash /tmp/beside.sh
  cp -r "/tmp/$1" "$OUT/neighbour-$1"
}

rate() {
  mount_case "$1" null-fast
  fallocate -l 64M "$DATA/table"
  dd if=/dev/zero of="$DATA/table" bs=1M count=64 conv=notrunc,fsync status=none
  for how in all none; do
    cat >/tmp/beside.sh <<END
"$PROJECT/tests/workloads/small_files.py" "$DATA/small-$how" files=400 threads=1 >/dev/null &
fio --name=table --filename="$DATA/table" --rw=randread --bs=4k --direct=1 --numjobs=2 --thread --time_based --runtime=8 --group_reporting --output-format=json --output=/tmp/fio.json
wait
END
    syncline record --force --route dynamic-events --reads "$how" -o /tmp/run -- bash /tmp/beside.sh >/dev/null 2>"$SAID" || cat "$SAID"
    python3 - "$1" "$how" <<'END'
import json, os, sys
read = json.load(open("/tmp/fio.json"))["jobs"][0]["read"]
manifest = json.load(open("/tmp/run/manifest.json"))
entry = manifest["inputs"][0]
clocks = [manifest[end]["clocks_ns"]["boottime"] for end in ("before", "after")]
seconds = (clocks[1] - clocks[0]) / 1e9
events = entry["entries"] + entry["lost"]
print(f"rate {' '.join(sys.argv[1:])}: {read['total_ios']} reads, {read['iops']:.0f} a second; {events} events, {events / 8:.0f} a second of these 8;"
      f" trace.dat {os.path.getsize('/tmp/run/trace.dat')} bytes; lost {entry['lost']}; {seconds:.0f} s in all")
END
    tail -3 "$SAID"
  done
}

overwrite() {
  mount_case "$1" delay-read
  for cache in cold warm; do
    for align in aligned unaligned; do
      name=$1-$cache-$align
      syncline record --force --route dynamic-events -o "/tmp/$name" -- \
        "$PROJECT/tests/workloads/overwrite.py" "$DATA/$name" align="$align" cache="$cache" writes=12 every=12
      cp -r "/tmp/$name" "$OUT/"
      if [ "$cache" = cold ]; then
        strace -f -y -T -ttt -e trace=openat,pwrite64,fsync,close -o "$OUT/$name.strace" \
          "$PROJECT/tests/workloads/overwrite.py" "$DATA/$name-strace" align="$align" cache="$cache" writes=12 every=12
      fi
    done
  done
}

for fs; do "$what" "$fs"; done
