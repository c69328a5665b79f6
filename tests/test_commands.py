"""The commands: exit codes, messages and output files."""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import click
import pytest
from syncline.cli.group import cli
from syncline.losses import sentence

from tests.coretools import DATA, ROOT, recording
from tests.signals import use_default_signals
from tests.warm_cli import WarmCli

BIN = Path(sys.executable).parent
SMALL1 = str(DATA / "small1.log")


def run(
    *arguments: str | Path, stdin: bytes | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `syncline` with arguments."""
    code, out, err = _warm_cli().run([*map(str, arguments)], stdin or b"", cwd)
    return subprocess.CompletedProcess(
        ["syncline", *map(str, arguments)], code, out.decode(), err.decode()
    )


@functools.cache
def _warm_cli() -> WarmCli:
    return WarmCli()


def ok(*arguments: str | Path, **options: object) -> str:
    """Returns the output of a command that succeeds."""
    done = run(*arguments, **options)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    return done.stdout


def fails(code: int, *arguments: str | Path, **options: object) -> str:
    """Returns the message of a command that fails without a traceback."""
    done = run(*arguments, **options)  # type: ignore[arg-type]
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(("error: ", "Error: ", "Usage: "))
    return done.stderr


def run_line(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a line of a shell. A line that is only a command of Syncline needs neither a shell nor a new process."""
    if line.startswith("syncline ") and not re.search(r"[^\w ./:=,%@+'-]", line):
        return run(*shlex.split(line)[1:], cwd=folder)
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    return subprocess.run(
        line, shell=True, cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def left(folder: Path) -> list[str]:
    """Returns the names of all files in a folder, including hidden ones."""
    return sorted(path.name for path in folder.iterdir())


def commands() -> list[str]:
    return cli.list_commands(click.Context(cli))


@pytest.mark.parametrize("command", commands())
def test_help_ends_with_examples_that_work(command: str, tmp_path: Path) -> None:
    text = ok(command, "--help")
    examples = re.findall(r"^ {4}(\S.*syncline .*|syncline .*)$", text, re.M)
    assert examples, text
    work = tmp_path / "checkout"
    work.mkdir()
    (work / "tests").symlink_to(ROOT / "tests")
    if command == "whatif":
        # No small recording has enough requests at two depths.
        with tarfile.open(ROOT / "tests/data/queue-depth/depth.tar.xz") as archive:
            archive.extractall(work, filter="data")
    for example in examples:
        if (
            " open " in f" {example} "
            or example.startswith("sudo ")
            or " record --host " in example
        ):
            continue  # needs a browser, a kernel or a server: tests/ui and tests/kernel run it
        if command == "completion":
            continue  # writes where a shell looks for it: test_doors.py runs it in each shell
        line = re.sub(r" {3,}\(.*\)$", "", example)
        done = run_line(line, work)
        assert done.returncode == 0, (line, done.stderr)


def test_version_and_the_list_of_reports() -> None:
    assert re.fullmatch(r"syncline \d+\.\d+\.\d+\n", ok("--version"))
    names = [line.split()[0] for line in ok("report", "--list").splitlines()]
    assert names[0] == "summary"
    assert len(names) == len(list((ROOT / "sql" / "reports").glob("*.sql")))


def test_stdin_gz_and_zst_are_read_like_a_file(tmp_path: Path) -> None:
    log = recording("small4.log")
    want = ok("convert", "-q", DATA / "small4.log", "-o", "-", "--to", "csv")
    assert want.count("\n") == 101
    assert ok("convert", "-q", "-", "-o", "-", "--to", "csv", stdin=log) == want
    # The format is detected by content, not by name.
    (tmp_path / "packed").write_bytes(gzip.compress(log))
    assert ok("convert", "-q", tmp_path / "packed", "-o", "-", "--to", "csv") == want
    if shutil.which("zstd"):
        packed = subprocess.run(["zstd", "-c"], input=log, capture_output=True, check=True).stdout
        assert ok("convert", "-q", "-", "-o", "-", "--to", "csv", stdin=packed) == want


def test_a_log_with_microseconds_and_process_ids(tmp_path: Path) -> None:
    log = tmp_path / "us.log"
    log.write_text(
        "252 53 db fdatasync\n294 53 db start id 8 start 0 end 9 datasync 1 path /a\n"
        "313 53 db bio_add_folio id 8 bio 0x762 start 1424 len 4096\n321 53 db bio_submit id 8 bio 0x762\n"
        "661 0 swapper/26 bio_complete bio 0x762\n856 53 db exit id 8 ret 0\n"
    )
    rows = ok(
        "convert", "-q", log, "-o", "-", "--to", "jsonl", "--time-unit", "us", "--pid-is", "process"
    )
    row = json.loads(rows)
    assert (row["ts_ns"], row["syscall_ns"], row["writeback_ns"]) == (252_000, 604_000, 340_000)
    assert (row["before_submit_ns"], row["after_complete_ns"]) == (27_000, 195_000)
    assert (row["tid"], row["pid"], row["first_offset"], row["last_offset"]) == (
        None,
        53,
        1424,
        5520,
    )


def test_pieces_of_a_log_are_one_log(tmp_path: Path) -> None:
    log = recording("sqlite_wal_full.log").splitlines(keepends=True)
    (tmp_path / "1").write_bytes(b"".join(log[:150]))
    (tmp_path / "2").write_bytes(b"".join(log[150:]))
    whole = ok("convert", "-q", DATA / "sqlite_wal_full.log", "-o", "-", "--to", "csv")
    assert ok("convert", "-q", tmp_path / "1", tmp_path / "2", "-o", "-", "--to", "csv") == whole


def test_reports_read_every_output_of_convert(tmp_path: Path) -> None:
    want = None
    for name in ("t.pftrace", "t.pftrace.gz", "tables/", "rows.parquet", "rows.csv", "rows.jsonl"):
        ok("convert", "-q", DATA / "parallel4.log", "-o", f"{tmp_path}/{name}")
        report = ok("report", f"{tmp_path}/{name}", "threads", "--format", "csv")
        want = want or report
        assert report == want, name
    assert ok("report", DATA / "parallel4.log", "threads", "--format", "csv") == want


def test_a_report_is_printed_in_each_format() -> None:
    assert ok("report", SMALL1, "--format", "csv").startswith("metric,scope,value,unit")
    answer = json.loads(ok("report", SMALL1, "files", "--format", "json"))
    assert len(answer["rows"]) == 50
    assert "| path |" in ok("report", SMALL1, "files", "--format", "md")
    both = ok("report", SMALL1, "files", "threads")
    assert both.index("Files:") < both.index("Threads:")


def test_losses_are_reported_before_the_figures() -> None:
    done = run("report", DATA / "small4.log")
    assert done.stdout.startswith("warning: 15 of 100 bios: never_completed")
    done = run("report", DATA / "small4.log", "--format", "csv")
    assert done.stdout.startswith("metric,")
    assert "15 of 100 bios" in done.stderr


def test_a_query_works_in_both_engines() -> None:
    sql = "SELECT COUNT(*) AS n, SUM(bytes) AS bytes FROM syncline_sync"
    for engine in ("duckdb", "embedded"):
        assert (
            ok("query", SMALL1, sql, "--format", "csv", "--engine", engine)
            == "n,bytes\n50,204800\n"
        )
    message = fails(2, "query", SMALL1, "SELECT * FROM syncline_nothing")
    assert "syncline_nothing" in message
    assert "syncline_sync" in message


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_sql_that_selects_nothing_prints_nothing_of_it(form: str, tmp_path: Path) -> None:
    trace = tmp_path / "a.pftrace"
    ok("convert", "-q", SMALL1, "-o", trace)
    printed = ok("query", trace, "CREATE TABLE t AS SELECT 1", "--format", form)
    assert printed.strip() == {"table": "No rows.", "json": "[]"}.get(form, "")


def test_a_command_that_is_named_as_a_report_is_recognised() -> None:
    log = ROOT / "tests/data/thesis/small1.log"
    assert "It is a command: syncline advise INPUT." in fails(2, "report", log, "advise")


def test_the_earlier_name_of_a_format_is_taken(tmp_path: Path) -> None:
    """Scripts say `--from thesis`, and manifests of older recordings hold it."""
    assert "bpftrace" in ok("inspect", SMALL1, "--from", "thesis")
    (tmp_path / "events.log").write_bytes(Path(SMALL1).read_bytes())
    manifest = {"schema_version": 1, "inputs": [{"file": "events.log", "source": "thesis"}]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert "bpftrace" in ok("inspect", tmp_path)


def test_wrong_use_exits_with_2(tmp_path: Path) -> None:
    assert ".pftrace" in fails(2, "convert", SMALL1, "-o", tmp_path / "out.foo")
    assert "--to" in fails(2, "convert", SMALL1, "-o", "-")
    assert f"mkdir -p {tmp_path}/no" in fails(2, "convert", SMALL1, "-o", tmp_path / "no" / "x.csv")
    assert "summary" in fails(2, "report", SMALL1, "sumary")
    assert "No such command 'recrod'. Did you mean record?" in fails(2, "recrod")
    assert "No such command 'xyzzy'." in fails(2, "xyzzy")
    assert "bpftrace" in fails(2, "convert", SMALL1, "-o", tmp_path / "x.csv", "--from", "dtrace")
    assert "CSV holds one table" in fails(
        2, "report", SMALL1, "files", "threads", "--format", "csv"
    )
    assert "500ms" in fails(2, "convert", SMALL1, "-o", tmp_path / "x.csv", "--window", "soon")
    same = tmp_path / "same.log"
    same.write_bytes(recording("small1.log"))
    assert "input" in fails(2, "convert", same, "-o", same, "--to", "csv")
    assert same.read_bytes() == recording("small1.log")
    assert left(tmp_path) == ["same.log"]


def test_a_run_directory_without_a_manifest_is_unfinished(tmp_path: Path) -> None:
    unfinished = shutil.copytree(ROOT / "tests/data/dynamic-events/run", tmp_path / "run")
    (unfinished / "manifest.json").unlink()
    message = fails(3, "report", unfinished)
    assert f"{unfinished} has no manifest.json: its recording was not finished" in message
    recording = unfinished / "trace.dat.gz"
    assert f"name the recording itself: syncline report {recording}" in message
    ok("report", recording)
    recording.unlink()
    assert "name the recording itself" not in fails(3, "report", unfinished)


def test_unreadable_or_foreign_input_exits_with_3(tmp_path: Path) -> None:
    out = tmp_path / "out.pftrace"
    cases = {
        "empty": (b"", "is empty"),
        "elf": (b"\x7fELF" + bytes(1000), "ELF"),
        # To root it shows nothing of a file that only root may be able to read.
        "text": (b"hello, world\n", "as root" if os.geteuid() == 0 else "hello, world"),
        "header": (b"TIME PID COMM EVENT DATA\nAttaching 8 probes...\n", "no event in 2 lines"),
        "cut.gz": (gzip.compress(recording("small1.log"))[:900], "cut off"),
    }
    for name, (data, word) in cases.items():
        (tmp_path / name).write_bytes(data)
        message = fails(3, "convert", tmp_path / name, "-o", out)
        assert name in message
        assert word in message
        assert "hint: " in message
        assert word in fails(3, "report", tmp_path / name) or name == "cut.gz"
    assert "no such file" in fails(3, "convert", tmp_path / "nothing.log", "-o", out)
    assert "no such file" in fails(3, "report", tmp_path / "nothing.log")
    trace = tmp_path / "t.pftrace"
    ok("convert", "-q", SMALL1, "-o", trace)
    trace.write_bytes(trace.read_bytes()[:-700])
    assert "t.pftrace" in fails(3, "report", trace)
    assert not out.exists()
    assert left(tmp_path) == sorted([*cases, "t.pftrace"])


@pytest.mark.parametrize("name", ["small1.log.gz", "base.json.gz"])
def test_a_compressed_file_with_a_changed_byte_exits_with_3(name: str, tmp_path: Path) -> None:
    """The changed byte is in the header, the blocks or the checksum."""
    baseline = tmp_path / "base.json"
    ok("baseline", "save", SMALL1, "-o", baseline)
    whole = {"small1.log.gz": recording("small1.log"), "base.json.gz": baseline.read_bytes()}[name]
    packed = gzip.compress(whole, mtime=0)
    for at in (3, 10, 11, 12, 60, 100, len(packed) - 6):
        changed = bytearray(packed)
        changed[at] ^= 0xFF
        (tmp_path / name).write_bytes(changed)
        command = ("convert", tmp_path / name, "-o", tmp_path / "out.csv")
        if name.startswith("base"):
            command = ("diff", tmp_path / name, SMALL1)
        assert name in fails(3, *command), at
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("reason", "numbers", "text"),
    [
        ("never_completed", {"events.bio_submit": 10}, "3 of 10 bios"),
        ("never_completed", {"events.bio_submit": 0, "events.block_submit": 10}, "3 of 10 bios"),
        # Both events may be of the same bio.
        ("never_completed", {"events.bio_submit": 2, "events.block_submit": 10}, "3 bios"),
        (
            "unmatched_complete",
            {"events.bio_complete": 2, "events.block_complete": 3},
            "3 of 5 completions",
        ),
    ],
)
def test_a_loss_is_not_more_than_its_total(reason: str, numbers: dict[str, int], text: str) -> None:
    assert sentence(reason, "", numbers | {reason: 3}) == f"{text}: {reason}"


def test_more_losses_than_allowed_exit_with_4(tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    assert "15 never_completed" in fails(
        4, "convert", DATA / "small4.log", "-o", out, "--max-loss", "14"
    )
    assert "never_completed" in fails(
        4, "convert", DATA / "small4.log", "-o", out, "--max-loss", "1%"
    )
    assert left(tmp_path) == []
    ok("convert", DATA / "small4.log", "-o", out, "--max-loss", "15")
    ok("convert", DATA / "small4.log", "-o", out, "--max-loss", "3%")
    ok("convert", SMALL1, "-o", out, "--max-loss", "0")
    assert "--max-loss" in fails(2, "convert", SMALL1, "-o", out, "--max-loss", "much")


def test_unparsed_lines_are_shown_with_file_line_and_text(tmp_path: Path) -> None:
    log = tmp_path / "torn.log"
    log.write_bytes(recording("small1.log") + b"41 559 wl bio_complete 0x44\n")
    done = run("convert", log, "-o", tmp_path / "x.csv")
    assert done.returncode == 0
    assert f"{log}:503: 41 559 wl bio_complete 0x44" in done.stderr
    assert "1 of 503 lines: unparsed_line" in done.stderr


def test_marks_are_reported_and_bad_marks_refused(tmp_path: Path) -> None:
    marks = tmp_path / "marks.csv"
    marks.write_text("time,name\n41753000000,page 1\n41800000000,page 2\n")
    table = ok("report", SMALL1, "marks", "--marks", marks, "--format", "csv").splitlines()
    assert len(table) == 3
    metrics = ok("report", SMALL1, "--marks", marks, "--format", "csv")
    assert "mark" in metrics
    for bad, word in (
        ("soon,x\nlater,y\n", ":1:"),
        ("time,name\n5,a\nx,b\n", ":3:"),
        ("", "no marks"),
        ("-5,a\n", "negative"),
    ):
        marks.write_text(bad)
        assert word in fails(3, "report", SMALL1, "marks", "--marks", marks)
    assert "nothing.csv" in fails(3, "report", SMALL1, "marks", "--marks", tmp_path / "nothing.csv")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_an_error_and_devices_stay_devices() -> None:
    assert "No space left" in fails(2, "convert", SMALL1, "-o", "/dev/full", "--to", "csv")
    assert Path("/dev/full").is_char_device()
    ok("convert", "-q", SMALL1, "-o", "/dev/null", "--to", "pftrace")
    assert Path("/dev/null").is_char_device()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    ok("convert", "-q", SMALL1, "-o", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("ts_ns,")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_no_partial_file(number: int, code: int, tmp_path: Path) -> None:
    command = [str(BIN / "syncline"), "convert", "-", "-o", str(tmp_path / "out.pftrace")]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=use_default_signals,
    ) as process:
        assert process.stdin
        # More than one chunk, so that the output file is created. The pipe stays open.
        process.stdin.write(recording("bg.log.gz"))
        process.stdin.flush()
        while not left(tmp_path):
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(30) == code
    assert left(tmp_path) == []


def test_a_closed_pipe_is_not_an_error() -> None:
    command = f"{BIN}/syncline query {DATA}/bg.log.gz 'SELECT * FROM syncline_bio' --format csv | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("bio_id,")
    assert "Traceback" not in done.stderr


def test_doctor_prints_text_and_json() -> None:
    text = ok("doctor")
    assert "DuckDB" in text or "duckdb" in text
    assert isinstance(json.loads(ok("doctor", "--format", "json")), list)
