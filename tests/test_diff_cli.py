"""`syncline diff` and `syncline baseline save` on the command line: exit codes, messages and output files."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import shutil
import threading
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from xml.etree import ElementTree

import pytest
from syncline.comparison.comparability import differences
from syncline.comparison.run import Run, Side

from tests.coretools import DATA
from tests.difftools import Source
from tests.test_commands import fails, left, ok, run

SMALL1, PARALLEL = str(DATA / "small1.log"), str(DATA / "parallel4.log")
SLOW, SMALL4 = str(DATA / "small4-slowdisk.log"), str(DATA / "small4.log")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the runs base, same and worse. worse syncs twice as often."""
    folder = tmp_path_factory.mktemp("sides")
    source = Source(requests=120)
    for first, (name, one) in enumerate(
        {"base": source, "same": source, "worse": source.changed(requests=240)}.items()
    ):
        (folder / name).mkdir()
        for seed in range(4):
            (folder / name / f"run{seed}.log").write_bytes(one.log(100 * first + seed))
    return folder


@pytest.fixture(scope="module")
def kept(sides: Path) -> Path:
    """Returns a folder with a baseline of each side: a diff of two reads no runs, which takes most of its time."""
    for name in ("base", "worse"):
        ok("baseline", "save", sides / name, "-o", sides / f"{name}.json")
    return sides


@pytest.fixture(scope="module")
def fresh(sides: Path) -> tuple[CompletedProcess[str], dict[str, Any]]:
    """The diff of the folders base and worse, which reads all runs: what the command said, and its result."""
    made = sides / "fresh.json"
    done = run("diff", sides / "base", sides / "worse", "-o", made)
    return done, json.loads(made.read_text())


def test_exit_codes_follow_the_verdict(
    sides: Path,
    kept: Path,
    fresh: tuple[CompletedProcess[str], dict[str, Any]],
    tmp_path: Path,
) -> None:
    base, same, worse = (sides / name for name in ("base", "same", "worse"))
    equal = run("diff", kept / "base.json", same)
    # Equal sides raise no alarm. A row that looks worse by chance may be undecided.
    assert equal.returncode in (0, 5), equal.stderr
    done, _ = fresh
    assert done.returncode == 1
    assert "Regression: " in done.stdout
    assert "Traceback" not in done.stderr
    better = run("diff", kept / "worse.json", kept / "base.json")
    assert better.returncode in (0, 5)
    assert "improvement" in better.stdout
    few = run("diff", f"{base}/run[01].log", f"{worse}/run[01].log")
    assert few.returncode == 5
    assert "Can't tell: too few runs: 3 of each side are needed." in few.stdout
    one = ("diff", kept / "base.json", worse / "run0.log")
    undecided = run(*one)
    assert "too few runs" in undecided.stdout
    assert undecided.returncode == 5
    (tmp_path / "syncline.toml").write_text("[diff]\ncant_tell = 'pass'\n")
    passed = run(*one, cwd=tmp_path)
    assert passed.returncode == 0
    assert passed.stderr.startswith("policy: syncline.toml\n")


def test_runs_named_by_options_equal_runs_in_folders(
    sides: Path, fresh: tuple[CompletedProcess[str], dict[str, Any]]
) -> None:
    names = [
        option
        for side, folder in (("--base", "base"), ("--new", "worse"))
        for seed in range(4)
        for option in (side, str(sides / folder / f"run{seed}.log"))
    ]
    by_options = json.loads(run("diff", *names, "--format", "json").stdout)
    _, by_folders = fresh
    assert by_options["rows"] == by_folders["rows"]
    assert by_options["base"]["runs"] == by_folders["base"]["runs"]


def test_outputs_have_the_verdict_and_the_warnings(kept: Path, tmp_path: Path) -> None:
    base, worse = kept / "base.json", kept / "worse.json"
    files = [tmp_path / f"diff.{ending}" for ending in ("json", "md", "xml", "txt")]
    options = [word for file in files for word in ("-o", file)]
    done = run("diff", base, worse, *options)
    assert done.returncode == 1
    result = json.loads(files[0].read_text())
    assert result["verdict"] == "regression"
    assert files[1].read_text().startswith("## Writeback: regression")
    suite = ElementTree.fromstring(files[2].read_text())
    assert int(suite.attrib["failures"]) == sum(
        r["verdict"] == "regression" for r in result["rows"]
    )
    assert "Regression: " in files[3].read_text()
    # CI servers show the output of a test case.
    text = suite.findtext("testcase[@name='verdict']/system-out") or ""
    assert text.startswith("Regression: ")
    assert result["warnings"]
    assert all(f"warning: {warning}" in text for warning in result["warnings"])
    assert "changes no" not in done.stderr
    assert "no ending that chooses a format" in fails(2, "diff", SMALL1, SMALL1, "-o", "x.html")
    assert "cannot write" in fails(2, "diff", SMALL1, SMALL4, "-o", tmp_path / "no" / "x.md")
    for form in ("json", "md", "junit"):
        done = run("diff", base, worse, "--format", form)
        assert done.returncode == 1
        # stdout is for a program. The user still gets the verdict and the warnings on stderr.
        assert done.stderr.endswith("regression\n")
        assert all(f"warning: {warning}\n" in done.stderr for warning in result["warnings"])


def test_an_output_that_is_an_input_is_refused(tmp_path: Path) -> None:
    log, runs = tmp_path / "a.log", tmp_path / "runs"
    shutil.copy(SMALL1, log)
    runs.mkdir()
    shutil.copy(SMALL1, runs / "b.txt")
    (tmp_path / "link.txt").symlink_to(runs / "b.txt")
    shutil.copy(PARALLEL, tmp_path / "p.json")
    ok("convert", "-q", SMALL1, "-o", f"{tmp_path}/t/")
    marks, query = tmp_path / "m.md", tmp_path / "q.txt"
    marks.write_text("time,name\n41753514022,load\n")
    query.write_text("SELECT 'a' AS key, 1 AS value")
    for words in (
        ("diff", runs, SMALL4, "-o", runs / "b.txt"),
        ("diff", runs, SMALL4, "-o", tmp_path / "link.txt"),
        ("diff", SMALL1, "--new", tmp_path / "p.json", "-o", tmp_path / "p.json"),
        ("diff", log, SMALL4, "--query", query, "-o", query),
        ("diff", log, SMALL4, "--marks", marks, "-o", marks),
        ("baseline", "save", log, "-o", log),
        ("convert", log, "-o", log, "--to", "csv"),
        ("report", log, "--html", log),
        ("report", SMALL1, "--base", log, "--html", log),
        ("report", tmp_path / "t", "--html", tmp_path / "t" / "syncline_sync.parquet"),
        ("flamegraph", log, "-o", log, "--to", "folded"),
    ):
        assert f"cannot write {words[words.index('-o' if '-o' in words else '--html') + 1]}: it is an input" in fails(2, *words)  # fmt: skip
    assert log.read_bytes() == (DATA / "small1.log").read_bytes()
    assert (runs / "b.txt").read_bytes() == log.read_bytes()
    # An earlier report next to the runs is not an input.
    (runs / "diff.md").write_text("old")
    assert run("diff", runs, SMALL4, "-o", runs / "diff.md").returncode in (0, 1, 5)
    assert (runs / "diff.md").read_text().startswith("## Writeback: ")


def test_a_baseline_replaces_its_runs(
    sides: Path,
    kept: Path,
    fresh: tuple[CompletedProcess[str], dict[str, Any]],
    tmp_path: Path,
) -> None:
    packed = tmp_path / "main.baseline.json.gz"
    done = run("baseline", "save", sides / "base", "-o", packed)
    assert done.returncode == 0
    assert f"4 runs -> {packed} (" in done.stderr
    assert left(tmp_path) == [packed.name]
    stored = json.loads(run("diff", packed, sides / "worse", "--format", "json").stdout)
    _, of_runs = fresh
    assert [row["verdict"] for row in stored["rows"]] == [row["verdict"] for row in of_runs["rows"]]
    # A baseline among runs counts as its runs.
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    shutil.copy(packed, mixed)
    shutil.copy(sides / "same" / "run0.log", mixed)
    result = json.loads(run("diff", mixed, kept / "worse.json", "--format", "json").stdout)
    assert len(result["base"]["runs"]) == 5
    message = fails(3, "report", packed)
    assert "baseline" in message
    assert "syncline diff" in message


def test_standard_input_and_pipes_are_read_like_files(kept: Path, tmp_path: Path) -> None:
    stored, new = (kept / "base.json").read_bytes(), kept / "worse.json"
    named = json.loads(run("diff", kept / "base.json", new, "--format", "json").stdout)
    for given in (stored, gzip.compress(stored)):
        piped = run("diff", "-", new, "--format", "json", stdin=given)
        assert json.loads(piped.stdout)["rows"] == named["rows"], piped.stderr
    ok("convert", "-q", SMALL4, "-o", tmp_path / "t.pftrace")
    log = run("diff", SMALL4, SLOW, "--format", "json")
    for what in (Path(SMALL4), tmp_path / "t.pftrace"):
        piped = run("diff", "-", SLOW, "--format", "json", stdin=what.read_bytes())
        mine, theirs = (json.loads(done.stdout)["rows"] for done in (piped, log))
        assert [row["verdict"] for row in mine] == [row["verdict"] for row in theirs]
        assert [row["new"] for row in mine] == [row["new"] for row in theirs]
    # bash passes a pipe for <(zcat a.log.gz).
    os.mkfifo(tmp_path / "pipe")
    feeder = threading.Thread(
        target=lambda: (tmp_path / "pipe").write_bytes(Path(SMALL4).read_bytes())
    )
    feeder.start()
    piped = run("diff", tmp_path / "pipe", SLOW, "--format", "json")
    feeder.join()
    assert json.loads(piped.stdout)["rows"] == json.loads(log.stdout)["rows"]
    assert "standard input is in no format" in fails(3, "diff", "-", SLOW, stdin=b"hello\n")


def test_files_in_a_folder_that_are_not_runs_are_skipped(sides: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(sides / "base", runs)
    (runs / "run0.log").rename(runs / "run0.txt")
    (runs / "notes.txt").write_text("Recorded on Friday.\n")
    (runs / "empty.txt").touch()
    done = run("diff", runs, sides / "worse", "--format", "json")
    assert done.returncode == 1
    names = [Path(name).name for name in json.loads(done.stdout)["base"]["runs"]]
    assert names == ["run0.txt", "run1.log", "run2.log", "run3.log"]
    assert (
        f"note: 2 files of {runs} are skipped, because they are not runs: empty.txt, notes.txt\n"
        in done.stderr
    )
    # An unreadable log is an error, not a note.
    (runs / "run4.log").write_text("Recorded on Friday.\n")
    broken = run("diff", runs, sides / "worse")
    assert broken.returncode == 3
    assert f"error: {runs}/run4.log is in no format" in broken.stderr
    # With --from, every file in the folder must be of that format.
    (runs / "run4.log").unlink()
    assert "empty.txt is empty" in fails(3, "diff", runs, sides / "worse", "--from", "bpftrace")


def test_a_table_without_a_required_column_is_refused(tmp_path: Path) -> None:
    ok("convert", "-q", SMALL1, "-o", tmp_path / "a.csv")
    header, *lines = (tmp_path / "a.csv").read_text().splitlines()
    for column in ("ts_ns", "sync_id", "bios"):
        at = header.split(",").index(column)
        # No path of small1 has a comma.
        text = [",".join(row[:at] + row[at + 1 :]) for row in (line.split(",") for line in [header, *lines])]  # fmt: skip
        (tmp_path / "b.csv").write_text("\n".join(text) + "\n")
        message = fails(3, "diff", tmp_path / "b.csv", SMALL4)
        assert f"{tmp_path}/b.csv: not a high-level log: no column {column}\n" in message
        assert "hint: keep all columns that `syncline convert LOG -o OUT.csv` writes" in message
    (tmp_path / "b.csv").write_text("\n".join([header, lines[0].replace("31002295", "soon", 1)]))
    message = fails(3, "diff", tmp_path / "b.csv", SMALL4)
    assert "Could not convert string 'soon' to INT64" in message
    assert "dur_ns" in message
    (tmp_path / "b.csv").write_text("\n".join([header, *lines[:-1], lines[-1][:20]]))
    message = fails(3, "diff", tmp_path / "b.csv", SMALL4)
    assert "is the file cut off" in message
    assert len(message.splitlines()) == 2


def test_the_error_for_a_baseline_of_another_version_has_a_command(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text('{"syncline_baseline":7,"syncline_version":"3.1","names":[],"runs":[]}')
    message = fails(3, "diff", old, SMALL1)
    assert f"{old} is a baseline of schema version 7, written by syncline 3.1" in message
    assert f"hint: save it again from the runs: syncline baseline save INPUT... -o {old}" in message


def test_help_explains_max_loss() -> None:
    text = " ".join(ok("diff", "--help").split())
    assert "--max-loss N|N% Give no verdict and exit with code 4 if any run lost more" in text
    for command in (("report",), ("convert",), ("baseline", "save")):
        text = " ".join(ok(*command, "--help").split())
        assert "--max-loss N|N% Write nothing and exit with code 4 if" in text


def test_too_many_losses_give_no_verdict(tmp_path: Path) -> None:
    # 15 completions of small4 are lost.
    done = run("diff", SMALL4, SLOW, "--max-loss", "1%")
    assert done.returncode == 4
    assert "No verdict: base lost more than --max-loss 1% allows" in done.stdout
    assert "regression" not in done.stdout
    assert "none was judged" in done.stdout
    assert run("diff", SMALL4, SLOW, "--max-loss", "15").returncode == 1
    assert "neither a number" in fails(2, "diff", SMALL4, SLOW, "--max-loss", "some")
    # The limit also applies to converted inputs.
    ok("convert", "-q", SMALL4, "-o", f"{tmp_path}/t/")
    assert run("diff", tmp_path / "t", SLOW, "--max-loss", "1%").returncode == 4
    save = ("baseline", "save", SMALL4, "-o", tmp_path / "b.json", "--max-loss", "1")
    assert "more than --max-loss 1 allows" in fails(4, *save)
    assert left(tmp_path) == ["t"]


def test_wrong_use_is_refused(tmp_path: Path) -> None:
    assert "a diff has two sides" in fails(2, "diff", SMALL1)
    assert "cannot read nowhere" in fails(3, "diff", SMALL1, "nowhere")
    assert "a quoted pattern" in fails(3, "diff", SMALL1, "nowhere/*.log")
    assert "no kind 'paths'" in fails(2, "diff", SMALL1, SMALL4, "--by", "paths")
    assert "cannot read none.sql" in fails(2, "diff", SMALL1, SMALL4, "--query", "none.sql")
    assert "is named twice" in fails(3, "diff", "--base", SMALL1, "--base", SMALL1, "--new", SMALL4)
    (tmp_path / "p.toml").write_text("[diff]\nconfidnce = 0.9\n")
    message = fails(2, "diff", SMALL1, SMALL4, "--policy", tmp_path / "p.toml")
    assert "unknown key 'confidnce'" in message
    assert "did you mean confidence?" in message
    ok("convert", "-q", SMALL1, "-o", f"{tmp_path}/t/")
    assert "--pid-is would have no effect" in fails(2, "diff", f"{tmp_path}/t", SMALL4, "--pid-is", "process")  # fmt: skip


def test_a_format_that_had_another_name_is_the_same_format() -> None:
    """A trace that an earlier version wrote says `thesis` where this one says `bpftrace`."""
    sides = []
    for name, source in (("base", "thesis"), ("new", "bpftrace"), ("other", "strace")):
        run = Run(name)
        run.facts["source"] = [source]
        sides.append(Side(name, (name,), [run]))
    earlier, today, other = sides
    assert not any("formats" in one for one in differences(earlier, today))
    assert any("formats differ: bpftrace in base" in one for one in differences(earlier, other))


def test_warnings_name_differences_between_the_sides(tmp_path: Path) -> None:
    trace_dat = DATA.parent / "tracecmd" / "small4.dat"
    text = run("diff", SMALL4, trace_dat).stdout
    assert "warning: formats differ: bpftrace in base, trace-dat in new" in text
    assert "cannot show how much one run differs from the next" in text
    marks = tmp_path / "marks.csv"
    marks.write_text("time,name\n48051183130,load\n")
    assert run("diff", SMALL4, SLOW, "--marks", marks).returncode == 1


def test_a_side_converted_with_a_wrong_time_unit_is_detected(tmp_path: Path) -> None:
    ok("convert", "-q", SMALL4, "--time-unit", "us", "-o", f"{tmp_path}/us/")
    for sides, longer in (((SMALL4, tmp_path / "us"), "new"), ((tmp_path / "us", SMALL4), "base")):
        text = run("diff", *sides).stdout
        assert f"all times of {longer} are about 1,000 times those of" in text
        assert "wrong --time-unit" in text
    assert "--time-unit" not in run("diff", SMALL4, SLOW).stdout


def test_the_same_run_on_both_sides_is_not_compared(tmp_path: Path) -> None:
    ok("convert", "-q", SMALL4, "-o", tmp_path / "a.pftrace")
    # The figures of one side of the second pair vary so much that no row would have a verdict.
    noisy = DATA.parent / "diff/base"
    for sides in ((SMALL4, tmp_path / "a.pftrace"), (noisy, noisy)):
        same = run("diff", *sides)
        assert same.returncode == 0
        assert "\nNothing was compared: base and new are the same runs.\n" in same.stdout


def test_rows_in_the_gate_are_marked() -> None:
    lines = run("diff", SMALL4, SLOW).stdout.splitlines()
    gate = [line for line in lines if " gate  " in line and line.startswith("all ")]
    verdict = next(line for line in lines if line.startswith("Regression: "))
    assert sum(line.endswith("  regression") for line in gate) == int(verdict.split()[1])
    assert len(gate) == int(verdict.split()[4])


def test_a_user_query_gives_rows_in_the_gate(sides: Path, tmp_path: Path) -> None:
    query = tmp_path / "ops.sql"
    query.write_text(
        "SELECT 'syncs of ' || op AS key, COUNT(*) AS value, 'count' AS unit"
        " FROM syncline_sync GROUP BY op"
    )
    # One run of each side shows the figures.
    base, worse = (sides / name / "run0.log" for name in ("base", "worse"))
    result = json.loads(run("diff", base, worse, "--query", query, "--format", "json").stdout)
    own = {row["metric"]: row for row in result["rows"] if row["kind"] == "query"}
    assert "syncs of fsync" in own
    assert all(row["gate"] for row in own.values())
    assert own["syncs of fsync"]["new"] > 1.5 * own["syncs of fsync"]["base"]


def test_logs_with_process_ids_can_be_compared(tmp_path: Path) -> None:
    source = dataclasses.replace(Source(), requests=60)
    for name, seed in (("a.log", 1), ("b.log", 2)):
        (tmp_path / name).write_bytes(source.log(seed))
    done = run("diff", tmp_path / "a.log", tmp_path / "b.log", "--pid-is", "process", "--all")
    assert done.returncode in (0, 5)
    assert "no rows by" not in done.stdout


def test_sides_with_different_filters_are_refused(sides: Path, kept: Path, tmp_path: Path) -> None:
    # What is refused does not depend on the number of runs.
    base, stored = sides / "base" / "run0.log", kept / "base.json"
    # A filter applies to a baseline when it is saved. If only one side is filtered, a difference is not a change of the program.
    for pair in ((stored, base), (base, stored)):
        message = fails(2, "diff", *pair, "--min-latency", "1ms")
        assert "the runs have different filters: 1 ms or longer / all" in message
    assert "a filter has no effect on stored baselines" in fails(
        2, "diff", stored, stored, "--comm", "db"
    )
    ok("baseline", "save", base, "--min-latency", "1ms", "-o", tmp_path / "slow.json")
    same = run("diff", tmp_path / "slow.json", sides / "same" / "run0.log", "--min-latency", "1ms")
    assert same.returncode in (0, 5), same.stderr
    assert "different filters" in fails(2, "diff", tmp_path / "slow.json", base)


def test_a_filter_without_a_matching_request_is_refused(sides: Path) -> None:
    base, worse = (sides / name / "run0.log" for name in ("base", "worse"))
    message = fails(3, "diff", base, worse, "--comm", "nosuch")
    assert "no request on either side passes the filter comm nosuch" in message
    assert "standard input can be only one run" in fails(2, "diff", "-", "-")
