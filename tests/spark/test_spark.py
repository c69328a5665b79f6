"""Datasets on a standalone cluster of Spark: three worker processes on 127.0.0.1. One is killed during an ingest.

`make spark-test` runs it. It takes minutes, so `make test` skips it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from syncline.dataset import index
from syncline.dataset.spark import open_spark, translate
from syncline.dataset.store import open_store
from syncline.dataset.tables import open_dataset
from syncline.engine import SqlError
from syncline.report import caveats, names, run_query, run_report

from tests.coretools import DATA
from tests.sqltools import same

if "SYNCLINE_SPARK" not in os.environ:
    pytest.skip("Spark: make spark-test", allow_module_level=True)
pyspark = pytest.importorskip("pyspark")
pytest.importorskip("sqlglot")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark: no Java (apt-get install openjdk-17-jre-headless)", allow_module_level=True)

WORKERS = 3
HOME = Path(pyspark.__file__).parent
RECORDINGS = DATA.parent
RUNS = [
    *sorted(DATA.glob("*.log")),
    DATA / "bg.log.gz",
    RECORDINGS / "tracecmd" / "small4.dat",
    RECORDINGS / "strace" / "small4.log",
    RECORDINGS / "dynamic-events" / "ext4.report.txt.gz",
]


@dataclass
class Cluster:
    """A master and its workers."""

    url: str
    workers: list[subprocess.Popen[bytes]]
    logs: list[Path]


def start(folder: Path, name: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
    """Starts a process of Spark, and returns it with its log."""
    env = os.environ | {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / f"{name}-work"),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [HOME / "bin" / "spark-class", *arguments], env=env, stdout=out, stderr=out, start_new_session=True
        )  # fmt: skip
    return process, log


def wait_for(log: Path, pattern: str) -> str:
    """Waits until a log has a line, and returns what the pattern matches."""
    until = time.monotonic() + 240
    while time.monotonic() < until:
        if found := re.search(pattern, log.read_text()):
            return found[0]
        time.sleep(0.2)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    deploy = "org.apache.spark.deploy"
    master, log = start(folder, "master", f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")  # fmt: skip
    processes = [master]
    try:
        url = wait_for(log, r"spark://127\.0\.0\.1:\d+")
        logs = []
        for number in range(WORKERS):
            process, worker_log = start(
                *(folder, f"worker{number}", f"{deploy}.worker.Worker", "--host", "127.0.0.1"),
                *("--webui-port", "0", "--cores", "1", "--memory", "1200m", url),
            )
            processes.append(process)
            logs.append(worker_log)
        for worker_log in logs:
            wait_for(worker_log, "Successfully registered with master")
        yield Cluster(url, processes[1:], logs)
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def dataset(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a dataset that the cluster wrote while one of its workers was killed."""
    folder = tmp_path_factory.mktemp("spark") / "history"
    bad = folder.parent / "bad.log"
    bad.write_text("no log at all\n")
    command = [sys.executable, "-c", "from syncline.cli import main; main()", "ingest"]
    command += [*map(str, RUNS), str(bad), "--into", str(folder), "--host", "h", "--spark", cluster.url]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 400
    while not list(folder.glob("_runs/*.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    victim = next(
        number
        for number, log in enumerate(cluster.logs)
        if "Asked to launch executor" in log.read_text()
    )
    worker = cluster.workers[victim].pid
    # The executor is a child, and would end only once it misses the worker.
    for pid in children(worker):
        os.kill(pid, signal.SIGKILL)
    os.killpg(worker, signal.SIGKILL)
    done_before = len(list(folder.glob("_runs/*.json")))
    out, error = process.communicate(timeout=600)
    assert done_before < len(RUNS), "the ingest was over before the worker was killed"
    assert process.returncode == 3, (out, error)
    assert "bad.log" in error
    assert "Traceback" not in error
    return folder


def children(pid: int) -> list[int]:
    """Returns the processes below a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children(int(child))]
    return found


def test_every_run_is_there_once_although_a_worker_died(dataset: Path) -> None:
    selection = index.select(open_store(str(dataset)))
    assert sorted(entry.name for entry in selection.entries) == sorted(run.name for run in RUNS)
    assert len({entry.rows_id for entry in selection.entries}) == len(RUNS)
    assert not selection.left_out
    assert len(list(dataset.glob("host=*/day=*/run=*"))) == len(RUNS)


def test_every_report_has_the_rows_of_duckdb(cluster: Cluster, dataset: Path) -> None:
    with open_spark(str(dataset), None, cluster.url) as spark, open_dataset(str(dataset)) as duckdb:
        for name in names():
            found, expected = run_report(spark, name), run_report(duckdb, name)
            assert found.columns == expected.columns, name
            assert same(found.rows, expected.rows), name
        assert caveats(spark) == caveats(duckdb)
        sql = "SELECT host, COUNT(*) AS runs, SUM(requests) AS n FROM syncline_run GROUP BY host"
        assert run_query(spark, sql).rows == run_query(duckdb, sql).rows
        for sql, message in (
            ("SELECT nothing FROM syncline_sync", "nothing"),
            ("DROP VIEW syncline_sync", "is not allowed"),
            ("CREATE TABLE x AS SELECT 1", "is not allowed"),
            ("SELECT FROM WHERE", ""),
        ):
            with pytest.raises(SqlError) as failed:
                run_query(spark, sql)
            assert message in str(failed.value)
            assert "org.apache" not in str(failed.value)


def test_every_report_is_translated_without_a_rest_of_duckdb() -> None:
    (text,) = translate("SELECT percentile(x, 99.9), 1.5 * y, COUNT(*) OVER w - 1 FROM t WINDOW w AS (ORDER BY x)")  # fmt: skip
    assert "PERCENTILE(x, CAST(99.9 AS DOUBLE) / 100)" in text
    assert "CAST(1.5 AS DOUBLE)" in text
    assert "(COUNT(*) OVER w) - 1" in text
