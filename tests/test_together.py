"""Several logs of one run as the INPUT of `report`, which gives what `convert` of them gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syncline.inputs import Reading, opened
from syncline.report import html

from tests.coretools import ROOT
from tests.test_commands import fails, ok, run
from tests.test_html import embedded

LOGS = ROOT / "tests" / "data" / "several-recorders"
RING, PERF, STRACE = LOGS / "ring.dat", LOGS / "perf.txt.gz", LOGS / "strace.log"


@pytest.mark.parametrize("report", ["files", "durability", "losses"])
def test_a_report_of_several_logs_is_that_of_their_conversion(report: str, tmp_path: Path) -> None:
    ok("convert", RING, PERF, "-o", f"{tmp_path}/tables/")
    found = ok("report", RING, PERF, report, "--format", "csv")
    assert found == ok("report", tmp_path / "tables", report, "--format", "csv")
    if report == "losses":
        # What both have recorded counts once.
        assert "duplicate" in found
        assert "duplicate" not in ok("report", RING, report, "--format", "csv")


def test_names_of_reports_may_stand_anywhere(tmp_path: Path) -> None:
    found = json.loads(ok("report", RING, "files", PERF, "losses", "--format", "json"))
    assert set(found) == {"files", "losses"}


def test_the_answer_says_how_its_commands_get_one_input(tmp_path: Path) -> None:
    done = run("report", RING, PERF)
    assert done.returncode == 0, done.stderr
    assert "syncline open INPUT" in done.stdout
    assert f"syncline convert {RING} {PERF} -o run.pftrace" in done.stderr


def test_a_report_wins_over_a_file_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "files").write_bytes(PERF.read_bytes())
    assert run("report", RING, "files", "--format", "csv", cwd=tmp_path).stdout == ok("report", RING, "files", "--format", "csv")  # fmt: skip


def test_a_page_of_several_logs_is_that_of_their_conversion(tmp_path: Path) -> None:
    out, tables = tmp_path / "x.html", f"{tmp_path}/tables/"
    done = run("report", RING, PERF, "--html", out)
    assert done.returncode == 0, done.stderr
    assert f"syncline convert {RING} {PERF} -o run.pftrace" in done.stderr
    (side,) = embedded(out.read_bytes())["sides"]
    assert side["name"] == f"{RING} and {PERF}"
    # A command takes one INPUT.
    assert side["typed"] == "INPUT"
    assert side["answer"]["sentences"]["next"][0]["command"].startswith(
        "syncline open INPUT --sync "
    )
    ok("convert", RING, PERF, "-o", tables)
    with opened(tables, Reading()) as engine:
        whole = html.describe(engine, "x")
    assert [side[key] for key in ("rows", "phases", "disk")] == [whole[key] for key in ("rows", "phases", "disk")]  # fmt: skip
    assert side["disk"]["users"]["bios"]


def test_a_page_compares_one_input_with_another(tmp_path: Path) -> None:
    said = fails(2, "report", RING, PERF, "--html", tmp_path / "x.html", "--base", RING)
    assert f"syncline convert {RING} {PERF} -o run.pftrace" in said
    assert not (tmp_path / "x.html").exists()


def test_what_is_no_log_of_the_run_is_refused(tmp_path: Path) -> None:
    ok("convert", RING, "-o", tmp_path / "a.pftrace")
    assert "a.pftrace" in fails(3, "report", PERF, tmp_path / "a.pftrace")
