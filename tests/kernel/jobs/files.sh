#!/usr/bin/env bash
# Records the programs of tests/data/check/programs/faults.py with `syncline record --files`: [CASE...]. The folders are in OUT.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

# bpftrace attaches for half a minute on an emulated CPU.
mount -o bind /dev/null /usr/bin/bpftrace
mount_case ext4 plain
[ $# -gt 0 ] || set -- replace_right alice_no_folder_sync alice_no_file_sync
for name; do
  # The recording goes on after the program has ended, so a sync that is missing does not follow.
  syncline record --force --route dynamic-events --reads none --files -o /tmp/run -- \
    sh -c "python3 -S -E '$PROJECT/tests/data/check/programs/faults.py' '$name' '$DATA/$name'; true" 2>"$SAID" || cat "$SAID"
  cat "$SAID"
  cp -r /tmp/run "$OUT/${name//_/-}"
done
