"""The recorder as one file: what travels, that Python 3.9 takes it, and that it runs by itself. `tests/kernel/jobs/record-host.sh` records with it."""

from __future__ import annotations

import ast
import ctypes
import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from syncline import _core
from syncline.record import elf, native, portable, probes, processes
from syncline.record.errors import RecordError
from syncline.record.sync_calls import SYNC_CALLS

from tests.test_commands import run as command

# Modules that are imported only where the recorder is installed: the compiled part in `try`, TOML within a function.
STAY = {"syncline._core", "syncline.structured"}
PYTHONS = [sys.executable]
if (old := shutil.which("python3.9")) and not subprocess.run([old, "-V"], capture_output=True, check=False).returncode:  # fmt: skip
    PYTHONS.append(old)
# What these modules once used, and what is younger than Python 3.9 without being another syntax.
YOUNGER = {"os.splice", "fcntl.F_SETPIPE_SZ", "total", "itertools.pairwise", "bit_count", "datetime.UTC", "os.unshare", "hardlink_to"}  # fmt: skip
YOUNGER_ARGUMENTS = {"strict", "slots", "kw_only", "dir_fd of rmtree", "root_dir", "process_group"}

MODULES = portable.modules()


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recorder") / "recorder.pyz"
    done = command("record", "--write-recorder", file)
    assert (done.returncode, "python3 recorder.pyz" in done.stderr) == (0, True), done.stderr
    assert file.stat().st_mode & 0o100
    return file


def test_what_records_travels_and_what_reports_does_not() -> None:
    names = {Path(name).stem for name in MODULES}
    assert {"program", "serve", "guard", "armed", "dynamic_recorder", "probe_group"} <= names
    assert not {"host", "portable", "checks", "recordings", "formats", "structured"} & names
    with zipfile.ZipFile(io.BytesIO(portable.archive())) as packed:
        assert all(name.endswith((".py", ".json", "METADATA")) for name in packed.namelist())
    assert portable.archive() == portable.archive()


@pytest.mark.parametrize("name", MODULES)
def test_python_3_9_takes_each_module(name: str) -> None:
    tree = ast.parse(MODULES[name].read_text(), feature_version=(3, 9))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert not {node.attr, ast.unparse(node)} & YOUNGER, node.lineno
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            given = {word.arg for word in node.keywords}
            given |= {f"{word.arg} of {called}" for word in node.keywords}
            assert not given & YOUNGER_ARGUMENTS, node.lineno
        # The parser also takes these, which 3.9 accepts only by accident of its new parser.
        assert not isinstance(node, ast.Match), node.lineno


@pytest.mark.parametrize("name", MODULES)
def test_each_module_needs_only_python_and_what_travels(name: str) -> None:
    tree = ast.parse(MODULES[name].read_text())
    for node in ast.walk(tree):
        imported = []
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module or ""]
        for module in imported:
            root = module.partition(".")[0]
            if name == "syncline/__init__.py" and module == "syncline.api":
                continue
            if root == "syncline":
                path = module.replace(".", "/")
                assert {f"{path}.py", f"{path}/__init__.py"} & MODULES.keys() or module in STAY
            else:
                assert root in sys.stdlib_module_names, module


@pytest.mark.parametrize("python", PYTHONS)
class TestRun:
    """The file, by a Python without site-packages and without its environment, from another folder."""

    def run(
        self, python: str, recorder: Path, *arguments: str, code: str = ""
    ) -> subprocess.CompletedProcess[str]:
        start = ["-c", code] if code else [str(recorder)]
        return subprocess.run(
            [python, "-I", "-S", *start, *arguments],
            cwd="/",
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def test_it_says_what_it_takes(self, python: str, recorder: Path) -> None:
        done = self.run(python, recorder, "--help")
        assert (done.returncode, "--slower-than" in done.stdout) == (0, True), done.stderr

    def test_a_wrong_value_is_named(self, python: str, recorder: Path) -> None:
        done = self.run(python, recorder, "--for", "soon")
        assert (done.returncode, "'soon' is not a duration" in done.stderr) == (2, True)

    def test_every_module_can_be_imported(self, python: str, recorder: Path) -> None:
        names = [name[:-3].replace("/", ".").removesuffix(".__init__") for name in MODULES]
        code = f"import sys, importlib\nsys.path.insert(0, {str(recorder)!r})\n"
        code += f"for name in {names}: importlib.import_module(name)\n"
        code += "print(sorted(n for n in sys.modules if n.startswith(('syncline._', 'click', 'rich', 'duckdb'))))"
        done = self.run(python, recorder, code=code)
        assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr

    def test_it_has_the_same_probes_and_version(self, python: str, recorder: Path) -> None:
        code = f"import sys\nsys.path.insert(0, {str(recorder)!r})\n"
        code += "from importlib.metadata import version\nfrom syncline.record import probes\n"
        code += "found, tracepoints = probes.load()\nprint(version('syncline'), [p.event for p in found], tracepoints)"
        done = self.run(python, recorder, code=code)
        found, tracepoints = probes.load()
        from importlib.metadata import version

        expected = f"{version('syncline')} {[p.event for p in found]} {tracepoints}\n"
        assert done.stdout == expected, done.stderr

    def test_its_guard_runs_from_the_same_file(self, python: str, recorder: Path) -> None:
        """It ends at once if its recorder has told it to, by a line."""
        done = subprocess.run(
            [python, "-I", "-S", str(recorder), "--guard", "/nowhere", "1", "1"],
            cwd="/",
            input="\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")

    def test_it_runs_from_memory_as_the_server_gets_it(self, python: str, recorder: Path) -> None:
        data = recorder.read_bytes()
        assert data == portable.archive()
        done = subprocess.run(
            [python, "-I", "-S", "-c", portable._BOOT],
            input=b"%d\n" % len(data) + data,
            cwd="/",
            capture_output=True,
            check=False,
            timeout=60,
        )
        from syncline.record.wire import MAGIC

        # There is no request after it, which is no JSON.
        assert done.stdout.startswith(MAGIC), done.stderr


class TestWithoutTheCore:
    """What the core does for an installed recorder, in Python."""

    def test_the_calls_are_those_of_the_core(self) -> None:
        assert tuple(_core.SYNC_CALLS) == SYNC_CALLS

    def test_functions_are_those_that_the_core_finds(self) -> None:
        maps = processes.Maps()
        maps.scan([os.getpid()])
        address = ctypes.cast(ctypes.CDLL(None).fsync, ctypes.c_void_p).value
        assert address is not None
        libc = maps.find(os.getpid(), address)
        assert libc is not None
        at = address - libc.start + libc.offset
        assert elf.functions_at(libc.file, [at + 3]) == ["fsync+3"]
        for file in (libc.file, os.path.realpath(sys.executable), _core.__file__):
            size = Path(file).stat().st_size
            offsets = [*range(0, size, max(size // 3000, 1)), size + 1]
            ours, theirs = elf.functions_at(file, offsets), _core.functions_at(file, offsets)
            assert ours == theirs
            assert any(ours)

    @pytest.mark.parametrize("size", [0, 3, 16, 40, 64, 200])
    def test_a_file_that_is_cut_off_has_no_functions(self, size: int, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(Path(sys.executable).resolve().read_bytes()[:size])
        assert elf.functions_at(str(tmp_path / "x"), [0, 1]) == [None, None]

    def test_unresolved_addresses_are_those_of_the_core(self, tmp_path: Path) -> None:
        log = tmp_path / "stacks.log"
        log.write_text(
            "# syncline-log 1\n# script stacks 1\n# clock boottime\n# comm hex\n"
            "TIME PID COMM EVENT DATA\n"
            "100 7 a\\x20b\\x00\\x00 fsync\n\t7f12 0x7f12 ([unknown])\n\t7f10 0x7f10 ([unknown])\n\n"
            "110 7 a\\x20b\\x00\\x00 fsync_exit ret 0\n"
            "120 8 c\\x00 fdatasync\n"
            "130 7 a\\x20b\\x00\\x00 fsync\n\t7f12 0x7f12 ([unknown])\n\n"
            "# end 130\n"
        )
        expected = [(7, "a b", {0x7F12, 0x7F10})]
        assert native.unresolved_in(log) == expected
        assert _core.unresolved_addresses([str(log)]) == expected

    def test_folders_above_are_created(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("real")
        (tmp_path / "real").mkdir()
        for path in (tmp_path / "a/b/run", tmp_path / "link/../c/run"):
            above, name = native.open_above_in_python(path)
            (Path(f"/proc/self/fd/{above}") / name).mkdir()
            os.close(above)
        # Behind a link, `..` is the folder above its target, as for the kernel.
        assert (tmp_path / "a/b/run").is_dir()
        assert (tmp_path / "c/run").is_dir()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")
    def test_a_link_of_another_user_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("/etc")
        os.chown(tmp_path / "link", 65534, 65534, follow_symlinks=False)
        for path in (tmp_path / "link/run", tmp_path / "link"):
            with pytest.raises(RecordError, match="symbolic link of another user"):
                native.open_above_in_python(path)
            with pytest.raises(_core.CoreError):
                _core.open_above(str(path))

    def test_links_that_lead_to_each_other_end(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(RecordError, match="too many levels"):
            native.open_above_in_python(tmp_path / "a/run")
