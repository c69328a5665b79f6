"""A recorder that ends before it was asked to: what it did not see is a loss, and nothing of it stays behind."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syncline.record import ring_buffer, strace, tracefs, tracer
from syncline.record.log_copy import LogCopy
from syncline.record.recorders import Recorders

BIN = Path(sys.executable).parent
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
SYNCS = """
import os, signal, time
file = os.open("x", os.O_CREAT | os.O_WRONLY)
for number in range({syncs}):
    os.write(file, b"x")
    os.fsync(file)
    {after}
open("done", "w").write("x")
"""


def record(folder: Path, *command: object, before: str = "") -> subprocess.CompletedProcess[str]:
    arguments = [str(BIN / "syncline"), "record", "-o", "run", "--route", "strace", "--", *command]
    return subprocess.run(
        list(map(str, arguments)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run/manifest.json").read_text())
    return found


def losses(run: Path) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [BIN / "syncline", "report", run, "losses", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {row["reason"]: row for row in json.loads(done.stdout)["rows"]}


def wait_for(what: Callable[[], object]) -> bool:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.05)
    return False


@needs_strace
def test_a_strace_that_is_killed_is_a_loss_and_not_the_end_of_the_command(tmp_path: Path) -> None:
    """The program kills its parent, strace, after the 30th of 50 syncs, and continues."""
    kill = "if number == 29: os.kill(os.getppid(), signal.SIGKILL); time.sleep(0.3)"
    program = SYNCS.format(syncs=50, after=kill)
    done = record(tmp_path, sys.executable, "-c", program)
    assert done.returncode == 3, done.stderr
    assert "strace was killed by SIGKILL" in done.stderr
    assert "the command runs on, and is no longer recorded" in done.stderr
    assert "exited with" not in done.stderr
    found = manifest(tmp_path)
    assert found["exit_code"] is None
    assert found["ended_by"] == "failure: strace was killed by SIGKILL"
    began, ended = (found[end]["clocks_ns"]["boottime"] for end in ("before", "after"))
    assert began < found["inputs"][0]["known_until_ns"] < ended
    # The log by itself shows it as well as the run directory.
    for run in (tmp_path / "run", tmp_path / "run/strace.log"):
        loss = losses(run)["recorder_ended"]
        assert (loss["severity"], loss["count"]) == ("loss", 1)
        assert loss["first_ts_ns"] == found["inputs"][0]["known_until_ns"]
    # The low-level log, which has no manifest, keeps it.
    low = tmp_path / "low.events.jsonl"
    subprocess.run([BIN / "syncline", "convert", "-q", tmp_path / "run", "-o", low], check=True)
    assert losses(low)["cut_off"]["count"] == 1
    said = subprocess.run(
        [BIN / "syncline", "report", tmp_path / "run"], capture_output=True, text=True, check=True
    )
    assert "recorder_ended" in said.stdout + said.stderr
    assert wait_for((tmp_path / "done").exists)


@needs_strace
def test_a_strace_that_is_killed_before_the_first_sync_says_so(
    tmp_path: Path,
) -> None:
    done = record(tmp_path, "sh", "-c", "kill -9 $PPID; sleep 0.3")
    assert done.returncode == 3, done.stderr
    command = [BIN / "syncline", "report", tmp_path / "run"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "recorder_ended" in said.stdout
    assert "no event of a sync" in said.stdout


@needs_strace
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("kill -9 $$", -9),
        ("kill -TERM $$", -15),
        ("exit 3", 3),
        # strace follows a child that outlives the command.
        ("(sleep 0.4; exit 7) & exit 5", 5),
    ],
)
def test_the_end_of_the_command_is_no_end_of_the_recorder(
    command: str, code: int, tmp_path: Path
) -> None:
    done = record(tmp_path, "sh", "-c", command)
    assert done.returncode == 0, done.stderr
    found = manifest(tmp_path)
    assert (found["ended_by"], found["exit_code"]) == ("command", code)
    assert "known_until_ns" not in found["inputs"][0]
    assert not list((tmp_path / "run").glob(".*"))


@needs_strace
@pytest.mark.parametrize(
    ("text", "code", "is_early"),
    [
        ("7 1.5 execve() = 0\n7 2.5 +++ exited with 3 +++\n", 3, False),
        # strace pads short ids.
        ("7     1.5 execve() = 0\n7     2.5 +++ exited with 3 +++\n", 3, False),
        ("7 1.5 execve() = 0\n8 2.0 +++ exited with 0 +++\n", 0, True),
        ("7 1.5 execve() = 0\n7 2.5 +++ exited with 3 +++\n", 1, True),
        ("7 1.5 execve() = 0\n7 2.5 +++ exited with 3 +++\n8 2.6 fsync(3) = 0\n", 3, True),
        ("7 1.5 execve() = 0\n7 2.5 +++ killed by SIGSEGV (core dumped) +++\n", -11, False),
        ("7 1.5 execve() = 0\n7 2.5 +++ killed by SIGSEGV +++\n", -9, True),
        ("7 1.5 execve() = 0\n7 2.5 +++ exi", 3, True),
        ("", 1, True),
    ],
)
def test_the_log_says_whether_strace_saw_the_end(
    text: str, code: int, is_early: bool, tmp_path: Path
) -> None:
    """Out of memory, strace exits with 1, which its command may do too."""
    log = tmp_path / "log"
    log.write_text(text)
    made = strace.Strace.__new__(strace.Strace)
    made.log, made._is_attached = log, False
    made.process = subprocess.Popen(["true"])
    made.process.wait()
    made.process.returncode = code
    assert (made.early_end() is not None) == is_early


@needs_strace
def test_a_recorder_that_is_killed_takes_strace_with_it_and_not_the_command(
    tmp_path: Path,
) -> None:
    program = SYNCS.format(syncs=20, after="time.sleep(0.1)")
    running = subprocess.Popen(
        [BIN / "syncline", "record", "-o", "run", "--route", "strace", "--", sys.executable, "-c", program],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    log = tmp_path / "run/strace.log"
    assert wait_for(lambda: log.exists() and b"fsync" in log.read_bytes())
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    running.kill()
    running.wait()
    assert wait_for(lambda: not any(is_alive(int(child)) for child in children))
    assert not (tmp_path / "done").exists()
    assert wait_for((tmp_path / "done").exists)


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


@needs_strace
@needs_root
@pytest.mark.parametrize("seconds", [0.5, 8])
def test_a_disk_that_is_full_ends_the_recording(seconds: float, tmp_path: Path) -> None:
    """The program fills the disk of the recording after 20 syncs, for half a second or for longer than its other syncs take, 4 s."""
    fill = (
        "if number == 20:\n        import ctypes, threading\n"
        "        big = os.open('../disk/big', os.O_CREAT | os.O_WRONLY)\n"
        "        try:\n            while True: os.write(big, bytes(4096))\n        except OSError: pass\n"
        f"        threading.Timer({seconds}, lambda: os.ftruncate(big, 0)).start()\n"
        "    time.sleep(0.02)"
    )
    (tmp_path / "work").mkdir()
    program = SYNCS.format(syncs=200, after=fill)
    script = (
        'mkdir "$1/disk" && mount -t tmpfs -o size=2m none "$1/disk" && cd "$1/work" || exit 99\n'
        'timeout 60 "$2" record -o ../disk/run --route strace -- "$3" -c "$4"; code=$?\n'
        'cp -r ../disk/run "$1/run"; exit $code'
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", tmp_path, BIN / "syncline", sys.executable, program],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )  # fmt: skip
    if done.returncode in (1, 99):
        pytest.skip("cannot mount here")
    if done.returncode == 0 and seconds < 1:
        # The disk had room again before the recorder had to write.
        assert (tmp_path / "run/strace.log").read_bytes().count(b" fsync(") == 200
        assert "recorder_ended" not in losses(tmp_path / "run")
        return
    assert done.returncode == 3, done.stderr
    assert "the recording ended early: strace.log: no space left on device" in done.stderr
    log = (tmp_path / "run/strace.log").read_bytes()
    assert log.endswith(b"\n")
    assert 20 <= log.count(b" fsync(") < 200
    found = losses(tmp_path / "run")
    assert found["recorder_ended"]["count"] == 1
    assert "unparsed_line" not in found


@pytest.mark.parametrize("size", [1000, 5000])
def test_a_log_that_cannot_grow_ends_with_a_whole_line(size: int, tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk."""
    source, sink = os.pipe()
    lines = [b"%d %s\n" % (number, b"x" * 90) for number in range(100)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        copy = LogCopy(source, tmp_path / "log")
        os.write(sink, b"".join(lines))
        assert wait_for(lambda: copy.failed is not None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    # There is room again, but what follows a hole is not kept.
    os.write(sink, b"later\n")
    os.close(sink)
    copy.finish()
    kept = (tmp_path / "log").read_bytes()
    assert kept == b"".join(lines)[: len(kept)]
    assert kept.endswith(b"\n")
    assert size - 100 < len(kept) <= size


def test_pages_that_did_not_fit_are_written_when_there_is_room(tmp_path: Path) -> None:
    pages = b"".join(bytes([number]) * 4096 for number in range(10))
    (tmp_path / "source").write_bytes(pages)
    reader = ring_buffer._Reader(tmp_path / "source", tmp_path / "pages")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            reader.fetch()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    reader.drain()
    assert (tmp_path / "pages").read_bytes() == pages
    reader.close()


@pytest.mark.parametrize(
    ("script", "words"),
    [("kill -9 $$", "x was killed by SIGKILL"), ("exit 1", "x exited with 1"), ("exit 0", "x exited with 0")],
)  # fmt: skip
def test_a_tracer_that_ends_early_is_a_failure_however_it_ends(
    script: str, words: str, tmp_path: Path
) -> None:
    log = tmp_path / "events.log"
    program = f"echo '1000 7 wl fsync'; echo '2000 7 wl fsync_exit'; {script}"
    recorders = Recorders(tracers=[(tracer.Tracer("x", ["sh", "-c", program], log), "bpftrace")])
    assert wait_for(lambda: recorders.failure() == words)
    recorders.stop(lambda _: None)
    (entry,) = recorders.inputs
    # It was not seen waiting for events, so nothing says that it had read any buffer to its end.
    assert (entry["failure"], entry["known_until_ns"]) == (words, recorders._began)
    assert log.read_text().count("\n") == 2


@pytest.mark.parametrize("what", ["waits", "busy"])
def test_a_killed_tracer_is_certain_until_it_last_waited_for_events(
    what: str, tmp_path: Path
) -> None:
    """It reads the buffers of the CPUs one after the other, so its last event says nothing of other CPUs."""
    now = "time.clock_gettime_ns(time.CLOCK_BOOTTIME)"
    program = (
        "import select, time\n"
        f"print({now}, 7, 'wl', 'fsync', flush=True)\n"
        f"{'select.epoll().poll(0.6)' if what == 'waits' else ''}\n"
        f"until = time.monotonic() + 0.6\n"
        "while time.monotonic() < until: pass\n"
        f"print({now}, 7, 'wl', 'fsync_exit', flush=True)\n"
        "import os; os.kill(os.getpid(), 9)\n"
    )
    made = tracer.Tracer("x", [sys.executable, "-c", program], tmp_path / "events.log")
    recorders = Recorders(tracers=[(made, "bpftrace")])
    recorders.begin()
    assert wait_for(recorders.failure)
    recorders.stop(lambda _: None)
    until = recorders.inputs[0]["known_until_ns"]
    first, last = (int(line.split()[0]) for line in made.log.read_text().splitlines())
    if what == "waits":
        # It waits for 0.6 s after the first event, and works for 0.6 s before the last one.
        assert first + 200_000_000 < until < last - 500_000_000
    else:
        assert until == recorders._began


def test_events_after_the_certain_time_are_not_used(tmp_path: Path) -> None:
    """The recorder died while it read the buffers: a bio of the second sync is in one that it had not read."""
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(Path(__file__).parent / "data/thesis/small4.log", run / "events.log")
    all_of_it = _syncs(run / "events.log")
    ends = [int(row["ts_ns"]) + int(row["dur_ns"]) for row in all_of_it]
    # Each of four threads is in a sync when the fifth one has ended.
    until = sorted(ends)[4]
    entry = {"file": "events.log", "source": "bpftrace", "failure": "x", "known_until_ns": until}
    (run / "manifest.json").write_text(json.dumps({"schema_version": 1, "inputs": [entry]}))
    wanted = [row for row, end in zip(all_of_it, ends, strict=True) if end <= until]
    found = _syncs(run)
    # A bio of the last of the five completes after it.
    complete = [row for row in found if not row["incomplete"]]
    assert complete == [row for row in wanted if row["tid"] != "640"]
    assert len(complete) == 4
    assert all(int(row["ts_ns"]) <= until for row in found)
    assert len(wanted) == 5 < len(found)
    (loss,) = [one for name, one in losses(run).items() if name == "recorder_ended"]
    assert loss["first_ts_ns"] == until
    # The low-level log holds them no more: it has no manifest.
    subprocess.run([BIN / "syncline", "convert", "-q", run, "-o", tmp_path / "low.events.jsonl"], check=True)  # fmt: skip
    again = _syncs(tmp_path / "low.events.jsonl")
    assert [row for row in again if not row["incomplete"]] == complete


def _syncs(path: Path) -> list[dict[str, str]]:
    done = subprocess.run(
        [BIN / "syncline", "convert", "-q", path, "-o", "-", "--to", "csv"],
        capture_output=True,
        text=True,
        check=True,
    )
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_what_strace_says_is_known_until_its_last_line_was_written(tmp_path: Path) -> None:
    made = object.__new__(strace.Strace)
    made.log = tmp_path / "strace.log"
    # The first call ended last; the last line is torn.
    made.log.write_text(
        "7 100.000000 fsync(3</a>) = 0 <2.500000>\n"
        "8 101.000000 fsync(4</b>) = 0 <0.000100>\n"
        "8 109.000000 fsy"
    )
    assert made.last_time() == 102_500_000_000


@pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_tracer_that_is_stopped_is_no_failure(inherited: signal.Handlers, tmp_path: Path) -> None:
    # It has no probes, so it counts as drained when it is idle.
    program = ["sh", "-c", "trap 'echo last; kill $!; exit 0' INT; echo ready; sleep 600 & wait"]
    before = signal.signal(signal.SIGINT, inherited)
    made = tracer.Tracer("x", program, tmp_path / "events.log")
    signal.signal(signal.SIGINT, before)
    recorders = Recorders(tracers=[(made, "bpftrace")])
    # Before its trap is set, the interrupt would end it.
    while not made.log.read_text():
        time.sleep(0.02)
    recorders.stop(lambda _: None)
    assert recorders.failure() is None
    assert "failure" not in recorders.inputs[0]
    assert made.log.read_text() == "ready\nlast\n"


def test_what_a_killed_recorder_leaves_in_the_kernel_is_removed(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from syncline.record import guard, tracefs\n"
        "mounted = Path(sys.argv[1])\nkept = guard.Guard(mounted)\n"
        "pid, start = tracefs.owner()\n"
        "(mounted / 'instances' / f'syncline-{pid}-{start}').mkdir(parents=True)\n"
        "print(flush=True)\nsys.stdin.read(1)\n"
        "if sys.argv[2] == 'end': kept.end()\n"
        "else: os.kill(pid, signal.SIGKILL)\n"
    )
    for how in ("kill", "end"):
        mounted = tmp_path / how
        running = subprocess.Popen(
            [sys.executable, "-c", program, mounted, how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert running.stdout is not None
        assert running.stdout.read(1)
        (made,) = (mounted / "instances").iterdir()
        assert tracefs.remove_dead_instances(mounted) == []
        running.communicate(b"x")
        assert running.returncode == (-signal.SIGKILL if how == "kill" else 0)
        # The recorder itself removes what is its own, unless it was killed.
        if how == "kill":
            assert wait_for(lambda: not made.exists())  # noqa: B023
        else:
            time.sleep(0.3)
            assert made.exists()
