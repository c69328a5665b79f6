"""Links, pipes and archives instead of files, sets of files that do not fit, and limits of the process."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.cli import errors
from syncline.errors import InputError
from syncline.kinds import resolve
from syncline.recordings import read_recording

from tests.coretools import DATA, ROOT

SYNCLINE = [sys.executable, "-c", "from syncline.cli import main; main()"]
SMALL1 = str(DATA / "small1.log")
RUN = ROOT / "tests/data/several-recorders/run"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root acts for another user")
# No user of this machine.
STRANGER = 54_321


def run(
    *arguments: object, before: Callable[[], None] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SYNCLINE, *map(os.fsencode, map(str, arguments))],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
        preexec_fn=before,
        **options,
    )


# --- run directories ----------------------------------------------------------------------------


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A run directory with one log."""
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(SMALL1, folder / "events.log")
    write_manifest(folder)
    return folder


def write_manifest(folder: Path, **changes: Any) -> None:
    manifest = {"schema_version": 1, "inputs": [{"file": "events.log", "source": "bpftrace"}]}
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))


@pytest.mark.parametrize(
    "name", ["events.log", "tasks.json", "symbols.json", "devices.json", "files.jsonl", "writers.jsonl"]
)  # fmt: skip
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder", "device"])
def test_a_member_of_a_run_is_a_file_in_it(name: str, kind: str, recording: Path) -> None:
    secret = recording.parent / "secret"
    secret.write_text("root:$6$hash\n")
    member = recording / name
    member.unlink(missing_ok=True)
    if kind == "link":
        member.symlink_to(secret)
    elif kind == "dangling":
        member.symlink_to("nowhere")
    elif kind == "pipe":
        os.mkfifo(member)
    elif kind == "folder":
        member.mkdir()
    else:
        member.symlink_to("/dev/zero")
    done = run("report", recording)
    assert done.returncode == 3, done.stderr
    assert f"cannot read {member}: it is " in done.stderr
    assert "hash" not in done.stdout + done.stderr


def test_a_link_within_a_run_is_followed(recording: Path) -> None:
    (recording / "events.log").rename(recording / "other.log")
    (recording / "events.log").symlink_to("other.log")
    assert read_recording(str(recording)).files == [str(recording / "events.log")]
    # So is one to the whole run.
    link = recording.parent / "link"
    link.symlink_to(recording)
    assert run("report", link).returncode == 0


def test_a_manifest_that_is_a_pipe_is_refused(recording: Path) -> None:
    (recording / "manifest.json").unlink()
    os.mkfifo(recording / "manifest.json")
    with pytest.raises(InputError, match="it is no file"):
        resolve(str(recording))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schema_version": 2}, "its schema_version is 2, and this version of Syncline reads 1"),
        ({"schema_version": None}, "its schema_version is None"),
        ({"inputs": 5}, "5 is not a list"),
        ({"inputs": [5]}, "5 is not an object"),
        ({"inputs": [{"file": "events.log"}]}, "it has no key 'source'"),
        ({"before": 5}, "a value in it is of the wrong type"),
    ],
)
def test_a_hostile_manifest_is_refused_in_words(
    changes: dict[str, Any], reason: str, recording: Path
) -> None:
    write_manifest(recording, **changes)
    with pytest.raises(InputError) as raised:
        read_recording(str(recording))
    assert f"{recording / 'manifest.json'} is damaged: {reason}" in raised.value.message


@needs_root
@pytest.mark.parametrize("options", [[], ["--from", "bpftrace"]])
def test_root_quotes_nothing_of_a_file_that_is_no_log(options: list[str], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:$6$hash:20000:0:99999:7:::\n" * 3)
    done = run("report", *options, secret)
    assert done.returncode == 3
    assert "hash" not in done.stderr


# --- archives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_tar_of_two_logs_is_no_log(mode: str, form: int, tmp_path: Path) -> None:
    archive = tmp_path / "logs.log"
    with tarfile.open(archive, mode, format=form) as tar:  # type: ignore[call-overload]
        tar.add(SMALL1, "a.log")
        tar.add(SMALL1, "b.log")
    for options in ([], ["--from", "bpftrace"]):
        done = run("report", *options, archive)
        assert done.returncode == 3
        assert "it is a tar archive" in done.stderr
        assert "tar xf" in done.stderr


# --- outputs ------------------------------------------------------------------------------------


def sticky(tmp_path: Path) -> Path:
    """A folder in which anybody may write, with a link of somebody else to a folder of root."""
    tmp_path.chmod(0o755)
    shared, private = tmp_path / "shared", tmp_path / "private"
    shared.mkdir()
    shared.chmod(0o1777)
    private.mkdir(mode=0o700)
    (shared / "dir").symlink_to(private)
    os.lchown(shared / "dir", STRANGER, STRANGER)
    return shared


@needs_root
@pytest.mark.parametrize(
    "command",
    [
        ["ingest", SMALL1, "--host", "h", "--into", "dir/a/b"],
        ["extension-server", "--out", "dir/a/b"],
        ["convert", SMALL1, "-o", "dir/a/b/"],
        ["convert", SMALL1, "-o", "dir/a.csv"],
        ["record", "-o", "dir/a/b", "--route", "strace", "--", "true"],
    ],
)
def test_root_makes_nothing_through_the_link_of_another_user(
    command: list[str], tmp_path: Path
) -> None:
    if command[0] == "record" and shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    shared = sticky(tmp_path)
    done = run(*command, cwd=shared)
    assert done.returncode in (2, 3), done.stderr
    assert "link" in done.stderr
    assert list((tmp_path / "private").iterdir()) == []


@pytest.mark.parametrize("output", ["out.csv", "out.pftrace", "out/"])
def test_a_link_that_leads_nowhere_yet_is_followed(output: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    name = output.rstrip("/")
    link = tmp_path / name
    link.symlink_to(Path("elsewhere") / name)
    assert run("convert", SMALL1, "-o", output, cwd=tmp_path).returncode == 0
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / name).exists()


def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out.csv").symlink_to("out.csv")
    done = run("convert", SMALL1, "-o", tmp_path / "out.csv")
    assert done.returncode == 2
    assert (tmp_path / "out.csv").is_symlink()


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.parametrize("there", [False, True])
def test_an_extension_server_is_written_whole_or_not_at_all(there: bool, tmp_path: Path) -> None:
    """The SQL modules do not fit, and the two other files do."""
    out = tmp_path / "a/out"
    if there:
        out.mkdir(parents=True)
        (out / "manifest").write_text("old")
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = run("extension-server", "--out", out, before=limit_files, env=environment)
    assert done.returncode == 2, done.stderr
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == ([out / "manifest"] if there else [])
    assert out.exists() == there
    if there:
        assert (out / "manifest").read_text() == "old"
    assert run("extension-server", "--out", out).returncode == 0
    assert json.loads((out / "manifest").read_text())["name"] == "Syncline"


def test_a_failed_ingest_leaves_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "bad.log").write_text("no log\n")
    done = run("ingest", tmp_path / "bad.log", "--into", tmp_path / "a/runs")
    assert done.returncode == 3
    assert not (tmp_path / "a").exists()
    # A dataset that was there stays, also an empty folder.
    (tmp_path / "a/runs").mkdir(parents=True)
    run("ingest", tmp_path / "bad.log", "--into", tmp_path / "a/runs")
    assert (tmp_path / "a/runs").is_dir()
    assert run("ingest", SMALL1, "--host", "h", "--into", tmp_path / "a/runs").returncode == 0
    run("ingest", tmp_path / "bad.log", "--into", tmp_path / "a/runs")
    assert run("report", tmp_path / "a/runs").returncode == 0


# --- messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", SMALL1, "SELECT '\udcff'"],
        ["query", "--engine", "embedded", SMALL1, "SELECT '\udcff'"],
        ["report", SMALL1, "--where", "run = '\udcff'"],
        ["report", SMALL1, "\udcff"],
        ["ingest", SMALL1, "--into", "runs", "--host", "\udcff"],
        ["flamegraph", SMALL1, "--comm", "\udcff"],
    ],
)
def test_a_text_that_is_not_utf8_is_wrong_use(arguments: list[str], tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "is not UTF-8: byte" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["report", ""], ["convert", "", "-o", "x.csv"], ["inspect", SMALL1, ""], ["baseline", "save", "", "-o", "x"]],
)  # fmt: skip
def test_an_empty_name_is_not_the_current_folder(arguments: list[str], tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "is empty: name a file or a folder" in done.stderr


def test_a_name_that_is_too_long_has_nothing_to_do_with_temporary_files(tmp_path: Path) -> None:
    done = run("report", "a" * 300)
    assert done.returncode == 3
    assert "file name too long" in done.stderr
    assert "TMPDIR" not in done.stderr
    done = run("convert", SMALL1, "-o", tmp_path / ("a" * 300 + ".csv"))
    assert done.returncode == 2
    assert "TMPDIR" not in done.stderr


@pytest.mark.parametrize("kilobytes", [500_000, 800_000])
def test_too_small_an_address_space_is_named(kilobytes: int) -> None:
    limit = kilobytes << 10
    done = run(
        "report", SMALL1, before=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    )
    assert done.returncode == 2, done.stderr
    assert f"the address space is limited to {kilobytes:,} kB (ulimit -v)" in done.stderr
    assert done.stderr.count("\n") == 2


def test_too_few_open_files_are_named() -> None:
    done = run(
        "report", SMALL1, before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))
    )
    assert done.returncode == 2, done.stderr
    assert "ulimit -n" in done.stderr
    assert "free some space" not in done.stderr


def test_too_few_threads_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert errors.code_of(RuntimeError("can't start new thread")) == 2
    assert "ulimit -u" in capsys.readouterr().err
    assert errors.code_of(RuntimeError("another one")) is None


def test_a_column_whose_name_is_not_utf8_is_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    _core.convert([SMALL1], str(file))
    data = file.read_bytes()
    assert b"syscall_ns" in data
    file.write_bytes(data.replace(b"syscall_ns", b"sysc\xffll_ns"))
    done = run("report", file)
    assert done.returncode == 3, done.stderr
    assert "is damaged" in done.stderr


@pytest.mark.parametrize("command", ["report", "query"])
def test_a_damaged_parquet_file_is_always_an_input_error(command: str, tmp_path: Path) -> None:
    """Damage in the pages of the rows is found by the query, and by another thread each time."""
    file = tmp_path / "rows.parquet"
    _core.convert([str(DATA / "small4.log")], str(file))
    data = bytearray(file.read_bytes())
    end = len(data) - int.from_bytes(data[-8:-4], "little") - 8
    data[4:end] = bytes(byte ^ 0xA5 for byte in data[4:end])
    file.write_bytes(data)
    sql = (
        ["SELECT path, AVG(dur_ns) FROM syncline_sync GROUP BY path"] if command == "query" else []
    )
    for _ in range(3):
        done = run(command, file, *sql)
        assert done.returncode == 3, done.stderr
        assert "is damaged" in done.stderr
        assert "The tables are" not in done.stderr
    # Wrong SQL stays wrong.
    assert run("query", SMALL1, "SELECT CAST('x' AS INT) FROM syncline_sync").returncode == 2


def test_a_csv_file_that_is_not_utf8_says_so(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b"ts_ns,sync_id,dur_ns,syscall_ns,path\n1,2,3,4,/\xff\n")
    done = run("report", file)
    assert done.returncode == 3
    assert "not UTF-8" in done.stderr
    assert "iconv" in done.stderr


# --- formats ------------------------------------------------------------------------------------


def test_several_reports_are_one_json_document() -> None:
    done = run("report", SMALL1, "summary", "losses", "files", "summary", "--format", "json")
    found = json.loads(done.stdout)
    assert list(found) == ["summary", "losses", "files"]
    for name, one in found.items():
        alone = json.loads(run("report", SMALL1, name, "--format", "json").stdout)
        assert one == alone


def test_a_cell_that_begins_like_a_formula_is_quoted_only_on_request() -> None:
    texts = ["=1+1", "+1", "-x", "@a", "a=b", "'q"]
    sql = " UNION ALL ".join(
        f"SELECT '{text.replace(chr(39), chr(39) * 2)}' AS a, -1 AS b" for text in texts
    )
    for options, quote in (([], ""), (["--csv-safe"], "'")):
        done = run("query", SMALL1, sql, "--format", "csv", *options)
        rows = list(csv.reader(io.StringIO(done.stdout)))[1:]
        # A number is no text.
        wanted = [[(quote if text[0] in "=+-@" else "") + text, "-1"] for text in texts]
        assert sorted(rows) == sorted(wanted)


def test_convert_quotes_the_same_cells(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    # Names of threads are of up to 15 bytes.
    log.write_bytes(Path(SMALL1).read_bytes().replace(b" wl ", b" =wl "))
    for options, wanted in (([], {"=wl"}), (["--csv-safe"], {"'=wl"})):
        done = run("convert", log, "-o", "-", "--to", "csv", "-q", *options)
        assert {row["comm"] for row in csv.DictReader(io.StringIO(done.stdout))} == wanted
        # The trace of it becomes CSV, too.
        run("convert", log, "-o", tmp_path / "x.pftrace")
        done = run("convert", tmp_path / "x.pftrace", "-o", "-", "--to", "csv", "-q", *options)
        assert {row["comm"] for row in csv.DictReader(io.StringIO(done.stdout))} == wanted
    done = run("convert", log, "-o", tmp_path / "x.jsonl", "--csv-safe")
    assert "--csv-safe has no effect on jsonl" in done.stderr
