#!/usr/bin/env bash
# What `record --files` records and costs: [xTIMES]. One program replaces files next to another one that does the same in another folder and
# closes pipes. A line for each way to record, of which `without` leaves out the closes: the time of the first program and its ratio to the run
# without a recorder of the same round (medians), the events, and the size of trace.dat. The folders of the last round are in OUT: `syncline
# query` says which operations they hold.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

times=3
if [[ ${1:-} =~ ^x([0-9]+)$ ]]; then times=${BASH_REMATCH[1]}; fi
mount -o bind /dev/null /usr/bin/bpftrace

# Replaces files until it has done so many times, or until it is killed; begins when a file appears.
cat >/tmp/replace.py <<'END_OF_SCRIPT'
import json, os, sys, time
folder, times, start = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.makedirs(folder, exist_ok=True)
open("/proc/self/comm", "w").write(os.path.basename(folder))
while not os.path.exists(start):
    time.sleep(0.1)
begun = time.process_time()
done = 0
while done < times or not times:
    temporary = f"{folder}/conf{done % 10}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(fd, b"x" * 1000)
    os.close(fd)
    os.rename(temporary, temporary[:-4])
    with open(temporary[:-4], "rb") as file:
        file.read()
    if not times:
        for end in os.pipe():
            os.close(end)
        time.sleep(0.002)
    done += 1
print(json.dumps({"cpu_s": time.process_time() - begun, "done": done}))
END_OF_SCRIPT

table=$PROJECT/converter/syncline/record/probes.toml
# The table without the entry of closes.
python3 - "$table" >/tmp/without.toml <<'END_OF_SCRIPT'
import re, sys
head, *entries = re.split(r"(?=^\[\[probe\]\]\n)", open(sys.argv[1]).read(), flags=re.M)
kept = [entry for entry in entries if '\nevent = "file_close"\n' not in entry]
assert len(kept) == len(entries) - 1
print(head + "".join(kept))
END_OF_SCRIPT

mount_case ext4 null-fast
run() { # HOW ROUND
  local start=/tmp/start
  rm -rf "$start" "$DATA"/subject "$DATA"/neighbour
  python3 -S -E /tmp/replace.py "$DATA/neighbour" 0 "$start" &
  local neighbour=$!
  python3 -S -E /tmp/replace.py "$DATA/subject" 300 "$start" >/tmp/subject.json &
  local subject=$! recorder=
  local -a filter=()
  case $1 in
    pid) filter=(--pid "$subject") ;;
    comm) filter=(--comm subject) ;;
    path) filter=(--path "$DATA/subject/") ;;
  esac
  sleep 1
  [ "$1" != without ] || mount --bind /tmp/without.toml "$table"
  if [ "$1" != none ]; then
    # What ends the recording is the end of the program, whatever is filtered.
    local -a until=(-- tail "--pid=$subject" -f /dev/null)
    [ "$1" != pid ] || until=()
    syncline record --force --route dynamic-events --files "${filter[@]}" -o /tmp/run "${until[@]}" &>"$SAID" &
    recorder=$!
    wait_until 300 grep -q '^recording' "$SAID" || cat "$SAID"
  fi
  touch "$start"
  wait $subject
  [ -z "$recorder" ] || wait $recorder || cat "$SAID"
  [ "$1" != without ] || umount "$table"
  kill $neighbour
  wait $neighbour 2>/dev/null || true
  [ "$1" = none ] || [ "$2" -ne $((times - 1)) ] || cp -r /tmp/run "$OUT/$1"
  python3 - "$1" >>/tmp/all.jsonl <<'END_OF_SCRIPT'
import json, os, sys
how = sys.argv[1]
found = {"how": how, **json.load(open("/tmp/subject.json"))}
if how != "none":
    of = json.load(open("/tmp/run/manifest.json"))["inputs"][0]
    found |= {"events": of["entries"], "lost": of["lost"], "bytes": os.path.getsize("/tmp/run/trace.dat")}
    found["hits"] = {name: n for name, n in of["probes"]["hits"].items() if name.startswith("file_")}
print(json.dumps(found))
END_OF_SCRIPT
  tail -n 1 /tmp/all.jsonl
  grep -h warning "$SAID" || true
}

rm -f /tmp/all.jsonl
uname -r
for ((round = 0; round < times; round++)); do
  for how in none without all pid comm path; do run $how "$round"; done
done
python3 - <<'END_OF_SCRIPT'
import json, statistics
rows = [json.loads(line) for line in open("/tmp/all.jsonl")]
bases = [row["cpu_s"] for row in rows if row["how"] == "none"]
for how in dict.fromkeys(row["how"] for row in rows):
    mine = [row for row in rows if row["how"] == how]
    ratio = statistics.median(row["cpu_s"] / base for row, base in zip(mine, bases))
    middle = {key: statistics.median(row[key] for row in mine) for key in ("cpu_s", "events", "bytes") if key in mine[0]}
    print(how, f"ratio {ratio:.2f}", middle)
END_OF_SCRIPT
cp /tmp/all.jsonl "$OUT/"
