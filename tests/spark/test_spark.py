"""Datasets on a standalone cluster of Spark: three worker processes on 127.0.0.1. One is killed during an ingest, and one
during a report.

`make spark-test` runs it. It takes minutes, so `make test` skips it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from syncline.dataset import index
from syncline.dataset.ingest import Described, create, ingest
from syncline.dataset.spark import open_spark
from syncline.dataset.store import open_store
from syncline.dataset.tables import open_dataset
from syncline.engine import SqlError
from syncline.kinds import resolve
from syncline.reading import Reading
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
LOGS = [
    *sorted(DATA.glob("*.log")),
    DATA / "bg.log.gz",
    RECORDINGS / "tracecmd" / "small4.dat",
    RECORDINGS / "strace" / "small4.log",
    RECORDINGS / "strace" / "failed.log",
    RECORDINGS / "dynamic-events" / "ext4.report.txt.gz",
    RECORDINGS / "marks" / "marks.dat.gz",
]
# Recordings with commits, neighbours and waits of writes, by their archive.
KNOWN_TRUTH = {
    "commit": ("group-4", "group-4-xfs"),
    "postgres": ("postgres", "postgres-neighbour"),
    "queue": ("neighbour-direct",),
    "slow-write": ("write-page", "write-throttled", "write-journal-space", "write-inode-lock"),
}
# Each report has at least so many rows on these runs.
ROWS = 3


@dataclass
class Cluster:
    """A master and its workers, and the folder with a log of what Spark did in each session."""

    url: str
    workers: list[subprocess.Popen[bytes]]
    logs: list[Path]
    events: Path

    def kill(self, worker: int) -> None:
        """Kills a worker, its executor and the processes of Python that this has started."""
        pid = self.workers[worker].pid
        # The executor is a child, and would end only once it misses the worker.
        for child in children(pid):
            os.kill(child, signal.SIGKILL)
        os.killpg(pid, signal.SIGKILL)

    def happened(self, kind: str) -> list[dict[str, Any]]:
        """Returns the events of a kind of all sessions."""
        lines = [line for file in sorted(self.events.rglob("events_*")) for line in file.open()]
        return [one for one in map(json.loads, lines) if one["Event"] == f"SparkListener{kind}"]


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
        # What any driver of Spark on this machine reads.
        events = folder / "events"
        events.mkdir()
        settings = {
            "eventLog.enabled": "true",
            "eventLog.dir": events.as_uri(),
            "eventLog.compress": "false",
        }
        settings["eventLog.rolling.enabled"] = "true"
        text = "".join(f"spark.{key} {value}\n" for key, value in settings.items())
        (folder / "spark-defaults.conf").write_text(text)
        os.environ["SPARK_CONF_DIR"] = str(folder)
        yield Cluster(url, processes[1:], logs, events)
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Returns the runs: logs, and run directories out of their archives."""
    folder = tmp_path_factory.mktemp("runs")
    for name, members in KNOWN_TRUTH.items():
        with tarfile.open(RECORDINGS / "known-truth" / f"{name}.tar.xz") as archive:
            chosen = [one for one in archive if one.name.partition("/")[0] in members]
            archive.extractall(folder, chosen, filter="data")
    return [*LOGS, *(folder / name for names in KNOWN_TRUTH.values() for name in names)]


@pytest.fixture(scope="module")
def local(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a dataset of the runs that Spark had no part in."""
    folder = tmp_path_factory.mktemp("local") / "history"
    store = open_store(str(folder))
    create(store)
    for run in runs:
        ingest(resolve(str(run)), store, Reading(), Described(host="h"))
    return folder


@pytest.fixture(scope="module")
def dataset(cluster: Cluster, runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a dataset that the cluster wrote while one of its workers was killed in the middle of a task."""
    folder = tmp_path_factory.mktemp("spark") / "history"
    bad = folder.parent / "bad.log"
    bad.write_text("no log at all\n")
    command = [sys.executable, "-c", "from syncline.cli import main; main()", "ingest"]
    command += [*map(str, runs), str(bad), "--into", str(folder), "--host", "h", "--spark", cluster.url]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def added() -> int:
        assert process.poll() is None, process.communicate()
        return len(list(folder.glob("_runs/*.json")))

    until = time.monotonic() + 400
    while not added():
        assert time.monotonic() < until
        time.sleep(0.02)
    # Stopped, so that it cannot end its task. The others continue until theirs are done.
    victim = next(n for _ in range(1000) for n in range(WORKERS) if stopped_in_a_task(cluster.workers[n].pid, folder))  # fmt: skip
    before, since = added(), time.monotonic()
    # On a busy machine, a task takes longer than a few seconds.
    while before < len(runs) - 1 and time.monotonic() - since < 60:
        time.sleep(0.2)
        if (now := added()) != before:
            before, since = now, time.monotonic()
    assert before == len(runs) - 1, "the stopped worker has no task"
    cluster.kill(victim)
    out, error = process.communicate(timeout=600)
    assert process.returncode == 3, (out, error)
    assert "bad.log" in error
    assert "Traceback" not in error
    return folder


def stopped_in_a_task(worker: int, dataset: Path) -> bool:
    """Stops the processes of a worker, and returns whether one of them is writing a partition. If not, they continue."""
    stopped = children(worker)
    for pid in stopped:
        send(pid, signal.SIGSTOP)
    files = [Path(os.path.realpath(file)) for pid in stopped for file in Path(f"/proc/{pid}/fd").glob("*")]  # fmt: skip
    # A folder for a partition is locked. Its tables leave it when they are published, while the whole dataset is locked.
    locked = any(file.parent == dataset for file in files)
    if not locked and any(file.is_relative_to(dataset / "_staging") and file.with_name("tables").is_dir() for file in files):  # fmt: skip
        return True
    for pid in stopped:
        send(pid, signal.SIGCONT)
    time.sleep(0.01)
    return False


def send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def children(pid: int) -> list[int]:
    """Returns the processes below a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children(int(child))]
    return found


def test_the_tasks_of_the_worker_that_died_ran_again(cluster: Cluster, dataset: Path) -> None:
    ends = cluster.happened("TaskEnd")
    lost = [one for one in ends if one["Task End Reason"]["Reason"] == "ExecutorLostFailure"]
    assert lost
    for one in lost:
        info = one["Task Info"]
        again = [
            other["Task Info"]
            for other in ends
            if (other["Stage ID"], other["Task Info"]["Index"]) == (one["Stage ID"], info["Index"])
            and other["Task End Reason"]["Reason"] == "Success"
        ]
        assert [other["Executor ID"] != info["Executor ID"] for other in again] == [True]


def test_every_run_is_there_once_with_the_rows_of_a_local_ingest(
    dataset: Path, local: Path, runs: list[Path]
) -> None:
    found, expected = (index.select(open_store(str(one))) for one in (dataset, local))
    assert not found.left_out
    assert len(found.entries) == len(runs)
    # `rows_id` is made from checksums of the rows.
    assert {(one.name, one.rows_id) for one in found.entries} == {(one.name, one.rows_id) for one in expected.entries}  # fmt: skip
    assert len(list(dataset.glob("host=*/day=*/run=*"))) == len(runs)


def test_every_report_has_the_rows_of_duckdb_although_a_worker_dies(
    cluster: Cluster, dataset: Path
) -> None:
    with open_spark(str(dataset), None, cluster.url) as spark, open_dataset(str(dataset)) as duckdb:
        alive = [n for n, worker in enumerate(cluster.workers) if worker.poll() is None]
        assert len(alive) == WORKERS - 1
        # While the first report runs.
        threading.Timer(1, cluster.kill, [alive[0]]).start()
        for name in names():
            found, expected = run_report(spark, name), run_report(duckdb, name)
            assert found.columns == expected.columns, name
            assert same(found.rows, expected.rows), name
            assert len(found.rows) >= ROWS, name
        assert cluster.workers[alive[0]].wait() == -signal.SIGKILL
        lost = [
            one for one in cluster.happened("ExecutorRemoved") if "lost" in one["Removed Reason"]
        ]
        assert len(lost) >= 2, cluster.happened("ExecutorRemoved")
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
