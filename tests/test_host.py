"""`syncline record --host`: what arrives becomes a recording, however the connection ends. `tests/kernel/jobs/record-host.sh` records by ssh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from syncline import _core
from syncline.record import host, portable, salvage, serve, wire
from syncline.record.host import Place
from syncline.record.request import Request
from syncline.run_directory import Filter

from tests import host_server
from tests.test_commands import run as command

SYNCLINE = Path(sys.executable).parent / "syncline"
ROOT = Path(__file__).parents[1]


def via(mode: str, tmp_path: Path) -> str:
    there = tmp_path / "there"
    there.mkdir()
    return f"env PYTHONPATH={ROOT} {sys.executable} -m tests.host_server {mode} {there}"


def record(mode: str, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command("record", "--via", via(mode, tmp_path), "-o", str(tmp_path / "run"), *arguments)


def events(run: Path, tmp_path: Path) -> list[tuple[int, int, str, int]]:
    out = tmp_path / "out.events.jsonl"
    _core.convert([str(run / "trace.dat")], str(out))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    return [(row["ts_ns"], row["tid"], row["comm"], row["ret"]) for row in rows]


# Each event is 5 ns after the start of its page.
ALL = [(1005, 7, "a b", 0), (5005, 8, "c", 3), (9005, 7, "a b", -5)]


def test_a_recording_arrives_whole(tmp_path: Path) -> None:
    done = record("whole", tmp_path, "--path", "/srv/./data/")
    run = tmp_path / "run"
    assert done.returncode == 0, done.stderr
    assert events(run, tmp_path) == ALL
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest == host_server.MANIFEST
    assert sorted(file.name for file in run.iterdir()) == [
        "manifest.json",
        "maps",
        "tasks.json",
        "trace.dat",
    ]
    assert (run / "maps/6.maps").read_text() == "# /bin/program\n"
    # Only the server knows what a path leads to there.
    assert '"/srv/./data/"' in done.stderr
    assert (run.stat().st_mode & 0o777, (run / "trace.dat").stat().st_mode & 0o077) == (0o700, 0o044)  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "why"), [("drops", "the connection to"), ("killed", "was killed")]
)
def test_what_had_arrived_is_kept_with_its_end(mode: str, why: str, tmp_path: Path) -> None:
    done = record(mode, tmp_path)
    assert (done.returncode, why in done.stderr) == (3, True), done.stderr
    assert "what was recorded until then is in" in done.stderr
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert why in manifest["ended_by"]
    assert manifest["inputs"][0]["known_until_ns"] == host_server.KNOWN_UNTIL
    assert events(tmp_path / "run", tmp_path) == ALL
    # Commands use only what is known to be whole.
    text = command("inspect", str(tmp_path / "run"), "--json").stdout
    assert json.loads(text)


def test_a_full_disk_here_keeps_what_had_arrived(tmp_path: Path) -> None:
    """A limit on the size of files ends the recording as a disk without room does."""
    run = tmp_path / "run"
    done = subprocess.run(
        [
            "bash",
            "-c",
            'trap "" XFSZ; ulimit -f 1100; exec "$@"',
            "-",
            str(SYNCLINE),
            "record",
            "--via",
            via("large", tmp_path),
            "-o",
            str(run),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "cannot write to" in done.stderr) == (3, True), done.stderr
    assert json.loads((run / "manifest.json").read_text())["ended_by"].startswith("failure")


def start(mode: str, tmp_path: Path) -> subprocess.Popen[bytes]:
    """Starts a recording, and waits until its pages have arrived."""
    process = subprocess.Popen(
        [str(SYNCLINE), "record", "--via", via(mode, tmp_path), "-o", str(tmp_path / "run")],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 30
    while not (tmp_path / "run" / salvage.STATE).exists():
        assert time.monotonic() < until, process.communicate(timeout=5)
        time.sleep(0.05)
    return process


def test_a_recorder_that_starts_slowly_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy server defines its probes for longer than the silence after which it counts as gone: here 4.5 s instead of 30."""
    monkeypatch.setattr(wire, "GONE_AFTER_S", 4.5)
    request = Request(tmp_path / "run")
    with host.recorded(request, Place(None, via("starts", tmp_path)), print) as (_, manifest):
        assert manifest == host_server.MANIFEST


def test_an_interrupt_lets_the_recorder_end(tmp_path: Path) -> None:
    process = start("waits", tmp_path)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert events(tmp_path / "run", tmp_path) == ALL


def test_after_a_kill_here_it_is_resumed_and_the_server_notices(tmp_path: Path) -> None:
    process = start("waits", tmp_path)
    servers = _children(process.pid)
    assert len(servers) == 1
    process.kill()
    process.communicate()
    until = time.monotonic() + 30
    # Its standard input has ended, so it ends by SIGTERM, for which this one exits.
    while any(Path(f"/proc/{pid}").exists() for pid in servers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in servers if Path(f"/proc/{pid}").exists()]
    done = command("record", "--resume", "-o", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert events(tmp_path / "run", tmp_path) == ALL


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


@pytest.mark.parametrize(
    ("mode", "message", "hint"),
    [
        ("terminal", "through a terminal", "leave out -t"),
        ("refuses", "it cannot", "recording there needs root"),
        ("visits", "user 1000 is not root", "must lead to root"),
        ("no-object", "sent what no recorder sends: what should be an object of JSON", "without a terminal"),
        ("no-json", "sent what no recorder sends: what should be an object of JSON", "without a terminal"),
        ("no-error", ": odd", "recording there needs root"),
        ("attacks", "sent what no recorder sends: a file that no run directory has", "without a terminal"),
    ],
)  # fmt: skip
def test_a_server_that_records_nothing_leaves_no_folder(
    mode: str, message: str, hint: str, tmp_path: Path
) -> None:
    done = record(mode, tmp_path)
    assert (done.returncode, message in done.stderr, hint in done.stderr) == (3, True, True), done.stderr  # fmt: skip
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "stolen").exists()


@pytest.mark.parametrize(
    ("command_there", "message", "hint"),
    [
        ("false", "ended before the recorder began (exit code 1)", "false true"),
        ("/nowhere/ssh", "cannot run /nowhere/ssh: no such file", "--via COMMAND"),
        ("sh -c 'exit 127' -", "cannot run a shell", "kubectl debug"),
        # What only an old server would print.
        ("sh -c 'echo syncline: no python: Python 3.6.8; exit 77' -", "has only Python 3.6.8", "install python3"),
        ("sh -c 'echo syncline: no python: sh: 1: python3: not found; exit 77' -", "and sh has none", "install python3"),
    ],
)  # fmt: skip
def test_a_way_that_leads_nowhere_says_what_to_type(
    command_there: str, message: str, hint: str, tmp_path: Path
) -> None:
    done = command("record", "--via", command_there, "-o", str(tmp_path / "run"))
    said = done.stderr.replace(f"and {command_there} has", "and sh has").replace(
        f"{command_there} has", "has"
    )
    assert (done.returncode, message in said, hint in said) == (3, True, True), done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "-oProxyCommand=x"], "--host has no value"),
        (["--host=-oProxyCommand=x"], "--host has no value"),
        (["--host", " "], "is no host"),
        (["--via", " "], "--via names no command"),
        (["--via", "'"], "is no command"),
        (["--host", "db1", "--device", "/dev/null"], "is a device of this machine"),
        (["--host", "db1", "--route", "strace", "--", "true"], "brings none with it"),
        (["--host", "db1", "--slower-than", "1s"], "runs on the server"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_reached(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    done = command("record", "-o", str(tmp_path / "run"), *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("place", "hint"),
    [
        (Place("me@db1"), "--host root@db1, or: --host me@db1 --via sudo"),
        (Place("me@db1", "env"), '--via "env" must make you root there'),
        (Place(None, "docker exec -i x"), '--via "docker exec -i x" must lead to root'),
    ],
)
def test_a_user_who_is_not_root_is_told_what_to_type(place: Place, hint: str) -> None:
    assert host._Arrivals(None, place, print, None)._as_root().startswith(hint)  # type: ignore[arg-type]


class TestWay:
    """The command that leads to the server."""

    def test_ssh_gets_one_argument_that_its_shell_takes_apart(self) -> None:
        command = Place("me@db1", "sudo -n").command()
        assert command[:2] == ["ssh", "-T"]
        assert command[-3:-1] == ["--", "me@db1"]
        there = subprocess.run(
            ["sh", "-c", f"set -- {command[-1]}; printf '%s\\n' \"$#\" \"$1\" \"$2\" \"$3\" \"$4\""],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")  # fmt: skip
        assert there[:5] == ["5", "sudo", "-n", "sh", "-c"]
        # A login shell may be csh, which takes neither of them within quotes.
        assert not {"\n", "!"} & {*command[-1]}

    def test_a_shell_gets_one_argument(self) -> None:
        command = Place(None, "su db -c").command()
        assert command[:3] == ["su", "db", "-c"]
        assert len(command) == 4

    def test_the_script_takes_the_first_python_that_is_new_enough(self, tmp_path: Path) -> None:
        for name, version in (("python3", "3.8.1"), ("python3.11", "3.11.2")):
            program = tmp_path / name
            is_new = int(version.split(".")[1]) >= 9
            program.write_text(
                f'#!/bin/sh\ncase "$*" in\n*version_info*) exit {int(not is_new)} ;;\n--version) echo Python {version} ;;\n*) echo ran {name} ;;\nesac\n'
            )
            program.chmod(0o755)
        done = [
            subprocess.run(
                ["/bin/sh", "-c", portable.script()],
                env={"PATH": str(tmp_path)},
                capture_output=True,
                text=True,
                check=False,
            )
            for _ in range(2)
            if (tmp_path / "python3.11").exists()
        ]
        assert done[0].stdout == "ran python3.11\n"
        (tmp_path / "python3.11").unlink()
        last = subprocess.run(
            ["/bin/sh", "-c", portable.script()],
            env={"PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (last.stdout, last.returncode) == ("syncline: no python: Python 3.8.1\n", 77)


class TestWire:
    """Frames."""

    @pytest.mark.parametrize(
        "name", ["../x", "/etc/x", "a/b", "maps/../x", "..", ".", "", "maps/", "x\n", "maps/a/b"]
    )
    def test_a_name_that_leads_out_of_the_folder_is_refused(self, name: str) -> None:
        data = wire.Frame(wire.PART, name, b"x", 1).packed()
        with pytest.raises(wire.WireError):
            wire.read(_taker(data))

    @pytest.mark.parametrize("name", [".cpu0.pages", ".threads-cpu12.pages", "maps/77.maps", "x.part"])  # fmt: skip
    def test_a_frame_is_read_back(self, name: str) -> None:
        frame = wire.Frame(wire.PART, name, b"data", 2**40)
        assert wire.read(_taker(frame.packed())) == frame
        for cut in range(len(frame.packed())):
            assert wire.read(_taker(frame.packed()[:cut])) is None

    def test_a_request_is_read_back(self, tmp_path: Path) -> None:
        request = Request(
            tmp_path, ["a", "b c"], 1.5, "dynamic-events", Filter(comm="x", device=8 << 20), 64
        )
        assert serve.unpacked(serve.packed(request)) == request


def _taker(data: bytes):
    left = bytearray(data)

    def take(size: int) -> bytes:
        found = bytes(left[:size])
        del left[:size]
        return found

    return take


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has folders of recorders")
def test_only_what_killed_recorders_left_is_removed(tmp_path: Path) -> None:
    from syncline.record import scratch, tracefs

    pid, start_time = tracefs.owner()
    for name in (f"syncline-sending-{pid}-{start_time}", f"syncline-sending-{pid}-1", "syncline-sending-x"):  # fmt: skip
        (tmp_path / name).mkdir()
    (tmp_path / f"syncline-sending-{pid}-2").symlink_to("/etc")
    scratch.remove_dead((str(tmp_path),))
    assert Path("/etc/passwd").exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()) == sorted(
        [f"syncline-sending-{pid}-{start_time}", "syncline-sending-x"]
    )  # fmt: skip


def test_the_folder_there_goes_also_after_an_error(tmp_path: Path) -> None:
    from syncline.record import scratch

    def record() -> None:
        with scratch.folder((str(tmp_path),)) as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        record()
    assert not [*tmp_path.iterdir()]
