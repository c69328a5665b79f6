#!/bin/bash
# Tests `syncline record --host`: a server with nothing but Python and sshd, and a laptop in a network namespace of its own, which has Syncline.
#
#   record-host.sh          all checks, which take a guest of its own half an hour on a busy host
#   record-host.sh quick    the first of them
#   record-host.sh serve    the server alone, for a laptop outside of the guest (boot --ssh-port), until $OUT/stop exists
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
mountpoint -q "$DATA" || mount_case ext4 plain

# The server: a log that is synced steadily. The root of the guest is read-only.
mount -o remount,rw /
sed -i 's/^root:[^:]*:/root::/' /etc/shadow
home=$(getent passwd root | cut -d: -f6)
mkdir -p /run/sshd "$home/.ssh"
rm -f "$OUT"/key*
ssh-keygen -q -t ed25519 -N '' -f "$OUT/key"
install -m 600 "$OUT/key" "$home/.ssh/id_ed25519"
install -m 600 "$OUT/key.pub" "$home/.ssh/authorized_keys"
ls /etc/ssh/ssh_host_ed25519_key &>/dev/null || ssh-keygen -q -A
/usr/sbin/sshd -o UsePAM=no -o StrictModes=no -o PermitRootLogin=yes
printf 'Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n' >"$home/.ssh/config"
# Without a password that could be typed: sshd refuses a user who is locked.
useradd -m -p '*' visitor
mkdir -p /home/visitor/.ssh
cp "$OUT/key.pub" /home/visitor/.ssh/authorized_keys
chown -R visitor /home/visitor
steady_log

if [ "${1:-}" = serve ]; then
  modprobe virtio_net
  ip link set eth0 up
  ip addr add 10.0.2.15/24 dev eth0
  touch "$OUT/ready"
  until [ -e "$OUT/stop" ]; do sleep 0.5; done
  find /sys/kernel/tracing/instances /dev/shm /run /tmp -maxdepth 1 -name 'syncline*' >"$OUT/left"
  grep syncline /sys/kernel/tracing/dynamic_events >>"$OUT/left"
  kill "$wal"
  exit 0
fi

modprobe veth
ip netns add laptop
ip link add db1 type veth peer name db1 netns laptop
ip addr add 10.9.0.1/24 dev db1
ip link set db1 up
ip netns exec laptop ip addr add 10.9.0.2/24 dev db1
ip netns exec laptop ip link set db1 up

laptop() { ip netns exec laptop timeout --foreground -k 30 300 python3 -c 'from syncline.cli import main; main()' "$@"; }
gone() { # nothing of a recorder is on the server
  nothing_left && [ -z "$(find /dev/shm /run /tmp -maxdepth 1 -name 'syncline-*')" ] && ! pgrep -f 'syncline.record.serve' >/dev/null
}
# Every sync of the program that ended before the end of what is known has a row with its path.
all_syncs() { # RUN LEAST
  syncline convert "$1" -o /tmp/run.csv &>"$SAID" && python3 - "$1/manifest.json" "$OUT/wal.truth" /tmp/run.csv "$2" <<'END2'
import csv, json, sys
until = json.load(open(sys.argv[1]))["inputs"][0].get("known_until_ns", 2**62)
truth = [[int(x) for x in line.split()] for line in open(sys.argv[2]) if line.count(" ") == 1 and line.endswith("\n")]
rows = [row for row in csv.DictReader(open(sys.argv[3])) if row["path"] == "/mnt/data/wal"]
whole = [int(row["ts_ns"]) for row in rows if not row["incomplete"]]
first, last = min(whole), max(whole)
wanted = [began for began, ended in truth if first - 10**6 <= began <= last + 10**6 and ended <= until]
print(len(wanted), "syncs by the program,", len(whole), "recorded")
sys.exit(not 0 <= len(whole) - len(wanted) <= 1 or len(wanted) < int(sys.argv[4]))
END2
}
says() { grep -qF -- "$1" /tmp/laptop; }
ended_early() { [ -e "$1/manifest.json" ] && grep -q '"ended_by": "failure' "$1/manifest.json"; }

python3 -c 'from syncline.record.portable import archive; print(len(archive()), "bytes travel")'
laptop record --host root@10.9.0.1 --for 10s -o /tmp/run &>/tmp/laptop
code=$?
cat /tmp/laptop
check "it records over ssh" test $code = 0
if [ $code != 0 ]; then
  counted record-host
  exit 1
fi
check "all syncs are there" all_syncs /tmp/run 15
check "nothing was lost" bash -c '! grep -q "warning: the kernel lost" /tmp/laptop'
check "nothing is left on the server" soon 5 gone
rm -rf "$OUT/run"
cp -r /tmp/run "$OUT/"
ls -la /tmp/run
grep -c . /tmp/run/files.jsonl

echo "--- Ctrl-C"
laptop record --host root@10.9.0.1 -o /tmp/interrupted &>/tmp/laptop &
soon 240 grep -q ^recording /tmp/laptop
sleep 5
pkill -INT -f 'python3 -c from syncline.cli.*interrupted'
wait $!
check "Ctrl-C ends it in an orderly way" test $? = 0
cat /tmp/laptop
check "all syncs are there" all_syncs /tmp/interrupted 10
check "nothing is left on the server" soon 5 gone

echo "--- a user who is not root"
laptop record --host visitor@10.9.0.1 --for 3s -o /tmp/visitor &>/tmp/laptop
cat /tmp/laptop
check "a user other than root is told what to type" says "hint: --host root@10.9.0.1"
if [ "${1:-}" = quick ]; then
  kill "$wal"
  counted record-host
  exit
fi

echo "--- a command there, whose output is not in the stream"
laptop record --host root@10.9.0.1 -o /tmp/command -- sh -c 'echo said by the command; sync; exit 3' &>/tmp/laptop
check "a command runs there" says "said by the command"
check "its exit code is known" says "the command exited with 3"
cat /tmp/laptop

echo "--- --via"
laptop record --via 'sh -c' --for 3s -o /tmp/via &>/tmp/laptop
check "it records through a command" all_syncs /tmp/via 5

echo "--- the recorder is copied by hand, to a server without Syncline"
laptop record --write-recorder /tmp/recorder.pyz &>/tmp/laptop
(cd / && env -i PATH="$PATH" python3 -I -S /tmp/recorder.pyz --for 4s -o /tmp/byhand) &>/tmp/laptop
cat /tmp/laptop
check "it records by itself" all_syncs /tmp/byhand 5
(cd / && env -i PATH="$PATH" python3 -I -S /tmp/recorder.pyz --slower-than 1us --captures 1 --after 1s -o /tmp/armedbyhand) &>/tmp/laptop
check "it can be armed" test -n "$(ls /tmp/armedbyhand)"
tail -n 3 /tmp/laptop

echo "--- the network ends without a word"
laptop record --host root@10.9.0.1 -o /tmp/silent &>/tmp/laptop &
soon 240 grep -q ^recording /tmp/laptop
sleep 10
ip link set db1 down
wait $!
check "what had arrived is kept" ended_early /tmp/silent
cat /tmp/laptop
check "all syncs until then are there" all_syncs /tmp/silent 10
check "the probes are removed" soon 60 gone
ip link set db1 up

for victim in laptop ssh server; do
  echo "--- kill -9: $victim"
  laptop record --host root@10.9.0.1 -o "/tmp/killed-$victim" &>/tmp/laptop &
  soon 240 grep -q ^recording /tmp/laptop
  sleep 7
  case $victim in
    laptop) pkill -KILL -f "python3 -c from syncline.cli.*killed-$victim" ;;
    ssh) pkill -KILL -f 'ssh -T' ;;
    server) pkill -KILL -f 'import os,sys;f=open' ;;
  esac
  wait $! 2>/dev/null
  cat /tmp/laptop
  if [ $victim = laptop ]; then
    check "it can be resumed" syncline record --resume -o /tmp/killed-laptop
  fi
  check "what had arrived is kept" ended_early "/tmp/killed-$victim"
  check "all syncs until then are there" all_syncs "/tmp/killed-$victim" 10
  check "the probes are removed" soon 20 gone
done

echo "--- the disk of the laptop is full"
mkdir -p /tmp/small
mount -t tmpfs -o size=3m tmpfs /tmp/small
laptop record --host root@10.9.0.1 -o /tmp/small/run &>/tmp/laptop
cat /tmp/laptop
check "a full disk is said" says "no space left"
check "what had arrived is kept" ended_early /tmp/small/run
check "the probes are removed" soon 20 gone

echo "--- a server without Python"
mv /usr/bin/python3 /usr/bin/python3.kept
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.6.8"\nexit 1\n' >/usr/bin/python3
chmod +x /usr/bin/python3
mv /usr/bin/python3.13 /usr/bin/hidden
ip netns exec laptop /usr/bin/hidden -c 'from syncline.cli import main; main()' record --host root@10.9.0.1 --for 3s -o /tmp/old &>/tmp/laptop
mv /usr/bin/hidden /usr/bin/python3.13
mv /usr/bin/python3.kept /usr/bin/python3
cat /tmp/laptop
check "an old Python is said" says "only Python 3.6.8"

kill "$wal"
counted record-host
