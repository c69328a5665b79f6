#!/bin/bash
# What hinders the route `dynamic-events`: a kernel without BTF, functions that cannot be probed, no memory for the buffer,
# a suspend, an overlay, events of somebody else with the same names. Each gives a clear message and the next best way to record.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

tracing=/sys/kernel/tracing
table=$PROJECT/converter/syncline/record/probes.toml
record() { syncline record --force "$@"; }
dynamic() { record --route dynamic-events "$@"; }
says() { grep -q -- "$1" "$SAID"; }
nothing_left() { [ -z "$(ls $tracing/instances)" ] && ! grep -q syncline $tracing/dynamic_events; }
# An expression over `rows` (the requests, with the columns of docs/reference/tables.md), `files` (the lines of files.jsonl) and
# `manifest` of a recording.
holds() { # RUN EXPRESSION
  syncline convert "$1" -o "$1.csv" &>>"$SAID" || return 1
  python3 - "$1" "$2" <<'END_OF_SCRIPT'
import csv, json, os, sys
run = sys.argv[1]
rows = list(csv.DictReader(open(f"{run}.csv")))
files = [json.loads(line) for line in open(f"{run}/files.jsonl")] if os.path.exists(f"{run}/files.jsonl") else []
manifest = json.load(open(f"{run}/manifest.json"))
if not eval(sys.argv[2]):
    print(*({key: row[key] for key in ("path", "container_path", "incomplete", "bytes")} for row in rows[:4]), len(rows), files[:3], manifest["route"])
    sys.exit(1)
END_OF_SCRIPT
}

# Syncs files one by one: FOLDER COUNT SECONDS_BETWEEN.
cat >/tmp/workload.py <<'END_OF_SCRIPT'
import os, sys, time
folder, count, gap = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
os.makedirs(folder, exist_ok=True)
for i in range(count):
    fd = os.open(f"{folder}/f{i}", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"x" * 9000)
    os.fsync(fd)
    os.close(fd)
    time.sleep(gap)
END_OF_SCRIPT

uname -r
mount_case ext4 plain || exit 1

# A kernel without BTF: Syncline and bpftrace see none.
mount -t tmpfs none /sys/kernel/btf
dynamic -o /tmp/btf -- true &>"$SAID"
check 'no BTF: the route is refused, with the reason' says 'dynamic-events: the kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)'
check '... no folder is left' test ! -e /tmp/btf
record -o /tmp/btf -- python3 /tmp/workload.py "$DATA/btf" 20 0.05 &>"$SAID"
check '... otherwise, the route is bpftrace with tracepoints' says '^route: bpftrace, because the kernel is not patched and has no BTF.*CONFIG_DEBUG_INFO_BTF'
check '... which records the syncs' holds /tmp/btf 'len([r for r in rows if r["pid"] and not r["incomplete"]]) >= 20'
umount /sys/kernel/btf

# From here on without bpftrace: it attaches for half a minute on an emulated CPU.
mount -o bind /dev/null /usr/bin/bpftrace
mount -t tmpfs none /sys/kernel/btf
record -o /tmp/btf -- python3 /tmp/workload.py "$DATA/btf-strace" 5 0 &>"$SAID"
check '... without bpftrace, it is strace' says '^route: strace.*CONFIG_DEBUG_INFO_BTF'
check '... which records the syncs' holds /tmp/btf 'len([r for r in rows if r["path"].startswith("/mnt/data/btf-strace/")]) == 5'
umount /sys/kernel/btf

# The module of the file system has no BTF, so its functions cannot be described. The kernel's own function is probed instead.
if [ -e /sys/kernel/btf/ext4 ]; then
  : >/tmp/empty
  mount --bind /tmp/empty /sys/kernel/btf/ext4
  dynamic -o /tmp/module -- python3 /tmp/workload.py "$DATA/module" 20 0.1 &>"$SAID"
  check 'no BTF of a module: it is said' says 'warning: ext4_sync_file cannot be probed: '
  check '... no sync is missing without a word' holds /tmp/module \
    'len([r for r in rows if "module/" in r["path"]]) == 20 or manifest["inputs"][0]["probes"]["without_effect"]'
  cp -r /tmp/module "$OUT/"
  umount /sys/kernel/btf/ext4
fi

# The kernel keeps some functions from kprobes. An fprobe takes them, where there are any. Else the fact is not recorded, which is said.
cut -d' ' -f1 $tracing/available_filter_functions | sort -u >/tmp/traceable
kept=$(awk '{ print $2 }' /sys/kernel/debug/kprobes/blacklist | sort -u | comm -12 - /tmp/traceable | grep -m 1 '^do_int3$\|^__die$')
sed "s/\"commit_timeout\"/\"$kept\"/" "$table" >/tmp/kept.toml
mount --bind /tmp/kept.toml "$table"
dynamic -o /tmp/kept -- python3 /tmp/workload.py "$DATA/kept" 10 0 &>"$SAID"
check "a function that the kernel keeps from kprobes ($kept): an fprobe takes it, or the reason is given" holds /tmp/kept \
  'manifest["inputs"][0]["probes"]["probed"].get("commit_timer", [["", ""]])[0][1] == "fprobe" or manifest["inputs"][0]["probes"]["unavailable"]["commit_timer"].endswith("the kernel keeps it from kprobes")'
check '... and the rest is recorded' holds /tmp/kept 'len([r for r in rows if "/kept/" in r["path"]]) == 10'
if grep -q '"commit_timer": "' /tmp/kept/manifest.json; then
  check '... what is missing is said' says "not recorded: which commits of ext4's journal its timer starts"
fi
umount "$table"

# More memory than the machine has, for the first buffer, and for those after it.
if dynamic --buffer 4096M -o /tmp/buffer -- true &>"$SAID"; then code=0; else code=$?; fi
check 'no memory for the buffer: the route is refused' test $code = 3
check '... with the reason and what to do' says 'cannot set buffer_size_kb to 4194304: Cannot allocate memory'
check '... what to do' says 'use a smaller buffer: --buffer'
check '... and no folder is left' test ! -e /tmp/buffer
record --buffer 4096M -o /tmp/buffer -- python3 /tmp/workload.py "$DATA/buffer" 5 0 &>"$SAID"
check '... otherwise, the next best route is taken' says '^route: strace.*cannot set buffer_size_kb'
check '... which records the syncs' holds /tmp/buffer 'len(rows) >= 5'
per_cpu_mib=$(($(free -m | awk '/^Mem:/ { print $7 }') * 45 / 100 / $(nproc)))
dynamic --buffer ${per_cpu_mib}M -o /tmp/buffer -- python3 /tmp/workload.py "$DATA/buffer" 5 0 &>"$SAID"
check "much memory ($per_cpu_mib MiB a CPU): the syncs are recorded" holds /tmp/buffer 'len([r for r in rows if "/buffer/" in r["path"]]) == 5'
check '... and nothing is left' nothing_left

# An overlay, as a container has it: mounted by the runtime, and the root of its processes. With a control group like that of a container.
modprobe -q overlay
id=$(printf 'c0ffee%058d' 1)
mkdir -p "$DATA"/{upper/app,work,merged} /sys/fs/cgroup/test.slice/docker-"$id".scope
cp /tmp/workload.py "$DATA/upper/app/"
mount -t overlay overlay -o "lowerdir=/,upperdir=$DATA/upper,workdir=$DATA/work" "$DATA/merged"
# The second one is in no container. The first one lives until the recorder has looked at it.
cat >/tmp/containers <<END_OF_SCRIPT
(echo 0 >/sys/fs/cgroup/test.slice/docker-$id.scope/cgroup.procs
exec unshare -m chroot $DATA/merged python3 /app/workload.py /app/db 3 5) &
python3 /tmp/workload.py $DATA/other 4 0
wait
END_OF_SCRIPT
dynamic -o /tmp/overlay -- sh /tmp/containers &>"$SAID"
check 'an overlay: the path on the host, and in the container' holds /tmp/overlay \
  'sorted((r["path"], r["container_path"]) for r in rows if "/db/f" in r["path"]) == [(f"/mnt/data/merged/app/db/f{i}", f"/app/db/f{i}") for i in range(3)]'
check '... with the id of the container' holds /tmp/overlay \
  '{r.get("container", "")[:6] for r in files if "/db/f" in r.get("path", "")} == {"c0ffee"}'
check '... and what was written' holds /tmp/overlay \
  '[r["bytes"] for r in rows if "/db/f" in r["path"]] == ["12288"] * 3'
cp -r /tmp/overlay "$OUT/"
sleep 20 &
echo $! >"/sys/fs/cgroup/test.slice/docker-$id.scope/cgroup.procs"
dynamic -o /tmp/cgroup --cgroup c0ffee -- sh /tmp/containers &>"$SAID"
check '--cgroup with the start of the id: only that container' holds /tmp/cgroup \
  'rows and len([r for r in rows if "/db/f" in r["path"]]) == 3 and not any("/other/" in r["path"] for r in rows)'
umount "$DATA/merged"

# The first step of a suspend: for up to 5 s, the kernel lets no program run. A whole suspend would be the end of the guest's shares (9p).
if grep -q freezer /sys/power/pm_test; then
  echo freezer >/sys/power/pm_test
  dynamic -o /tmp/frozen -- sh -c "python3 /tmp/workload.py $DATA/before 5 0; cat /proc/uptime >/tmp/uptime; echo freeze >/sys/power/state; cat /proc/uptime >>/tmp/uptime; python3 /tmp/workload.py $DATA/after 5 0" &>"$SAID"
  check 'all programs frozen: the syncs before and after it are recorded' holds /tmp/frozen \
    'len([r for r in rows if "/before/" in r["path"] or "/after/" in r["path"]]) == 10 and len([r for r in rows if r["incomplete"]]) <= manifest["inputs"][0]["missed"]'
  # Not each emulated CPU waits as long as the kernel says.
  check '... as far apart as they were' holds /tmp/frozen \
    'min(int(r["start_ns"]) for r in rows if "/after/" in r["path"]) - max(int(r["start_ns"]) for r in rows if "/before/" in r["path"]) >= 1e9 * (lambda a, b: b - a)(*(float(line.split()[0]) for line in open("/tmp/uptime")))'
  check '... nothing is lost' holds /tmp/frozen 'manifest["inputs"][0]["lost"] == manifest["inputs"][0]["missed"]'
  check '... and nothing is left' nothing_left
else
  echo 'skipped: this kernel cannot test a suspend'
fi

# Somebody else has events in the group that the recorder would take, and a tracing instance.
mkdir $tracing/instances/theirs
sh -c "start=\$(cut -d' ' -f22 /proc/\$\$/stat)
  echo \"p:syncline_\$\$_\$start/bio submit_bio\" >>$tracing/dynamic_events
  exec python3 -c 'from syncline.cli import main; main()' record --force --route dynamic-events -o /tmp/name -- python3 /tmp/workload.py $DATA/name 5 0" &>"$SAID"
check 'events of somebody else in a group of the same name: all is recorded' holds /tmp/name \
  'len([r for r in rows if "/name/" in r["path"] and r["bytes"] == "12288"]) == 5 and manifest["inputs"][0]["probes"]["group"].endswith("_2")'
check '... and theirs are kept' grep -q '^p:syncline_[0-9]*_[0-9]*/bio submit_bio$' $tracing/dynamic_events
check '... but nothing of ours' test "$(wc -l <$tracing/dynamic_events)" = 1 -a "$(ls $tracing/instances)" = theirs
: >$tracing/dynamic_events
rmdir $tracing/instances/theirs

# Lockdown cannot be undone, so it comes last. Up to `integrity`, probes are allowed.
mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
if echo integrity >/sys/kernel/security/lockdown 2>/dev/null; then
  dynamic -o /tmp/integrity -- python3 /tmp/workload.py "$DATA/integrity" 5 0 &>"$SAID"
  check 'lockdown for integrity: the syncs are recorded' holds /tmp/integrity 'len([r for r in rows if "/integrity/" in r["path"]]) == 5'
fi
counted record-obstacles
