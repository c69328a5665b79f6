#!/usr/bin/env bash
# What the probes of waits of writes cost: [xTIMES]. Runs each workload without a recorder, recorded without these probes, and recorded with
# them, alternately. A row for each workload: the ratios to the run without a recorder of the same round, and that of the two recordings
# (median, smallest and largest), and how many events of these probes there were.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
# shellcheck source-path=SCRIPTDIR source=../record-lib.sh
. "$KERNEL_TESTS/record-lib.sh"

times=5
if [[ ${1:-} =~ ^x([0-9]+)$ ]]; then times=${BASH_REMATCH[1]}; fi
# Without bpftrace: it attaches for half a minute on an emulated CPU, and has its own cost.
mount -o bind /dev/null /usr/bin/bpftrace
table=$PROJECT/converter/syncline/record/probes.toml
probes=(inode_lock inode_lock_end journal_handle journal_handle_end journal_space journal_space_end journal_buffer journal_buffer_end write_pause_end)
# The table without the entries of these probes.
python3 - "$table" "${probes[@]}" >/tmp/without.toml <<'END_OF_SCRIPT'
import re, sys
text, names = open(sys.argv[1]).read(), sys.argv[2:]
head, *entries = re.split(r"(?=^\[\[probe\]\]\n)", text, flags=re.M)
kept = [e for e in entries if re.search(r'^event = "(\w+)"', e, re.M)[1] not in names]
assert len(entries) - len(kept) == len(names)
print(head + "".join(kept))
END_OF_SCRIPT

# Threads that write to one file, so that nearly each write waits for its lock. Nothing is synced.
cat >/tmp/one_lock.py <<'END_OF_SCRIPT'
import json, os, sys, threading, time
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
data = b"x" * 65536
def work(k):
    for i in range(400):
        os.pwrite(fd, data, (k * 400 + i % 40) * len(data))
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
begun = time.monotonic()
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps({"wall_ms": (time.monotonic() - begun) * 1000}))
END_OF_SCRIPT

mount_case ext4 null-fast
run() { # WORKLOAD HOW
  local -a command
  if [ "$1" = one-lock ]; then
    command=(python3 /tmp/one_lock.py "$DATA/one")
  else
    command=("$PROJECT/tests/workloads/small_files.py" "$DATA/small" files=640 threads=16)
  fi
  rm -rf "$DATA/small" "$DATA/one"
  sync
  case $2 in
    none) "${command[@]}" >/tmp/truth.json ;;
    without)
      mount --bind /tmp/without.toml "$table"
      syncline record --force --route dynamic-events -o /tmp/run -- "${command[@]}" >/tmp/truth.json 2>"$SAID" || cat "$SAID"
      umount "$table"
      ;;
    with) syncline record --force --route dynamic-events -o /tmp/run -- "${command[@]}" >/tmp/truth.json 2>"$SAID" || cat "$SAID" ;;
  esac
  python3 - "$1" "$2" "${probes[@]}" >>/tmp/results <<'END_OF_SCRIPT'
import json, re, subprocess, sys
workload, how, *names = sys.argv[1:]
found = {"workload": workload, "how": how, "wall_ms": json.load(open("/tmp/truth.json"))["wall_ms"]}
if how != "none":
    manifest = json.load(open("/tmp/run/manifest.json"))["inputs"][0]
    found |= {"entries": manifest["entries"], "lost": manifest["lost"]}
if how == "with":
    text = subprocess.run(["trace-cmd", "report", "-q", "/tmp/run/trace.dat"], capture_output=True, text=True, errors="replace").stdout
    found["events"] = {name: len(re.findall(rf": +{name}: ", text)) for name in names}
print(json.dumps(found), flush=True)
END_OF_SCRIPT
  tail -n 1 /tmp/results
}

uname -r
for ((round = 1; round <= times; round++)); do
  for workload in small-files one-lock; do
    for how in none without with; do run "$workload" "$how"; done
  done
done
cp /tmp/results "$OUT/results.jsonl"
python3 - <<'END_OF_SCRIPT'
import json, statistics
rows = [json.loads(line) for line in open("/tmp/results")]
def shown(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
for workload in dict.fromkeys(row["workload"] for row in rows):
    ms = {how: [r["wall_ms"] for r in rows if (r["workload"], r["how"]) == (workload, how)] for how in ("none", "without", "with")}
    last = [r for r in rows if (r["workload"], r["how"]) == (workload, "with")][-1]
    pairs = {f"{a}/{b}": shown([x / y for x, y in zip(ms[a], ms[b])]) for a, b in (("without", "none"), ("with", "none"), ("with", "without"))}
    print(workload, f"none {statistics.median(ms['none']):.0f} ms", pairs, "events", last["events"], "of", last["entries"], "lost", last["lost"])
END_OF_SCRIPT
