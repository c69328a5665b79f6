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

import pytest
from syncline.comparison.rules import Policy
from syncline.dataset import index, ingest, layout
from syncline.dataset.store import open_store
from syncline.kinds import resolve
from syncline.reading import Reading

from tests.coretools import DATA
from tests.test_commands import fails, ok, run

history = pytest.importorskip("syncline.trend.history")
pytest.importorskip("ruptures")

DAY_NS = 86_400 * 10**9
# 2026-11-01 in UTC.
START_NS = 1_793_491_200 * 10**9
METRIC = "syscall_latency_avg"


def noise(count: int, level: float, seed: int) -> list[float]:
    dice = random.Random(seed)
    return [level * dice.lognormvariate(0, 0.1) for _ in range(count)]


def test_a_level_that_changes_is_found_at_its_run() -> None:
    values = noise(14, 1.0, 1) + noise(12, 2.0, 2) + noise(14, 1.2, 3)
    assert history.changes_in(values, 0.05) == [14, 26]
    # Ranks: neither a scale nor one extreme run matters.
    assert history.changes_in([value**3 for value in values], 0.05) == [14, 26]
    assert history.changes_in([*values[:5], 1e9, *values[6:]], 0.05) == [14, 26]


def test_what_is_no_change_is_not_found() -> None:
    assert history.changes_in([3.0] * 30, 0.05) == []
    assert history.changes_in([1.0] * 15 + [9.0] + [1.0] * 15, 0.05) == []
    # 5 % of series without a change may have one. Of 200 at most 20: a chance of 0.1 % if it is 5 %.
    alarms = sum(bool(history.changes_in(noise(20, 1.0, seed), 0.05)) for seed in range(200))
    assert alarms <= 20
    # 2 of the 20 ways to divide six runs are sorted: 10 %. With eight runs, it is 2 of 70.
    assert history.changes_in([1, 1.1, 1.2, 9, 9.1, 9.2], 0.05) is None
    assert history.changes_in([1, 1.1, 1.2, 1.3, 9, 9.1, 9.2, 9.3], 0.05) == [4]


def test_the_p_value_is_that_of_all_orders() -> None:
    values = [1.0, 3.0, 2.0, 6.0, 4.0, 5.0, 7.0]

    def best(order: tuple[float, ...]) -> float:
        """The largest reduction of the sum of squares by a cut with at least two runs on each side."""

        def squares(part: tuple[float, ...]) -> float:
            mean = sum(part) / len(part)
            return sum((value - mean) ** 2 for value in part)

        cuts = range(2, len(order) - 1)
        return max(squares(order) - squares(order[:cut]) - squares(order[cut:]) for cut in cuts)

    observed = best(tuple(values))
    orders = list(itertools.permutations(values))
    exact = sum(best(order) >= observed - 1e-9 for order in orders) / len(orders)
    # The best place is after the third run.
    assert history._p(values[:3], values[3:], 1) == pytest.approx(exact, abs=0.015)


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
    assert (row["runs_before"], row["runs_after"], row["verdict"]) == ("16", "8", "regression")
    assert float(row["after"]) / float(row["before"]) - 1 == pytest.approx(float(row["change"]))
    # The factor is 1.5 in the mean, with a noise of 10 %.
    assert float(row["low"]) < 0.5 < float(row["high"])
    assert float(row["p"]) < 0.01
    only = ("--where", "host = 'db2' OR day < '2026-11-10'")
    assert "rose" not in ok("trend", dataset, METRIC, *only)


def test_recent_is_for_a_ci_job(dataset: Path) -> None:
    assert run("trend", dataset, METRIC, "--recent", "8").returncode == 1
    assert run("trend", dataset, METRIC, "--recent", "7").returncode == 0
    assert run("trend", dataset, "syncs", "--recent", "8").returncode == 0


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


def test_series_that_cannot_change_do_not_hide_a_change(dataset: Path) -> None:
    """Ten runs suffice for two series, not for six. Four of these six are too short, or constant."""
    entries, _ = index.read_entries(open_store(str(dataset)))
    ci = [entry for entry in entries if entry.host == "db1"][11:21]
    short = [replace(entry, run=f"short{n}", host=f"host{n}") for n, entry in enumerate(ci[:4])]
    known = Policy()
    alone, _ = history.history(ci, [METRIC], "all", known)
    (together, *_), _ = history.history([*ci, *short], [METRIC, "syncs"], "all", known)
    assert [change.at for change in alone[0].changes] == [change.at for change in together.changes]
    assert len(together.changes) == 1
    assert together.changes[0].p == alone[0].changes[0].p
    # Two series of ten runs can change, and share the alpha.
    share = history._Share([series(10), series(10), series(1), series(10, 0.0)], 0.05)
    assert (share.shortest, share.alpha) == (10, 0.025)
    # Two series of eight runs cannot have a change, because two need nine runs each. One can, next to a shorter one.
    assert history._Share([series(8), series(8)], 0.05).shortest == math.inf
    assert history._Share([series(8), series(7)], 0.05).shortest == 8
    assert history._Share([series(8), series(7)], 0.05).least(7) == 9
    # A longer one is tested, though those of eight runs are too many.
    assert history._Share([series(8), series(8), series(9)], 0.05).alpha == 0.05


def series(runs: int, step: float = 1.0) -> history.Series:
    values = [1.0 + step * n for n in range(runs)]
    return history.Series("h", True, "m", "all", "ns", [], values, 0)


def test_a_trend_that_cannot_tell_says_why(tmp_path: Path) -> None:
    """Six fast runs, then four that differ from each other by a factor of ten."""
    folder = tmp_path / "history"
    store = open_store(str(folder))
    ingest.create(store)
    base = ingest.ingest(resolve(str(DATA / "small1.log")), store, Reading(), ingest.Described("db1", START_NS)).entry  # fmt: skip
    store.remove(f"{layout.ENTRIES}/{base.file}")
    for number, factor in enumerate([1, 1.01, 1.02, 1.03, 1.04, 1.05, 2, 20, 3, 40]):
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
