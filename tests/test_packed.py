"""Archives of a run directory or of one log as INPUT: every kind of archive gives what the unpacked one gives, and a damaged one is refused."""

from __future__ import annotations

import gc
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from syncline._core import CoreError
from syncline.errors import InputError
from syncline.inputs import Reading, opened
from syncline.kinds import resolve
from syncline.report.run import run_report

from tests.coretools import ROOT
from tests.reference.perfettotrace import to_bytes
from tests.test_commands import fails, ok
from tests.test_perfetto import packets

RECORDINGS = ROOT / "tests" / "data" / "refused" / "recordings.tar.xz"
LOG = ROOT / "tests" / "data" / "thesis" / "small1.log"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    with tarfile.open(RECORDINGS) as tar:
        tar.extractall(folder, filter="data")
    return folder


def packed(source: Path, archive: Path, inside: str) -> Path:
    """Packs a file or a folder, below the name `inside` if it is not empty."""
    files = [source] if source.is_file() else [file for file in source.rglob("*") if file.is_file()]
    names = {file: str(Path(inside, file.relative_to(source) if source.is_dir() else file.name)) for file in files}  # fmt: skip
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as out:
            for file, name in names.items():
                out.write(file, name)
    else:
        mode = {".tar": "w", ".tgz": "w:gz", ".xz": "w:xz", ".bz2": "w:bz2"}[archive.suffix]
        with tarfile.open(archive, mode) as out:  # type: ignore[call-overload]
            for file, name in names.items():
                out.add(file, name)
    return archive


def reports(path: Path) -> list[Any]:
    with opened(str(path), Reading()) as engine:
        rows = [run_report(engine, name).as_dicts() for name in ("durability", "phases", "losses")]
    # An example of a loss names the unpacked file.
    return [[row | {"example": None} for row in one] for one in rows]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives are unpacked."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.mark.parametrize("name", ["a.tar", "a.tgz", "a.tar.xz", "a.tar.bz2", "a.zip"])
@pytest.mark.parametrize("inside", ["", "run", "sent/by/mail"])
def test_a_packed_run_directory_is_read_as_the_folder(
    name: str, inside: str, recorded: Path, tmp_path: Path, temporary: Path
) -> None:
    found = reports(packed(recorded / "xfs", tmp_path / name, inside))
    assert found == reports(recorded / "xfs")
    assert all(found[:2])
    gc.collect()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", ["a.tar", "a.tgz", "a.zip"])
def test_a_packed_log_is_read_as_the_log(name: str, tmp_path: Path) -> None:
    archive = packed(LOG, tmp_path / name, "logs")
    assert reports(archive) == reports(LOG)


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
def test_a_packed_trace_of_the_system_is_read(name: str, tmp_path: Path) -> None:
    """As Perfetto's UI and its recorders pack them."""
    trace = tmp_path / "trace.perfetto-trace"
    trace.write_bytes(to_bytes(packets("small4", "legacy", compact=True)))
    assert reports(packed(trace, tmp_path / name, "")) == reports(trace)


def test_a_packed_run_is_the_run_that_it_was_made_of(recorded: Path, tmp_path: Path) -> None:
    archive = packed(recorded / "ext4", tmp_path / "a.tar", "run")
    ok("ingest", recorded / "ext4", "--into", tmp_path / "data")
    assert "0 added, 1 already there" in ok("ingest", archive, "--into", tmp_path / "data")


def test_several_run_directories_are_named(recorded: Path, tmp_path: Path) -> None:
    said = fails(3, "report", packed(recorded, tmp_path / "a.zip", ""))
    assert "holds 4 run directories (btrfs, ext4, f2fs, xfs)" in said
    assert f"unzip {tmp_path / 'a.zip'}" in said


@pytest.mark.parametrize("name", ["a.tar", "a.tgz", "a.tar.xz", "a.zip"])
def test_a_torn_archive_is_refused(
    name: str, recorded: Path, tmp_path: Path, temporary: Path
) -> None:
    archive = packed(recorded / "f2fs", tmp_path / name, "run")
    whole = archive.read_bytes()
    # A tar ends in empty blocks, so what is cut off is a part of a file.
    for part in (600, len(whole) // 3, len(whole) - 20_000):
        archive.write_bytes(whole[:part])
        with pytest.raises((InputError, CoreError), match=r"a\."):
            reports(archive)
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_names_that_lead_elsewhere_and_links_are_not_unpacked(
    recorded: Path, tmp_path: Path, temporary: Path
) -> None:
    archive = packed(recorded / "xfs", tmp_path / "a.tar", "run")
    with tarfile.open(archive, "a") as out:
        for name in ("run/../../../../evil", "run/sub/../../../evil"):
            content = tarfile.TarInfo(name)
            content.size = 4
            out.addfile(content, io.BytesIO(b"evil"))
        link = tarfile.TarInfo("run/secret.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        out.addfile(link)
    input = resolve(str(archive))
    names = {file.name for file in input.content()}
    assert names == {file.name for file in (recorded / "xfs").iterdir()}
    assert list(tmp_path.rglob("evil")) == []


def test_more_than_there_is_room_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small archive may hold more than a disk."""
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("manifest.json", "{}")
        out.writestr("trace.dat", bytes(1 << 20))
    usage = type("usage", (), {"free": 1 << 19})
    monkeypatch.setattr("shutil.disk_usage", lambda _folder: usage)
    with pytest.raises(InputError, match=r"holds 1,048,578 bytes, and .* has room for 524,288"):
        reports(archive)


def test_an_error_in_a_packed_file_names_the_archive(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("manifest.json", json.dumps({"inputs": [{"file": "gone.dat", "source": "trace-dat"}]}))  # fmt: skip
    said = fails(3, "report", archive)
    assert f"{archive}:gone.dat" in said
    assert "syncline-tmp" not in said
