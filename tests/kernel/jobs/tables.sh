#!/usr/bin/env bash
# Records a program with the tools whose tables Syncline reads: those of bcc, of libbpf-tools and of bpftrace, each in all its forms.
# Needs packages beside those of packages.txt: bpfcc-tools linux-headers-amd64 libbpf-tools (tests/data/slower/README.md).
# Results: tables/, each table with what the program did (NAME.truth). `tables.sh WORD...` records those whose names have one of the words.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"

program=$PROJECT/tests/data/slower/program.py
to=$OUT/tables
mkdir -p "$to" "$DATA"
mount -o remount,rw /
modprobe -q btrfs xfs f2fs 2>/dev/null
if mountpoint -q "$DATA"; then umount "$DATA"; fi
device=$(make_device delay "$DISK")
export PYTHONUNBUFFERED=1

# record NAME PATTERN TOOL...: the table of a tool while the program runs, from the line on that the pattern matches.
record() {
  local name=$1 begun=$2
  shift 2
  command -v "$1" >/dev/null || { echo "no $1"; return; }
  stdbuf -oL "$@" >"/tmp/$name.txt" 2>"/tmp/$name.err" &
  local tool=$!
  if ! wait_until "${WAIT:-240}" grep -q "$begun" "/tmp/$name.txt"; then
    echo "$name does not begin: $(tail -n 5 "/tmp/$name.err")"
    kill -KILL "$tool"
    return
  fi
  sleep 2
  python3 "$program" "$DATA" "${ROUNDS:-3}" >"$to/$name.truth"
  sync
  sleep 1
  # A shell has its background programs ignore SIGINT, which only those in C ask for all the same. Each line is written at once.
  case $1 in *-bpfcc) kill -TERM "$tool" ;; *) kill -INT "$tool" ;; esac
  wait_for_exit "$tool" 20
  cp "/tmp/$name.txt" "$to/$name.txt"
  if [ -s "/tmp/$name.err" ]; then cp "/tmp/$name.err" "$to/$name.err"; fi
  wc -l "$to/$name.txt"
}

wanted() {
  local word
  [ "${#words[@]}" = 0 ] && return 0
  for word in "${words[@]}"; do case $1 in *"$word"*) return 0 ;; esac; done
  return 1
}

words=("$@")
slower="LAT(ms)\|LATENCY_us\|TIME"
for fs in ext4 xfs btrfs f2fs; do
  if mountpoint -q "$DATA"; then umount "$DATA"; fi
  wipefs -q -a "$device"
  make_fs "$fs" "$device" "$DATA"
  if wanted libbpf-$fs; then
    record "libbpf-$fs" "$slower" "${fs}slower-libbpf" -m 1
    if [ "$fs" = ext4 ]; then
      record libbpf-ext4-all "$slower" ext4slower-libbpf -m 0
      record libbpf-ext4-csv "$slower" ext4slower-libbpf -c -m 1
      record libbpf-fsslower "$slower" fsslower-libbpf -t ext4 -m 20 -d 30
    fi
  fi
  if [ "$fs" = ext4 ]; then
    if wanted libbpf-syncsnoop; then record libbpf-syncsnoop "$slower" syncsnoop-libbpf; fi
    if wanted bpftrace-syncsnoop; then record bpftrace-syncsnoop "$slower" syncsnoop.bt; fi
    if wanted bcc-ext4; then
      record bcc-ext4 "$slower" ext4slower-bpfcc 1
      record bcc-ext4-csv "$slower" ext4slower-bpfcc -j 1
      record bcc-ext4-all "$slower" ext4slower-bpfcc 0
    fi
    if wanted bcc-fileslower; then record bcc-fileslower "$slower" fileslower-bpfcc 1; fi
    if wanted bcc-syncsnoop; then record bcc-syncsnoop "$slower" syncsnoop-bpfcc; fi
  elif wanted "bcc-$fs"; then
    record "bcc-$fs" "$slower" "${fs}slower-bpfcc" 1
  fi
done

# Of two disks, beside the same requests in the ring buffer: what a table of bios has to agree with.
ring=/sys/kernel/tracing/instances/tables
record_bios() {
  local name=$1
  wanted "$name" || return 0
  mkdir -p "$ring"
  echo 0 >"$ring/tracing_on"
  echo >"$ring/trace"
  echo mono >"$ring/trace_clock"
  for event in block_rq_insert block_rq_issue block_rq_complete; do echo 1 >"$ring/events/block/$event/enable"; done
  echo 1 >"$ring/tracing_on"
  record "$@"
  echo 0 >"$ring/tracing_on"
  cat "$ring/trace" >"$to/$name.events.txt"
  rmdir "$ring"
}
if mountpoint -q "$DATA"; then umount "$DATA"; fi
drop_device delay
wipefs -q -a "$DISK"
make_fs ext4 "$DISK" "$DATA"
make_fs xfs "$SPARE" /mnt/other
for disk in "$DISK" "$SPARE"; do cat "/sys/block/${disk#/dev/}/dev" >>"$to/devices.txt"; done
program=$PROJECT/tests/data/biosnoop/program.py
export OTHER=/mnt/other
record_bios libbpf-biosnoop "$slower" biosnoop-libbpf
record_bios libbpf-biosnoop-Q "$slower" biosnoop-libbpf -Q
record_bios libbpf-biosnoop-t "$slower" biosnoop-libbpf -t
record_bios bpftrace-biosnoop "$slower" biosnoop.bt
record_bios bcc-biosnoop "$slower" biosnoop-bpfcc
record_bios bcc-biosnoop-Q "$slower" biosnoop-bpfcc -Q
ls -l "$to"
