"""Datasets: ingest, `--where`, reports and diff on many runs, object stores, and what is wrong with a dataset."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.dataset import index, ingest, layout, object_files
from syncline.dataset.store import FolderStore, ObjectStore, open_store
from syncline.dataset.tables import open_dataset
from syncline.engine import EngineError, SqlError
from syncline.engine.columns import open_columns
from syncline.errors import InputError
from syncline.kinds import resolve
from syncline.reading import Reading
from syncline.render import exporter, streamed
from syncline.report import Table, caveats, load, names, run_report, sql_root
from syncline.report.catalogue import EACH_RUN

from tests import once
from tests.coretools import DATA
from tests.sqltools import same
from tests.test_commands import run

RECORDINGS = DATA.parent
# host -> (day, recordings): text, binary, strace, perf and a run directory.
HOSTS = {
    "db1": ("2026-11-01", ["thesis/small4.log", "thesis/parallel4.log", "strace/small4.log"]),
    "db2": ("2026-11-02", ["thesis/small1.log", "tracecmd/small4.dat", "thesis/empty.log"]),
}
RUNS = sum(len(files) for _, files in HOSTS.values())


def ok(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done


def fails(code: int, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = run(*arguments)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a dataset of two hosts and two days. Tests that change it copy it."""
    folder = tmp_path_factory.mktemp("dataset") / "history"
    for host, (day, files) in HOSTS.items():
        for file in files:
            options = ["--host", host, "--started", day, "--fact", f"format={Path(file).parent}"]
            ok("ingest", RECORDINGS / file, "--into", folder, *options)
    return folder


@pytest.fixture
def changed(dataset: Path, tmp_path: Path) -> Path:
    """Returns a copy of the dataset that a test may damage."""
    shutil.copytree(dataset, tmp_path / "history")
    return tmp_path / "history"


def partitions(folder: Path) -> list[Path]:
    return sorted(folder.glob("host=*/day=*/run=*"))


def partition(folder: Path, name: str) -> Path:
    """Returns the partition of a recording."""
    return next(one for one in partitions(folder) if one.name.startswith(f"run={name}-"))


def rows(folder: Path, report: str, *options: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(ok("report", folder, report, "--format", "csv", *options).stdout)))  # fmt: skip


def test_every_report_equals_that_of_the_same_tables_in_a_folder(
    dataset: Path, tmp_path: Path
) -> None:
    for one in partitions(dataset):
        shutil.copytree(one, tmp_path / one.name.removeprefix("run="))
    with (
        open_dataset(str(dataset)) as of_dataset,
        open_columns(tmp_path, sql=sql_root() / "tables" / "duckdb") as of_folder,
    ):
        for name in names():
            found, expected = run_report(of_dataset, name), run_report(of_folder, name)
            assert same(found.rows, expected.rows), name
            assert found.columns == expected.columns
        assert caveats(of_dataset) == caveats(of_folder)


def test_a_partition_holds_its_run_and_is_a_folder_of_tables(dataset: Path) -> None:
    assert len(partitions(dataset)) == RUNS
    one = partition(dataset, "parallel4")
    assert one.parent == dataset / "host=db1" / "day=2026-11-01"
    entry = json.loads((one / "_run.json").read_bytes())
    assert (entry["host"], entry["day"], entry["schema_version"]) == ("db1", "2026-11-01", _core.SCHEMA_VERSION)  # fmt: skip
    assert entry["facts"] == {"format": "thesis"}
    assert entry["tables"]["sync"]["rows"] == 80
    copies = [path.read_bytes() for path in (dataset / "_runs").glob(f"{entry['run']}.*")]
    assert copies == [(one / "_run.json").read_bytes()]
    log = ok("report", DATA / "parallel4.log", "summary", "--format", "csv").stdout
    assert ok("report", one, "summary", "--format", "csv").stdout == log
    # Other readers of Hive partitions see the runs too.
    with once.database() as db:
        found = db.execute(
            "SELECT host, day, COUNT(*) FROM read_parquet(?, hive_partitioning = true) GROUP BY ALL ORDER BY 1",
            [f"{dataset}/*/*/*/syncline_sync.parquet"],
        ).fetchall()
    # 100 + 80 + 100 requests, and 50 + 100 + 51: tests/data/README.md.
    assert [(host, str(day)) for host, day, _ in found] == [("db1", "2026-11-01"), ("db2", "2026-11-02")]  # fmt: skip


def test_the_answer_names_runs_hosts_and_days(dataset: Path, tmp_path: Path) -> None:
    runs = "6 runs of 2 hosts on 2 days, 2026-11-01 to 2026-11-02."
    said = ok("report", dataset).stdout.splitlines()
    assert runs in said
    # The 80 requests of parallel4 wait longest: tests/data/README.md.
    (worst,) = (line for line in said if line.startswith("  1. "))
    assert worst.endswith(f", in run {partition(dataset, 'parallel4').name.removeprefix('run=')}")
    with open_dataset(str(dataset)) as engine:
        ((slowest,),) = engine.query("SELECT run FROM syncline_sync ORDER BY dur_ns DESC NULLS LAST LIMIT 1").rows  # fmt: skip
    assert next(line for line in said if line.startswith("Slowest: ")).endswith(f", in run {slowest}.")  # fmt: skip
    one = ok("report", dataset, "--where", "name = 'empty.log'").stdout
    assert "1 run of host db2 on 2026-11-02." in one.splitlines()
    assert ", in run" not in one
    ok("ingest", DATA / "small1.log", "--into", tmp_path / "d")
    alone = ok("report", tmp_path / "d").stdout.splitlines()
    assert "1 run. The host of 1 run is not known. The day of 1 run is not known." in alone
    ok("report", tmp_path / "d", "--html", tmp_path / "page.html")
    assert "1 run. The host of 1 run is not known." in (tmp_path / "page.html").read_text()


def test_where_chooses_runs_and_reads_no_other_partition(changed: Path) -> None:
    only_log = ok("report", DATA / "parallel4.log", "threads", "--format", "csv").stdout
    # A partition that is not chosen may even be damaged.
    for one in partitions(changed):
        if "parallel4" not in one.name:
            (one / "syncline_sync.parquet").write_bytes(b"PAR1 is not all that it takes PAR1")
    chosen = ("--where", "name = 'parallel4.log' AND day < '2026-11-02' AND format = 'thesis'")
    done = ok("report", changed, "threads", "--format", "csv", *chosen)
    assert [line.rpartition(",")[0] for line in done.stdout.splitlines()[1:]] or only_log
    assert "left out" not in done.stderr
    sql = "SELECT COUNT(*) AS n FROM syncline_sync"
    assert ok("query", changed, sql, "--format", "csv", *chosen).stdout.split() == ["n", "80"]


def test_where_is_a_condition_on_a_run_and_nothing_else(dataset: Path) -> None:
    for where, message in (
        ("comm = 'wl'", 'column "comm" not found'),
        ("true) UNION ALL (SELECT 'x'", "syntax"),
        ("1=1) OR (1=1", "syntax"),
        ("true ORDER BY run", "syntax"),
        ("true); DROP TABLE syncline_run; --", "syntax"),
        ("run IN (SELECT content FROM read_text('/etc/passwd'))", "disabled"),
        ("day >", "syntax"),
    ):
        done = fails(2, "report", dataset, "--where", where)
        assert message in done.stderr, where
        assert "Traceback" not in done.stderr
    done = fails(3, "report", dataset, "--where", "host = 'db9'")
    assert "no run of" in done.stderr
    assert f"it has {RUNS} runs: hosts db1, db2; days 2026-11-01 to 2026-11-02" in done.stderr
    done = fails(3, "report", DATA / "small1.log", "--where", "host = 'db1'")
    assert "--where selects runs of a dataset" in done.stderr


def test_sql_on_a_dataset_reads_the_dataset_only(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    done = fails(2, "query", dataset, f"SELECT * FROM read_csv('{tmp_path}/secret.csv')")
    assert "disabled" in done.stderr
    runs = ok("query", dataset, "SELECT host, COUNT(*) n FROM syncline_run GROUP BY ALL ORDER BY 1", "--format", "csv")  # fmt: skip
    assert runs.stdout.split() == ["host,n", "db1,3", "db2,3"]


def test_a_run_that_is_there_stays_as_it_is_in_any_form(changed: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in changed.rglob("*") if path.is_file()}
    log, other_name = DATA / "small1.log", tmp_path / "again.log"
    shutil.copy(log, other_name)
    ok("convert", log, "-o", tmp_path / "small1.pftrace", "-q")
    ok("convert", log, "-o", tmp_path / "tables", "--to", "tables", "-q")
    forms = [log, other_name, tmp_path / "small1.pftrace", tmp_path / "tables", partition(changed, "small1")]  # fmt: skip
    done = ok("ingest", *forms, "--into", changed)
    assert done.stdout.count("is in the dataset as small1-") == len(forms)
    assert f"0 added, {len(forms)} already there" in done.stdout
    assert {path: path.read_bytes() for path in changed.rglob("*") if path.is_file()} == before


def test_a_run_that_differs_is_refused_or_replaced(changed: Path) -> None:
    log = DATA / "small1.log"
    done = fails(3, "ingest", log, "--into", changed, "--host", "db7")
    assert "the host is db2 there instead of db7" in done.stderr
    assert "--replace" in done.stderr
    # With other options the rows are others.
    done = fails(3, "ingest", log, "--into", changed, "--min-latency", "12ms")
    assert "other options" in done.stderr
    assert len(partitions(changed)) == RUNS
    ok("ingest", log, "--into", changed, "--host", "db7", "--fact", "branch=x", "--replace")
    assert len(partitions(changed)) == RUNS
    moved = partition(changed, "small1")
    # What is not said again stays.
    assert moved.parent == changed / "host=db7" / "day=2026-11-02"
    sql = "SELECT format, branch FROM syncline_run WHERE host = 'db7'"
    assert ok("query", changed, sql, "--format", "csv").stdout.split()[1] == "thesis,x"
    ok("ingest", log, "--into", changed, "--min-latency", "12ms", "--replace")
    assert len(partitions(changed)) == RUNS
    assert len(list((changed / "_runs").iterdir())) == RUNS
    assert int(rows(changed, "summary", "--where", "host = 'db7'")[0]["value"].split(".")[0]) == 1


def test_what_is_not_a_run_is_named_and_the_others_are_added(tmp_path: Path) -> None:
    ok("convert", DATA / "small1.log", "-o", tmp_path / "a.csv", "-q")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.log").write_text("no log at all\n")
    done = run("ingest", tmp_path / "a.csv", tmp_path / "none", tmp_path / "empty", tmp_path / "bad.log", "-", DATA / "small1.log", "--into", tmp_path / "d")  # fmt: skip
    assert done.returncode == 3
    for text in ("a.csv holds only the requests", "none: no such file", "is a folder and not a run", "bad.log", "standard input has no name"):  # fmt: skip
        assert text in done.stderr
    assert "1 added" in done.stdout
    done = fails(3, "ingest", DATA / "small1.log", "--into", tmp_path)
    assert "is not a dataset, and holds other files" in done.stderr
    for options in (["--started", "yesterday"], ["--fact", "host=x"], ["--fact", "Branch=x"], ["--fact", "x"], ["--host", ""]):  # fmt: skip
        assert run("ingest", DATA / "empty.log", "--into", tmp_path / "d", *options).returncode == 2  # fmt: skip
    assert not list((tmp_path / "d" / "_staging").iterdir())


def test_the_name_of_a_host_stays_below_the_dataset(tmp_path: Path) -> None:
    hosts = ["../../up", "a/b", "ä b", "x=y", "%2e"]
    for host, name in zip(hosts, ("small1", "small4", "empty", "append", "rename"), strict=True):
        ok("ingest", DATA / f"{name}.log", "--into", tmp_path / "d", "--host", host)
    assert len(list((tmp_path / "d").glob("host=*/day=__HIVE_DEFAULT_PARTITION__/run=*"))) == 5
    found = ok("query", tmp_path / "d", "SELECT host FROM syncline_run WHERE day IS NULL", "--format", "json")  # fmt: skip
    assert all(json.dumps(host, ensure_ascii=False) in found.stdout for host in hosts)
    assert not (tmp_path / "up").exists()
    fails(2, "ingest", DATA / "sync.log", "--into", tmp_path / "d", "--host", "x" * 300)


def test_a_kill_leaves_no_half_run(tmp_path: Path) -> None:
    """Kills an ingest at many times. Each time the dataset is what it was, or has the run."""
    target = tmp_path / "d"
    ok("ingest", DATA / "small1.log", "--into", target)
    command = [sys.executable, "-c", "from syncline.cli import main; main()", "ingest", str(DATA / "bg.log.gz"), "--into", str(target)]  # fmt: skip
    begun = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    whole_s = time.monotonic() - begun
    shutil.rmtree(partition(target, "bg"))
    next((target / "_runs").glob("bg-*")).unlink()
    for step in range(4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(whole_s * (step + 1) / 4.5)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert ok("report", target, "summary", "--format", "csv").stdout.splitlines()[1][:12] in ("runs,all,1.0", "runs,all,2.0")  # fmt: skip
    ok("ingest", DATA / "bg.log.gz", "--into", target)
    assert len(list((target / "_runs").iterdir())) == 2
    assert not list((target / "_staging").iterdir())


def test_a_partition_without_an_entry_is_not_read_and_is_replaced(changed: Path) -> None:
    """What a kill between the rename and the entry leaves."""
    one = partition(changed, "small1")
    next((changed / "_runs").glob("small1-*")).unlink()
    (one / "syncline_bio.parquet").write_bytes(b"half")
    assert rows(changed, "summary")[0]["value"] == f"{RUNS - 1}.0"
    ok("ingest", DATA / "small1.log", "--into", changed, "--host", "db2", "--started", "2026-11-02")
    assert rows(changed, "summary")[0]["value"] == f"{RUNS}.0"


def test_partitions_that_cannot_be_read_are_named_and_left_out(changed: Path) -> None:
    shutil.rmtree(partition(changed, "small1"))
    (partition(changed, "empty") / "syncline_wait.parquet").unlink()
    cut = partition(changed, "parallel4") / "syncline_bio.parquet"
    cut.write_bytes(cut.read_bytes()[:-10])
    newer = next((changed / "_runs").glob("small4-*"))
    entry = json.loads(newer.read_bytes())
    newer.write_bytes(json.dumps(entry | {"schema_version": 999}).encode())
    done = ok("report", changed, "summary", "--format", "csv")
    assert done.stdout.splitlines()[1].startswith(f"runs,all,{RUNS - 4}.0")
    for text in (
        "1 run is left out: the partition was deleted: host=db2/day=2026-11-02/run=small1-",
        "1 run is left out: syncline_wait.parquet was deleted: ",
        "1 run is left out: syncline_bio.parquet is damaged: it has another size than at ingest: ",
        f"1 run is left out: of schema version 999, and this Syncline reads {_core.SCHEMA_VERSION}",
    ):
        assert text in done.stderr
    done = fails(3, "report", changed, "--where", "name = 'small1.log'")
    assert "no run can be read: 1 run is left out: the partition was deleted" in done.stderr
    # An ingest of what the runs were made from repairs them.
    logs = [DATA / f"{name}.log" for name in ("small1", "empty", "parallel4")]
    assert "0 added, 3 replaced" in ok("ingest", *logs, "--into", changed).stdout
    assert rows(changed, "summary")[0]["value"] == f"{RUNS - 1}.0"


def test_a_file_without_rows_and_footer_refuses_the_query_and_is_named(changed: Path) -> None:
    file = partition(changed, "parallel4") / "syncline_sync.parquet"
    data = bytearray(file.read_bytes())
    # The size stays, and nothing says that Syncline has written it.
    data[4:-8] = bytes(len(data) - 12)
    file.write_bytes(data)
    done = fails(3, "report", changed, "summary")
    assert "run=parallel4-" in done.stderr
    assert "is corrupt: it is not what was written at ingest" in done.stderr
    assert "Traceback" not in done.stderr
    hint = next(part for part in done.stderr.split('"') if part.startswith("run != "))
    assert rows(changed, "summary", "--where", hint)[0]["value"] == f"{RUNS - 1}.0"
    # An ingest of the same run finds it, too, although the size is the same.
    assert "1 replaced" in ok("ingest", DATA / "parallel4.log", "--into", changed).stdout
    assert rows(changed, "summary")[0]["value"] == f"{RUNS}.0"
    assert "1 already there" in ok("ingest", DATA / "parallel4.log", "--into", changed).stdout


def test_a_column_that_older_runs_lack_is_null_and_named(changed: Path) -> None:
    """Two schema versions in one dataset: one run lacks two columns of requests, and the table of phases."""
    one = partition(changed, "parallel4")
    entry_file = next((changed / "_runs").glob("parallel4-*"))
    entry = json.loads(entry_file.read_bytes())
    with once.database() as db:
        db.execute(f"COPY (SELECT * EXCLUDE (fs, other_ns) FROM '{one}/syncline_sync.parquet') TO '{changed}/new.parquet'")  # fmt: skip
    (changed / "new.parquet").rename(one / "syncline_sync.parquet")
    (one / "syncline_phase.parquet").unlink()
    del entry["tables"]["phase"], entry["tables"]["sync"]["columns"]["fs"], entry["tables"]["sync"]["columns"]["other_ns"]  # fmt: skip
    entry["tables"]["sync"]["bytes"] = (one / "syncline_sync.parquet").stat().st_size
    del entry["tables"]["journal"]["columns"]["dur_ns"]
    entry["schema_version"] = 1
    entry_file.write_bytes(json.dumps(entry).encode())
    done = ok("report", changed, "summary", "--format", "csv")
    assert f"columns are missing and treated as unknown: fs, other_ns, journal.dur_ns (in 1 of {RUNS} runs)" in done.stderr  # fmt: skip
    assert "tables of a run are missing" in done.stderr
    assert done.stdout.splitlines()[1].startswith(f"runs,all,{RUNS}.0")
    sql = "SELECT COUNT(fs) n, COUNT(*) - COUNT(other_ns) lacks FROM syncline_sync WHERE run LIKE 'parallel4-%'"
    assert ok("query", changed, sql, "--format", "csv").stdout.split()[1] == "0,80"


def test_damaged_markers_and_entries_are_named(changed: Path) -> None:
    entry = next((changed / "_runs").glob("empty-*"))
    good = entry.read_bytes()
    for bad in (b"", b"{", b"[]", good.replace(b'"run":"empty-', b'"run":"../../empty-'), good.replace(b"VARCHAR", b"x)--")):  # fmt: skip
        entry.write_bytes(bad)
        done = ok("report", changed, "summary", "--format", "csv")
        assert f"_runs/{entry.name} is damaged" in done.stderr
        assert done.stdout.splitlines()[1].startswith(f"runs,all,{RUNS - 1}.0")
    entry.write_bytes(good)
    marker = changed / "syncline_dataset.json"
    for bad, text in ((b"{}", "is damaged"), (b'{"syncline_dataset":2}', "version 2, and this Syncline reads version 1")):  # fmt: skip
        marker.write_bytes(bad)
        assert text in fails(3, "report", changed).stderr
        assert text in fails(3, "ingest", DATA / "sync.log", "--into", changed).stderr


def test_diff_takes_both_sides_from_a_dataset(tmp_path: Path) -> None:
    sides = RECORDINGS / "diff"
    for day, side in (("2026-11-01", "base"), ("2026-11-08", "slower")):
        for number, file in enumerate(sorted((sides / side).iterdir())):
            ok("ingest", "-q", file, "--into", tmp_path / "d", "--started", f"{day}T{number:02}:00")
    conditions = ("--base-where", "day = '2026-11-01'", "--new-where", "day = '2026-11-08'")
    of_dataset = fails(1, "diff", tmp_path / "d", *conditions, "--by", "none", "--format", "json")
    of_files = fails(1, "diff", sides / "base", sides / "slower", "--by", "none", "--format", "json")  # fmt: skip
    found, expected = (json.loads(done.stdout)["rows"] for done in (of_dataset, of_files))
    assert [row["verdict"] for row in found] == [row["verdict"] for row in expected]
    assert [row["new"] for row in found] == pytest.approx([row["new"] for row in expected])
    done = fails(3, "diff", DATA / "small1.log", DATA / "small4.log", "--where", "host = 'x'")
    assert "is not one" in done.stderr


# Object stores


# What the server was asked for.
ASKED: list[str] = []


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """Runs an S3 server, and yields the URL of a bucket in it."""
    server = pytest.importorskip("moto.server")
    fs = pytest.importorskip("pyarrow.fs")
    serving = pytest.importorskip("werkzeug.serving")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    log_request = serving.WSGIRequestHandler.log_request
    serving.WSGIRequestHandler.log_request = lambda own, *_: ASKED.append(f"{own.command} {own.path}")  # fmt: skip
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    _, port = running.get_host_and_port()
    kept = dict(os.environ)
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "SYNCLINE_STORE_TIMEOUT": "5",
    }
    fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True).create_dir("runs")  # fmt: skip
    yield "s3://runs"
    running.stop()
    serving.WSGIRequestHandler.log_request = log_request
    os.environ.clear()
    os.environ |= kept


def test_an_object_store_gives_what_a_folder_gives(bucket: str, dataset: Path) -> None:
    url = f"{bucket}/history"
    some = [partition(dataset, name) for name in ("small1", "parallel4", "empty")]
    assert "3 added" in ok("ingest", *some, "--into", url).stdout
    # Facts, host and day come along.
    condition = "host = 'db1' AND format = 'thesis' AND day = '2026-11-01' AND name != 'small4.log'"
    # Each request to the server costs CPU time, so both reports are asked of one engine.
    found = rows(url, "threads", "--where", condition)  # type: ignore[arg-type]
    assert found == rows(dataset, "threads", "--where", condition)
    with open_dataset(url, condition) as of_url, open_dataset(str(dataset), condition) as of_folder:
        assert run_report(of_url, "summary") == run_report(of_folder, "summary")
    assert "1 already there" in ok("ingest", some[0], "--into", url).stdout
    done = run("diff", url, "--base-where", "name = 'small1.log'", "--new-where", "name = 'parallel4.log'", "--by", "none")  # fmt: skip
    assert done.returncode in (1, 5), done.stderr
    assert "base  s3://runs/history" in done.stdout
    store = open_store(url)
    entry = next(one for one in index.read_entries(store)[0] if one.name == "empty.log")
    store.remove(f"{entry.partition}/{layout.table_name('bio')}")
    assert "syncline_bio.parquet was deleted" in ok("report", url, "threads").stdout
    assert "holds no syncline_dataset.json" in fails(3, "report", f"{bucket}/other").stderr
    assert "names no bucket" in fails(3, "report", "s3:///x").stderr
    denied = fails(2, "query", url, "SELECT * FROM read_text('s3://runs/other/x')")
    assert "disabled" in denied.stderr


def test_an_object_store_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    """One that refuses connections, and one that accepts them and is silent."""
    import socket

    monkeypatch.setenv("SYNCLINE_STORE_TIMEOUT", "1")
    with socket.socket() as silent, socket.socket() as closed:
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        closed.bind(("127.0.0.1", 0))
        for one in (closed, silent):
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{one.getsockname()[1]}")
            done = fails(3, "report", f"{bucket}/history", "summary")
            assert "the object store does not answer" in done.stderr
            assert "AWS_ENDPOINT_URL" in done.stderr
            assert "Traceback" not in done.stderr
            assert not done.stdout


def test_a_file_of_an_object_store_is_fetched_once(bucket: str, dataset: Path) -> None:
    some = [partition(dataset, name) for name in ("small1", "parallel4")]
    ok("ingest", "-q", *some, "--into", f"{bucket}/once")
    ASKED.clear()
    with open_dataset(f"{bucket}/once") as engine:
        whole = run_report(engine, "summary")
        engine.query("SELECT COUNT(*), MAX(path) FROM syncline_sync")
        run_report(engine, "files")
        # A table without rows is not asked for.
        assert engine.query("SELECT COUNT(*) FROM syncline_write_wait").rows == [(0,)]
    tables = [one for one in ASKED if ".parquet" in one]
    assert len(tables) == len({*tables})
    assert not [one for one in tables if "write_wait" in one]
    assert len([one for one in tables if "syncline_sync" in one]) == 4
    with open_dataset(str(dataset), "name IN ('small1.log', 'parallel4.log')") as engine:
        assert run_report(engine, "summary") == whole


def test_a_large_file_of_an_object_store_is_read_in_pieces(
    monkeypatch: pytest.MonkeyPatch, bucket: str, dataset: Path
) -> None:
    monkeypatch.setattr(object_files, "_SMALL_BYTES", 1000)
    ok("ingest", "-q", partition(dataset, "small1"), "--into", f"{bucket}/large")
    with open_dataset(f"{bucket}/large") as engine, open_dataset(str(dataset), "name = 'small1.log'") as of_folder:  # fmt: skip
        assert run_report(engine, "summary") == run_report(of_folder, "summary")


def test_a_store_that_stops_during_a_query_is_named(bucket: str, dataset: Path) -> None:
    """The entries are read, and then the server refuses to give the tables of the second run. Those of the first one have been read."""
    some = [partition(dataset, name) for name in ("small1", "parallel4")]
    ok("ingest", "-q", *some, "--into", f"{bucket}/stops")
    with open_dataset(f"{bucket}/stops") as engine:
        store = open_store(f"{bucket}/stops")
        _, entry = index.read_entries(store)[0]
        store.remove(entry.partition)
        with pytest.raises((EngineError, InputError)) as failed:
            engine.query("SELECT SUM(bytes), MAX(path) FROM syncline_sync")
    assert f"run={entry.run}" in str(failed.value)


def replaced(url: str, host: str) -> str:
    described = ingest.Described(host=host, replace=True)
    return ingest.ingest(
        resolve(str(DATA / "small1.log")), open_store(url), Reading(), described
    ).status


def claims(url: str) -> dict[str, int]:
    return open_store(url).sizes(layout.CLAIMS)


def test_two_replaces_of_one_run_at_once_leave_one_of_it_in_an_object_store(
    monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    # Under load, the one may wait long for the other.
    monkeypatch.setenv("SYNCLINE_STORE_TIMEOUT", "60")
    url = f"{bucket}/twice"
    ok("ingest", "-q", DATA / "small1.log", "--into", url, "--host", "old")
    # Both wait here for each other, if both get here.
    meeting = threading.Barrier(2)
    publish = ObjectStore.publish

    def slow(self: ObjectStore, *arguments: Any) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(1)
        publish(self, *arguments)

    monkeypatch.setattr(ObjectStore, "publish", slow)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda host: replaced(url, host), ("one", "two")))
    assert both == ["replaced", "replaced"]
    selection = index.select(open_store(url))
    assert not selection.left_out
    (entry,) = selection.entries
    assert entry.host in ("one", "two")
    assert not claims(url)
    folders = {host: open_store(url).sizes(entry.partition.replace(f"host={entry.host}", f"host={host}")) for host in ("old", "one", "two")}  # fmt: skip
    assert [host for host, files in folders.items() if files] == [entry.host]


def test_a_run_that_another_command_changes_in_an_object_store_is_refused(
    monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    url = f"{bucket}/claimed"
    log = DATA / "small1.log"
    ok("ingest", "-q", log, "--into", url)
    store = open_store(url)
    (entry,) = index.read_entries(store)[0]
    _, of_input, _ = entry.file.split(".")
    described = ingest.Described(host="new", replace=True)
    with monkeypatch.context() as patched:
        # How long the command waits for the other one. The store may take its time for each answer.
        patched.setattr("syncline.dataset.store.timeout_s", lambda: 0.0)
        for claim in (f"input-{of_input}.other", f"rows-{entry.run.rpartition('-')[2]}.other"):
            store.write(f"{layout.CLAIMS}/{claim}", b"another host, process 1")
            with pytest.raises(InputError) as refused:
                ingest.ingest(resolve(str(log)), store, Reading(), described)
            assert f"another command is changing the same run: {url}/_claims/{claim}" in str(refused.value)  # fmt: skip
            # Nothing else is left.
            assert set(claims(url)) == {claim}
            # Other runs do not wait.
            other = str(DATA / "empty.log")
            assert (
                ingest.ingest(resolve(other), store, Reading(), ingest.Described()).status
                != "replaced"
            )
            store.remove(f"{layout.CLAIMS}/{claim}")
    assert [one.host for one in index.read_entries(store)[0]] == [None, None]
    # A killed command does not write its claim again.
    store.write(f"{layout.CLAIMS}/input-{of_input}.killed", b"")
    listed = ObjectStore._claims

    def aged(self: ObjectStore) -> dict[str, float]:
        return {name: at - 121 if name.endswith(".killed") else at for name, at in listed(self).items()}  # fmt: skip

    monkeypatch.setattr(ObjectStore, "_claims", aged)
    # The thread that writes the claims again is often busy when the command ends.
    monkeypatch.setattr("syncline.dataset.store._RENEWAL_S", 0.001)
    assert replaced(url, "new") == "replaced"
    assert not claims(url)


def test_a_command_whose_claim_is_removed_does_not_finish(
    monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    url = f"{bucket}/removed"
    ok("ingest", "-q", DATA / "small1.log", "--into", url, "--host", "old")
    publish = ObjectStore.publish

    def late(self: ObjectStore, *arguments: Any) -> None:
        publish(self, *arguments)
        written = {f"{layout.CLAIMS}/{claim}" for claim in claims(url)}
        assert len(written) == 2
        for _ in range(100):
            if all(self.read(claim) == b"renewed\n" for claim in written):
                break
            time.sleep(0.1)
        else:
            raise AssertionError("the claims are not written again")
        # The next time is long after the end. One may have begun.
        monkeypatch.setattr("syncline.dataset.store._RENEWAL_S", 1000)
        for _ in range(3):
            time.sleep(0.2)
            for claim in written:
                self.remove(claim)

    monkeypatch.setattr("syncline.dataset.store._RENEWAL_S", 0.1)
    monkeypatch.setattr(ObjectStore, "publish", late)
    with pytest.raises(InputError, match="was removed, so another command may be changing"):
        replaced(url, "new")
    (entry,) = index.select(open_store(url)).entries
    assert entry.host == "old"


# Stops itself before it writes an entry: the moment that no claim protects.
STOPS = """
import os, signal
from syncline.dataset import store
store._CLAIM_LIFE_S = 2
write = store.ObjectStore.write
def late(self, path, data):
    if path.startswith("_runs/"):
        os.kill(os.getpid(), signal.SIGSTOP)
    write(self, path, data)
store.ObjectStore.write = late
from syncline.cli import main
main()
"""

# Finds claims old after two seconds. Its own deadline stays two minutes: a busy machine may stop it for seconds.
FINDS_OLD_CLAIMS = """
from syncline.dataset import store
late = store._CLAIM_LIFE_S
store._CLAIM_LIFE_S = 2
store._Renewing.is_late = lambda self: store._now_s() - self.written_s > late
from syncline.cli import main
main()
"""


def test_a_command_that_stops_before_its_entry_adds_no_run_twice(bucket: str) -> None:
    """Two processes. The second removes the claims of the first, which is stopped, and makes other rows of the run."""
    url = f"{bucket}/stopped"
    log = str(DATA / "small1.log")
    ok("ingest", "-q", log, "--into", url, "--host", "old")
    command = [sys.executable, "-c", STOPS, "ingest", log, "--into", url, "--replace", "--host", "one", "--min-latency", "5ms"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as first:  # fmt: skip
        try:
            _, status = os.waitpid(first.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            time.sleep(3)
            second = [sys.executable, "-c", FINDS_OLD_CLAIMS, "ingest", log, "--into", url, "--replace", "--host", "two", "--min-latency", "12ms"]  # fmt: skip
            done = subprocess.run(second, capture_output=True, text=True, check=False)
            assert "1 replaced" in done.stdout, done.stderr
            first.send_signal(signal.SIGCONT)
            _, said = first.communicate(timeout=60)
        finally:
            first.kill()
    assert first.returncode == 3
    assert "was removed, so another command may be changing the same run" in said
    # Both entries are there, and one is read.
    assert len(open_store(url).sizes(layout.ENTRIES)) == 2
    report = ok("report", url, "summary", "--format", "csv")
    assert report.stdout.splitlines()[1].startswith("runs,all,1.0")
    assert "1 run is left out: " in report.stderr
    assert "is of the same run as small1-" in report.stderr
    done = ok("ingest", log, "--into", url, "--replace", "--host", "three")
    assert "1 replaced" in done.stdout
    assert not index.select(open_store(url)).left_out
    assert len(open_store(url).sizes(layout.ENTRIES)) == 1


@pytest.mark.parametrize("what", ["a value", "headers of pages"])
def test_a_changed_file_is_found_by_its_checksum(what: str, changed: Path) -> None:
    """DuckDB does not notice a changed value, and fails in Thrift in a changed header of a page."""
    file = partition(changed, "parallel4") / "syncline_sync.parquet"
    good = file.read_bytes()
    truth = rows(changed, "scatter", "--where", "name != 'parallel4.log'")
    with once.database() as db:
        starts = db.execute(
            "SELECT COALESCE(dictionary_page_offset, data_page_offset) FROM parquet_metadata(?)",
            [str(file)],
        ).fetchall()
    data = bytearray(good)
    if what == "a value":
        # In the middle of the pages of one column.
        middle = (starts[1][0] + starts[2][0]) // 2
        data[middle] ^= 2
    else:
        for (start,) in starts:
            data[start : start + 8] = b"\x5a" * 8
    file.write_bytes(data)
    said = (
        "1 run is left out: syncline_sync.parquet is corrupt: it is not what was written at ingest"
    )
    assert said in run("report", changed, "summary").stdout
    assert rows(changed, "scatter") == truth
    done = fails(3, "report", changed, "summary", "--where", "name = 'parallel4.log'")
    assert f"no run can be read: {said}" in done.stderr
    done = fails(3, "inspect", changed, "--verify")
    assert "syncline_sync.parquet is corrupt: it is not what was written at ingest" in done.stderr
    assert f"{RUNS - 1} runs as at ingest, 1 not" in done.stderr
    done = run(
        "diff", changed, changed, "--base-where", "host = 'db1'", "--new-where", "host = 'db2'"
    )
    assert "1 run is left out: syncline_sync.parquet is corrupt" in done.stderr + done.stdout
    file.write_bytes(good)
    assert f"{RUNS} runs as at ingest, 0 not" in ok("inspect", changed, "--verify").stderr
    fails(2, "inspect", DATA / "small1.log", "--verify")


def test_verify_finds_what_is_gone(changed: Path) -> None:
    """A partition, a file, the end of a file, and an entry of the index."""
    first, second, third, *_ = partitions(changed)
    shutil.rmtree(first)
    (second / "syncline_sync.parquet").unlink()
    os.truncate(third / "syncline_bio.parquet", 500)
    gone = {layout.parse(entry.read_bytes()).partition: entry for entry in (changed / "_runs").iterdir()}  # fmt: skip
    left = [one for name, one in gone.items() if changed / name not in (first, second, third)]
    left[0].write_text("{bad")
    done = fails(3, "inspect", changed, "--verify")
    assert f"{first.relative_to(changed)}: the partition was deleted" in done.stderr
    assert f"{second.relative_to(changed)}: syncline_sync.parquet was deleted" in done.stderr
    assert f"{third.relative_to(changed)}: syncline_bio.parquet is damaged" in done.stderr
    assert f"{left[0].name} is damaged" in done.stderr
    assert f"{RUNS - 4} runs as at ingest, 4 not" in done.stderr
    report = run("report", changed, "summary").stdout
    assert "the partition was deleted: " in report
    assert "(an ingest of the same run repairs this)" in report
    missing = changed / "host=db1" / "day=2026-11-01" / "run=none"
    assert "has no entry of the run none" in fails(3, "inspect", missing, "--verify").stderr
    one = next(name for name, entry in gone.items() if entry in left[1:])
    assert "1 run as at ingest, 0 not" in ok("inspect", changed / one, "--verify").stderr
    fails(3, "inspect", first, "--verify")
    done = fails(3, "inspect", changed, "--verify", "--where", "host = 'none'")
    assert "passes --where" in done.stderr


def test_an_ingest_says_what_a_run_lacks(tmp_path: Path) -> None:
    logs = [DATA / "small1.log", DATA / "append.log"]
    done = ok("ingest", *logs, "--into", tmp_path / "d")
    assert f"note: the host of 2 runs ({logs[0]}, {logs[1]}) is not known" in done.stderr
    assert (
        f"note: the day of 2 runs ({logs[0]}, {logs[1]}) is not known, so `trend` leaves them out"
        in done.stderr
    )
    # What is there already is not named again, nor with --quiet.
    assert "note:" not in ok("ingest", *logs, "--into", tmp_path / "d").stderr
    assert "note:" not in ok("ingest", "-q", *logs, "--into", tmp_path / "e").stderr
    known = ("--host", "db1", "--started", "2026-11-01")
    assert "note:" not in ok("ingest", logs[0], "--into", tmp_path / "f", *known).stderr
    done = fails(2, "ingest", *logs, "--into", tmp_path / "g", *known)
    assert "--started is the time of one run, and these are 2" in done.stderr
    assert not (tmp_path / "g").exists()
    cut = tmp_path / "cut.log"
    cut.write_text((DATA / "small1.log").read_text() + "Lost 7 events\n")
    assert ", 7 losses" in ok("ingest", cut, "--into", tmp_path / "h").stdout


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_report_in_batches_has_the_same_text(
    monkeypatch: pytest.MonkeyPatch, dataset: Path, form: str
) -> None:
    parts = streamed(form)
    assert parts
    scatter = load("scatter")
    none = f"SELECT * FROM ({scatter.sql.partition('ORDER BY')[0]}) AS one WHERE run = 'none'"
    monkeypatch.setattr("syncline.engine.columns._BATCH", 7)
    with open_dataset(str(dataset)) as engine:
        for sql, report in ((scatter.sql, scatter), (none, scatter), (none, None)):
            whole = engine.query(sql)
            batches = [*engine.batches(sql)]
            assert [len(one.rows) for one in batches[:-1]] == [7] * (len(whole.rows) // 7)
            text = "".join(parts(whole.columns, [one.rows for one in batches], report))
            assert text == exporter(form)(Table(whole.columns, whole.rows), report)
        assert len(engine.query(scatter.sql).rows) > 100


def test_reports_run_by_run_have_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, dataset: Path
) -> None:
    # Some runs by themselves, and some together.
    monkeypatch.setattr("syncline.dataset.tables._REQUESTS_AT_ONCE", 150)
    with open_dataset(str(dataset)) as engine:
        for name in sorted(EACH_RUN):
            whole = engine.query(load(name).sql)
            assert whole.rows, name
            assert run_report(engine, name) == Table(whole.columns, whole.rows), name
        # All runs are there again.
        assert engine.query("SELECT COUNT(DISTINCT run) FROM syncline_sync").rows == [(RUNS,)]
        assert len([*engine.batches("SELECT 1", each_run=True)]) in range(2, RUNS)


def test_other_commands_take_a_dataset_or_refuse_it(dataset: Path, tmp_path: Path) -> None:
    only = ("--where", "name = 'parallel4.log'")
    assert "a dataset, of" in ok("inspect", dataset, *only).stdout
    assert "80 requests" in ok("flamegraph", dataset, "-o", tmp_path / "f.svg", *only).stderr
    assert "the UI shows traces" in fails(3, "open", dataset).stderr
    assert "is already converted" in fails(3, "convert", dataset, "-o", tmp_path / "o.csv").stderr
    for command in (("convert", DATA / "small1.log", "-o", tmp_path / "o.csv"), ("ingest", DATA / "small1.log", "--into", dataset)):  # fmt: skip
        assert "--where selects runs of a dataset" in fails(2, *command, *only).stderr


def test_the_memory_of_duckdb_can_be_set(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT current_setting('memory_limit') AS m"
    monkeypatch.setenv("SYNCLINE_MEMORY", "512M")
    assert ok("query", dataset, sql, "--format", "csv").stdout.split()[1:] == ["512.0", "MiB"]
    monkeypatch.setenv("SYNCLINE_MEMORY", "20M")
    # A list of 10^7 numbers does not fit, and cannot be written to a file in parts.
    done = fails(3, "query", dataset, "SELECT percentile(hash(range), 50) FROM range(10000000)")
    assert "needs more memory" in done.stderr
    assert "SYNCLINE_MEMORY=8G" in done.stderr
    for bad in ("much", "0", "1T", "-1"):
        monkeypatch.setenv("SYNCLINE_MEMORY", bad)
        assert "SYNCLINE_MEMORY" in fails(3, "query", dataset, sql).stderr


def test_a_marker_that_another_command_is_writing_is_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / f"d/.{layout.MARKER}.syncline-Ab12Cd.part").write_bytes(b"")
    ok("ingest", DATA / "small1.log", "--into", tmp_path / "d")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/.notes.part").write_bytes(b"")
    refused = fails(3, "ingest", DATA / "small1.log", "--into", tmp_path / "other")
    assert "holds other files" in refused.stderr


def test_two_ingests_at_once_add_all_runs(tmp_path: Path) -> None:
    groups = [["small1", "empty", "append"], ["small1", "rename", "append"]]
    results: list[int] = []

    def add(group: list[str]) -> None:
        command = [sys.executable, "-c", "from syncline.cli import main; main()", "ingest", "-q"]
        files = [str(DATA / f"{name}.log") for name in group]
        results.append(subprocess.run([*command, *files, "--into", str(tmp_path / "d")], check=False).returncode)  # fmt: skip

    threads = [threading.Thread(target=add, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [0, 0]
    selection = index.select(open_store(str(tmp_path / "d")))
    assert sorted(entry.name for entry in selection.entries) == ["append.log", "empty.log", "rename.log", "small1.log"]  # fmt: skip
    assert not selection.left_out


def test_two_replaces_of_one_run_at_once_leave_one_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok("ingest", DATA / "small1.log", "--into", tmp_path / "d", "--host", "old")
    store = open_store(str(tmp_path / "d"))
    # Both wait here for each other, if both get here.
    meeting = threading.Barrier(2)
    publish = FolderStore.publish

    def slow(self: FolderStore, *arguments: Any) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(1)
        publish(self, *arguments)

    monkeypatch.setattr(FolderStore, "publish", slow)

    def replace(host: str) -> str:
        described = ingest.Described(host=host, replace=True)
        return ingest.ingest(resolve(str(DATA / "small1.log")), store, Reading(), described).status

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(replace, ("one", "two"))) == ["replaced", "replaced"]
    selection = index.select(store)
    assert not selection.left_out
    (entry,) = selection.entries
    assert entry.host in ("one", "two")
    assert [str(one.relative_to(tmp_path / "d")) for one in partitions(tmp_path / "d")] == [entry.partition]  # fmt: skip


@pytest.mark.parametrize("what", ["run", "host", "file"])
def test_a_link_in_a_dataset_is_named(changed: Path, tmp_path: Path, what: str) -> None:
    place = partition(changed, "small1")
    link = {"run": place, "host": place.parents[1], "file": place / "syncline_bio.parquet"}[what]
    link.rename(tmp_path / "elsewhere")
    link.symlink_to(tmp_path / "elsewhere")
    done = ok("report", changed, "summary", "--format", "csv")
    left = 3 if what == "host" else 1
    assert done.stdout.splitlines()[1].startswith(f"runs,all,{RUNS - left}.0")
    assert f"left out: {link.relative_to(changed)} is a symbolic link, and a dataset holds none" in done.stderr  # fmt: skip
    assert "an ingest of the same run repairs" not in done.stderr


def test_entries_are_parsed_strictly(dataset: Path) -> None:
    entry, _ = index.read_entries(open_store(str(dataset)))
    data = layout.serialized(entry[0])
    assert layout.serialized(layout.parse(data)) == data
    whole = json.loads(data)
    for key, bad in (
        *(("run", "a/b"), ("run", ""), ("day", "2026-11"), ("day", "../.."), ("host", "")),
        *(("tables", {}), ("tables", None), ("started_ns", "1"), ("figures", [[1]])),
        *(("figures", [["a", "all", "1", "ns", 1, 1]]), ("facts", {"a": 1}), ("syncline_run", 2)),
    ):
        with pytest.raises(ValueError, match=r"."):
            layout.parse(json.dumps(whole | {key: bad}).encode())
    with pytest.raises(SqlError):
        index.select(open_store(str(dataset)), "1 +")


@pytest.mark.parametrize("key", ["input_id", "rows_id"])
def test_an_identity_that_is_a_path_is_refused(dataset: Path, key: str) -> None:
    data = json.loads(next((dataset / "_runs").iterdir()).read_text())
    layout.parse(json.dumps(data).encode())
    data[key] = "/../../../xy000" + "0" * 49
    with pytest.raises(ValueError, match="is not a SHA-256"):
        layout.parse(json.dumps(data).encode())


@pytest.mark.parametrize("time", ["0001-01-01", "9999-12-31"])
def test_a_time_that_no_dataset_holds_is_refused(tmp_path: Path, time: str) -> None:
    log = RECORDINGS / "thesis/small4.log"
    done = fails(2, "ingest", log, "--into", tmp_path / "new", "--started", time)
    assert "1678 to 2262" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("key", ["HOST", "host", "a b"])
def test_a_fact_that_cannot_be_a_column_is_refused(dataset: Path, key: str) -> None:
    data = json.loads(next((dataset / "_runs").iterdir()).read_text())
    data["facts"] = {key: "x"}
    with pytest.raises(ValueError, match="fact "):
        layout.parse(json.dumps(data).encode())


@pytest.mark.parametrize("name", ["_staging", "_runs", "host=elsewhere"])
def test_an_ingest_follows_no_link_out_of_the_dataset(name: str, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    (out / "removed-precious").mkdir(parents=True)
    (out / "removed-precious" / "file").write_text("precious")
    ok("ingest", DATA / "rename.log", "--into", data)
    if name == "_runs":
        shutil.rmtree(data / name)
    elif name == "_staging":
        shutil.rmtree(data / name, ignore_errors=True)
    (data / name).symlink_to(out)
    log = DATA / "small1.log"
    done = run("ingest", log, "--into", data, "--host", "elsewhere")
    assert done.returncode == 3
    assert f"{data / name} is a symbolic link" in done.stderr
    assert [path.name for path in out.iterdir()] == ["removed-precious"]
    assert (out / "removed-precious" / "file").read_text() == "precious"
