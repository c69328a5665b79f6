"""Parquet files of Syncline whose bytes have changed: DuckDB does not notice a changed value, so each file holds a checksum of itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from syncline import _core

from tests import once

DATA = Path(__file__).parent / "data/thesis"
SYNCLINE = Path(sys.executable).parent / "syncline"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(SYNCLINE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    _core.convert([str(DATA / "small4.log")], f"{folder}/tables/")
    _core.convert([str(DATA / "small4.log")], f"{folder}/requests.parquet")
    return folder


@pytest.fixture
def files(whole: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(whole, tmp_path / "files"))


def test_each_changed_byte_is_noticed(files: Path) -> None:
    """The checksum covers rows and metadata, but neither its own key nor the tail of the file, which make it another file."""
    for file in [*(files / "tables").iterdir(), files / "requests.parquet"]:
        data = file.read_bytes()
        assert not _core.damaged_tables([file])
        key = data.rindex(b"syncline.checksum")
        writer = data.rindex(b"parquet-rs version")
        unknown = {
            *range(key, key + 19),
            *range(writer, writer + 18),
            *range(len(data) - 8, len(data)),
        }
        for at in range(0, len(data), 1 + len(data) // 300):
            if at not in unknown:
                file.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
                assert _core.damaged_tables([file]) == [file], (file.name, at)
        file.write_bytes(data)


@pytest.mark.parametrize("name", ["tables", "requests.parquet"])
def test_a_damaged_file_is_no_input(name: str, files: Path) -> None:
    damaged = files / name
    if damaged.is_dir():
        damaged /= "syncline_bio.parquet"
    data = bytearray(damaged.read_bytes())
    data[len(data) // 3] ^= 1
    damaged.write_bytes(data)
    for command in (("report", files / name), ("query", files / name, "FROM syncline_sync")):
        done = run(*command)
        assert done.returncode == 3
        assert f"{damaged}: the file is damaged: it is not what Syncline wrote" in done.stderr
    if name == "tables":
        done = run("ingest", files / name, "--into", files / "history")
        assert done.returncode == 3
        assert f"{damaged}: the file is damaged" in done.stderr


def test_what_others_have_written_is_read_as_it_is(files: Path) -> None:
    """With the keys of Syncline's metadata, which the checksum does not fit any more, and without."""
    file, copy = files / "requests.parquet", files / "copy.parquet"
    with once.database() as db:
        for metadata in ("", ", KV_METADATA {'syncline.checksum': '12345678'}"):
            db.execute(f"COPY (FROM '{file}') TO '{copy}' (FORMAT parquet{metadata})")
            done = run("query", copy, "SELECT COUNT(*) AS n FROM syncline_sync", "--format", "csv")
            rows = db.execute(f"SELECT COUNT(*) FROM '{file}'").fetchall()[0][0]
            assert (done.returncode, done.stdout) == (0, f"n\n{rows}\n")
