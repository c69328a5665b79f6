"""The kind of an INPUT: detected by content for files, and by the files in it for folders."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from syncline import _core
from syncline.errors import InputError
from syncline.kinds import format_of, is_columns, kind_of, runs_in, table_ending

from tests.coretools import recording


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
    assert kind_of(str(file)) == kind
    assert kind_of(str(file), "bpftrace") == "log"


def test_the_files_in_a_folder_decide_its_kind(tmp_path: Path) -> None:
    def folder(name: str, *files: str) -> str:
        for file in files:
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (tmp_path / name).mkdir(exist_ok=True)
        return str(tmp_path / name)

    assert kind_of(folder("empty")) == "folder"
    assert kind_of(folder("logs", "a.log", "b.log", "c.events.jsonl.gz")) == "folder"
    assert kind_of(folder("recorded", "manifest.json", "trace.dat")) == "log"
    assert kind_of(folder("tables", "syncline_sync.parquet")) == "tables"
    runs = folder("runs", "a.csv.gz", "b/syncline_sync.parquet", "c.log", ".hidden.csv")
    assert kind_of(runs) == "tables"
    assert [run.name for run in runs_in(Path(runs))] == ["a.csv.gz", "b"]
    assert not is_columns(tmp_path / "logs")


def test_missing_files_and_baselines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        kind_of(str(tmp_path / "none"))
    baseline = tmp_path / "base.json"
    baseline.write_text('{"syncline_baseline":1}')
    with pytest.raises(InputError, match="stored baseline") as caught:
        kind_of(str(baseline))
    assert "syncline diff" in caught.value.hint
    assert kind_of("-") == "log"


def test_file_name_endings_match_the_core() -> None:
    for name, endings in _core.FORMATS:
        for ending in endings:
            assert format_of(f"x{ending}") == name
    assert format_of("x.unknown") is None
    assert table_ending(Path("a.JSONL.zst")) == ("jsonl", ".jsonl.zst")
    assert table_ending(Path("a.events.jsonl")) is None
