#!/bin/bash
# Tests `syncline record --resume`: a recorder is killed, and the program knows which syncs were complete until then.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"
mountpoint -q "$DATA" || mount_case ext4 plain

steady_log
syncline record --for 300s -o /tmp/run &>/tmp/said &
until grep -q ^recording /tmp/said; do sleep 0.2; done
sleep 25
check "a running recording is refused" bash -c '! python3 -c "from syncline.cli import main; main()" record --resume -o /tmp/run'
pkill -KILL -f 'main.*record --for 300s'
sleep 3
kill "$wal"
check "a killed recorder leaves no probes" bash -c '! grep -q syncline /sys/kernel/tracing/dynamic_events'
check "it is resumed" syncline record --resume -o /tmp/run
ls -la /tmp/run
check "nothing is there to be resumed again" bash -c '! python3 -c "from syncline.cli import main; main()" record --resume -o /tmp/run'
check "it can be converted" syncline convert /tmp/run -o /tmp/run.csv
# Every sync of the program that ended until then has a row with its path, and no other has one.
check "all syncs until then are there" python3 - /tmp/run/manifest.json "$OUT/wal.truth" /tmp/run.csv <<'END'
import csv, json, sys
until = json.load(open(sys.argv[1]))["inputs"][0]["known_until_ns"]
truth = [[int(x) for x in line.split()] for line in open(sys.argv[2])]
rows = [row for row in csv.DictReader(open(sys.argv[3])) if row["path"] == "/mnt/data/wal"]
whole = [int(row["ts_ns"]) for row in rows if not row["incomplete"]]
first = min(whole)
wanted = [began for began, ended in truth if began >= first - 10**6 and ended <= until]
print(len(wanted), "wanted,", len(whole), "found,", (until - truth[-1][1]) / 1e9, "s before the last sync")
sys.exit(not 0 <= len(whole) - len(wanted) <= 1 or len(wanted) < 50)
END
cp -r /tmp/run "$OUT/"
counted salvage
