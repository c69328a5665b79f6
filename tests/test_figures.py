"""Figures of reports, checked by hand against the lines of a log."""

from __future__ import annotations

import math
from pathlib import Path

from syncline.inputs import Reading, opened
from syncline.report.run import run_report

from tests.coretools import DATA, recording


def test_marks_of_a_report_count_the_same_for_a_log_and_a_trace(tmp_path: Path) -> None:
    marks = tmp_path / "marks.csv"
    marks.write_text("time_ms,name\n41700,first\n41800,second\n")
    reading = Reading(marks=str(marks))
    trace = tmp_path / "small1.pftrace"
    log = str(DATA / "small1.log")
    Reading().convert([log], str(trace))
    answers = []
    for path, engine in ((log, "duckdb"), (log, "embedded"), (str(trace), "auto")):
        with opened(path, reading, engine) as made:
            answers.append(run_report(made, "marks").rows)
    assert answers[0] == answers[1] == answers[2]
    by_name = {row[1]: row[4] for row in answers[0]}
    # Counted in the log itself: calls before and after 41.8 s.
    calls = [
        int(line.split()[0])
        for line in recording("small1.log").splitlines()
        if line.endswith(b"wl fsync")
    ]
    assert by_name == {
        "first": sum(ts < 41_800_000_000 for ts in calls),
        "second": sum(ts >= 41_800_000_000 for ts in calls),
    }


def test_the_figures_of_small1_match_its_log() -> None:
    """One thread writes 50 new files of one page, with one fsync each. The sums are computed from the lines of the log."""
    spans, bios, begun = [], [], {}
    for line in recording("small1.log").decode().splitlines():
        words = line.split()
        if not words or not words[0].isdigit():
            continue
        ts, event = int(words[0]), words[3]
        if event == "fsync":
            begun["call"] = ts
        elif event == "bio_submit":
            begun["bio"] = ts
        elif event == "bio_complete":
            bios.append(ts - begun["bio"])
        elif event == "exit":
            spans.append(ts - begun["call"])
    with opened(str(DATA / "small1.log"), Reading()) as engine:
        metrics = {(row[0], row[1]): row[2] for row in run_report(engine, "summary").rows}
    assert metrics["syncs", "all"] == metrics["unique_files", "all"] == len(spans) == 50
    assert metrics["syscall_latency_sum", "all"] == sum(spans)
    assert math.isclose(metrics["syscall_latency_avg", "all"], sum(spans) / 50)
    assert math.isclose(metrics["writeback_latency_avg", "all"], sum(bios) / 50)
    assert metrics["writeback_amount_avg", "all"] == 4096
    assert metrics["empty_share", "all"] == 0
    # One thread: nothing is parallel.
    assert metrics["sync_wall_time", "comm:wl"] == metrics["sync_time_sum", "comm:wl"] == sum(spans)
