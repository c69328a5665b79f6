"""`syncline record` as far as it needs no kernel: routes, messages, trace.dat. tests/kernel has the rest."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from syncline import _core
from syncline.inputs import Reading
from syncline.record import (
    bpftrace,
    machine,
    processes,
    ring_buffer,
    routes,
    session,
    trace_dat,
    tracefs,
    tracer,
)
from syncline.record import request as requests
from syncline.record.errors import NoRouteError, RecordError

from tests import coretools

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
QUERY = "SELECT op, path, bytes, ts_ns FROM syncline_sync ORDER BY ts_ns"

HEADER_PAGE = (
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
)
EXIT_FORMAT = (
    "name: sys_exit_fsync\nID: 77\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:long ret;\toffset:8;\tsize:8;\tsigned:1;\n\n"
    'print fmt: "0x%lx", REC->ret\n'
)


def page(time_ns: int, pid: int, ret: int) -> bytes:
    record = struct.pack("<HHiq", 77, 0, pid, ret)
    data = struct.pack("<I", len(record) // 4 | 5 << 5) + record
    return (struct.pack("<QQ", time_ns, len(data)) + data).ljust(4096, b"\0")


def test_pages_become_a_trace_dat(tmp_path: Path) -> None:
    pages = [tmp_path / f"cpu{i}" for i in range(3)]
    pages[0].write_bytes(page(1000, 7, 0) + page(9000, 7, -5))
    pages[1].write_bytes(b"")
    pages[2].write_bytes(page(5000, 8, 3))
    out = tmp_path / "trace.dat"
    trace_dat.write(
        out,
        header_page=HEADER_PAGE,
        header_event="",
        ftrace_formats=[],
        formats={"syscalls": [EXIT_FORMAT]},
        comms={7: "a b", 8: "c"},
        clock="local global [boot]\n",
        uname="Linux host 6.12 x86_64",
        version="syncline test",
        stats=["CPU: 0\noverrun: 0"],
        page_bytes=4096,
        pages=pages,
    )
    events = tmp_path / "out.events.jsonl"
    _core.convert([str(out)], str(events))
    rows = [json.loads(line) for line in events.read_text().splitlines()]
    # Each event is 5 ns after the start of its page.
    assert [(row["ts_ns"], row["tid"], row["comm"], row["ret"]) for row in rows] == [
        (1005, 7, "a b", 0),
        (5005, 8, "c", 3),
        (9005, 7, "a b", -5),
    ]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.skipif(shutil.which("trace-cmd") is None, reason="trace-cmd is not installed")
def test_trace_cmd_reads_our_file(tmp_path: Path) -> None:
    test_pages_become_a_trace_dat(tmp_path)
    done = subprocess.run(
        ["trace-cmd", "report", "-t", str(tmp_path / "trace.dat")],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines() if "sys_exit_fsync" in line]
    # -t: whole nanoseconds.
    assert [line[-3:] for line in lines] == [
        ["1005:", "sys_exit_fsync:", "0x0"],
        ["5005:", "sys_exit_fsync:", "0x3"],
        ["9005:", "sys_exit_fsync:", "0xfffffffffffffffb"],
    ]


def record(*arguments: object, path: str | None = None) -> subprocess.CompletedProcess[str]:
    env = os.environ | ({"PATH": path} if path is not None else {})
    return subprocess.run(
        [str(BIN / "syncline"), "record", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pid", "1", "--", "true"], "both a command and --pid are given"),
        (["--route", "strace"], "strace needs a command or --pid"),
        (["--buffer", "12"], "is not a size"),
        (["--device", "/nowhere/at/all", "--", "true"], "No such file"),
        (["--for", "soon", "--", "true"], "is not a duration"),
        (["--reads", "some", "--", "true"], "not one of 'all', 'none'"),
        (["--route", "bpftrace", "--files", "--", "true"], "does not record operations on files"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = record("-o", tmp_path / "run", *arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


def test_strace_is_no_route_for_a_whole_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "which", lambda _: "/usr/bin/strace")
    with pytest.raises(RecordError, match="one command or one process") as raised:
        routes.choose("strace", "machine")
    assert "--pid PID" in raised.value.message
    assert routes.choose("strace", "command").name == "strace"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may attach strace")
@pytest.mark.parametrize("writes", ["", "echo 1 fsync"])
def test_a_strace_that_cannot_attach_leaves_no_folder(writes: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "strace"
    # It creates its log, as strace does, and fails.
    fake.write_text(
        "#!/bin/sh\nwhile [ $1 != -o ]; do shift; done\n"
        f": > $2\n{writes + ' >> $2' if writes else ''}\nexit 1\n"
    )
    fake.chmod(0o755)
    path = f"{fake.parent}:{os.environ['PATH']}"
    run = tmp_path / "run"
    done = record("-o", run, "--route", "strace", "--pid", os.getpid(), path=path)
    assert run.exists() == bool(writes)
    assert done.returncode == 3, done.stderr
    assert ("cannot trace process" in done.stderr) == (not writes)
    # It has recorded something, and has ended before the process.
    assert ("strace exited with 1" in done.stderr) == bool(writes)


def test_a_folder_that_is_not_empty_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    for force in ([], ["--force"]):
        done = record("-o", tmp_path, *force, "--route", "strace", "--", "true")
        if "strace is not installed" in done.stderr:
            pytest.skip("strace is not installed")
        assert done.returncode == 3
        assert "is not empty" in done.stderr
        assert (tmp_path / "mine").read_text() == "precious"


def test_without_a_route_each_reason_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(_root: Path, _target: routes.Target) -> routes.Route:
        raise RecordError("tracing the kernel needs root", "sudo syncline record ...")

    def cannot(_root: Path, _target: routes.Target) -> routes.Route:
        raise RecordError("no\x1b strace")

    found = dict.fromkeys(routes.NAMES, lacks) | {"strace": cannot}
    monkeypatch.setattr(routes, "_ROUTES", found)
    with pytest.raises(NoRouteError) as raised:
        routes.choose(None, "machine")
    assert raised.value.message.splitlines() == [
        "cannot record on this machine",
        "  ring-buffer, dynamic-events, bpftrace: tracing the kernel needs root (sudo syncline record ...)",
        "  strace: no\\x1b strace",
    ]


def test_without_a_route_the_message_names_each_reason(tmp_path: Path) -> None:
    if tracefs.find() is not None and os.geteuid() == 0:
        pytest.skip("this machine can record")
    # PATH has no tracer, and strace is not in the sbin directories.
    done = record("-o", tmp_path / "run", "--", shutil.which("true"), path=str(tmp_path))
    assert done.returncode == 3
    assert "cannot record on this machine" in done.stderr
    for name in routes.NAMES:
        assert name in done.stderr
    assert "syncline doctor" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_container_is_told_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes.os, "geteuid", lambda: 0)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for of_container in (False, True):
        if of_container:
            (tmp_path / ".dockerenv").touch()
        with pytest.raises(RecordError) as raised:
            routes.choose("dynamic-events", "machine", root=tmp_path)
        assert ("--privileged" in raised.value.message) == of_container
        assert ("mount -t tracefs" in raised.value.message) != of_container


def test_a_route_that_fails_late_leaves_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last route starts, and fails: the message still has a line for each, and the exit code is still that of no route."""

    def start(self: object, route: object, folder: Path, *_: object, **__: object) -> None:
        (folder / "events.log.err").write_text("cannot attach")
        raise RecordError("cannot attach", "see `syncline doctor`")

    def cannot(_root: Path, _target: routes.Target) -> routes.Route:
        raise RecordError("not here")

    monkeypatch.setattr(session.Recorders, "start", start)
    found = dict.fromkeys(routes.NAMES, cannot)
    found["bpftrace"] = lambda *_: routes.Route("bpftrace", "x")
    monkeypatch.setattr(routes, "_ROUTES", found)
    said: list[str] = []
    request = requests.Request(tmp_path / "run", ["true"])
    with pytest.raises(NoRouteError) as raised, session.recorded(request, said.append):
        pass
    assert raised.value.message.splitlines()[1:] == [
        "  ring-buffer, dynamic-events, strace: not here",
        "  bpftrace: cannot attach (see `syncline doctor`)",
    ]
    # The folder is gone, so nobody is sent to a file in it.
    assert not (tmp_path / "run").exists()
    assert "events.log.err" not in "".join([*said, raised.value.message])


@pytest.mark.parametrize("messages", [None, "", "cannot attach"])
def test_a_requested_route_that_does_not_start_leaves_only_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: str | None
) -> None:
    def start(self: object, route: object, folder: Path, *_: object, **__: object) -> None:
        if messages is not None:
            (folder / "events.log.err").write_text(messages)
        raise RecordError("cannot set buffer_size_kb", "use a smaller buffer")

    monkeypatch.setattr(session.Recorders, "start", start)
    monkeypatch.setattr(routes, "choose", lambda *_: routes.Route("dynamic-events", "x"))
    request = requests.Request(tmp_path / "run", ["true"], route="dynamic-events")
    with (
        pytest.raises(RecordError, match="cannot set") as raised,
        session.recorded(request, lambda _: None),
    ):
        pass
    assert ("events.log.err; use a smaller buffer" in raised.value.hint) == bool(messages)
    left = [path.name for path in tmp_path.glob("run/*")]
    assert left == (["events.log.err"] if messages else [])
    assert (tmp_path / "run").exists() == bool(messages)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
class TestStrace:
    """The route that needs no privileges."""

    def test_a_command_is_recorded(self, tmp_path: Path) -> None:
        run = tmp_path / "run"
        program = (
            "import os; f = os.open('x', os.O_CREAT | os.O_WRONLY); os.fsync(f); os.fdatasync(f)"
        )
        done = subprocess.run(
            [
                BIN / "syncline",
                "record",
                "--route",
                "strace",
                "-o",
                run,
                "--",
                sys.executable,
                "-c",
                program,
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        if "ptrace" in done.stderr or "ptrace" in (run / "strace.log").read_text():
            pytest.skip("strace may not trace here")
        assert done.returncode == 0, done.stderr
        log = (run / "strace.log").read_text()
        assert log.count(" fsync(") == log.count(" fdatasync(") == 1
        manifest = json.loads((run / "manifest.json").read_text())
        assert manifest["route"] == "strace"
        assert manifest["exit_code"] == 0
        assert manifest["inputs"][0]["file"] == "strace.log"
        assert (run / "mountinfo").read_text() == machine.mounts()
        assert "it cannot see" in done.stderr
        query = subprocess.run(
            [BIN / "syncline", "query", run, QUERY, "--format", "json"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert query.returncode == 0, query.stderr
        # The recorder has said what it cannot see, and the report of losses says it again.
        assert "call_only" not in query.stderr
        losses = [BIN / "syncline", "report", run, "losses"]
        shown = subprocess.run(losses, capture_output=True, text=True, check=True)
        assert "call_only" in shown.stdout
        rows = json.loads(query.stdout)
        assert [(row["op"], row["path"], row["bytes"]) for row in rows] == [
            ("fsync", str(tmp_path / "x"), None),
            ("fdatasync", str(tmp_path / "x"), None),
        ]
        # Times are on the clock that the other recorders use.
        started, ended = (manifest[end]["clocks_ns"]["boottime"] for end in ("before", "after"))
        assert all(started < row["ts_ns"] < ended for row in rows)

    def test_the_exit_code_of_the_command_is_reported(self, tmp_path: Path) -> None:
        done = record("-o", tmp_path / "run", "--route", "strace", "--", "sh", "-c", "exit 3")
        assert done.returncode == 0
        assert "exited with 3" in done.stderr

    def test_a_time_limit_ends_the_recording(self, tmp_path: Path) -> None:
        started = time.monotonic()
        done = record(
            "-o", tmp_path / "run", "--route", "strace", "--for", "500ms", "--", "sleep", "30"
        )
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - started < 20
        assert json.loads((tmp_path / "run/manifest.json").read_text())["ended_by"] == "time"


def test_a_process_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    done = record("-o", tmp_path / "run", "--pid", child.pid)
    assert done.returncode == 3
    assert f"there is no process {child.pid} to record" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_broken_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"inputs": 5}')
    done = subprocess.run(
        [BIN / "syncline", "report", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "manifest.json is damaged" in done.stderr


def test_a_run_directory_is_read_like_its_logs(tmp_path: Path) -> None:
    log = ROOT / "tests/data/thesis/small4.log"
    shutil.copy(log, tmp_path / "events.log")
    (tmp_path / "manifest.json").write_text(
        json.dumps({"inputs": [{"file": "events.log", "source": "bpftrace"}]})
    )
    outputs = [
        subprocess.run(
            [BIN / "syncline", "report", "--format", "csv", path, "files"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for path in (log, tmp_path)
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 101


def test_each_version_of_bpftrace_has_its_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.bt", "a-0.17.bt", "stacks.bt"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(bpftrace, "bpf_root", lambda: tmp_path)
    assert bpftrace.script("a", (0, 17)).name == "a-0.17.bt"
    assert bpftrace.script("a", (0, 23)).name == "a.bt"
    assert bpftrace.script("a", (1, 0)).name == "a.bt"
    assert bpftrace.script("stacks", (0, 17)).name == "stacks.bt"


def test_instances_of_killed_recorders_are_removed(tmp_path: Path) -> None:
    instances = tmp_path / "instances"
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    mine = instances / f"syncline-{os.getpid()}-{stat}"
    dead = [f"syncline-{os.getpid()}-1", f"syncline-{os.getpid()}-1-threads"]
    kept = [mine.name, f"{mine.name}-threads", "other-1-1"]
    for name in (*dead, *kept):
        (instances / name).mkdir(parents=True)
    assert sorted(tracefs.remove_dead_instances(tmp_path)) == dead
    assert sorted(path.name for path in instances.iterdir()) == sorted(kept)


def test_the_pages_of_many_cpus_are_in_the_order_of_the_cpus() -> None:
    files = [Path(f"per_cpu/cpu{cpu}/trace_pipe_raw") for cpu in range(12)]
    by_name = sorted(files, key=str)
    assert sorted(by_name, key=ring_buffer._cpu) == files


def test_a_second_buffer_is_read_with_the_first(tmp_path: Path) -> None:
    pages = {name: [tmp_path / f"{name}{cpu}" for cpu in range(2)] for name in ("main", "threads")}
    pages["main"][0].write_bytes(page(1000, 7, 0))
    pages["main"][1].write_bytes(b"")
    pages["threads"][0].write_bytes(b"")
    pages["threads"][1].write_bytes(page(500, 8, -5) + page(3000, 8, 3))
    out = tmp_path / "trace.dat"
    trace_dat.write(
        out,
        header_page=HEADER_PAGE,
        header_event="",
        ftrace_formats=[],
        formats={"syscalls": [EXIT_FORMAT]},
        comms={},
        clock="[boot]\n",
        uname="Linux host 6.12 x86_64",
        version="syncline test",
        stats=[],
        page_bytes=4096,
        pages=pages["main"],
        symbols="ffffffff81000000 t ext4_end_bio\t[ext4]\n",
        buffers={"threads": pages["threads"]},
    )
    events = tmp_path / "out.events.jsonl"
    _core.convert([str(out)], str(events))
    rows = [json.loads(line) for line in events.read_text().splitlines()]
    assert [(row["ts_ns"], row["tid"], row["ret"]) for row in rows] == [
        (505, 8, -5),
        (1005, 7, 0),
        (3005, 8, 3),
    ]
    if shutil.which("trace-cmd") is not None:
        done = subprocess.run(
            ["trace-cmd", "report", "-t", str(out)], capture_output=True, text=True, check=True
        )
        assert done.stdout.count("sys_exit_fsync") == 3


def test_a_failing_tracer_reports_the_reason(tmp_path: Path) -> None:
    program = tracer.Tracer(
        "sh", ["sh", "-c", "echo no such probe >&2; exit 1"], tmp_path / "x.log"
    )
    with pytest.raises(RecordError, match="no such probe"):
        program.wait_until_attached()


def test_a_busy_tracer_is_attached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that syncs all the time, bpftrace is never idle."""
    counts = iter([0, 0, 3, 4, 4, 5])
    monkeypatch.setattr(tracer.Tracer, "_probes", lambda _: next(counts, 6))
    monkeypatch.setattr(tracer, "_SETTLED_S", 0.3)
    monkeypatch.setattr(tracer, "_QUIET_S", 60.0)
    program = tracer.Tracer("busy", [sys.executable, "-c", "while True: pass"], tmp_path / "x.log")
    try:
        program.wait_until_attached()
        assert next(counts, None) is None, "probes were still being added"
        monkeypatch.setattr(tracer.Tracer, "_probes", lambda _: 0)
        monkeypatch.setattr(tracer, "_READY_WITHIN_S", 1.0)
        with pytest.raises(RecordError, match="has not attached"):
            program.wait_until_attached()
    finally:
        program.kill()


@pytest.mark.timeout(60)
def test_a_tracer_that_ignores_the_interrupt_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is busy all the time, so nothing else would end the wait for it."""
    monkeypatch.setattr(tracer, "_DRAINED_WITHIN_S", 0.1)
    monkeypatch.setattr(tracer, "_EXIT_WITHIN_S", 0.5)
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True)\nwhile True: pass"
    log = tmp_path / "x.log"
    program = tracer.Tracer("busy", [sys.executable, "-c", code], log)
    try:
        until = time.monotonic() + 30
        while not (log.exists() and log.read_bytes()) and time.monotonic() < until:
            time.sleep(0.01)
        assert program.stop() == -signal.SIGKILL
    finally:
        program.kill()


class TestSymbols:
    """Addresses of a process that has exited."""

    def test_an_address_resolves_to_its_function(self) -> None:
        maps = processes.Maps()
        maps.scan([os.getpid()])
        libc = ctypes.CDLL(None)
        for name in ("fsync", "fdatasync", "msync"):
            address = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
            assert address is not None
            mapped = maps.find(os.getpid(), address + 3)
            assert mapped is not None
            found = _core.functions_at(mapped.file, [address + 3 - mapped.start + mapped.offset])
            assert found == [f"{name}+3"]
        assert maps.find(os.getpid(), 16) is None
        assert maps.has_comm(os.getpid(), Path("/proc/self/comm").read_text().strip())
        assert not maps.has_comm(os.getpid(), "another")

    def test_a_file_that_is_not_a_program_has_no_functions(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(b"\x7fELF and no more")
        assert _core.functions_at(str(tmp_path / "x"), [0, 1]) == [None, None]
        with pytest.raises(OSError, match="No such file"):
            _core.functions_at(str(tmp_path / "y"), [0])

    def test_what_probes_missed_is_not_for_lack_of_room(self, tmp_path: Path) -> None:
        """A larger buffer would have kept 2 of the 7 lost events."""
        log = tmp_path / "trace.log"
        log.write_text("# syncline-log 1\n100 5 a fsync\nLost 7 events\n# end 9\n")
        for missed, counts in (
            (5, {"lost_by_tracer": 2, "missed_by_probe": 5}),
            (7, {"missed_by_probe": 7}),
            (0, {"lost_by_tracer": 7}),
            (None, {"lost_by_tracer": 7}),
            # No more than were lost, whatever a manifest says.
            (99, {"missed_by_probe": 7}),
        ):
            entry = {"file": log.name, "source": "bpftrace", "missed": missed}
            (tmp_path / "manifest.json").write_text(json.dumps({"inputs": [entry]}))
            summary = Reading().convert([str(tmp_path)], f"{tmp_path}/out/")
            found = {loss["reason"]: loss for loss in summary["losses"]}
            assert {
                reason: found[reason]["count"]
                for reason in ("lost_by_tracer", "missed_by_probe")
                if reason in found
            } == counts
            for reason, loss in found.items():
                if reason in counts:
                    assert ("larger buffers do not help" in loss["meaning"]) == (
                        reason == "missed_by_probe"
                    )

    def test_symbols_apply_only_to_their_process(self, tmp_path: Path) -> None:
        log = tmp_path / "stacks.log"
        frames = "\t7f01 0x7f01 ([unknown])\n\t7f02 main+3 (/bin/x)\n\n"
        log.write_text(f"# syncline-log 1\n100 5 a fsync\n{frames}200 6 b fsync\n{frames}# end 9\n")
        assert _core.unresolved_addresses([str(log)]) == [(5, "a", {0x7F01}), (6, "b", {0x7F01})]
        manifest = {"inputs": [{"file": log.name, "source": "bpftrace"}]}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        (tmp_path / "tasks.json").write_text('{"threads": [[5, 4], [6, 6]]}')
        (tmp_path / "symbols.json").write_text(json.dumps([[4, 0x7F01, "fsync+9 (/lib/libc.so)"]]))
        Reading().convert([str(tmp_path)], f"{tmp_path}/out/")
        stacks = coretools.tables(tmp_path / "out")["call"]
        assert [row["stack"] for row in stacks] == ["main;fsync", "main;0x7f01"]

    def test_a_family_holds_all_descendants(self) -> None:
        child = subprocess.Popen(["sh", "-c", "sleep 9 & wait"])
        try:
            until = time.monotonic() + 5
            while len(family := processes.family(os.getpid())) < 3 and time.monotonic() < until:
                time.sleep(0.01)
            assert child.pid in family
            assert set(processes._descendants(os.getpid())) >= set(family)
            tasks = processes.Tasks()
            tasks.scan(family)
            assert tasks.processes()[child.pid] == child.pid
        finally:
            subprocess.run(["pkill", "-P", str(child.pid)], check=False)
            child.wait()
