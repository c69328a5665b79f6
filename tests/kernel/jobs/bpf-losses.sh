#!/usr/bin/env bash
# Measures which lines bpftrace loses or tears, by the way in which completions of bios reach the log:
#   bpf-losses.sh [VERSION...]      (0.23 0.27 0.17)
# For each way (WAYS) and each workload it compares the log with the ring buffer of the kernel, which records the same run in an instance
# of its own. Prints a table. The logs are kept in the folder of the results.
# shellcheck disable=SC2016,SC2028  # expanded by another shell or by bpftrace
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../guest-lib.sh
. "$KERNEL_TESTS/guest-lib.sh"
[ $# -gt 0 ] || set -- 0.23 0.27 0.17
work=$(mktemp -d)
tracing=/sys/kernel/tracing
truth=$tracing/instances/truth

# Prints the script for a way in which completions reach the log.
done='@bio[(uint64)args->bio] != 0 && args->bio->__bi_remaining.counter <= 1'
way() {
  case $1 in
    # As in most bpftrace scripts.
    tracepoint)
      sed -n '/^tracepoint:syscalls/,/^}/p' "$PROJECT/bpf/stacks.bt"
      for event in queue:bio_queue issue:rq_issue complete:rq_complete; do
        echo "tracepoint:block:block_${event#*:} {
	printf(\"%llu %d %r rq_${event%:*} dev %d sector %llu\n\", nsecs, tid, buf(comm, 16), args->dev, args->sector);
}"
      done
      ;;
    # stock.bt with completions that are full lines, with thread and name.
    fentry-long)
      sed 's/"%llu 0 - bio_complete bio 0x%llx status %d\\n", nsecs,/"%llu %d %r bio_complete bio 0x%llx status %d\\n", nsecs, tid, buf(comm, 16),/' \
        "$PROJECT/bpf/$2.bt"
      ;;
    # Stored in a ring per CPU and printed in process context: at the next submit, the rest at the end.
    fentry-map) echo 'kfunc:submit_bio /(args->bio->bi_opf & 1) && args->bio->bi_iter.bi_size != 0/ {
	@bio[(uint64)args->bio] = 1;
	printf("%llu %d %r bio_submit id 0 bio 0x%llx\n", nsecs, tid, buf(comm, 16), (uint64)args->bio);
	$n = 0;
	while ($n < 32) {
		$n = $n + 1;
		if (@tail[cpu] < @head[cpu]) {
			$slot = ((uint64)cpu << 12) | (@tail[cpu] & 4095);
			@tail[cpu] = @tail[cpu] + 1;
			printf("%llu %d %r bio_complete bio 0x%llx status %d\n", @when[$slot], tid, buf(comm, 16), @what[$slot], @how[$slot]);
		}
	}
}
kfunc:bio_endio /'"$done"'/ {
	delete(@bio[(uint64)args->bio]);
	$slot = ((uint64)cpu << 12) | (@head[cpu] & 4095);
	@when[$slot] = nsecs;
	@what[$slot] = (uint64)args->bio;
	@how[$slot] = (uint64)args->bio->bi_status;
	@head[cpu] = @head[cpu] + 1;
}
END {
	$cpu = (uint64)0;
	while ($cpu < 2) {
		$n = 0;
		while ($n < 128) {
			$n = $n + 1;
			if (@tail[$cpu] >= @head[$cpu]) { break; }
			$slot = ($cpu << 12) | (@tail[$cpu] & 4095);
			@tail[$cpu] = @tail[$cpu] + 1;
			printf("%llu %d %r bio_complete bio 0x%llx status %d\n", @when[$slot], tid, buf(comm, 16), @what[$slot], @how[$slot]);
		}
		$cpu = $cpu + 1;
	}
	clear(@when); clear(@what); clear(@how); clear(@head); clear(@tail); clear(@bio);
}' ;;
    stock-tracepoints) "$PROJECT/bpf/fit.sh" "$PROJECT/bpf/stock-tracepoints.bt" ;;
    stock) cat "$PROJECT/bpf/$2.bt" ;;
    *)
      echo "no way $1" >&2
      return 1
      ;;
  esac
}

workloads() {
  local name workload options
  while read -r name workload options; do
    # shellcheck disable=SC2086  # word splitting is intended
    "$PROJECT/tests/workloads/$workload.py" "$DATA/$1/$name" $options >"$work/$name.json"
    # The end of the time window, on the clock of the log.
    echo "$name $(awk '{printf "%.0f", $1 * 1e9}' /proc/uptime)" >>"$2"
  done <<<"small4 small_files files=60 threads=4
overwrite overwrite writes=40
sqlite sqlite mode=wal sync=FULL
big big_file mb=16
background background syncs=3 period_ms=500 mb=8"
}

mkdir -p "$truth" "$OUT/losses"
echo >"$tracing/kprobe_events"
echo boot >"$truth/trace_clock"
echo 8192 >"$truth/buffer_size_kb"
# Offsets in struct bio of 6.12.
{
  echo 'p:syncline/submit submit_bio bio=$arg1:x64 opf=+16($arg1):x32 size=+40($arg1):u32'
  echo 'p:syncline/complete bio_endio bio=$arg1:x64 remaining=+28($arg1):s32'
} >"$tracing/kprobe_events"

mount_case ext4 plain
echo "| way | bpftrace | workload | submits | lost submits | completions | lost completions |"
echo "|---|---|---|---|---|---|---|"
for version in "$@"; do
  bpftrace=bpftrace
  [ "$version" = 0.23 ] || bpftrace=/opt/bpftrace-$version/run
  for way in ${WAYS:-tracepoint stock-tracepoints fentry-long fentry-map stock}; do
    name=$way-$version
    stock=stock
    if [ "$version" = 0.17 ]; then stock="stock-0.17"; fi
    way "$way" "$stock" >"$work/$name.bt"
    {
      declare -f workloads
      printf 'work=%q truth=%q DATA=%q PROJECT=%q\n' "$work" "$truth" "$DATA" "$PROJECT"
      echo 'echo >$truth/trace; echo 1 >$truth/events/syncline/enable; for event in issue complete; do echo 1 >$truth/events/block/block_rq_$event/enable; done; sync; sleep 1'
      printf 'workloads %q %q; sync; sleep 1; echo 0 >$truth/events/enable; cat $truth/trace /sys/kernel/tracing/kprobe_profile >%q\n' "$name" "$work/$name.windows" "$work/$name.truth"
      printf 'log=%q\n' "$work/$name.log"
      echo 'size=-1; for ((i = 0; i < 100; i++)); do now=$(stat -c %s "$log"); [ "$now" != "$size" ] || break; size=$now; sleep 3; done'
    } >"$work/command"
    "$bpftrace" -q "$work/$name.bt" 0 '' 0 -c "/bin/bash $work/command" >"$work/$name.log" 2>"$work/$name.err" || { tail -n 5 "$work/$name.err"; continue; }
    python3 - "$way" "$version" "$work/$name" <<'P'
import re, sys

way, version, prefix = sys.argv[1:]
windows = [(n, int(t)) for n, t in (line.split() for line in open(prefix + ".windows"))]
in_log = re.compile(rb"(\d+) (\d+) (.*) (bio_submit id \d+ bio (0x[0-9a-f]+)|bio_complete bio (0x[0-9a-f]+)( status \d+)?|rq_\w+ dev \d+ sector \d+)( dev \d+,\d+ sector \d+ bytes \d+( opf 0x[0-9a-f]+)?)?$")
other = re.compile(rb"#|Attaching|Attached|TIME|@|\s|$|[0-9]+ [0-9]+ .{1,64} (\w*sync\w*( ret .*)?|bio_add_folio .*|start .*|exit .*)$|\d+ \d+ \d+:\d+ ")

def window(ts):
    return next((n for n, until in windows if ts <= until), None)

rows = {n: dict(submits=0, completes=0, log_submits=0, lost=0, doubles=0, recorded=0, torn=0) for n, _ in windows}
# The probes of the ring buffer miss events inside another probe, and count them.
flying, missed = set(), 0
with open(prefix + ".truth") as lines:
    for line in lines:
        if profile := re.match(r"  (submit|complete) +\d+ +(\d+)$", line):
            missed += int(profile[2])
        found = re.search(r" (\d+\.\d+): (submit|complete|block_rq_issue|block_rq_complete): (.*)", line)
        if not found:
            continue
        ts = round(float(found[1]) * 1e9)
        fields = dict(re.findall(r"(\w+)=(\w+)", found[3]))
        row = rows.get(window(ts))
        if found[2] == "submit" and int(fields["opf"], 16) & 1 and int(fields["size"]):
            flying.add(fields["bio"])
            if row and way != "tracepoint":
                row["submits"] += 1
        elif found[2] == "complete" and way != "tracepoint" and fields["bio"] in flying and int(fields["remaining"]) <= 1:
            flying.discard(fields["bio"])
            if row:
                row["completes"] += 1
        elif found[2].startswith("block_") and way == "tracepoint" and row:
            row["completes" if found[2].endswith("complete") else "submits"] += 1
reported = 0
for line in open(prefix + ".log", "rb"):
    found = in_log.match(line.rstrip(b"\n"))
    if found:
        row = rows.get(window(int(found[1])))
        if row:
            if found[4].startswith((b"bio_submit", b"rq_issue")):
                row["log_submits"] += 1
            elif found[4].startswith((b"bio_complete", b"rq_complete")):
                row["recorded"] += 1
    elif line.startswith(b"Lost "):
        reported += int(line.split()[1])
    elif not other.match(line):
        last = rows[windows[0][0]]
        last["torn"] += 1
        if last["torn"] < 4:
            print("  torn:", line[:150], file=sys.stderr)
for name, row in rows.items():
    # A submitted bio is completed, even if the probe of the ring buffer missed it.
    there = max(row["submits"], row["completes"]) if way != "tracepoint" else row["completes"]
    print(f"| {way} | {version} | {name} | {row['submits']} | {row['submits'] - row['log_submits']} | {there} | {there - row['recorded']} |")
print(f"| {way} | {version} | torn lines: {sum(r['torn'] for r in rows.values())}, reported as lost: {reported}, missed by the ring buffer's probes since boot: {missed} |")
P
    for kind in bt log truth windows; do gzip -c "$work/$name.$kind" >"$OUT/losses/$name.$kind.gz"; done
  done
done
