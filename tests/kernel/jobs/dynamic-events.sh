#!/bin/bash
# The route `dynamic-events` on a stock kernel: [FILE_SYSTEM...]. Counts of events against the workload, paths, containers, two recordings
# at once, kill -9, probes of others, a file system that is mounted during the recording.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

tracing=/sys/kernel/tracing
# Without bpftrace: it attaches for half a minute on an emulated CPU, and has its own tests.
mount -o bind /dev/null /usr/bin/bpftrace

record() { syncline record --force --route dynamic-events "$@"; }
says() { grep -q -- "$1" "$SAID"; }
nothing_left() { [ -z "$(ls $tracing/instances)" ] && ! grep -q syncline $tracing/dynamic_events; }
# An expression over `n` (events by name), `manifest`, `files` (lines with a number), `mounts` and `writers` of a recording.
holds() { # RUN EXPRESSION
  trace-cmd report -q "$1/trace.dat" >/tmp/text 2>/dev/null
  python3 - "$1" "$2" <<'END'
import collections, json, re, sys
lines = open("/tmp/text", errors="replace")
n = collections.Counter(m[1] for m in (re.search(r"\d\.?\d*: +(\w+): ", line) for line in lines) if m)
manifest = json.load(open(f"{sys.argv[1]}/manifest.json"))
rows = [json.loads(line) for line in open(f"{sys.argv[1]}/files.jsonl")]
files, mounts = [r for r in rows if "ino" in r], [r for r in rows if "mount" in r]
writers = [json.loads(line) for line in open(f"{sys.argv[1]}/writers.jsonl")]
entry = manifest["inputs"][0]
probes = entry["probes"]
# What the kernel counted as missed may be missing.
missed = probes["missed"].get
if not eval(sys.argv[2]):
    print(dict(n), [r for r in files if "path" not in r][:3], len(files), entry["lost"], probes["missed"], probes["problems"], writers[:3])
    sys.exit(1)
END
}

cat >/tmp/workload.py <<'END'
import os, sys, threading
folder, count = sys.argv[1], int(sys.argv[2])
os.makedirs(f"{folder}/a/b", exist_ok=True)
def work(k):
    for i in range(count):
        fd = os.open(f"{folder}/a/b/f{k}-{i}", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"x" * 9000)
        os.fsync(fd)
        os.close(fd)
threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
END

# Syncs one file for some seconds: PATH CALL SECONDS.
cat >/tmp/slow.py <<'END'
import ctypes, os, sys, time
call = getattr(ctypes.CDLL(None, use_errno=True), sys.argv[2])
until = time.monotonic() + float(sys.argv[3])
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
arguments = (ctypes.c_long(0), ctypes.c_long(0), 2) if sys.argv[2] == "sync_file_range" else ()
while time.monotonic() < until:
    os.pwrite(fd, b"x" * 9000, 0)
    assert call(fd, *arguments) == 0
    time.sleep(0.05)
END

uname -r
[ $# -gt 0 ] || set -- ext4 xfs btrfs f2fs
for fs in "$@"; do
  mount_case "$fs" plain || exit 1
  record -o "/tmp/$fs" -- python3 /tmp/workload.py "$DATA/x" 20 &>"$SAID"
  cp -r "/tmp/$fs" "$OUT/"
  check "$fs: every sync has a start and an end" holds "/tmp/$fs" \
    'n["fsync_enter"] == n["fsync_exit"] == n["sys_enter_fsync"] == n["sys_exit_fsync"] == 60'
  check "$fs: every folio is under writeback once" holds "/tmp/$fs" \
    'n["wb_start"] - missed("wb_end", 0) == n["wb_end"] and n["wb_start"] >= 60'
  check "$fs: folios are in bios" holds "/tmp/$fs" 'n["bio_add_folio"] + n["bio_add_page"] >= 60'
  check "$fs: what is submitted is completed" holds "/tmp/$fs" \
    '0 < n["bio"] <= n["bio_end"] + missed("bio_end", 0)'
  check "$fs: the ring buffer lost nothing" holds "/tmp/$fs" 'entry["lost"] == entry["missed"]'
  check "$fs: each file has its path" holds "/tmp/$fs" \
    '{r.get("path") for r in files} >= {f"/mnt/data/x/a/b/f{k}-{i}" for k in range(3) for i in range(20)}'
  check "$fs: ... and its writer" holds "/tmp/$fs" \
    '{(r["dev"], r["ino"]) for r in files if "/b/f" in r["path"]} <= {(w.get("dev"), w["ino"]) for w in writers if w["comm"] == "python3"}'
  check "$fs: ... who made all of it dirty" holds "/tmp/$fs" \
    '{w["comm"] for w in writers if w["ino"] in {r["ino"] for r in files if "/b/f" in r["path"]} and "dev" in w} == {"python3"}'
  check "$fs: the place of the file system is recorded" holds "/tmp/$fs" \
    '[(m["mount"], m["root"]) for m in mounts] == [("/mnt/data", "/")]'
  check "$fs: all probes have effects" holds "/tmp/$fs" 'probes["without_effect"] == []'
  check "$fs: nothing is left" nothing_left
done

mount_case ext4 plain
record -o /tmp/stacks -- python3 /tmp/slow.py "$DATA/stacks" fsync 10 &>"$SAID"
cp -r /tmp/stacks "$OUT/"
check 'each call has a user stack' holds /tmp/stacks \
  'next(i for i in manifest["inputs"] if i["file"] == "stacks.log")["stacks"] >= 15'
check '... whose functions are resolved' grep -q 'libc\.so\|python3' /tmp/stacks/symbols.json

# A container: a mount namespace in which a folder of the file system is mounted elsewhere. Its process must live until the recorder
# has looked at it, which takes longer than a quarter of a second if the host is busy.
mkdir -p "$DATA/volume" /tmp/inside
record -o /tmp/container -- unshare -m sh -c \
  "mount --bind $DATA/volume /tmp/inside && python3 -c 'import os, time
fd = os.open(\"/tmp/inside/file\", os.O_CREAT | os.O_WRONLY); os.write(fd, b\"x\"); os.fsync(fd); time.sleep(15)'" &>"$SAID"
check 'a container: both paths' holds /tmp/container \
  '[(r.get("path"), r.get("container_path")) for r in files if "container" in r or "container_path" in r] == [("/mnt/data/volume/file", "/tmp/inside/file")]'

# Deeper than the names in the event.
deep=$DATA/1/2/3/4/5/6/7/8/9
mkdir -p "$deep"
record -o /tmp/deep -- python3 -c "import os; fd = os.open('$deep/file', os.O_CREAT | os.O_WRONLY); os.write(fd, b'x'); os.fsync(fd); os.unlink('$deep/file')" &>"$SAID"
check 'a deleted file: its path, or the reason' holds /tmp/deep '["path" in r for r in files if "reason" in r or r["path"].endswith("/9/file")] in ([True], [False])'

started() { grep -q "^recording" "$1" || has_exited "$2"; }

# Each has probes of its own, and the one that ends first removes only those.
record -o /tmp/one -- sleep 1000 &>/tmp/said-one &
one=$!
wait_until 300 started /tmp/said-one $one
record -o /tmp/two -- python3 /tmp/workload.py "$DATA/two" 10 &>"$SAID"
check 'two at once: the second is complete' holds /tmp/two 'n["fsync_enter"] == n["fsync_exit"] == 30'
check 'two at once: the first keeps its probes' test "$(grep -c /fsync_enter $tracing/dynamic_events)" -ge 1
python3 /tmp/workload.py "$DATA/three" 5
pkill -INT -f '[r]ecord --force.*-o /tmp/one '
wait_for_exit $one
check 'two at once: the first has the syncs of both' holds /tmp/one 'n["fsync_enter"] == n["fsync_exit"] == 45'
check '... and nothing is left' nothing_left

# Somebody else's events stay.
echo 'p:theirs/bio submit_bio' >>$tracing/dynamic_events
echo 'p:syncline_notours/bio submit_bio' >>$tracing/dynamic_events
record -o /tmp/killed -- sleep 1000 &>/tmp/said-killed &
killed=$!
wait_until 300 started /tmp/said-killed $killed
pkill -KILL -f '[r]ecord --force.*-o /tmp/killed '
wait_for_exit $killed
pkill -f '[s]leep 1000'
check 'kill -9: probes are left' grep -q "syncline_[0-9]*_[0-9]*/fsync_enter" $tracing/dynamic_events
record -o /tmp/after -- true &>"$SAID"
check 'kill -9: the next recording removes them' says 'the probes of a recorder that was killed'
check 'events of others are kept' test "$(cut -d' ' -f1 $tracing/dynamic_events | sort | tr '\n' ' ')" = 'p:syncline_notours/bio p:theirs/bio '
echo '-:theirs/bio' >>$tracing/dynamic_events
echo '-:syncline_notours/bio' >>$tracing/dynamic_events
check '... and nothing else is left' nothing_left

# A function that the kernel lets be probed and that is never called: another one is probed instead, or it is a loss. The syncs last
# until the recorder has looked.
table=$PROJECT/converter/syncline/record/probes.toml
instead() { # FUNCTION BY: BY takes the place of the function in probes.toml
  sed "s/\"$1\"/\"$2\"/" "$table" >/tmp/probes.toml
  mount --bind /tmp/probes.toml "$table"
}
instead 'ext4: ext4_sync_file' 'ext4: generic_file_fsync'
record -o /tmp/dead -- python3 /tmp/slow.py "$DATA/dead" fsync 20 &>"$SAID"
check 'a dead sync function: what it did not record is lost' holds /tmp/dead 'probes["without_effect"] == ["fsync_enter"] and entry["lost"] >= 1'
# In 7.2 there is no other one: the compiler has inlined vfs_fsync_range.
if [[ $(uname -r) != 7.* ]]; then
  check '... another one is probed' says 'fsync_enter: no effect by .*generic_file_fsync.*; by vfs_fsync_range from'
  check '... from then on, syncs are recorded' holds /tmp/dead '0 < n["fsync_enter"] and abs(n["fsync_enter"] - n["fsync_exit"]) <= 5 and n["fsync_exit"] < n["sys_exit_fsync"]'
  syncline convert /tmp/dead -o /tmp/dead.csv &>"$SAID"
  check '... as requests' grep -q "$DATA/dead" /tmp/dead.csv
fi
umount "$table"
never=folio_end_private_2
if grep -qx $never $tracing/available_filter_functions; then
  instead folio_end_writeback_no_dropbehind $never
  record -o /tmp/dead -- python3 /tmp/slow.py "$DATA/dead" fsync 20 &>"$SAID"
  check 'a dead end of writeback: another one is probed' says "wb_end: no effect by $never; by folio_end_writeback from"
  check '... what it did not record is lost' holds /tmp/dead '"wb_end" in probes["without_effect"] and entry["lost"] >= 1'
  check '... from then on, it is recorded' holds /tmp/dead '0 < n["wb_end"] < n["wb_start"]'
  umount "$table"
fi
instead sync_file_range vfs_fallocate
record -o /tmp/dead -- python3 /tmp/slow.py "$DATA/dead" sync_file_range 2 &>"$SAID"
check 'a dead function without another: it is reported' says 'the probes of range_enter had no effect'
check '... and counts as lost' holds /tmp/dead 'probes["without_effect"] == ["range_enter"] and entry["lost"] >= 1'
syncline convert /tmp/dead -o /tmp/dead.csv &>"$SAID"
check '... also for the converter' says lost_by_tracer
umount "$table"
record -o /tmp/dead -- python3 /tmp/slow.py "$DATA/dead" sync_file_range 2 &>"$SAID"
check 'sync_file_range: its probes have effects' holds /tmp/dead 'probes["without_effect"] == [] and n["range_enter"] == n["sys_exit_sync_file_range"] > 0'

# Its module is loaded by the mount.
umount "$DATA"
rmmod xfs 2>/dev/null
wipefs -q -a "$DISK"
mkfs.xfs -q -f "$DISK"
record -o /tmp/mounted -- sh -c "mount $DISK $DATA && sleep 30 && python3 /tmp/workload.py $DATA/x 10" &>"$SAID"
check 'mounted meanwhile: its syncs are recorded' holds /tmp/mounted 'n["fsync_enter"] == n["fsync_exit"] == 30'
check '... and since when' says 'xfs_file_fsync.*recorded only from'
umount "$DATA"

# Lockdown cannot be undone, so it comes last. Debian's kernel has it, but securityfs is not mounted in the guest.
mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
if echo confidentiality >/sys/kernel/security/lockdown 2>/dev/null; then
  record -o /tmp/locked -- true &>"$SAID"
  check 'lockdown is reported' says 'locked down'
  syncline record -o /tmp/locked -- true &>"$SAID"
  check '... and the next best route is taken' says 'route: strace'
fi
counted dynamic-events
