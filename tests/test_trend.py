"""`syncline trend`: the runs at which a metric changed, against series whose changes are known."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from syncline.comparison.comparison import Row
from syncline.comparison.rules import Policy
from syncline.dataset import index, ingest, layout
from syncline.dataset.store import open_store
from syncline.kinds import resolve
from syncline.reading import Reading
from syncline.trend import history, levels
from syncline.trend.findings import Finding, find, judged, last_runs

from tests.coretools import DATA
from tests.test_commands import fails, ok, run

DAY_NS = 86_400 * 10**9
# 2026-11-01 in UTC.
START_NS = 1_793_491_200 * 10**9
METRIC = "syscall_latency_avg"


CRITERIA = Policy().criteria("", "all", METRIC, "ns", gate=True)
LIKE = Row("", "all", METRIC, "ns", None, None, [], [], CRITERIA)


def noise(count: int, level: float, seed: int, spread: float = 0.1) -> list[float]:
    dice = random.Random(seed)
    return [level * dice.lognormvariate(0, spread) for _ in range(count)]


def found_in(values: list[float], unit: str = "ns") -> list[tuple[str, int, int]]:
    return [(one.kind, one.start, one.end) for one in find(values, unit, LIKE, 0.05)]


def test_a_level_that_changes_is_found_at_its_run() -> None:
    values = noise(14, 1.0, 1) + noise(12, 2.0, 2) + noise(14, 1.4, 3)
    assert found_in(values) == [("step", 14, 26), ("step", 26, 40)]
    # A scale does not matter, nor does one extreme run.
    assert found_in([1e6 * value for value in values]) == found_in(values)
    assert found_in([*values[:5], 1e9, *values[6:]]) == found_in(values)
    first = find(values, "ns", LIKE, 0.05)[0]
    # The geometric mean of the 14 runs before, moved by no outlier: none of them is one.
    assert first.row.base == pytest.approx(math.exp(sum(map(math.log, values[:14])) / 14), rel=0.01)
    assert (first.base_runs, first.new_runs) == (14, 12)


def test_a_level_that_returns_is_an_episode() -> None:
    values = noise(18, 1.0, 1) + noise(6, 2.0, 2) + noise(16, 1.0, 3)
    assert found_in(values) == [("episode", 18, 24)]
    (one,) = find(values, "ns", LIKE, 0.05)
    assert (one.base_runs, one.new_runs) == (34, 6)
    # The factor is 2 in the mean; the interval holds it in 19 of 20 series.
    assert one.row.interval.low < 1 < one.row.interval.high
    assert judged(one, one.p, 0.05, 1).row.verdict == "regression"
    better = find([1 / value for value in values], "ns", LIKE, 0.05)[0]
    assert judged(better, better.p, 0.05, 1).row.verdict == "improvement"
    # The longer part is the usual level, so a short one at the begin is no episode.
    assert [kind for kind, *_ in found_in(noise(4, 1, 1) + noise(30, 2, 2) + noise(4, 1, 3))] == ["step", "step"]  # fmt: skip


def test_a_slope_is_a_drift() -> None:
    values = [value * (1 + 0.01 * run) for run, value in enumerate(noise(40, 1.0, 4, 0.03))]
    assert found_in(values) == [("drift", 0, 40)]
    (one,) = find(values, "ns", LIKE, 0.05)
    # From 1 to 1.39.
    assert one.row.interval.low < 0.39 < one.row.interval.high
    assert "drift" in last_runs(values, "ns", LIKE, 2, 0.05)


def test_what_is_no_change_is_not_found() -> None:
    assert found_in([3.0] * 30) == []
    assert found_in([1.0] * 15 + [9.0] + [1.0] * 15) == []
    # A few failures in runs that have none happen by chance.
    assert found_in([0.0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 1, 1, 0, 0], "count") == []
    # 5 % of series without a change may have one. Of 100 at most 12: a chance of 0.2 % if it is 5 %.
    assert sum(bool(found_in(noise(20, 1.0, seed))) for seed in range(100)) <= 12


def test_counts_that_never_vary_need_few_runs() -> None:
    (one,) = find([150.0] * 5 + [180.0] * 4, "count", LIKE, 0.05)
    assert (one.start, one.row.base, one.row.new) == (5, 150, 180)
    # 5 runs and 4 agree on two values with a chance of (5/9)^5 (4/9)^4 at most.
    assert one.p == pytest.approx((5 / 9) ** 5 * (4 / 9) ** 4)
    # Equal values lie between two others as often as between none, so one that differs is no level.
    assert found_in([150.0] * 10 + [151.0] + [150.0] * 9, "count") == []


def test_parts_are_those_of_all_divisions() -> None:
    """The search finds the division of least squares, which a loop over all divisions finds too."""
    values = noise(11, 1.0, 9, 0.5)

    def squares(part: list[float]) -> float:
        mean = sum(part) / len(part)
        return sum((value - mean) ** 2 for value in part)

    for changes, (found, parts) in enumerate(levels._search(values, 0.0)):
        all_ways = [
            sum(squares(values[a:b]) for a, b in itertools.pairwise([0, *cuts, 11]))
            for cuts in itertools.combinations(range(1, 11), changes)
            if all(b - a >= 2 for a, b in itertools.pairwise([0, *cuts, 11]))
        ]
        straight = [one for one in parts if one.is_drift]
        assert found <= min(all_ways) + 1e-9
        assert straight or found == pytest.approx(min(all_ways))


def test_squares_are_those_of_least_squares() -> None:
    """The squares in constant time equal those of the transformed regression, solved directly."""
    values, r = noise(12, 1.0, 3, 0.3), 0.4
    part = values[2:11]
    first = math.sqrt(1 - r * r)
    y = [first * part[0], *(b - r * a for a, b in itertools.pairwise(part))]
    ones = [first, *([1 - r] * 8)]
    ramp = [0.0, *(b - r * a for a, b in itertools.pairwise(range(9)))]

    def dot(a: list[float], b: list[float]) -> float:
        return math.fsum(x * z for x, z in zip(a, b, strict=True))

    level = dot(y, ones) / dot(ones, ones)
    left = [a - level * b for a, b in zip(y, ones, strict=True)]
    costs = levels.Costs(values, r)
    assert costs.level(2, 11) == pytest.approx(dot(left, left))
    # The normal equations of level and slope.
    a, b, d = dot(ones, ones), dot(ones, ramp), dot(ramp, ramp)
    e, f = dot(ones, y), dot(ramp, y)
    at, slope = (e * d - b * f) / (a * d - b * b), (a * f - b * e) / (a * d - b * b)
    rest = [v - at * o - slope * s for v, o, s in zip(y, ones, ramp, strict=True)]
    found = costs.slope(2, 11)
    assert found[0] == pytest.approx(dot(rest, rest))
    assert found[1] == pytest.approx(slope)


def test_the_last_runs_are_a_question_of_their_own() -> None:
    old = noise(38, 1.0, 5)
    worse = last_runs([*old, 1.3, 1.35], "ns", LIKE, 2, 0.05)
    assert isinstance(worse, Finding)
    assert judged(worse, worse.p, 0.05, 1).row.verdict == "regression"
    assert (worse.start, worse.base_runs, worse.new_runs) == (38, 38, 2)
    same = last_runs([*old, 1.0, 1.05], "ns", LIKE, 2, 0.05)
    assert isinstance(same, Finding)
    assert judged(same, same.p, 0.05, 1).row.verdict != "regression"
    assert same.visible is not None
    # Two runs with a spread of 10 %: the error is 7.3 %, and 1.69 + 0.85 errors beyond the tolerance of 5 % are seen.
    assert 0.15 < same.visible < 0.35
    # One run is enough for a question on one run; seven before it are not.
    assert isinstance(last_runs([*old, 3.0], "ns", LIKE, 1, 0.05), Finding)
    assert last_runs([1.0] * 8, "ns", LIKE, 1, 0.05) == "8 runs; 8 before the last 1 are needed"
    # The level before is that of the newest step, not of all runs.
    after_step = last_runs([*noise(20, 1, 6), *noise(20, 2, 7)], "ns", LIKE, 3, 0.05)
    assert isinstance(after_step, Finding)
    assert after_step.base_runs == 17


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a dataset whose index has 24 runs of db1, slower from the 17th on, and 12 of db2.

    Only their entries differ from those of a recording, because a trend reads the entries.
    """
    folder = tmp_path_factory.mktemp("trend") / "history"
    store = open_store(str(folder))
    ingest.create(store)
    base = ingest.ingest(resolve(str(DATA / "small1.log")), store, Reading(), ingest.Described("db1", START_NS)).entry  # fmt: skip
    slow = noise(16, 1.0, 5) + noise(8, 1.5, 6)
    urls = {17: "https://ci.example/run?a=1&b=2", 18: "javascript:alert(1)"}
    for host, values in (("db1", slow), ("db2", noise(12, 1.0, 7))):
        for number, factor in enumerate(values):
            if host == "db1" and number == 0:
                continue
            started = START_NS + number * DAY_NS
            identity = f"{number:02}d{host[-1]}" + "0" * 60
            facts = {"branch": "<b>"} | ({"url": urls[number]} if number in urls and host == "db1" else {})  # fmt: skip
            entry = replace(
                base,
                run=f"run{number}-{host}",
                host=host,
                started_ns=started,
                day=ingest._day(started),
                rows_id=identity,
                input_id=identity,
                facts=facts,
                figures=[[name, scope, value * factor if name == METRIC else value, *rest] for name, scope, value, *rest in base.figures],
            )  # fmt: skip
            store.write(f"{layout.ENTRIES}/{entry.file}", layout.serialized(entry))
    return folder


def test_trend_names_the_run_and_how_much_it_changed(dataset: Path) -> None:
    text = ok("trend", dataset, METRIC, "syncs")
    assert f"{METRIC}, db1: 24 runs from 2026-11-01 to 2026-11-24" in text
    assert "with the run run16-db1: regression" in text
    assert text.count("no change found") == 3
    lowest, highest = (text.partition(f" {word} ")[2].split(",")[0].split("\n")[0] for word in ("lowest", "highest"))  # fmt: skip
    assert lowest != highest
    (row,) = csv.DictReader(io.StringIO(ok("trend", dataset, METRIC, "--format", "csv")))
    assert (row["host"], row["run"], row["day"]) == ("db1", "run16-db1", "2026-11-17")
    assert (row["kind"], row["until_run"], row["visible"]) == ("step", "", "")
    assert (row["runs_before"], row["runs_after"], row["verdict"]) == ("16", "8", "regression")
    assert float(row["after"]) / float(row["before"]) - 1 == pytest.approx(float(row["change"]))
    # The factor is 1.5 in the mean, with a noise of 10 %.
    assert float(row["low"]) < 0.5 < float(row["high"])
    assert float(row["p"]) < 0.01
    only = ("--where", "host = 'db2' OR day < '2026-11-10'")
    assert "rose" not in ok("trend", dataset, METRIC, *only)


def test_since_last_is_for_a_ci_job_too(dataset: Path) -> None:
    done = run("trend", dataset, METRIC, "--since-last", "8", "--where", "host = 'db1'")
    assert done.returncode == 1, done.stdout
    assert "the last 8 runs: " in done.stdout
    # The last three are as slow as the five before, and a level before them is known.
    done = run("trend", dataset, METRIC, "--since-last", "3", "--format", "json")
    assert done.returncode == 0, done.stdout
    last = {row["host"]: row for row in json.loads(done.stdout)["rows"] if row["kind"] == "last"}
    assert last["db1"]["runs_after"] == last["db2"]["runs_after"] == 3
    assert last["db1"]["until_run"] == "run23-db1"
    assert last["db1"]["visible"] > 0.05
    none = run("trend", dataset, METRIC, "--since-last", "20", "--format", "json")
    assert "24 runs; 8 before the last 20 are needed" in none.stdout


def test_recent_is_for_a_ci_job(dataset: Path) -> None:
    assert run("trend", dataset, METRIC, "--recent", "8").returncode == 1
    assert run("trend", dataset, METRIC, "--recent", "7").returncode == 0
    assert run("trend", dataset, "syncs", "--recent", "8").returncode == 0


def test_a_ci_server_shows_which_series_got_worse(dataset: Path, tmp_path: Path) -> None:
    """The cases fail if and only if the exit code is 1, and too few runs are a case that was skipped."""
    out = tmp_path / "trend.xml"
    for options, failed in (
        (("--since-last", "8"), {f"{METRIC}, db1"}),
        (("--recent", "8"), {f"{METRIC}, db1"}),
        ((), set()),
        (("--recent", "7"), set()),
    ):
        done = run("trend", dataset, METRIC, "syncs", *options, "--junit", out)
        suite = ElementTree.parse(out).getroot()
        cases = {case.get("name"): [one.tag for one in case] for case in suite}
        assert {name for name, tags in cases.items() if tags == ["failure"]} == failed
        assert done.returncode == bool(failed)
        assert (suite.get("tests"), suite.get("failures")) == ("4", str(len(failed)))
        assert len(cases) == 4
    run("trend", dataset, METRIC, "--where", "host = 'db1'", "--since-last", "8", "--junit", out)
    (failure,) = ElementTree.parse(out).getroot().iter("failure")
    assert (failure.get("message") or "").startswith("the last 8 runs: ")
    assert "with the run run16-db1: regression" in (failure.text or "")
    for name in ("syncline_dataset.json", "new.xml"):
        before = ok("dataset", "ls", dataset)
        assert "is in the dataset" in fails(2, "trend", dataset, METRIC, "--junit", dataset / name)
        assert ok("dataset", "ls", dataset) == before
    policy = tmp_path / "policy.toml"
    policy.write_text("confidence = 0.95\n")
    fails(2, "trend", dataset, METRIC, "--policy", policy, "--junit", policy)
    assert policy.read_text() == "confidence = 0.95\n"
    fails(2, "trend", dataset, METRIC, "--html", out, "--junit", out)
    run(
        "trend",
        dataset,
        METRIC,
        "--where",
        "day < '2026-11-05'",
        "--since-last",
        "1",
        "--junit",
        out,
    )
    assert len([*ElementTree.parse(out).getroot().iter("skipped")]) == 2


def test_a_policy_says_which_change_matters(dataset: Path, tmp_path: Path) -> None:
    policy = tmp_path / "syncline.toml"
    policy.write_text('[[diff.rule]]\nmetric = "syscall_latency_avg"\ntolerance = "300%"\n')
    done = run("trend", dataset, METRIC, "--recent", "8", "--policy", policy)
    assert done.returncode == 0, done.stderr
    assert "within the tolerance" in done.stdout


class Links(HTMLParser):
    """Collects the links and the tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name == "href" and value]


def test_the_page_links_to_each_run(dataset: Path, tmp_path: Path) -> None:
    page = tmp_path / "trend.html"
    run("trend", dataset, METRIC, "--html", page)
    parser = Links()
    parser.feed(page.read_text())
    # A point and a row for each of 36 runs, and the sentence on the change.
    assert len(parser.links) == 2 * 36 + 1
    assert "https://ci.example/run?a=1&b=2" in parser.links
    assert not [link for link in parser.links if "javascript" in link]
    assert not {"script", "b", "link", "img"} & parser.tags
    folders = [link for link in parser.links if "small1-" in link]
    assert (page.parent / unquote(folders[0])).is_dir()
    assert page.read_text().count("<svg") == 2


def test_what_a_trend_cannot_use_is_named(dataset: Path, tmp_path: Path) -> None:
    assert "did you mean syscall_latency_avg?" in fails(3, "trend", dataset, "syscall_latency_av")
    assert "its scopes are: all" in fails(3, "trend", dataset, METRIC, "--scope", "op:none")
    assert "is not a dataset" in fails(2, "trend", DATA / "small1.log", METRIC)
    assert "columns are: " in fails(2, "trend", dataset, METRIC, "--where", "x = 1")
    ok("ingest", "-q", DATA / "small1.log", DATA / "empty.log", "--into", tmp_path / "d")
    assert "are not known in any dated run" not in fails(3, "trend", tmp_path / "d", METRIC)
    ok("ingest", "-q", DATA / "append.log", "--into", tmp_path / "d", "--started", "2026-11-01")
    text = ok("trend", tmp_path / "d", METRIC)
    assert "2 runs are left out, because their time is not known" in text
    assert "too few runs to find a change: 1 run; 8 are needed" in text


def test_a_run_whose_files_are_gone_counts_and_is_named(dataset: Path) -> None:
    """All but one of these runs have an entry and no partition."""
    done = run("trend", dataset, METRIC, "--format", "csv")
    assert "35 runs are counted by the index only, and reports leave them out: the partition was deleted: " in done.stderr  # fmt: skip
    one = run("trend", dataset, METRIC, "--where", "run = 'run3-db1'")
    assert "1 run is counted by the index only, and reports leave it out" in one.stdout
    (there,) = {entry.run for entry in index.read_entries(open_store(str(dataset)))[0] if entry.run.startswith("small1")}  # fmt: skip
    assert "index only" not in ok("trend", dataset, METRIC, "--where", f"run = '{there}'")


def test_other_series_change_the_verdict_but_not_what_is_found(dataset: Path) -> None:
    entries, _ = index.read_entries(open_store(str(dataset)))
    ci = [entry for entry in entries if entry.host == "db1"]
    short = [replace(entry, run=f"short{n}", host=f"host{n}") for n, entry in enumerate(ci[:4])]
    (alone,), _ = history.history(ci, [METRIC], "all", Policy())
    (again, *_), _ = history.history([*ci, *short], [METRIC, "syncs"], "all", Policy())
    (one,), (two,) = alone.findings, again.findings
    assert (one.start, one.row.change, one.row.verdict) == (two.start, two.row.change, "regression")
    # Two series have enough runs: this one and that of `syncs`. Holm's method doubles the smaller chance.
    assert two.p == pytest.approx(2 * one.p)
    assert two.row.verdict == "regression"
    # A change that chance makes in one of 30 series is not one of ten series.
    sure = judged(one, 0.03, 0.05, 1)
    unsure = judged(one, 0.3, 0.05, 10)
    assert (sure.row.verdict, unsure.row.verdict) == ("regression", "can't tell")
    assert "one of 10 series may look so by chance (p = 0.300)" in unsure.row.reason


def test_a_trend_that_cannot_tell_says_why(tmp_path: Path) -> None:
    """Runs with a spread of 4 %, then as many that are slower by 6 %: found, but it may be less than 5 %."""
    folder = tmp_path / "history"
    store = open_store(str(folder))
    ingest.create(store)
    base = ingest.ingest(resolve(str(DATA / "small1.log")), store, Reading(), ingest.Described("db1", START_NS)).entry  # fmt: skip
    store.remove(f"{layout.ENTRIES}/{base.file}")
    for number, factor in enumerate([*noise(20, 1, 3, 0.02), *noise(20, 1.06, 4, 0.02)]):
        identity = f"{number:02}" + "0" * 62
        figures = [[name, scope, value * factor if name == METRIC else value, *rest] for name, scope, value, *rest in base.figures]  # fmt: skip
        entry = replace(base, run=f"run{number}", started_ns=START_NS + number * DAY_NS, rows_id=identity, input_id=identity, figures=figures)  # fmt: skip
        store.write(f"{layout.ENTRIES}/{entry.file}", layout.serialized(entry))
    assert "can't tell, because the interval is too wide" in ok("trend", folder, METRIC)
    (row,) = csv.DictReader(io.StringIO(ok("trend", folder, METRIC, "--format", "csv")))
    assert (row["verdict"], row["reason"]) == ("can't tell", "the interval is too wide")


def test_json_has_a_row_for_each_change(dataset: Path) -> None:
    found = json.loads(ok("trend", dataset, METRIC, "--format", "json"))
    assert [row["run"] for row in found["rows"]] == ["run16-db1"]
    entries, problems = index.read_entries(open_store(str(dataset)))
    assert len(entries) == 36
    assert not problems
