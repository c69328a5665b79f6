"""The page of `report --html` in a real browser: its numbers are those of the SQL, and it can be used.

SYNCLINE_UI_SHOTS=FOLDER keeps the screenshots.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from syncline.engine.columns import ColumnsEngine, open_columns
from syncline.inputs import Reading, opened
from syncline.render import human
from syncline.report import html, run_query, run_report, sql_root
from syncline.report.html import Limits

from tests.reference import loggen
from tests.sqltools import Run, write_parquet
from tests.test_html import HOSTILE
from tests.ui import browser

DATA = Path(__file__).parents[1] / "data/thesis"
WIDE, NARROW = (1500, 1000), (420, 800)
Step = dict[str, Any]

pytestmark = pytest.mark.ui


def visit(
    page: Path, steps: list[Step], size: tuple[int, int] = WIDE, scheme: str = "light"
) -> dict[str, Any]:
    """What the browser found; nothing may go wrong on the way, or be fetched."""
    seen = browser.visit(page, steps, size, scheme)
    assert seen["console"] == []
    assert seen["requests"] == []
    return seen["found"]


def get(name: str, script: str) -> Step:
    return {"name": name, "get": script}


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("SYNCLINE_UI_SHOTS") or tmp_path_factory.mktemp("shots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Inputs:
    """A run with all that a log may hold, as a page of every request and as one of counts."""

    def __init__(self, folder: Path) -> None:
        params = loggen.Params(requests=700, threads=6, files=15, dsync_threads=2)
        params.lose_end = params.lose_complete = 0.03
        made = loggen.generate(params, random.Random(3))
        log = folder / "made.log"
        log.write_bytes(made.log)
        self.tables = folder / "made"
        Reading().convert([str(log)], f"{self.tables}/")
        self.engine: ColumnsEngine = open_columns(self.tables, sql=sql_root() / "duckdb")
        # Ten files and four threads by name, the others together.
        limits = Limits(requests=10, points=200, stacks=9, ladder=((10, 4, 1),))
        self.pages = {}
        for name, limits_ in (("all", Limits()), ("counted", limits)):
            self.pages[name] = folder / f"{name}.html"
            self.pages[name].write_bytes(
                html.page([html.describe(self.engine, "made.log", limits_)])
            )
        two = [DATA / "small4.log", DATA / "small4-slowdisk.log"]
        sides = []
        for path in two:
            with opened(str(path), Reading()) as engine:
                sides.append(html.describe(engine, path.name))
        self.pages["compared"] = folder / "compared.html"
        self.pages["compared"].write_bytes(html.page(sides))

    def one(self, select: str, where: str = "true") -> tuple[Any, ...]:
        (row,) = run_query(self.engine, f"SELECT {select} FROM syncline_sync WHERE {where}").rows
        return row


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inputs]:
    made = Inputs(tmp_path_factory.mktemp("pages"))
    yield made
    made.engine.close()


FIGURES = """Object.fromEntries([...document.querySelectorAll('.tile')].flatMap((tile) => [
  [tile.dataset.figure, tile.dataset.value ?? null],
  ...[...tile.querySelectorAll('.more span')].map((one) => [`${tile.dataset.figure} ${one.dataset.figure}`, one.dataset.value ?? null])]))"""
SELECTED = "document.getElementById('selected').textContent"
IN_SQL = "document.querySelector('.sql code').textContent"

# What the tiles say, in SQL.
EXACT = {
    "syncs": "COUNT(*)",
    "amount": "SUM(bytes)",
    "syscall max": "MAX(syscall_ns)",
    "syscall known of": "COUNT(syscall_ns)",
    "writeback max": "MAX(writeback_ns)",
    "writeback known of": "COUNT(writeback_ns)",
    "empty wrote nothing": "COUNT(*) FILTER (bios = 0 AND (incomplete IS NULL OR incomplete = 'bio'))",
    "empty incomplete": "COUNT(incomplete)",
    "time": "SUM(dur_ns)",
    "exact": "AVG(CAST(confidence = 'exact' AS INTEGER))",
}
WHOLE = "CASE WHEN incomplete IS NULL OR incomplete = 'bio' THEN bytes END"
QUANTILES = {
    "syscall": "percentile(syscall_ns, 50)",
    "syscall p99": "percentile(syscall_ns, 99)",
    "writeback": "percentile(writeback_ns, 50)",
    "writeback p99": "percentile(writeback_ns, 99)",
    "amount median": f"percentile({WHOLE}, 50)",
    "amount p99": f"percentile({WHOLE}, 99)",
}


def check_figures(inputs: Inputs, figures: dict[str, str | None], where: str, counted: bool):
    for name, select in EXACT.items():
        (value,) = inputs.one(select, where)
        told = figures[name]
        assert (told is None) == (value is None), (name, told, value)
        if value is not None:
            assert float(told) == pytest.approx(value), (name, where)
    for name, select in QUANTILES.items():
        (value,) = inputs.one(select, where)
        told = figures[name]
        if value is None:
            assert told is None
        elif counted and ".." in told:
            low, high = map(float, told.split(".."))
            assert low <= value <= high, (name, where)
            # No wider than two buckets.
            assert high <= max(low, 1) * 5
        else:
            assert float(told) == pytest.approx(value), (name, where)
            assert not counted or where == "true"


def wall(inputs: Inputs, where: str) -> int:
    """Time during which a request is in flight, second by second as it were."""
    spans = run_query(
        inputs.engine,
        f"SELECT ts_ns, ts_ns + dur_ns FROM syncline_sync WHERE dur_ns IS NOT NULL AND {where} ORDER BY 1",
    ).rows
    edges = sorted({edge for span in spans for edge in span})
    return sum(
        b - a
        for a, b in itertools.pairwise(edges)
        if any(begin <= a and b <= end for begin, end in spans)
    )


@pytest.mark.parametrize("page", ["all", "counted"])
class TestNumbers:
    def test_the_summary_is_that_of_the_report(self, inputs: Inputs, page: str) -> None:
        cells = """[...document.querySelectorAll('#summary-table tbody tr')].map((row) => [
          row.dataset.metric, row.dataset.scope, row.dataset.value ?? null, ...[...row.cells].slice(2).map((cell) => cell.textContent)])"""
        found = visit(inputs.pages[page], [get("summary", cells), get("figures", FIGURES)])
        report = run_report(inputs.engine, "summary").rows
        assert len(found["summary"]) == len(report) > 40
        for row, (metric, scope, value, unit, known, syncs) in zip(
            found["summary"], report, strict=True
        ):
            assert row[:2] == [metric, scope]
            assert (row[2] is None) == (value is None)
            if value is not None:
                assert float(row[2]) == pytest.approx(value)
            shown = [
                human.text(value, unit),
                human.text(known, "count"),
                human.text(syncs, "count"),
            ]
            assert row[3:] == shown
        check_figures(inputs, found["figures"], "true", page == "counted")

    def test_one_file(self, inputs: Inputs, page: str) -> None:
        report = run_report(inputs.engine, "files").rows
        path = report[2][0]
        steps = [
            {"click": f"#files tr[data-name={json.dumps(path)}] .pick"},
            get("figures", FIGURES),
            get("selected", SELECTED),
            get("sql", IN_SQL),
            get(
                "bins",
                "[...document.querySelectorAll('#threads tbody tr')].map((row) => [row.dataset.name, row.querySelector('[data-column=syncs]').dataset.value])",
            ),
        ]
        found = visit(inputs.pages[page], steps)
        where = f"path = '{path}'"
        check_figures(inputs, found["figures"], where, page == "counted")
        (count,) = inputs.one("COUNT(*)", where)
        (total,) = inputs.one("COUNT(*)")
        assert found["selected"] == f"{count} of {total} syncs"
        assert run_query(inputs.engine, found["sql"]).rows[0][0] == count
        # The other table follows.
        by_thread = dict(
            run_query(
                inputs.engine,
                f"SELECT comm || ' ' || tid, COUNT(*) FROM syncline_sync WHERE {where} GROUP BY 1",
            ).rows
        )
        told = {name: int(number) for name, number in found["bins"]}
        assert sum(told.values()) == count
        assert {name: by_thread[name] for name in told if name != "others"} == {
            name: number for name, number in told.items() if name != "others"
        }
        if page == "all":
            assert float(found["figures"]["time wall time"]) == wall(inputs, where)
        else:
            # What sums by bin cannot tell is not told.
            assert found["figures"]["time wall time"] is None

    def test_a_file_a_thread_and_a_range_of_time(self, inputs: Inputs, page: str) -> None:
        report = run_report(inputs.engine, "files").rows
        steps = [
            {"focus": "#time .handle[aria-label^=begin]"},
            *[{"press": "ArrowRight"}] * 12,
            {"focus": "#time .handle[aria-label^=end]"},
            *[{"press": "ArrowLeft"}] * 9,
            get("time", FIGURES),
            get("time sql", IN_SQL),
            {"click": "#threads tbody tr:nth-child(2) .pick"},
            get("thread", FIGURES),
            get("thread sql", IN_SQL),
            {"click": f"#files tr[data-name={json.dumps(report[0][0])}] .pick"},
            get("file", FIGURES),
            get("file sql", IN_SQL),
            get("chips", "document.querySelectorAll('.chip').length"),
            {"press": "Escape"},
            get("cleared", FIGURES),
            get("no chips", "document.querySelectorAll('.chip').length"),
        ]
        found = visit(inputs.pages[page], steps)
        counts = [float(found["cleared"]["syncs"])]
        for name in ("time", "thread", "file"):
            where = found[f"{name} sql"].partition("WHERE ")[2]
            assert where.count(" AND ") >= 1
            check_figures(inputs, found[name], where, page == "counted")
            counts.append(float(found[name]["syncs"]))
        # Each takes something away.
        assert counts == sorted(set(counts), reverse=True)
        assert (found["chips"], found["no chips"]) == (3, 0)
        check_figures(inputs, found["cleared"], "true", page == "counted")

    def test_what_is_put_together(self, inputs: Inputs, page: str) -> None:
        names = "[...document.querySelectorAll('#files tbody tr')].map((row) => [row.dataset.name, Number(row.querySelector('[data-column=syncs]').dataset.value), Number(row.querySelector('[data-column=sum]').dataset.value)])"
        steps = [get("files", names), get("text", "document.getElementById('files').textContent")]
        found = visit(inputs.pages[page], steps)
        report = {row[0]: (row[1], row[9]) for row in run_report(inputs.engine, "files").rows}
        told = {name: (syncs, spent) for name, syncs, spent in found["files"]}
        (total,) = inputs.one("COUNT(*)")
        assert sum(syncs for syncs, _ in told.values()) == total
        assert ("others" in told) == (page == "counted")
        if page == "counted":
            assert len(told) == 11
            assert f"{len(report) - 10} files with the least time in sync are put" in found["text"]
        assert {name: report[name] for name in told if name != "others"} == {
            name: value for name, value in told.items() if name != "others"
        }

    @pytest.mark.parametrize(
        ("weight", "column"),
        [
            ("syncs", "COUNT(*)"),
            ("syscall", "SUM(syscall_ns)"),
            ("writeback", "SUM(writeback_ns)"),
            ("bytes", "SUM(bytes)"),
        ],
    )
    def test_flame_graphs(self, inputs: Inputs, page: str, weight: str, column: str) -> None:
        frames = "[...document.querySelectorAll('#flame .frame')].map((one) => [Number(one.getAttribute('aria-level')), one.dataset.name, Number(one.dataset.value), one.getBoundingClientRect().width])"
        choose = {"choose": ["#flame select >> nth=0", weight]}
        by_file = {"choose": ["#flame select >> nth=1", "file"]}
        found = visit(
            inputs.pages[page], [choose, get("stacks", frames), by_file, get("files", frames)]
        )
        (total,) = inputs.one(column)
        for name in ("stacks", "files"):
            root = found[name][0]
            assert (root[0], root[2]) == (1, total)
            outer = [frame for frame in found[name] if frame[0] == 2]
            assert sum(frame[2] for frame in outer) == pytest.approx(total, rel=0.02)
            for frame in outer:
                assert frame[3] == pytest.approx(root[3] * frame[2] / total, abs=1)
        if page == "all":
            expected = {
                name: value
                for name, value in run_query(
                    inputs.engine,
                    f"SELECT COALESCE(split_part(stack, ';', 1), '[no stack]'), {column} FROM syncline_sync GROUP BY 1",
                ).rows
                if value and value > total * 0.002
            }
            told = {frame[1]: frame[2] for frame in found["stacks"] if frame[0] == 2}
            assert {name: told[name] for name in expected} == expected


def bars(view: str) -> str:
    """The table behind a chart."""
    return f"(document.querySelector('#{view} .numbers').open = true, new Promise((done) => setTimeout(() => done([...document.querySelectorAll('#{view} .numbers tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))), 100)))"


@pytest.mark.parametrize("page", ["all", "counted"])
def test_histograms_are_those_of_the_reports(inputs: Inputs, page: str) -> None:
    writeback = {"choose": ["#latency select >> nth=0", "writeback"]}
    found = visit(
        inputs.pages[page],
        [
            get("syscall", bars("latency")),
            writeback,
            get("writeback", bars("latency")),
            get("amount", bars("amount")),
        ],
    )
    latency = run_report(inputs.engine, "latency").rows
    for kind in ("syscall", "writeback"):
        expected = [
            [human.text(low, "ns"), human.text(high, "ns"), human.text(syncs, "count")]
            for name, low, high, syncs, *_ in latency
            if name == kind and syncs
        ]
        assert [row[:3] for row in found[kind] if row[2] != "0"] == expected
    expected = [
        [human.text(row[0], "bytes"), human.text(row[1], "bytes"), human.text(row[2], "count")]
        for row in run_report(inputs.engine, "amount").rows
        if row[2]
    ]
    assert [row[:3] for row in found["amount"] if row[2] != "0"] == expected


def test_over_time_is_that_of_the_report(inputs: Inputs) -> None:
    steps = [{"choose": ["#time select", "bytes"]}, get("bytes", bars("time"))]
    found = visit(inputs.pages["all"], steps)
    report = run_report(inputs.engine, "over-time").rows
    assert [row[1] for row in found["bytes"]] == [human.text(row[4], "bytes") for row in report]


class TestUse:
    def test_a_drag_over_a_chart(self, inputs: Inputs) -> None:
        """In both pages, over both charts of time."""
        for page in ("all", "counted"):
            steps = [
                {"drag": ["#time .brush", 0.3, 0.6]},
                get("first", FIGURES),
                get("first sql", IN_SQL),
                {"drag": ["#lanes canvas", 0.2, 0.7]},
                get("second", FIGURES),
                get("second sql", IN_SQL),
                {"click": "#time .brush"},
                get("all", FIGURES),
            ]
            found = visit(inputs.pages[page], steps)
            (total,) = inputs.one("COUNT(*)")
            for name in ("first", "second"):
                where = found[f"{name} sql"].partition("WHERE ")[2]
                check_figures(inputs, found[name], where, page == "counted")
            order = [int(found[name]["syncs"]) for name in ("second", "first", "all")]
            assert 0 < order[0] < order[1] < order[2] == total

    def test_keys_alone(self, inputs: Inputs) -> None:
        focused = "(() => { const one = document.activeElement; const style = getComputedStyle(one); return [one.dataset.key ?? one.tagName, one.dataset.name ?? one.textContent.slice(0, 30), style.outlineStyle, parseFloat(style.outlineWidth)]; })()"
        tabs = [
            step
            for number in range(60)
            for step in ({"press": "Tab"}, get(f"tab {number}", focused))
        ]
        found = visit(inputs.pages["all"], tabs)
        reached = [found[f"tab {number}"] for number in range(60)]
        keys = [one[0] for one in reached]
        for part in ("begin-0", "end-0", "SELECT"):
            assert part in keys
        assert any(key.startswith("lane-") for key in keys)
        assert any(key.startswith("flame-") for key in keys)
        assert any(key.startswith("sort-files") for key in keys)
        for key, _, style, width in reached:
            if key not in ("BODY", "HTML"):
                assert style == "solid", key
                assert width >= 2, key

        steps = [
            {"focus": "#flame .frame[tabindex='0']"},
            get("root", focused),
            {"press": "ArrowDown"},
            get("down", focused),
            {"press": "ArrowRight"},
            get("right", focused),
            {"press": "Enter"},
            get(
                "zoomed",
                "[...document.querySelectorAll('#flame .frame:not(.caller)')][0].dataset.name",
            ),
            get("still", focused),
            {"press": "Escape"},
            get("back", "document.querySelectorAll('#flame .caller').length"),
            {"focus": "#files thead th:nth-child(2) button"},
            {"press": "Enter"},
            get(
                "sorted",
                "[...document.querySelectorAll('#files tbody [data-column=syncs]')].map((one) => Number(one.dataset.value))",
            ),
            get(
                "sort",
                "document.querySelector('#files thead th:nth-child(2)').getAttribute('aria-sort')",
            ),
            {"press": "Enter"},
            get(
                "turned",
                "[...document.querySelectorAll('#files tbody [data-column=syncs]')].map((one) => Number(one.dataset.value))",
            ),
            {"focus": "#files tbody tr:nth-child(3) .pick"},
            {"press": "Enter"},
            get("picked", SELECTED),
            get("on it", focused),
            {"press": "Enter"},
            get("unpicked", SELECTED),
            {"focus": "#files .lane, #lanes .lane"},
            {"press": "Space"},
            get("lane", "document.querySelector('.chip').textContent"),
        ]
        found = visit(inputs.pages["all"], steps)
        assert found["root"][1] == "all syncs"
        assert len({found[name][1] for name in ("root", "down", "right")}) == 3
        assert found["zoomed"] == found["right"][1] == found["still"][1]
        assert found["back"] == 0
        assert found["sorted"] == sorted(found["sorted"], reverse=True)
        assert found["turned"] == sorted(found["sorted"])
        assert found["sort"] == "descending"
        assert found["picked"] != found["unpicked"]
        assert found["on it"][0].startswith("pick-files")
        assert found["lane"].startswith("thread: ")

    def test_words_filter_a_table(self, inputs: Inputs) -> None:
        path = run_report(inputs.engine, "files").rows[4][0]
        names = "[...document.querySelectorAll('#files tbody tr')].map((row) => row.dataset.name)"
        word = path.rpartition("/")[2]
        steps = [{"fill": ["#files input", word.upper()]}, get("names", names)]
        steps += [get("typing", "document.activeElement.type")]
        found = visit(inputs.pages["all"], steps)
        assert path in found["names"]
        assert all(word in name for name in found["names"])
        assert found["typing"] == "search"

    def test_dark_and_light(self, inputs: Inputs, shots: Path) -> None:
        colours = (
            "['backgroundColor', 'color'].map((name) => getComputedStyle(document.body)[name])"
        )
        steps = [
            get("system dark", colours),
            {"shot": str(shots / "page-dark.png")},
            {"choose": ["#theme", "light"]},
            get("light", colours),
            {"choose": ["#theme", "dark"]},
            {"scheme": "light"},
            get("dark", colours),
            {"choose": ["#theme", "auto"]},
            get("system light", colours),
        ]
        found = visit(inputs.pages["all"], steps, scheme="dark")

        def brightness(colour: str) -> float:
            return sum(map(int, re.findall(r"\d+", colour)[:3])) / 765

        for name in ("system dark", "dark"):
            back, ink = map(brightness, found[name])
            assert back < 0.2
            assert ink > 0.8
        for name in ("light", "system light"):
            back, ink = map(brightness, found[name])
            assert back > 0.8
            assert ink < 0.2

    @pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
    @pytest.mark.parametrize("page", ["all", "counted", "compared"])
    def test_nothing_is_cut_off(
        self, inputs: Inputs, shots: Path, page: str, size: tuple[int, int]
    ) -> None:
        cut = """[...document.querySelectorAll('section svg text')].filter((text) => {
          const [box, host] = [text.getBoundingClientRect(), text.closest('section').getBoundingClientRect()];
          return text.textContent && box.width && (box.left < host.left || box.right > host.right || box.top < host.top || box.bottom > host.bottom);
        }).map((text) => text.textContent)"""
        steps = [
            get("width", "document.scrollingElement.scrollWidth"),
            get("cut", cut),
            {"shot": str(shots / f"page-{page}-{size[0]}.png")},
            {"size": [size[0] - 60, size[1]]},
            get("after", "document.scrollingElement.scrollWidth"),
        ]
        found = visit(inputs.pages[page], steps, size)
        assert found["width"] <= size[0]
        assert found["after"] <= size[0] - 60
        assert found["cut"] == []

    def test_axes_have_units(self, inputs: Inputs) -> None:
        texts = "Object.fromEntries(['time', 'latency', 'amount', 'scatter'].map((id) => [id, [...document.querySelectorAll(`#${id} svg text`)].map((one) => one.textContent)]))"
        found = visit(inputs.pages["all"], [get("texts", texts)])["texts"]
        assert any(text.startswith("time since the first sync (") for text in found["time"])
        unit = re.compile(r"^[\d,.]+ (ns|µs|ms|s|B|KiB|MiB)$")
        for view in ("time", "latency", "amount", "scatter"):
            assert len([text for text in found[view] if unit.match(text)]) >= 3, found[view]


class TestCompared:
    def test_side_by_side(self, inputs: Inputs) -> None:
        ticks = "Object.fromEntries(['time', 'latency', 'amount', 'scatter'].map((id) => [id, [...document.querySelectorAll(`#${id} .pane:not(.difference)`)].map((pane) => [...pane.querySelectorAll('svg [aria-label*=tick] text')].map((one) => one.textContent))]))"
        boxes = "[...document.querySelectorAll('#time .pane')].map((pane) => pane.getBoundingClientRect().top)"
        rows = "[...document.querySelectorAll('#summary-table tbody tr')].map((row) => [...row.cells].slice(0, 5).map((cell) => cell.textContent))"
        found = visit(
            inputs.pages["compared"], [get("ticks", ticks), get("boxes", boxes), get("rows", rows)]
        )
        # The same scales, one beside the other.
        for view, (left, right) in found["ticks"].items():
            assert left == right, view
            assert len(left) > 4
        assert found["boxes"][0] == found["boxes"][1]
        told = {(row[0], row[1]): row[2:] for row in found["rows"]}
        with (
            opened(str(DATA / "small4.log"), Reading()) as base,
            opened(str(DATA / "small4-slowdisk.log"), Reading()) as new,
        ):
            before, now = (run_report(engine, "summary").rows for engine in (base, new))
        for row in before:
            assert told[row[0], row[1]][0] == human.text(row[2], row[3])
        for row in now:
            assert told[row[0], row[1]][1] == human.text(row[2], row[3])
        assert told["syncs", "all"][2] == "= same"
        assert told["syscall_latency_avg", "all"][2].startswith("▲ ")

    def test_a_selection_is_of_both(self, inputs: Inputs) -> None:
        steps = [
            {"click": "#threads tbody tr .pick"},
            {"click": "#files tr[data-name$='small-1-0003'] .pick"},
            get("selected", SELECTED),
            get(
                "row",
                "[...document.querySelectorAll('#files tr.picked [data-column=max] > *')].map((one) => one.textContent)",
            ),
            {"click": "#files input[type=checkbox]"},
            get("checked", "document.querySelector('#files input[type=checkbox]').checked"),
        ]
        found = visit(inputs.pages["compared"], steps)
        assert found["selected"] == "base 1 of 100 syncs; new 1 of 100 syncs"
        assert found["checked"]
        maxima = []
        for log in ("small4.log", "small4-slowdisk.log"):
            with opened(str(DATA / log), Reading()) as engine:
                ((value,),) = run_query(
                    engine,
                    "SELECT syscall_ns FROM syncline_sync WHERE path LIKE '%small-1-0003'",
                ).rows
                maxima.append(human.text(value, "ns"))
        assert found["row"][0] == maxima[1]
        assert found["row"][1].startswith(maxima[0])

    def test_what_flame_graphs_have_gained(self, inputs: Inputs) -> None:
        signs = "[...document.querySelectorAll('#flame .pane')].map((pane) => [...pane.querySelectorAll('.frame')].map((one) => one.getAttribute('aria-label')))"
        (base, new) = visit(inputs.pages["compared"], [get("signs", signs)])["signs"]
        # Of 100 syncs each, 84 came with no symbols before, and none does now.
        told = [re.search(r"(\S+): .*in the new ([+-][\d.]+) %", label) for label in (*base, *new)]
        moved = {match[1]: float(match[2]) for match in told if match}
        with opened(str(DATA / "small4.log"), Reading()) as engine:
            ((bare,),) = run_query(
                engine, "SELECT COUNT(*) FROM syncline_sync WHERE stack LIKE '0x%'"
            ).rows
        assert moved["0x7ffff7e5a8bb"] == -bare
        assert moved["start_thread"] == bare


def test_text_of_a_log_does_nothing(tmp_path: Path) -> None:
    run = Run()
    for number in range(3):
        odd = f"{HOSTILE}{number}"
        run.add(
            1_000_000 + 1000 * number,
            500,
            path=odd,
            comm=odd,
            stack=f"{odd};f",
            op=odd,
            bytes=4096,
            bios=1,
        )
    run.mark = [{"mark_id": 1, "ts_ns": 1_000_100, "dur_ns": 5, "name": HOSTILE}]
    run.loss = [
        {
            "reason": "unparsed_line",
            "severity": "loss",
            "count": 1,
            "example": HOSTILE,
            "meaning": HOSTILE,
        }
    ]
    out = tmp_path / "hostile.html"
    with open_columns(write_parquet(run, tmp_path / "run"), sql=sql_root() / "duckdb") as engine:
        side = html.describe(engine, HOSTILE)
    # Whatever has a place for text.
    for sides, name in (([side], "one"), ([side, side], "two")):
        out = tmp_path / f"{name}.html"
        out.write_bytes(html.page(sides))
        steps = [
            {"choose": ["#scatter select >> nth=1", "file"]},
            {"choose": ["#scatter select >> nth=1", "op"]},
            {"choose": ["#flame select >> nth=1", "file"]},
            {"choose": ["#flame select >> nth=1", "thread"]},
            {"click": "#files tbody .pick"},
            {"click": "#threads tbody .pick"},
            get("images", "document.querySelectorAll('img, iframe, object, embed').length"),
            get("scripts", "document.scripts.length"),
            get("title", "document.title"),
            get("name", "document.querySelector('#files .pick bdi').textContent"),
        ]
        found = visit(out, steps)
        assert found["images"] == 0
        assert found["scripts"] == 2
        assert "<img src=x onerror=alert(1)>" in found["title"]
        # Shown, with what would move the cursor made visible.
        assert found["name"].startswith("</script><img src=x onerror=alert(1)>")
        assert "\x1b" not in found["name"]


def test_no_requests(tmp_path: Path) -> None:
    out = tmp_path / "empty.html"
    with open_columns(write_parquet(Run(), tmp_path / "run"), sql=sql_root() / "duckdb") as engine:
        side = html.describe(engine, "empty")
    for sides in ([side], [side, side]):
        out.write_bytes(html.page(sides))
        found = visit(out, [get("text", "document.body.innerText")])
        assert "There is no sync request in this input" in found["text"]


@pytest.mark.parametrize("log", sorted(path.name for path in DATA.glob("*.log*")))
def test_every_recording_has_its_page(log: str, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    with opened(str(DATA / log), Reading()) as engine:
        out.write_bytes(html.page([html.describe(engine, log)]))
        (syncs,) = run_query(engine, "SELECT COUNT(*) FROM syncline_sync").rows[0]
    found = visit(out, [get("text", "document.body.innerText")])
    assert (f"{syncs} of {syncs} syncs" in found["text"]) == (syncs > 0)
    assert ("There is no sync request in this input" in found["text"]) == (syncs == 0)
