"""The folder of a recording, which root may write where another user can rename files."""

from __future__ import annotations

import json
import os
import pty
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from syncline.record.errors import RecordError
from syncline.record.run_folder import RunFolder
from syncline.recordings import read_recording

from tests.signals import use_default_signals

SYNCLINE = Path(sys.executable).parent / "syncline"
# A user other than root, which needs no entry in /etc/passwd.
NOBODY = 65534
SUDO = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")
with_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def create(name: Path, *, replace: bool = False) -> RunFolder:
    return RunFolder.create(name, replace=replace)


def refusal(name: Path, *, replace: bool = False) -> str:
    with pytest.raises(RecordError) as caught:
        create(name, replace=replace)
    assert caught.value.hint
    return caught.value.message


def owned(path: Path, uid: int = NOBODY) -> Path:
    os.chown(path, uid, uid, follow_symlinks=False)
    return path


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of another user, such as the home in which sudo is typed."""
    (tmp_path / "theirs").mkdir()
    return owned(tmp_path / "theirs")


class TestCreate:
    """Which folders are used."""

    def test_only_this_user_can_open_a_new_folder(self, tmp_path: Path) -> None:
        folder = create(tmp_path / "a" / "run")
        assert stat.S_IMODE((tmp_path / "a" / "run").stat().st_mode) == 0o700
        folder.write("x", "text")
        folder.close()
        assert (tmp_path / "a" / "run" / "x").read_text() == "text"

    def test_an_empty_folder_is_used(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "run").mkdir(mode=0o755)
        inode = (tmp_path / "run").stat().st_ino
        monkeypatch.chdir(tmp_path / "run")
        for name in (Path(), tmp_path / "run", Path("../run")):
            create(name).close()
        assert (tmp_path / "run").stat().st_ino == inode

    @pytest.mark.parametrize("mode", [0o770, 0o707])
    def test_a_folder_that_others_can_write_to_is_refused(self, mode: int, tmp_path: Path) -> None:
        run = tmp_path / "run"
        run.mkdir()
        run.chmod(mode)
        assert "other users can write to" in refusal(run)

    @as_root
    def test_a_folder_of_another_user_is_refused(self, theirs: Path) -> None:
        (theirs / "run").mkdir()
        victim = theirs.parent / "victim"
        victim.write_text("precious")
        owned(theirs / "run")
        assert "belongs to another user" in refusal(theirs / "run")
        (theirs / "run" / "manifest.json").symlink_to(victim)
        for replace in (False, True):
            assert "belongs to another user" in refusal(theirs / "run", replace=replace)
        assert victim.read_text() == "precious"

    @as_root
    @pytest.mark.parametrize("name", ["link", "link/run", "link/a/run"])
    def test_a_link_of_another_user_is_not_followed(self, name: str, theirs: Path) -> None:
        victim = theirs.parent / "victim"
        victim.mkdir()
        (theirs / "link").symlink_to("../victim")
        owned(theirs / "link")
        assert f"another user made the symbolic link {theirs}/link" in refusal(theirs / name)
        assert not list(victim.iterdir())

    def test_own_links_are_followed(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        (tmp_path / "absolute").symlink_to(tmp_path / "link")
        (tmp_path / "new").symlink_to("absolute/../created")
        (tmp_path / "loop").symlink_to("loop")
        for name, real in (("link/a", "real/a"), ("absolute/b", "real/b"), ("new", "created")):
            create(tmp_path / name).close()
            assert (tmp_path / real).is_dir()
        assert "Too many levels of symbolic links" in _reason(tmp_path / "loop")

    def test_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("precious")
        for name in ("file", "file/run"):
            assert "Not a directory" in _reason(tmp_path / name)
        assert (tmp_path / "file").read_text() == "precious"


def _reason(name: Path) -> str:
    with pytest.raises(RecordError) as caught:
        create(name)
    return caught.value.message


class TestReplace:
    """`--force`."""

    def test_only_a_recording_is_replaced(self, tmp_path: Path) -> None:
        run, victim = tmp_path / "run", tmp_path / "victim"
        (run / "maps").mkdir(parents=True)
        (run / "maps" / "1.maps").touch()
        victim.mkdir()
        (victim / "file").write_text("precious")
        (run / "link").symlink_to(victim)
        assert "is not empty" in refusal(run, replace=True)
        (run / "manifest.json").symlink_to(victim / "file")
        assert "is not empty" in refusal(run, replace=True)
        (run / "manifest.json").unlink()
        (run / "manifest.json").touch()
        assert "is not empty" in refusal(run)
        create(run, replace=True).close()
        assert not list(run.iterdir())
        assert (victim / "file").read_text() == "precious"

    @as_root
    def test_the_caller_of_sudo_gets_and_replaces_the_folder(
        self, theirs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in SUDO.items():
            monkeypatch.setenv(name, value)
        run = theirs / "run"
        for replace in (False, True):
            folder = create(run, replace=replace)
            # Until it is complete, the caller cannot change it.
            assert run.stat().st_uid == 0
            (folder.path / "maps").mkdir()
            for name in ("manifest.json", "maps/1.maps"):
                (folder.path / name).touch()
            folder.hand_over()
            folder.close()
            found = [run, *run.rglob("*")]
            assert len(found) == 4
            assert {(path.stat().st_uid, path.stat().st_gid) for path in found} == {
                (NOBODY, NOBODY)
            }
        (theirs / "empty").mkdir()
        owned(theirs / "empty")
        create(theirs / "empty").close()
        owned(run, uid=NOBODY - 1)
        assert "belongs to another user" in refusal(run, replace=True)


@with_strace
class TestRecord:
    """Whole recordings, by the route that needs no kernel."""

    @staticmethod
    def record(
        *arguments: str | Path, cwd: Path, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SYNCLINE, "record", "--route", "strace", *arguments],
            cwd=cwd,
            env=os.environ | (env or {}),
            capture_output=True,
            text=True,
            check=False,
        )

    def test_a_folder_that_is_renamed_is_written_nevertheless(self, tmp_path: Path) -> None:
        """Whoever owns the folder above can rename the run directory, and make another one with links in it."""
        victim = tmp_path / "victim"
        victim.write_text("precious")
        names = "manifest.json .manifest.json.part tasks.json symbols.json strace.log maps trace.pftrace"
        attack = f"mv run moved; mkdir run; for name in {names}; do ln -s {victim} run/$name; done"
        done = self.record("-o", "run", "--and-report", "--", "sh", "-c", attack, cwd=tmp_path)
        assert victim.read_text() == "precious"
        assert all(path.is_symlink() for path in (tmp_path / "run").iterdir())
        moved = {path.name for path in (tmp_path / "moved").iterdir()}
        assert moved >= {"manifest.json", "tasks.json", "strace.log", "maps", "mountinfo"}
        assert json.loads((tmp_path / "moved" / "manifest.json").read_text())["exit_code"] == 0
        assert "another folder has the name run now" in done.stderr
        assert done.returncode == 3

    def test_messages_and_manifest_name_the_folder_as_the_user_does(self, tmp_path: Path) -> None:
        done = self.record("-o", "run", "--", "sync", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "recorded in run: strace.log" in done.stderr
        manifest = (tmp_path / "run" / "manifest.json").read_text()
        assert '"strace.log",' in manifest
        assert "/proc/" not in done.stderr + manifest
        assert not list((tmp_path / "run").glob(".*"))

    @as_root
    def test_the_caller_of_sudo_reads_the_recording_and_its_trace(self, theirs: Path) -> None:
        done = self.record("-o", "run", "--and-report", "--", "sync", cwd=theirs, env=SUDO)
        assert done.returncode == 0, done.stderr
        found = [theirs / "run", *(theirs / "run").rglob("*")]
        assert theirs / "run" / "trace.pftrace" in found
        assert {path.stat().st_uid for path in found} == {NOBODY}
        # To everybody else it is closed.
        assert stat.S_IMODE((theirs / "run").stat().st_mode) == 0o700

    @pytest.mark.parametrize("ignored", [False, True])
    def test_the_end_of_the_terminal_ends_the_recording(
        self, ignored: bool, tmp_path: Path
    ) -> None:
        """Closing a terminal sends SIGHUP, and then nothing can be printed. nohup continues."""
        command = f"exec {SYNCLINE} record --route strace -o run -- sleep {2 if ignored else 60}"
        if ignored:
            command = f"trap '' HUP; {command}"
        pid, terminal = pty.fork()
        if pid == 0:
            use_default_signals()
            os.chdir(tmp_path)
            os.execv("/bin/sh", ["sh", "-c", command])
        shown = b""
        while b"recording sleep" not in shown:
            shown += os.read(terminal, 4096)
        log = tmp_path / "run" / "strace.log"
        while not log.exists() or b"execve" not in log.read_bytes():
            time.sleep(0.02)
        os.close(terminal)
        os.waitpid(pid, 0)
        manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
        assert manifest["ended_by"] == ("command" if ignored else "SIGHUP")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "..", "a/b", ""])
def test_a_manifest_cannot_name_a_file_elsewhere(name: str, tmp_path: Path) -> None:
    """A run directory may be from someone else."""
    manifest = {"inputs": [{"file": name, "source": "bpftrace"}]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(Exception, match="is not in this folder"):
        read_recording(str(tmp_path))
