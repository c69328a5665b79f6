#!/usr/bin/env bash
# What `record --files` costs in time: [xTIMES]. Runs the same work without a recorder, with a plain recording and with `--files`, alternately:
# files that are replaced by write, fsync, rename and an fsync of the folder; transactions of SQLite; and writes of 512 bytes without a sync but
# the last one. A row for each work: the ratios to the run without a recorder of the same round, that of the two recordings (median, smallest and
# largest), and the events a second of each.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

times=5
if [[ ${1:-} =~ ^x([0-9]+)$ ]]; then times=${BASH_REMATCH[1]}; fi
# Without bpftrace: it attaches for half a minute on an emulated CPU, and has its own cost.
mount -o bind /dev/null /usr/bin/bpftrace

mount_case ext4 null-fast
run() { # WORK HOW
  local -a command options=()
  case $1 in
    replace) command=(rename.py "$DATA/replace" saves=20) ;;
    sqlite) command=(sqlite.py "$DATA/sqlite" transactions=20) ;;
    write) command=(append.py "$DATA/write" records=1000 every=1000 size=512) ;;
  esac
  rm -rf "${DATA:?}/$1"
  sync
  command[0]=$PROJECT/tests/workloads/${command[0]}
  [ "$2" != files ] || options=(--files)
  if [ "$2" = none ]; then
    "${command[@]}" >/tmp/truth.json
  else
    syncline record --force --route dynamic-events "${options[@]}" -o /tmp/run -- "${command[@]}" >/tmp/truth.json 2>"$SAID" || cat "$SAID"
  fi
  python3 - "$1" "$2" >>/tmp/results <<'END_OF_SCRIPT'
import json, sys
work, how = sys.argv[1:]
found = {"work": work, "how": how, "wall_ms": json.load(open("/tmp/truth.json"))["wall_ms"]}
if how != "none":
    of = json.load(open("/tmp/run/manifest.json"))["inputs"][0]
    found |= {"entries": of["entries"], "lost": of["lost"]}
print(json.dumps(found), flush=True)
END_OF_SCRIPT
  tail -n 1 /tmp/results
}

uname -r
for ((round = 1; round <= times; round++)); do
  for work in replace sqlite write; do
    for how in none plain files; do run $work $how; done
  done
done
cp /tmp/results "$OUT/results.jsonl"
python3 - <<'END_OF_SCRIPT'
import json, statistics
rows = [json.loads(line) for line in open("/tmp/results")]
def shown(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
for work in dict.fromkeys(row["work"] for row in rows):
    of = {how: [row for row in rows if (row["work"], row["how"]) == (work, how)] for how in ("none", "plain", "files")}
    ms = {how: [row["wall_ms"] for row in found] for how, found in of.items()}
    pairs = {f"{a}/{b}": shown([x / y for x, y in zip(ms[a], ms[b])]) for a, b in (("plain", "none"), ("files", "none"), ("files", "plain"))}
    events = {how: round(statistics.median(row["entries"] / row["wall_ms"] * 1000 for row in of[how])) for how in ("plain", "files")}
    lost = sum(row.get("lost", 0) for found in of.values() for row in found)
    print(work, f"none {statistics.median(ms['none']):.0f} ms", pairs, "events a second", events, "lost", lost)
END_OF_SCRIPT
