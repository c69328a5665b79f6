#!/bin/bash
# Stacked devices: a partition, dm-linear behind a first sector, one on a partition, one over two disks, dm-crypt, and two on one disk. Each
# has an ext4 with syncs, and is recorded by the route that `record` chooses. The recordings are in OUT: `syncline report OUT/NAME device`.
# Run it with --fs none --disk-size 1G --spare-size 1G.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

# Without bpftrace: it attaches for half a minute on an emulated CPU, and has its own tests.
mount -o bind /dev/null /usr/bin/bpftrace
route=$(default_route)

# Syncs a file COUNT times: FOLDER COUNT [NEIGHBOUR]. NEIGHBOUR is a device to which another thread writes past page cache meanwhile.
cat >/tmp/workload.py <<'EOF'
import mmap, os, sys, threading
folder, count, neighbour = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
done = threading.Event()
def write_to(device):
    open("/proc/thread-self/comm", "w").write("neighbour")
    block = mmap.mmap(-1, 1 << 16)
    fd, at = os.open(device, os.O_WRONLY | os.O_DIRECT), 0
    while not done.is_set():
        os.pwrite(fd, block, at % (16 << 20))
        at += len(block)
    os.close(fd)
others = [threading.Thread(target=write_to, args=(device,)) for device in neighbour]
for other in others: other.start()
for k in range(count):
    fd = os.open(f"{folder}/file{k % 4}", os.O_CREAT | os.O_WRONLY)
    os.pwrite(fd, os.urandom(20000), 40000 * k)
    os.fsync(fd)
    os.close(fd)
done.set()
for other in others: other.join()
EOF

# create NAME TABLE: creates a device of the device mapper, and sets `device`.
create() {
  dmsetup create --noudevsync "$1" --table "$2" && dmsetup mknodes "$1"
  device=/dev/mapper/$1
}
number() { stat -L -c '%Hr,%Lr' "$1"; }

# redirected RUN DEVICE: events of remaps from a device.
redirected() { trace-cmd report -q "$1/trace.dat" 2>/dev/null | grep -c "block_bio_remap: .* <- ($2) "; }
has_remaps() { [ "$(redirected "$@")" -gt 0 ]; }
# is_on RUN NAME BELOW: what devices.json says.
is_on() {
  python3 - "$@" <<'EOF'
import json, sys
run, name, below = sys.argv[1:]
devices = {device["name"]: device for device in json.load(open(f"{run}/devices.json")).values()}
sys.exit(",".join(devices[name]["on"]) != below)
EOF
}

# has_bios RUN COMM DEVICE: whether the recording has bios of a thread to a device, and says of most that they are complete.
has_bios() {
  syncline convert "$1" -o "$1.events.jsonl" -q &>"$SAID" && python3 - "$1.events.jsonl" "$2" "$3" <<'EOF'
import json, sys
log, comm, device = sys.argv[1:]
queued, complete = set(), set()
for line in open(log):
    e = json.loads(line)
    place = e.get("dev"), e.get("sector")
    if e["event"] in ("block_submit", "block_bio_queue", "bio_submit") and e["comm"] == comm: queued.add(place)
    if e["event"] in ("block_rq_complete", "block_bio_complete", "bio_complete"): complete.add(place)
print(len(queued), "bios of", comm, "to", sorted({dev for dev, _ in queued}), len(queued & complete), "complete")
sys.exit(not any(dev == device for dev, _ in queued))
EOF
}

# recorded NAME DEVICE BELOW [NEIGHBOUR]: records syncs on a new ext4. BELOW: names with commas.
recorded() {
  local name=$1 path=$2 below=$3
  shift 3
  make_fs ext4 "$path" "$DATA" || return 1
  syncline record --force --route "$route" -o "/tmp/$name" -- python3 /tmp/workload.py "$DATA" 12 "$@" &>"$SAID" || cat "$SAID"
  cp -r "/tmp/$name" "$OUT/"
  umount "$DATA"
  check "$name: its bios are redirected" has_remaps "/tmp/$name" "$(number "$path")"
  check "$name: on $below" is_on "/tmp/$name" "$(basename "$(realpath "/sys/dev/block/$(number "$path" | tr , :)")")" "$below"
  case $below in "$disk"*) path=$DISK ;; *) path=$SPARE ;; esac
  [ $# = 0 ] || check "$name: bios of the neighbour" has_bios "/tmp/$name" neighbour "$(number "$path")"
}

wipefs -q -a "$DISK" "$SPARE"
modprobe -q dm-mod
modprobe -q dm-crypt
# 64 MiB each; the first begins at 1 MiB. The guest has no sfdisk.
python3 - "$DISK" <<'EOF'
import struct, sys
with open(sys.argv[1], "r+b") as disk:
    disk.seek(446)
    for first in (2048, 133120): disk.write(struct.pack("<8xII", first, 131072)[:4] + struct.pack("<B3xII", 0x83, first, 131072))
    disk.seek(510)
    disk.write(b"\x55\xaa")
EOF
blockdev --rereadpt "$DISK"
uname -r
for device in "$DISK" "$SPARE" "${DISK}1" "${DISK}2"; do echo "$device $(number "$device")"; done

disk=$(basename "$DISK") other_disk=$(basename "$SPARE")
recorded partition "${DISK}1" "$disk"
check "a disk is on no other" is_on /tmp/partition "$disk" ""
create on-partition "0 122880 linear ${DISK}2 4096"
recorded on-partition "$device" "${disk}2" "${DISK}1"
dmsetup remove --noudevsync on-partition
create offset "0 131072 linear $SPARE 300000"
recorded direct "$device" "$other_disk" "$SPARE"
create other "0 131072 linear $SPARE 131072"
recorded shared /dev/mapper/offset "$other_disk" "$device"
if create crypt "0 131072 crypt aes-xts-plain64 $(printf '%0128d' 7) 0 $SPARE 700000"; then recorded crypt "$device" "$other_disk"; fi
# Files at both ends.
create two "$(printf '0 66000 linear %s 440000\n66000 66000 linear %s 8192' "$SPARE" "${DISK}2")"
sed -i 's/40000 \* k/4000000 * k/' /tmp/workload.py
recorded two "$device" "${disk}2,$other_disk"
dmsetup table
counted stacked
