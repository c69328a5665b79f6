#!/usr/bin/env bash
# Prints the versions in the guest. The shortest job, as a start for new ones.
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
