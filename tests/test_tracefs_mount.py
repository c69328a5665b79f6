"""`record` mounts tracefs where it is missing. In a namespace of its own, so that the machine does not change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from syncline.record import routes, tracefs, tracefs_mount
from syncline.record.errors import RecordError

_MAY_MOUNT = (
    os.geteuid() == 0
    and shutil.which("unshare") is not None
    and "\ttracefs" in Path("/proc/filesystems").read_text()
    and tracefs.find() is None
    and subprocess.run(
        ["unshare", "-m", "mount", "-t", "tracefs", "nodev", "/sys/kernel/tracing"],
        capture_output=True,
        check=False,
    ).returncode
    == 0
)

# In a namespace of its own, in which it may unmount what is there.
_MAY_UNMOUNT = (
    os.geteuid() == 0
    and shutil.which("unshare") is not None
    and "\ttracefs" in Path("/proc/filesystems").read_text()
    and subprocess.run(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            "umount /sys/kernel/tracing; mount -t tracefs nodev /sys/kernel/tracing",
        ],
        capture_output=True,
        check=False,
    ).returncode
    == 0
)

_PROGRAM = """
from pathlib import Path
from syncline.record import tracefs
from syncline.record.tracefs_mount import mounted
said = []
try:
    with mounted(said.append):
        print(tracefs.find())
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(tracefs.find(), "tracefs" in Path("/proc/mounts").read_text())
print(said)
"""


def _in_namespace(program: str) -> list[str]:
    command = ["unshare", "-m", sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.skipif(
    not _MAY_MOUNT, reason="needs root, and a machine on which tracefs is not mounted"
)
def test_it_is_mounted_and_unmounted() -> None:
    """Also when the recording is interrupted."""
    assert _in_namespace(_PROGRAM) == [
        "/sys/kernel/tracing",
        "None False",
        "['tracefs was not mounted: mounted it at /sys/kernel/tracing for this recording']",
    ]


@pytest.mark.skipif(
    not _MAY_MOUNT, reason="needs root, and a machine on which tracefs is not mounted"
)
def test_what_somebody_else_mounted_stays() -> None:
    program = "import os; os.system('mount -t tracefs nodev /sys/kernel/tracing')\n" + _PROGRAM
    assert _in_namespace(program) == ["/sys/kernel/tracing", "/sys/kernel/tracing True", "[]"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_mount_that_fails_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/filesystems").write_text("nodev\tsysfs\nnodev\ttracefs\n")
    monkeypatch.setattr(tracefs, "find", lambda *_: None)
    # The place must be a folder, and the kernel refuses one that is in no namespace of ours.
    monkeypatch.setattr(tracefs_mount, "_AT", tmp_path)
    monkeypatch.setattr(tracefs_mount, "_call", lambda *_: "operation not permitted")
    said: list[str] = []
    with tracefs_mount.mounted(said.append, tmp_path):
        pass
    assert said == ["warning: tracefs is not mounted, and cannot be: operation not permitted"]
    # A kernel without tracefs has nothing to mount.
    (tmp_path / "proc/filesystems").write_text("nodev\tsysfs\n")
    with tracefs_mount.mounted(said.append, tmp_path):
        pass
    assert len(said) == 1


def test_one_advice_for_all_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_require_tracefs", _not_mounted)
    monkeypatch.setattr(routes, "which", lambda name: name)
    route = routes.choose(None, "command")
    assert route.name == "strace"
    assert route.why.count("is not mounted") == 1
    assert "ring-buffer, dynamic-events, bpftrace: tracefs is not mounted (mount it)" in route.why


def _not_mounted(_root: Path) -> Path:
    raise RecordError("tracefs is not mounted", "mount it")


_KILLED = """
import subprocess, sys
from pathlib import Path
from syncline.record import checks, tracefs, tracefs_mount
# In this namespace only.
while tracefs.find():
    subprocess.run(["umount", str(tracefs.find())], check=True)
killed = "import os, signal; from syncline.record.tracefs_mount import mounted; held = mounted(len); held.__enter__(); os.kill(os.getpid(), signal.SIGKILL)"
def kill():
    subprocess.run([sys.executable, "-c", killed])
kill()
print(tracefs.find(), tracefs_mount.is_left_behind(), checks.tracefs_mount(Path("/")).status)
said = []
with tracefs_mount.mounted(said.append):
    print(tracefs.find(), said)
print(tracefs.find())
kill()
tracefs_mount.unmount_left_behind()
print(tracefs.find())
with tracefs_mount.mounted(said.append):
    # It is of somebody who runs.
    print(tracefs_mount.is_left_behind())
    tracefs_mount.unmount_left_behind()
    print(tracefs.find())
"""


@pytest.mark.skipif(not _MAY_UNMOUNT, reason="needs root, and a kernel with tracefs")
def test_what_a_killed_recorder_left_is_unmounted_by_the_next() -> None:
    """And by the process that waits for its end."""
    assert _in_namespace(_KILLED) == [
        "/sys/kernel/tracing True warn",
        "/sys/kernel/tracing ['a recording that was killed left tracefs at /sys/kernel/tracing: unmounting it after this one']",
        "None",
        "None",
        "False",
        "/sys/kernel/tracing",
    ]


@pytest.mark.parametrize(
    ("mounts", "is_left"),
    [
        ("", False),
        ("nodev /sys/kernel/tracing tracefs rw 0 0\n", False),
        # No recorder starts when the machine does, so this one is dead.
        ("syncline-1-0 /sys/kernel/tracing tracefs rw 0 0\n", True),
        ("syncline-1-0 /elsewhere tracefs rw 0 0\n", False),
        # Somebody else has mounted it over that one since.
        (
            "syncline-1-0 /sys/kernel/tracing tracefs rw 0 0\nnodev /sys/kernel/tracing tracefs rw 0 0\n",
            False,
        ),
    ],
)
def test_the_source_of_a_mount_says_whose_it_is(mounts: str, is_left: bool, tmp_path: Path) -> None:  # fmt: skip
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text(mounts)
    assert tracefs_mount.is_left_behind(tmp_path) == is_left
