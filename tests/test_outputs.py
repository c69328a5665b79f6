"""Output files and folders: whole or not at all, also after a kill, and out of the hands of other users."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from syncline import _core

from tests.coretools import DATA
from tests.signals import use_default_signals

SYNCLINE = Path(sys.executable).parent / "syncline"
LOG = DATA / "small4.log"
OTHER_LOG = DATA / "rename.log"
# Longer than the head, by which the format is detected before the output is created.
LONG_LOG = DATA / "sync.log"
PARTS = ".*.syncline-??????.part"
# A user other than root, which needs no entry in /etc/passwd.
NOBODY = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")


def syncline(
    *arguments: object, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SYNCLINE), *map(str, arguments)],
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        check=False,
    )


def wait_for(what: Callable[[], object]) -> None:
    until = time.monotonic() + 30
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


@contextmanager
def converting(out: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a conversion that waits for more of its input."""
    command = [SYNCLINE, "convert", "-", "--from", "bpftrace", "-o", out]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        try:
            process.stdin.write(LONG_LOG.read_bytes())
            process.stdin.flush()
            yield process
        finally:
            process.kill()


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob(PARTS))


class TestKilled:
    """What kill -9 leaves, and the next run removes."""

    @pytest.mark.parametrize("out", ["a.csv", "a.parquet", "new/", "old/"])
    def test_the_next_run_removes_the_files_of_killed_runs_only(
        self, out: str, tmp_path: Path
    ) -> None:
        (tmp_path / "old").mkdir()
        folder = tmp_path / "old" if out == "old/" else tmp_path
        foreign = folder / ".a.csv.part"
        foreign.write_text("of another program")
        with converting(f"{tmp_path}/{out}") as killed:
            wait_for(lambda: parts(folder))
            killed.kill()
            killed.wait()
            left = parts(folder)
            assert left
        with converting(f"{folder}/b.csv") as running:
            wait_for(lambda: any(path.name.startswith(".b.csv") for path in parts(folder)))
            _core.convert([str(LONG_LOG)], f"{folder}/c.csv")
            (own,) = parts(folder)
            assert own.name.startswith(".b.csv")
            assert running.stdin is not None
            running.stdin.close()
            assert running.wait() == 0
        assert (folder / "b.csv").read_bytes() == (folder / "c.csv").read_bytes()
        assert foreign.exists()

    @as_root
    def test_files_of_other_users_are_not_removed(self, tmp_path: Path) -> None:
        theirs = tmp_path / ".a.csv.syncline-AbCdEf.part"
        theirs.touch()
        os.chown(theirs, NOBODY, NOBODY)
        link = tmp_path / ".b.csv.syncline-AbCdEf.part"
        link.symlink_to(theirs)
        os.mkfifo(tmp_path / ".c.csv.syncline-AbCdEf.part")
        _core.convert([str(LOG)], f"{tmp_path}/c.csv")
        assert len(parts(tmp_path)) == 3

    def test_the_folder_of_another_name_is_not_emptied(self, tmp_path: Path) -> None:
        """A folder with the name of a temporary one may hold files of the user."""
        folder = tmp_path / ".a.syncline-AbCdEf.part"
        folder.mkdir()
        (folder / "syncline_sync.parquet").touch()
        (folder / "mine").touch()
        _core.convert([str(LOG)], f"{tmp_path}/c.csv")
        assert [path.name for path in folder.iterdir()] == ["mine"]

    def test_temporary_folders_of_killed_runs_are_removed(self, tmp_path: Path) -> None:
        env = os.environ | {"TMPDIR": str(tmp_path)}
        mine = tmp_path / "syncline-tmp-of-mine"
        mine.mkdir()
        command = [SYNCLINE, "open", "--offline", "--no-browser", LOG]
        found = []
        for number in (None, "KILL"):
            with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as server:
                assert server.stdout is not None
                if not server.stdout.readline():
                    pytest.skip("the Perfetto UI is not installed")
                found.append({path.name for path in tmp_path.iterdir()} - {mine.name})
                if number is None:
                    assert syncline("report", LOG, env={"TMPDIR": str(tmp_path)}).returncode == 0
                    # The folder is still used.
                    assert {path.name for path in tmp_path.iterdir()} == {*found[0], mine.name}
                    server.terminate()
                else:
                    server.kill()
        assert [len(names) for names in found] == [1, 1]
        assert {path.name for path in tmp_path.iterdir()} == {*found[1], mine.name}
        assert syncline("report", LOG, env={"TMPDIR": str(tmp_path)}).returncode == 0
        assert [path.name for path in tmp_path.iterdir()] == [mine.name]

    @pytest.mark.parametrize(("name", "code"), [("HUP", 129), ("TERM", 143), ("INT", 0)])
    def test_a_signal_removes_temporary_files(self, name: str, code: int, tmp_path: Path) -> None:
        command = [SYNCLINE, "open", "--offline", "--no-browser", LOG]
        env = os.environ | {"TMPDIR": str(tmp_path)}
        with subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, preexec_fn=use_default_signals
        ) as server:
            assert server.stdout is not None
            if not server.stdout.readline():
                pytest.skip("the Perfetto UI is not installed")
            assert list(tmp_path.iterdir())
            subprocess.run(["kill", f"-{name}", str(server.pid)], check=True)
            assert server.wait(60) == code
        assert not list(tmp_path.iterdir())

    def test_nohup_is_respected(self, tmp_path: Path) -> None:
        ready = tmp_path / "ready"
        os.mkfifo(tmp_path / "log")
        command = (
            f"trap '' HUP; exec {SYNCLINE} convert --from bpftrace {tmp_path}/log -o {ready}.csv"
        )
        with subprocess.Popen(["sh", "-c", command], stderr=subprocess.DEVNULL) as process:
            with (tmp_path / "log").open("wb") as log:
                log.write(LONG_LOG.read_bytes())
                log.flush()
                wait_for(lambda: parts(tmp_path))
                subprocess.run(["kill", "-HUP", str(process.pid)], check=True)
            assert process.wait() == 0


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
class TestKilledBetweenTables:
    """Kills a conversion at each of its renames and removals."""

    CALLS = "rename,renameat,renameat2,unlink,unlinkat"

    @classmethod
    def convert(cls, out: Path, kill_at: tuple[str, int] | None) -> list[tuple[str, int]]:
        """Converts to a folder, and kills at the N-th of one system call.

        Returns:
            The calls that it made, each with its number among those of its name.
        """
        program = f"from syncline import _core; _core.convert([{str(LOG)!r}], {f'{out}/'!r})"
        trace = out.with_name("strace")
        command = ["strace", "-f", "-qq", "-o", str(trace), "-e", f"trace={cls.CALLS}"]
        if kill_at is not None:
            command += ["-e", f"inject={kill_at[0]}:signal=KILL:when={kill_at[1]}"]
        done = subprocess.run(
            [*command, sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        if done.returncode and kill_at is None:
            pytest.skip(f"strace cannot trace here: {done.stderr}")
        assert (done.returncode != 0) == (kill_at is not None)
        names = re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.MULTILINE)
        trace.unlink()
        return [(name, names[: i + 1].count(name)) for i, name in enumerate(names)]

    def test_a_new_folder_appears_whole_or_not_at_all(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        calls = self.convert(out, None)
        # Eleven tables, and the folder.
        assert len(calls) == 12
        shutil.rmtree(out)
        for call in calls:
            self.convert(out, call)
            # A kill leaves only what the next run removes.
            (left,) = tmp_path.iterdir()
            assert left in parts(tmp_path)

    def test_an_old_folder_holds_the_old_tables_or_the_new_ones_or_is_refused(
        self, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        out.mkdir()
        (out / "mine").write_text("precious")

        def restore() -> None:
            _core.convert([str(OTHER_LOG)], f"{out}/")

        restore()
        old = rows(out)
        calls = self.convert(out, None)
        new = rows(out)
        assert None not in (old, new)
        assert old != new
        # A removal, ten tables, and the table of requests.
        assert len(calls) == 12
        found = []
        for call in calls:
            restore()
            self.convert(out, call)
            found.append(rows(out))
        assert found == [old] + [None] * 11
        # Converting again repairs it, and removes what is left of the killed runs.
        restore()
        assert rows(out) == old
        assert len(list(out.iterdir())) == 12
        assert (out / "mine").read_text() == "precious"


def rows(folder: Path) -> str | None:
    """Returns what a user reads from a folder of tables; None if it is refused."""
    sql = "SELECT (SELECT COUNT(*) FROM syncline_sync), (SELECT COUNT(*) FROM syncline_bio)"
    done = syncline("query", folder, sql)
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert "hint: " in done.stderr
        return None
    return done.stdout


class TestMixed:
    """Tables of several conversions in one folder."""

    @pytest.mark.parametrize("table", ["bio", "meta"])
    def test_they_are_refused(self, table: str, tmp_path: Path) -> None:
        for log in (LOG, OTHER_LOG):
            _core.convert([str(log)], f"{tmp_path}/{log.stem}/")
        name = f"syncline_{table}.parquet"
        shutil.copy(tmp_path / OTHER_LOG.stem / name, tmp_path / LOG.stem)
        for path in (tmp_path / LOG.stem, tmp_path):
            done = syncline("report", path)
            assert done.returncode == 3
            assert f"is of another conversion than {name}" in done.stderr
            assert f"syncline convert LOG -o {tmp_path}/{LOG.stem}/" in done.stderr

    def test_a_run_without_its_requests_is_not_left_out(self, tmp_path: Path) -> None:
        """A kill may leave such a folder. Without a message, a diff would compare fewer runs."""
        for name in "abc":
            _core.convert([str(LOG)], f"{tmp_path}/runs/{name}/")
        (tmp_path / "runs" / "b" / "syncline_sync.parquet").unlink()
        for command in (("report",), ("diff", LOG)):
            done = syncline(*command, tmp_path / "runs")
            assert done.returncode == 3
            assert f"{tmp_path}/runs/b: syncline_sync.parquet is missing" in done.stderr

    def test_the_same_input_gives_the_same_bytes(self, tmp_path: Path) -> None:
        for out in ("a", "b", "b"):
            _core.convert([str(LOG)], f"{tmp_path}/{out}/")
        for file in (tmp_path / "a").iterdir():
            assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()

    def test_names_with_the_characters_of_patterns(self, tmp_path: Path) -> None:
        folder = tmp_path / "a[b]*? 'c'"
        _core.convert([str(LOG)], f"{folder}/")
        assert rows(folder)


class TestFolders:
    """Which folders a conversion creates and removes."""

    def test_a_failed_conversion_removes_the_folders_that_it_created(self, tmp_path: Path) -> None:
        empty = tmp_path / "empty"
        empty.write_text("# no event of a sync\n")
        (tmp_path / "there").mkdir()
        for out in ("a/b/c/", "there/c/", "there/"):
            with pytest.raises(_core.CoreError):
                _core.convert([str(empty)], f"{tmp_path}/{out}", source="bpftrace")
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "there"]

    def test_the_umask_applies(self, tmp_path: Path) -> None:
        before = os.umask(0o027)
        try:
            _core.convert([str(LOG)], f"{tmp_path}/a/")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o750
        assert {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "a").iterdir()} == {0o640}

    def test_a_long_name_is_written(self, tmp_path: Path) -> None:
        name = "n" * 250 + ".csv"
        _core.convert([str(LOG)], f"{tmp_path}/{name}")
        assert [path.name for path in tmp_path.iterdir()] == [name]


@as_root
class TestLinks:
    """Root writes to a folder of another user, who has made symbolic links in it."""

    COMMANDS: tuple[tuple[str, ...], ...] = (
        ("convert", str(LOG), "-o", "OUT.csv"),
        ("convert", str(LOG), "-o", "OUT.parquet"),
        ("convert", str(LOG), "-o", "OUT.events.jsonl"),
        ("convert", str(LOG), "-o", "OUT/"),
        ("report", str(LOG), "--html", "OUT.html"),
        ("flamegraph", str(LOG), "-o", "OUT.svg"),
        ("diff", str(LOG), str(OTHER_LOG), "-o", "OUT.json"),
        ("baseline", "save", str(LOG), "-o", "OUT.json"),
    )

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command[0]} {command[-1]}")
    def test_root_does_not_follow_them(self, command: tuple[str, ...], tmp_path: Path) -> None:
        victim = tmp_path / "victim"
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        name = command[-1].replace("OUT", "out")
        link = theirs / name.rstrip("/")
        if name.endswith("/"):
            victim.mkdir()
        else:
            victim.write_text("precious")
        link.symlink_to(victim)
        for path in (theirs, link):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        done = syncline(*command[:-1], theirs / name if link.name == name else f"{theirs}/{name}")
        assert done.returncode == 2, done.stderr
        assert f"another user made the symbolic link {link}" in done.stderr
        assert list(victim.iterdir()) == [] if victim.is_dir() else victim.read_text() == "precious"
        assert [path.name for path in theirs.iterdir()] == [link.name]

    def test_a_linked_folder_is_not_followed_either(self, tmp_path: Path) -> None:
        (tmp_path / "victim").mkdir()
        (tmp_path / "link").symlink_to("victim")
        os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
        with pytest.raises(_core.CoreError, match="another user made the symbolic link"):
            _core.convert([str(LOG)], f"{tmp_path}/link/a.csv")
        assert not list((tmp_path / "victim").iterdir())

    @pytest.mark.parametrize("output", ["x/new/a", "x/new/"])
    def test_a_link_that_comes_between_check_and_use_is_not_followed(
        self, output: str, tmp_path: Path
    ) -> None:
        """Another user exchanges a folder for a link and back, again and again."""
        for name in ("victim", "folder"):
            (tmp_path / name).mkdir()
        (tmp_path / "link").symlink_to("victim")
        os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
        program = (
            "import contextlib, os\n"
            "while os.getppid() != 1:\n"
            "  for name in ('link', 'folder'):\n"
            "    with contextlib.suppress(OSError): os.rename(name, 'x'); os.rename('x', name)\n"
        )
        with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path) as other:
            try:
                until = time.monotonic() + 3
                refused = 0
                while time.monotonic() < until:
                    try:
                        if output.endswith("/"):
                            _core.create_folder(str(tmp_path / output))
                        else:
                            _core.write_all([(str(tmp_path / output), b"data")])
                    except _core.CoreError as error:
                        refused += "another user made" in str(error)
                    for name in ("x", "folder"):
                        shutil.rmtree(tmp_path / name / "new", ignore_errors=True)
                    assert not list((tmp_path / "victim").iterdir())
                # The conversion did meet the links.
                assert refused
            finally:
                other.kill()

    def test_links_of_root_and_of_the_caller_of_sudo_are_followed(self, tmp_path: Path) -> None:
        out, link = tmp_path / "out.csv", tmp_path / "link.csv"
        link.symlink_to("out.csv")
        out.touch()
        _core.convert([str(LOG)], str(link))
        assert link.is_symlink()
        wanted = out.read_text()
        out.write_text("")
        os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
        done = syncline("convert", LOG, "-o", link, env={"SUDO_UID": str(NOBODY)})
        assert done.returncode == 0, done.stderr
        assert link.is_symlink()
        assert out.read_text() == wanted
