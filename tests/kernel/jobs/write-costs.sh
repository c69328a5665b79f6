#!/usr/bin/env bash
# Measures the machine, and the costs of writes in the scenarios of CAWL, on a device of known bandwidth.
#
# write-costs.sh [DEVICE [FILESYSTEM [KINDS]]]    a device of devices.tsv; by default null-10-mbps, ext4, and `all`. With `durable`, only small
# writes that wait for the device; with `expiry`, only slow ones, whose data expires after 12 s. The results are in OUT: machine.toml, measured
# before, and machine-after.toml, measured after KIND.csv: copies in memory are slower while other work runs on the host.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
device=${1:-null-10-mbps}
file_system=${2:-ext4}
kinds=${3:-all}
mount_case "$file_system" "$device"
# A chunk of the scenarios is a 24th of the distance between the limits; the paper's are a 115th and a 50th.
echo $((32 << 20)) >/proc/sys/vm/dirty_background_bytes
echo $((128 << 20)) >/proc/sys/vm/dirty_bytes
[ "$kinds" != expiry ] || echo 1200 >/proc/sys/vm/dirty_expire_centisecs
# The host gives memory to the guest when it is first used, which would count as the cost of page cache.
head -c 1G /dev/zero >/tmp/memory
rm /tmp/memory
syncline model measure --dir "$DATA" --max-size 128M -o "$OUT/machine.toml"
cat "$OUT/machine.toml"
# costs KIND SCENARIO...: with `names`, the file is KIND-$names.csv.
names=
costs() {
  "$KERNEL_TESTS/write_costs.py" "$DATA" "$@" >"/tmp/$1.csv"
  cp "/tmp/$1.csv" "$OUT/$1${names:+-}$names.csv"
  echo "$1: $(wc -l <"/tmp/$1.csv") rows"
}
if [ "$kinds" = all ]; then
  costs cached sequential delayed A B C D learned
  costs direct 1KiB large
  costs synchronized 1KiB 512B large
  costs library sequential delayed 512B
fi
if [ "$kinds" = expiry ]; then
  costs cached expiry
  exit
fi
small=(4KiB "4KiB again" 64KiB "64KiB again")
names=small
for kind in direct direct-dsync synchronized synchronized-dsync fsync fdatasync; do
  costs "$kind" "${small[@]}"
done
syncline model measure --dir "$DATA" --max-size 128M -o "$OUT/machine-after.toml"
cat "$OUT/machine-after.toml"
