"""The kind of an INPUT: detected by content for files, and by the files in it for folders, and once in a command."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from syncline import _core, kinds
from syncline.cli.group import cli
from syncline.errors import InputError
from syncline.formats import format_of, table_ending
from syncline.kinds import KINDS, Dataset, Place, Tables, resolve

from tests.coretools import DATA, recording
from tests.test_commands import ok


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (recording("small1.log"), "log"),
        (gzip.compress(recording("small1.log"), mtime=0), "log"),
        (b"\n" + recording("small1.log"), "log"),
        (b'{"ts_ns":1,"cpu":0,"tid":7,"event":"fsync"}\n', "log"),
        (b'{"ts_ns":1,"dur_ns":5,"sync_id":1}\n', "rows"),
        (b"ts_ns,sync_id,bytes\n1,1,0\n", "rows"),
        (b"ts_ns,name,bytes\n1,a,0\n", "log"),
        (b"PAR1...", "rows"),
        (b"\x0a\x0c\x32\x04\x08\x06\x10\x00", "trace"),
        (gzip.compress(b"\x0a\x0c\x32\x04\x08\x06\x10\x00", mtime=0), "trace"),
        (b"", "log"),
    ],
)
def test_the_content_of_a_file_decides_its_kind(data: bytes, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "any.name"
    file.write_bytes(data)
    assert resolve(str(file)).kind == kind
    assert resolve(str(file), "bpftrace").kind == "log"


def test_the_files_in_a_folder_decide_its_kind(tmp_path: Path) -> None:
    def kind_of(name: str, *files: str) -> str:
        for file in files:
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (tmp_path / name).mkdir(exist_ok=True)
        return resolve(str(tmp_path / name)).kind

    assert kind_of("empty") == "folder"
    assert kind_of("logs", "a.log", "b.log", "c.events.jsonl.gz") == "folder"
    assert kind_of("recorded", "manifest.json", "trace.dat") == "log"
    assert kind_of("tables", "syncline_sync.parquet") == "tables"
    assert (
        kind_of("runs", "a.csv.gz", "b/syncline_sync.parquet", "c.log", ".hidden.csv") == "tables"
    )
    runs = resolve(str(tmp_path / "runs"))
    assert isinstance(runs, Tables)
    assert [run.name for run in runs.members] == ["a.csv.gz", "b"]
    assert resolve(str(tmp_path / "tables")).runs() == [Tables(str(tmp_path / "tables"))]


def test_missing_files_and_baselines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        resolve(str(tmp_path / "none"))
    baseline = tmp_path / "base.json"
    baseline.write_text('{"syncline_baseline":1}')
    with pytest.raises(InputError, match="stored baseline") as caught:
        resolve(str(baseline))
    assert "syncline diff" in caught.value.hint
    assert resolve("-").kind == "log"


def test_file_name_endings_match_the_core() -> None:
    for name, endings in _core.FORMATS:
        for ending in endings:
            assert format_of(f"x{ending}") == name
    assert format_of("x.unknown") is None
    assert table_ending(Path("a.JSONL.zst")) == ("jsonl", ".jsonl.zst")
    assert table_ending(Path("a.events.jsonl")) is None


# A command finds out once what its INPUT is.


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run in each form that a report reads."""
    folder = tmp_path_factory.mktemp("inputs")
    log = shutil.copy(DATA / "small1.log", folder / "a.log")
    ok("convert", "-q", log, "-o", folder / "a.pftrace")
    ok("convert", "-q", log, "-o", folder / "a.csv")
    ok("convert", "-q", log, "-o", f"{folder}/tables/")
    (folder / "runs").mkdir()
    shutil.copytree(folder / "tables", folder / "runs" / "b")
    shutil.copy(folder / "a.csv", folder / "runs")
    ok("ingest", "-q", log, "--into", folder / "dataset")
    shutil.copytree(DATA.parent / "dynamic-events" / "run", folder / "recorded")
    found = {
        "Log": "a.log",
        "Trace": "a.pftrace",
        "Rows": "a.csv",
        "Tables": "tables",
        "Dataset": "dataset",
        "RunDirectory": "recorded",
    }
    return {kind: folder / name for kind, name in found.items()} | {"runs": folder / "runs"}


# Names by which a folder is recognized.
_MARKERS = ("manifest.json", "devices.json", "syncline_dataset.json")


class _Asked:
    """What Python asks the file system about a path. The core and DuckDB, which read it, are not Python."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = path
        # For what the INPUT is: `stat` of its path, reading of its first bytes or its names, and each marker.
        self.counts: Counter[str] = Counter()
        self.places = 0
        self._stops = False
        stat = os.stat

        def counted_stat(path: Any, *args: Any, **options: Any) -> os.stat_result:
            self._note("stat", path)
            return stat(path, *args, **options)

        def counted_place(place: Place, *args: Any) -> None:
            self.places += 1
            look(place, *args)

        look = Place.__init__
        monkeypatch.setattr(os, "stat", counted_stat)
        monkeypatch.setattr(Place, "__init__", counted_place)
        # A hook cannot be removed.
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir") and not self._stops:
            self._note("read", arguments[0])

    def _note(self, how: str, path: object) -> None:
        if self._stops or not isinstance(path, str | bytes | os.PathLike):
            return
        file = Path(os.fsdecode(path))
        if file == self._path:
            self.counts[how] += 1
        elif file.parent == self._path and file.name in _MARKERS and how == "stat":
            self.counts[file.name] += 1

    def stop(self) -> None:
        self._stops = True


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], _Asked]]:
    made: list[_Asked] = []

    def start(path: Path) -> _Asked:
        made.append(_Asked(path, monkeypatch))
        return made[-1]

    yield start
    for one in made:
        one.stop()


# A run directory is also asked whether its members lead out of it, and whether they are files: its manifest may name any file.
_MEMBERS_OF = ("manifest.json", "devices.json")


@pytest.mark.parametrize(
    "kind", ["Log", "Trace", "Rows", "Tables", "runs", "Dataset", "RunDirectory"]
)
@pytest.mark.parametrize("command", ["report", "inspect", "advise", "query"])
def test_a_command_finds_out_once_what_its_input_is(
    kind: str,
    command: str,
    inputs: dict[str, Path],
    asked: Callable[[Path], _Asked],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = inputs[kind]
    assert type(resolve(str(path))).__name__ == ("Tables" if kind == "runs" else kind)
    sql = ["SELECT COUNT(*) AS n FROM syncline_sync"] if command == "query" else []
    counts = asked(path)
    cli.main([command, str(path), *sql], standalone_mode=False)
    counts.stop()
    assert capsys.readouterr().out
    assert counts.places == 1
    is_recorded = kind == "RunDirectory"
    if not is_recorded:
        # DuckDB gets its memory by the size of the files.
        assert counts.counts["stat"] == (2 if kind == "Rows" else 1)
    if (kind, command) != ("Trace", "query"):
        # A trace processor gets its bytes from Python.
        assert counts.counts["read"] <= 1
    for name in _MARKERS:
        if not (is_recorded and name in _MEMBERS_OF):
            assert counts.counts[name] <= 1, name


def test_a_diff_finds_out_once_what_each_run_is(
    inputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked: Counter[str] = Counter()
    look = Place.__init__

    def counted(place: Place, path: str, *args: Any) -> None:
        looked[path] += 1
        look(place, path, *args)

    monkeypatch.setattr(Place, "__init__", counted)
    paths = [str(inputs[kind]) for kind in ("Log", "Trace", "Rows", "Tables")]
    sides = [word for path in paths for word in ("--base", path)] + ["--new", paths[0]]
    out = tmp_path / "out.json"
    out.touch()
    cli.main(["diff", *sides, "-o", str(out)], standalone_mode=False)
    # The same file on both sides is two runs.
    assert looked == {paths[0]: 2, **dict.fromkeys(paths[1:], 1)}


def test_an_index_says_what_its_runs_are(
    inputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = resolve(str(inputs["Dataset"]))
    assert isinstance(dataset, Dataset)
    monkeypatch.setattr(Place, "__init__", None)
    (run,), _ = dataset.selected(None)
    assert isinstance(run, Tables)
    assert Path(run.path, "syncline_sync.parquet").is_file()


def test_every_kind_is_in_the_list_and_in_a_file_of_its_own() -> None:
    files = {file.stem for file in Path(kinds.__file__).parent.glob("*.py")}
    assert {kind.__module__.rpartition(".")[2] for kind in KINDS} == files - {
        *("__init__", "kind", "place")
    }
    assert len({kind.__module__ for kind in KINDS}) == len(KINDS)
