#!/usr/bin/env bash
# Measures what copies to page cache take, by size, what precedes them and whether writeback runs. The table is OUT/copies.csv.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
mount_case ext4 "${1:-null-10-mbps}"
# The host gives memory to the guest when it is first used.
head -c 1500M /dev/zero >/tmp/memory
rm /tmp/memory
"$KERNEL_TESTS/copy_costs.py" "$DATA" 5 >/tmp/copies.csv
cp /tmp/copies.csv "$OUT/copies.csv"
syncline model measure --dir "$DATA" --max-size 128M -o "$OUT/machine.toml"
cat "$OUT/machine.toml"
