#!/usr/bin/env bash
# Says what the guest is: the shortest job, and a start for one's own.
set -euo pipefail
uname -r
grep " $DATA " /proc/mounts
for bpftrace in bpftrace /opt/bpftrace-*/run; do
  printf '%s: ' "$bpftrace"
  "$bpftrace" --version
done
printf 'data\n' >"$DATA/file"
sync "$DATA/file"
read -r seconds _ </proc/uptime
echo "$seconds s after power-on"
