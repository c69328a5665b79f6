#!/usr/bin/env bash
# Records a few syncs on four file systems with Perfetto's own traced and traced_probes, by the configuration of docs/reference/formats.md.
# build/perfetto-sid has their programs and libraries (tests/data/perfetto/README.md says how to get them).
# Results: perfetto/, each trace with what the program did (NAME.truth).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"

from=$PROJECT/build/perfetto-sid
[ -x "$from/traced_probes" ] || exit 77
program=$PROJECT/tests/data/function-graph/threads.py
to=$OUT/perfetto
mkdir -p "$to" "$DATA"
mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing

perfetto() {
  "$from/lib/ld.so" --inhibit-cache --library-path "$from/lib" "$from/$1" "${@:2}"
}
# The configuration in the documentation, for a few seconds.
sed -n '/^duration_ms: 30000/,/^```/p' "$PROJECT/docs/reference/formats.md" |
  sed -e '/^```/d' -e 's/^duration_ms: .*/duration_ms: 60000/' -e 's/size_kb: 131072/size_kb: 16384/' >/tmp/fsync.cfg
mkdir -p /run/perfetto
perfetto traced >/tmp/traced.log 2>&1 &
perfetto traced_probes >/tmp/probes.log 2>&1 &
sleep 3
for fs in ext4 xfs btrfs f2fs; do
  if mountpoint -q "$DATA"; then umount "$DATA"; fi
  wipefs -q -a "$DISK"
  make_fs "$fs" "$DISK" "$DATA"
  perfetto perfetto -c /tmp/fsync.cfg --txt -o "/tmp/$fs.perfetto-trace" >"/tmp/$fs.log" 2>&1 &
  client=$!
  sleep 8
  python3 "$program" "$DATA" 6 >"$to/$fs.truth"
  sleep 1
  kill -INT "$client"
  wait "$client" || true
  cp "/tmp/$fs.perfetto-trace" "$to/" || cat "/tmp/$fs.log" /tmp/traced.log /tmp/probes.log
done
gzip -f "$to"/*.perfetto-trace
uname -r >"$to/kernel"
perfetto perfetto --version >"$to/version"
ls -l "$to"
