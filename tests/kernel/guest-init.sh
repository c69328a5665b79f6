#!/usr/bin/env bash
# The init of the guest, run by the stub in its image: mounts, creates the file system, runs the job, powers off.
set -uo pipefail
shopt -s inherit_errexit
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
cd /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /dev/pts /dev/shm /run/lock
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
hostname guest
ip link set lo up 2>/dev/null
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
mount -t tmpfs tmpfs /var/tmp
mount -t tmpfs tmpfs /root
mkdir -p /mnt/data
# Otherwise the journal of the root would be in every recording of the whole machine.
mount -o remount,ro /

SETUP='' DEVICE='' MKFS_OPTS='' MOUNT_OPTS='' JOB_ARGS='' SHELL_WANTED=''
# shellcheck source=/dev/null
. /out/.guest/settings
# shellcheck source-path=SCRIPTDIR source=guest-lib.sh
# shellcheck disable=SC1091
. /project/tests/kernel/guest-lib.sh
# The core of the checkout is for the architecture of the host.
if [ -e /out/.guest/_core.abi3.so ]; then mount --bind /out/.guest/_core.abi3.so /project/converter/syncline/_core.abi3.so; fi
export PROJECT=/project OUT=/out DISK=/dev/vdb SPARE=/dev/vdc DATA=/mnt/data KERNEL_TESTS

# The output of the job goes to the share, because it would be lost with the guest.
job() {
  set -e
  if [ "$SETUP" != none ]; then
    DEVICE_PATH=$(make_device "$DEVICE" "$DISK")
    make_fs "$SETUP" "$DEVICE_PATH" "$DATA" "$MKFS_OPTS" "$MOUNT_OPTS"
    export DEVICE_PATH
  fi
  cd /out
  if [ -n "$SHELL_WANTED" ]; then
    [ -d "$DATA" ] && cd "$DATA"
    setsid --ctty bash --norc -i
  else
    arguments=()
    eval "arguments=($JOB_ARGS)"
    chmod +x /out/.guest/job
    /out/.guest/job "${arguments[@]}"
  fi
}

if [ -n "$SHELL_WANTED" ]; then
  terminal=/dev/$(sed 's/.*console=\([^ ]*\).*/\1/' /proc/cmdline)
  # shellcheck disable=SC2094  # it is a terminal
  (job) <"$terminal" >"$terminal" 2>&1
else
  (job) </dev/null >/out/job.log 2>&1
  echo $? >/out/.guest/exit
fi
# Unmounting writes the remaining dirty pages. A job that records this unmounts before it ends.
umount "$DATA" 2>/dev/null
echo o >/proc/sysrq-trigger
sleep 60
