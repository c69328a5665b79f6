"""The page of `report --html` in a real browser: its numbers match SQL, and its controls work.

SYNCLINE_UI_SHOTS=FOLDER keeps the screenshots.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from syncline.engine.columns import open_columns
from syncline.inputs import Reading, opened
from syncline.render import human
from syncline.report import html, run_query, run_report, sql_root

from tests.sqltools import Run, write_parquet
from tests.test_flamegraph import write
from tests.test_html import HOSTILE
from tests.ui import browser
from tests.ui.pages import (
    DATA,
    FIGURES,
    IN_SQL,
    IN_SQL_OR_NONE,
    NARROW,
    SELECTED,
    WIDE,
    Inputs,
    Phased,
    Step,
    Waiting,
    check_figures,
    described,
    get,
    visit,
)

pytestmark = pytest.mark.ui


# The values of each frame, by side.
LABELS = "[...document.querySelectorAll('#flame .pane')].map((pane) => [...pane.querySelectorAll('.frame')].map((one) => one.getAttribute('aria-label')))"


def shot(name: str) -> list[Step]:
    """The step of a screenshot."""
    file = browser.shot(name)
    return [{"shot": file}] if file else []


def wall(inputs: Inputs, where: str) -> int:
    """Returns the time during which at least one request is in flight."""
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
    def test_the_summary_is_the_same_as_in_the_report(self, inputs: Inputs, page: str) -> None:
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

    def test_selecting_a_file_filters_the_figures(self, inputs: Inputs, page: str) -> None:
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
        # The other table follows the selection.
        by_thread = dict(
            run_query(
                inputs.engine,
                f"SELECT comm || ' ' || tid, COUNT(*) FROM syncline_sync WHERE {where} GROUP BY 1",
            ).rows
        )
        shown = {name: int(number) for name, number in found["bins"]}
        assert sum(shown.values()) == count
        assert {name: by_thread[name] for name in shown if name != "others"} == {
            name: number for name, number in shown.items() if name != "others"
        }
        if page == "all":
            assert float(found["figures"]["time wall time"]) == wall(inputs, where)
        else:
            # Figures that sums by bin cannot give are not shown.
            assert found["figures"]["time wall time"] is None

    def test_selections_by_time_thread_and_file_combine(self, inputs: Inputs, page: str) -> None:
        report = run_report(inputs.engine, "files").rows
        steps = [
            {"focus": "#time .handle[aria-label^=begin]"},
            {"press": "PageUp"},
            {"focus": "#time .handle[aria-label^=end]"},
            {"press": "PageDown"},
            *[{"press": "ArrowRight"}] * 2,
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
        # Each selection excludes some requests.
        assert counts == sorted(set(counts), reverse=True)
        assert (found["chips"], found["no chips"]) == (3, 0)
        check_figures(inputs, found["cleared"], "true", page == "counted")

    def test_unnamed_groups_share_one_row(self, inputs: Inputs, page: str) -> None:
        names = "[...document.querySelectorAll('#files tbody tr')].map((row) => [row.dataset.name, Number(row.querySelector('[data-column=syncs]').dataset.value), Number(row.querySelector('[data-column=sum]').dataset.value)])"
        steps = [get("files", names), get("text", "document.getElementById('files').textContent")]
        found = visit(inputs.pages[page], steps)
        report = {row[0]: (row[1], row[9]) for row in run_report(inputs.engine, "files").rows}
        shown = {name: (syncs, spent) for name, syncs, spent in found["files"]}
        (total,) = inputs.one("COUNT(*)")
        assert sum(syncs for syncs, _ in shown.values()) == total
        assert ("others" in shown) == (page == "counted")
        if page == "counted":
            assert len(shown) == 11
            assert (
                f"{len(report) - 10} files with the least time in sync share one row"
                in found["text"]
            )
        assert {name: report[name] for name in shown if name != "others"} == {
            name: value for name, value in shown.items() if name != "others"
        }

    def test_frame_widths_match_the_weights(self, inputs: Inputs, page: str) -> None:
        weights = {
            "syncs": "COUNT(*)",
            "syscall": "SUM(syscall_ns)",
            "writeback": "SUM(writeback_ns)",
            "bytes": "SUM(bytes)",
        }
        frames = "[...document.querySelectorAll('#flame .frame')].map((one) => [Number(one.getAttribute('aria-level')), one.dataset.name, Number(one.dataset.value), one.getBoundingClientRect().width])"
        steps = [
            step
            for weight in weights
            for by in ("stack", "file")
            for step in (
                {"choose": ["#flame select >> nth=0", weight]},
                {"choose": ["#flame select >> nth=1", by]},
                get(f"{weight} {by}", frames),
            )
        ]
        found = visit(inputs.pages[page], steps)
        for weight, column in weights.items():
            (total,) = inputs.one(column)
            for by in ("stack", "file"):
                root, *others = found[f"{weight} {by}"]
                assert (root[0], root[2]) == (1, total)
                outer = [frame for frame in others if frame[0] == 2]
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
                shown = {frame[1]: frame[2] for frame in found[f"{weight} stack"] if frame[0] == 2}
                assert {name: shown[name] for name in expected} == expected


def named(part: str, step: Step) -> Step:
    """Returns a step whose result has a name of its own, for a visit that takes it several times."""
    return step | {"name": f"{part} {step['name']}"} if "name" in step else step


def of_part(part: str, found: dict[str, Any]) -> dict[str, Any]:
    """Returns the results of the steps of `named`, by their first names."""
    return {
        name.removeprefix(f"{part} "): value
        for name, value in found.items()
        if name.startswith(f"{part} ")
    }


def bars(view: str) -> str:
    """Returns a script that gives the rows of a chart's table."""
    return f"(document.querySelector('#{view} .numbers').open = true, new Promise((done) => setTimeout(() => done([...document.querySelectorAll('#{view} .numbers tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))), 100)))"


@pytest.mark.parametrize("page", ["all", "counted"])
def test_histograms_are_the_same_as_in_the_reports(inputs: Inputs, page: str) -> None:
    writeback = {"choose": ["#latency select >> nth=0", "writeback"]}
    found = visit(
        inputs.pages[page],
        [
            {"choose": ["#latency select >> nth=1", "histogram"]},
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


def test_over_time_is_the_same_as_in_the_report(inputs: Inputs) -> None:
    steps = [{"choose": ["#time select", "bytes"]}, get("bytes", bars("time"))]
    found = visit(inputs.pages["all"], steps)
    report = run_report(inputs.engine, "over-time").rows
    assert [row[1] for row in found["bytes"]] == [human.text(row[4], "bytes") for row in report]


class TestUse:
    def test_a_drag_over_a_chart_selects_a_range(self, inputs: Inputs) -> None:
        """In the pages `all` and `counted`, on both charts over time."""
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

    def test_every_control_works_by_keyboard(self, inputs: Inputs) -> None:
        focused = "(() => { const one = document.activeElement; const style = getComputedStyle(one); return [one.dataset.key ?? one.tagName, one.dataset.name ?? one.textContent.slice(0, 30), style.outlineStyle, parseFloat(style.outlineWidth)]; })()"
        tabs = [
            step
            for number in range(120)
            for step in ({"press": "Tab"}, get(f"tab {number}", focused))
        ]
        found = visit(inputs.pages["all"], tabs)
        reached = [found[f"tab {number}"] for number in range(120)]
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

    def test_text_filters_a_table(self, inputs: Inputs) -> None:
        path = run_report(inputs.engine, "files").rows[4][0]
        names = "[...document.querySelectorAll('#files tbody tr')].map((row) => row.dataset.name)"
        word = path.rpartition("/")[2]
        steps = [{"fill": ["#files input", word.upper()]}, get("names", names)]
        steps += [get("typing", "document.activeElement.type")]
        found = visit(inputs.pages["all"], steps)
        assert path in found["names"]
        assert all(word in name for name in found["names"])
        assert found["typing"] == "search"

    def test_the_theme_follows_the_system_and_the_choice(self, inputs: Inputs) -> None:
        colours = (
            "['backgroundColor', 'color'].map((name) => getComputedStyle(document.body)[name])"
        )
        steps = [
            get("system dark", colours),
            *shot("page-dark"),
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
    def test_nothing_is_cut_off(self, inputs: Inputs, page: str, size: tuple[int, int]) -> None:
        cut = """[...document.querySelectorAll('section svg text')].filter((text) => {
          const [box, host] = [text.getBoundingClientRect(), text.closest('section').getBoundingClientRect()];
          return text.textContent && box.width && (box.left < host.left || box.right > host.right || box.top < host.top || box.bottom > host.bottom);
        }).map((text) => text.textContent)"""
        steps = [
            get("width", "document.scrollingElement.scrollWidth"),
            get("cut", cut),
            *shot(f"page-{page}-{size[0]}"),
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
    def test_two_sides_share_scales_and_show_their_figures(self, inputs: Inputs) -> None:
        ticks = "Object.fromEntries(['heat', 'time', 'scatter'].map((id) => [id, [...document.querySelectorAll(`#${id} .pane`)].map((pane) => [...pane.querySelectorAll('svg [data-mark*=tick] text')].map((one) => one.textContent))]))"
        boxes = "[...document.querySelectorAll('#time .pane')].map((pane) => pane.getBoundingClientRect().top)"
        rows = "[...document.querySelectorAll('#summary-table tbody tr')].map((row) => [...row.cells].slice(0, 5).map((cell) => cell.textContent))"
        steps = [get("own", ticks), {"choose": [".filters select", "same"]}]
        steps += [get("ticks", ticks), get("boxes", boxes), get("rows", rows)]
        found = visit(inputs.pages["compared"], steps)
        # A run of 0.2 s next to one of 5.3 s has a time axis of its own, unless the user wants the same.
        left, right = found["own"]["time"]
        assert left != right
        # Both sides have the same scales.
        for view, (left, right) in found["ticks"].items():
            assert left == right, view
            assert len(left) > 4
        assert found["boxes"][0] == found["boxes"][1]
        shown = {(row[0], row[1]): row[2:] for row in found["rows"]}
        with (
            opened(str(DATA / "small4.log"), Reading()) as base,
            opened(str(DATA / "small4-slowdisk.log"), Reading()) as new,
        ):
            before, now = (run_report(engine, "summary").rows for engine in (base, new))
        for row in before:
            assert shown[row[0], row[1]][0] == human.text(row[2], row[3])
        for row in now:
            assert shown[row[0], row[1]][1] == human.text(row[2], row[3])
        assert shown["syncs", "all"][2] == "= same"
        assert shown["syscall_latency_avg", "all"][2].startswith("▲ ")

    def test_a_selection_applies_to_both(self, inputs: Inputs) -> None:
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
        assert found["row"][1].startswith(f"{maxima[0]} ")

    def test_missing_names_are_not_a_change(self, inputs: Inputs) -> None:
        base, new = visit(inputs.pages["compared"], [get("labels", LABELS)])["labels"]
        # 84 of 100 syncs have no names in the base, and none in the new run: all may be one path.
        assert [label.partition(":")[0] for label in base] == [
            "all syncs",
            *["[address]"] * 4,
            *("start_thread", "small_thr", "save_small", "__syscall_cancel_arch"),
        ]
        assert "share changed by 0.0 pp" in base[0]
        for label in (*base[1:], *new[1:]):
            assert "change unknown: names of functions are missing" in label
            assert " pp " not in label

    def test_frames_show_the_least_change_that_missing_names_allow(self, tmp_path: Path) -> None:
        stack = lambda path, count: [(f"main;{path}", 100)] * count  # noqa: E731
        before = stack("a;fsync", 10) + stack("b;fsync", 4) + stack("c", 2)
        after = stack("a;fsync", 5) + stack("a;0x7f12", 5) + stack("b;fsync", 4)
        after += stack("c", 6) + stack("[libc.so.6]", 1)
        sides = [write(tmp_path, "base.log", before), write(tmp_path, "new.log", after)]
        out = tmp_path / "x.html"
        for path in sides:
            path.write_text(re.sub(r"(0x\w+|\])\+1", r"\1", path.read_text()))
        out.write_bytes(html.page([described(path) for path in sides]))
        _, new = visit(out, [get("labels", LABELS)])["labels"]
        shown = {label.split(": ")[0]: label.rpartition("; ")[2] for label in new}
        # c: 2 of 16 before; now 6 of 21, or 7 with the request in libc.
        assert shown["c"] == f"share changed by at least +{600 / 21 - 200 / 16:.1f} pp"
        # a: 10 before; now 10 or 11.
        assert shown["a"] == f"share changed by at least {1100 / 21 - 1000 / 16:.1f} pp"
        # Five of [address] may be fsync, so its change is unknown.
        assert "change unknown" in shown["[address]"]
        assert "change unknown" in shown["[libc.so.6]"]
        assert "share changed by 0.0 pp" in shown["main"]

    def test_shares_differ_in_percentage_points(self, tmp_path: Path) -> None:
        """All syncs of one input are empty, and none of the other input."""
        out = tmp_path / "x.html"
        sides = [described(DATA / name) for name in ("small1.log", "empty.log")]
        out.write_bytes(html.page(sides, ["kernels differ: <b> in base"]))
        tile = "document.querySelector('.tile[data-figure=empty]').innerText"
        row = "[...document.querySelectorAll('#summary-table tr[data-metric=empty_share] td')].map((one) => one.textContent)"
        differing = "document.querySelector('main section').innerText"
        steps = [get("tile", tile), get("row", row), get("differing", differing)]
        found = visit(out, steps)
        with opened(str(DATA / "empty.log"), Reading()) as engine:
            ((share,),) = run_query(
                engine, "SELECT AVG(CASE WHEN bios = 0 THEN 100.0 ELSE 0 END) FROM syncline_sync"
            ).rows
        assert share > 50
        assert f"base 0.0 % ▲ +{share:.1f} pp" in found["tile"]
        assert f"▲ +{share:.1f} pp" in found["row"]
        # Differences of the setup come first, as text.
        assert found["differing"].startswith("▲ These differ between the two sides")
        assert "kernels differ: <b> in base" in found["differing"]

    def test_the_figure_of_a_tile_is_on_one_line(self, inputs: Inputs) -> None:
        lines = "[...document.querySelectorAll('.tile .big')].map((one) => one.getClientRects().length > 1 || one.getBoundingClientRect().height > 40)"
        sizes = ((1280, 900), (1920, 1000))
        steps = [get("800", lines)]
        for width, height in sizes:
            steps += [{"size": [width, height]}, get(str(width), lines)]
        for page in ("all", "compared"):
            found = visit(inputs.pages[page], steps, (800, 900))
            for width in (800, *(width for width, _ in sizes)):
                assert found[str(width)] == [False] * 7, (page, width)


OPTIONS = "[...document.querySelectorAll('#flame select, #time select')].flatMap((one) => [...one.options].map(({value}) => value))"
SUMS = "Object.fromEntries(['files', 'threads'].map((id) => [id, Object.fromEntries([...document.querySelectorAll(`#${id} tbody tr`)].map((row) => [row.dataset.name, ['journal', 'flush'].map((key) => row.querySelector(`[data-column=${key}]`)?.dataset.value ?? null)]))]))"
ROOT = "document.querySelector('#flame .frame')?.dataset.value ?? null"


@pytest.mark.parametrize("page", ["all", "counted"])
class TestWaits:
    FIGURES = {
        "journal": "percentile(journal_ns, 50)",
        "journal p99": "percentile(journal_ns, 99)",
        "journal sum": "SUM(journal_ns)",
        "journal share of sync time": "SUM(journal_ns) / SUM(dur_ns) FILTER (journal_ns IS NOT NULL)",
        "journal known of": "COUNT(journal_ns)",
    }

    def check(self, waits: Waiting, figures: dict[str, str | None], where: str) -> None:
        for name, select in self.FIGURES.items():
            (value,) = waits.one(select, where)
            shown = figures[name]
            if value is None:
                assert shown is None, (name, where)
            elif shown is not None and ".." in shown:
                assert where != "true"
                bounds = self.bounds(waits, where, 99 if "p99" in name else 50)
                assert tuple(map(float, shown.split(".."))) == bounds, (name, where)
            else:
                assert shown is not None, (name, where)
                assert float(shown) == pytest.approx(value), (name, where)

    def bounds(self, waits: Waiting, where: str, percent: int) -> tuple[float, float]:
        """Returns the bounds of the buckets that hold the two values around a percentile."""
        rows = run_query(
            waits.engine,
            f"SELECT journal_ns FROM syncline_sync WHERE journal_ns IS NOT NULL AND {where} ORDER BY 1",
        ).rows
        values = [value for (value,) in rows]
        place = (len(values) - 1) * percent / 100
        edges = [0, *(lead * 10**power for power in range(9) for lead in (1, 2, 5))]
        low = max(edge for edge in edges if edge <= values[math.floor(place)])
        high = min(edge for edge in edges if edge > values[math.ceil(place)])
        return low, min(high, values[-1])

    def tables(self, waits: Waiting, shown: dict[str, Any], where: str = "true") -> None:
        """Compares the named rows, and the sum of the others, with SQL."""
        for view, key in (("files", "path"), ("threads", "comm || ' ' || tid")):
            rows = run_query(
                waits.engine,
                f"SELECT {key}, SUM(journal_ns), SUM(flush_ns) FROM syncline_sync WHERE {where} GROUP BY 1",
            ).rows
            expected = {name: [journal, flush] for name, journal, flush in rows}
            found = {
                name: [None if value is None else int(value) for value in values]
                for name, values in shown[view].items()
            }
            others = found.pop("others", None)
            assert found == {name: expected[name] for name in found}
            if others is None:
                assert len(found) == len(expected)
            else:
                rest = [values for name, values in expected.items() if name not in found]
                assert others == [sum(one[at] or 0 for one in rest) for at in (0, 1)]

    def test_the_whole_run_matches_sql(self, waits: Waiting, page: str) -> None:
        steps = [get("figures", FIGURES), get("sums", SUMS), get("options", OPTIONS)]
        steps += [
            get(
                "notes",
                "['files', 'threads'].map((id) => document.querySelector(`#${id} > .body > .note`).textContent)",
            )
        ]
        for weight in ("journal", "flush"):
            steps += [{"choose": ["#flame select >> nth=0", weight]}, get(weight, ROOT)]
        steps += [{"choose": ["#time select", "journal"]}, get("bins", bars("time"))]
        found = visit(waits.pages[page], steps)
        self.check(waits, found["figures"], "true")
        self.tables(waits, found["sums"])
        # The waits of btrfs are unknown, not 0.
        if page == "all":
            assert found["sums"]["files"]["/f1"] == [None, None]
        assert [found["options"].count(name) for name in ("journal", "flush")] == [2, 2]
        sums = waits.one("SUM(journal_ns), SUM(flush_ns), COUNT(*)")
        assert (int(found["journal"]), int(found["flush"])) == sums[:2]
        known = waits.one("COUNT(journal_ns), COUNT(flush_ns)")
        for note in found["notes"]:
            assert (
                f"out of {sums[2]} syncs: journal wait for {known[0]}, flushes for {known[1]}."
                in note
            )
        bins = run_query(
            waits.engine,
            f"SELECT (ts_ns - (SELECT MIN(ts_ns) FROM syncline_sync)) // {waits.width}, AVG(journal_ns) FROM syncline_sync GROUP BY 1",
        ).rows
        expected = dict(bins)
        assert [row[1] for row in found["bins"]] == [
            human.text(expected.get(number), "ns") for number in range(len(found["bins"]))
        ]

    def test_a_selection_matches_sql(self, waits: Waiting, page: str) -> None:
        """By file, thread and time, separately and together; the flame graph by stack too."""
        path = run_report(waits.engine, "files").rows[1][0]
        assert path not in ("/f1", "/f2", "/f3")
        both = [
            step
            for weight in ("journal", "flush")
            for step in ({"choose": ["#flame select >> nth=0", weight]}, get(weight, ROOT))
        ]
        shown = [get("figures", FIGURES), get("sums", SUMS), get("sql", IN_SQL)]
        parts = {
            "file": [{"click": f"#files tr[data-name='{path}'] .pick"}],
            "thread": [{"click": "#threads tbody tr:nth-child(2) .pick"}],
            "time": [
                {"focus": "#time .handle[aria-label^=begin]"},
                {"press": "PageUp"},
                {"focus": "#time .handle[aria-label^=end]"},
                *[{"press": "PageDown"}] * 2,
            ],
        }
        parts["all three"] = [*parts["time"], *parts["file"], *parts["thread"]]
        every: list[Step] = []
        for name, steps in parts.items():
            every += [*steps, *(named(name, step) for step in (*shown, *both))]
            every += [{"click": "[data-key=clear-all]"}]
        all_found = visit(waits.pages[page], every)
        for name in parts:
            found = of_part(name, all_found)
            where = found["sql"].partition("WHERE ")[2]
            self.check(waits, found["figures"], where)
            (syncs, *sums) = waits.one("COUNT(*), SUM(journal_ns), SUM(flush_ns)", where)
            assert 0 < syncs < 601
            shown_sums = [found["journal"], found["flush"]]
            # If there is nothing to draw, there is no frame.
            assert [int(one or 0) for one in shown_sums] == [one or 0 for one in sums], name
            if name == "time":
                self.tables(waits, found["sums"], where)

    def test_a_file_without_waits_has_no_figures(self, waits: Waiting, page: str) -> None:
        if page == "counted":
            names = (
                "[...document.querySelectorAll('#files tbody tr')].map((row) => row.dataset.name)"
            )
            shown = visit(waits.pages[page], [get("names", names)])["names"]
            path = next(name for name in shown if name in ("/f1", "/f2", "/f3"))
        else:
            path = "/f1"
        steps = [
            {"click": f"#files tr[data-name='{path}'] .pick"},
            {"choose": ["#flame select >> nth=0", "journal"]},
            get("figures", FIGURES),
            get("flame", "document.querySelector('#flame .body').textContent"),
        ]
        found = visit(waits.pages[page], steps)
        assert found["figures"]["journal known of"] == "0"
        for name in ("journal", "journal p99", "journal sum", "journal share of sync time"):
            assert found["figures"][name] is None, name
        assert "Nothing to draw: wait for the journal is not known for any sync." in found["flame"]


BARS = """[...document.querySelectorAll('#phases .stack')].map((bar) => Object.fromEntries(
  [...bar.children].map((part) => [part.dataset.phase, [Number(part.dataset.value), part.offsetWidth]])))"""


@pytest.mark.parametrize("page", ["all", "counted", "parts"])
class TestPhases:
    SELECTIONS: dict[str, list[Step]] = {
        "nothing": [],
        "file": [{"click": "#files tbody tr:nth-child(3) .pick"}],
        "thread": [{"click": "#threads tbody tr:nth-child(2) .pick"}],
        "time": [
            {"focus": "#time .handle[aria-label^=begin]"},
            {"press": "PageUp"},
            {"focus": "#time .handle[aria-label^=end]"},
            *[{"press": "PageDown"}] * 2,
        ],
    }
    SELECTIONS["all three"] = [
        *SELECTIONS["time"],
        {"click": "#threads tr:not([data-name=others]) .pick"},
        {"click": "#files tr:not([data-name=others]) .pick"},
    ]

    def phases(self, phased: Phased, where: str) -> dict[str, int]:
        selected = f"SELECT sync_id FROM syncline_sync WHERE {where}"
        return dict(
            run_query(
                phased.engine,
                "SELECT phase, SUM(dur_ns) FROM syncline_phase"
                f" WHERE sync_id IN ({selected}) GROUP BY 1 HAVING SUM(dur_ns) > 0",
            ).rows
        )

    def test_a_selection_matches_sql(self, phased: Phased, page: str) -> None:
        # A page of parts knows one filter at a time.
        selections = [name for name in self.SELECTIONS if (page, name) != ("parts", "all three")]
        shown = [get("bars", BARS), get("sql", IN_SQL_OR_NONE)]
        steps: list[Step] = []
        for name in selections:
            steps += [*self.SELECTIONS[name], *(named(name, one) for one in shown)]
            steps += [{"press": "Escape"}]
        all_found = visit(phased.pages[page], steps)
        for name in selections:
            found = of_part(name, all_found)
            where = (found["sql"] or "WHERE true").partition("WHERE ")[2]
            assert (where == "true") == (name == "nothing")
            expected = self.phases(phased, where)
            assert {phase: ns for phase, (ns, _) in found["bars"][0].items()} == expected, name
            assert len(expected) > 3
        self.check_widths(all_found["nothing bars"][0])

    def check_widths(self, bar: dict[str, list[int]]) -> None:
        total, width = (sum(part[at] for part in bar.values()) for at in (0, 1))
        assert width > 500
        for ns, pixels in bar.values():
            assert pixels == pytest.approx(width * ns / total, abs=1.5)

    def test_groups_add_up_to_the_first_bar(self, phased: Phased, page: str) -> None:
        steps = [
            step
            for by in ("file", "thread")
            for step in ({"choose": ["#phases select", by]}, get(by, BARS))
        ]
        found = visit(phased.pages[page], steps)
        for by in ("file", "thread"):
            whole, *groups = found[by]
            expected = run_query(
                phased.engine,
                f"SELECT SUM(phase.dur_ns) FROM syncline_phase AS phase JOIN syncline_sync AS sync"
                f" USING (run, sync_id) GROUP BY {'path' if by == 'file' else 'tid, comm'}"
                " ORDER BY 1 DESC",
            ).rows
            sums = [sum(ns for ns, _ in bar.values()) for bar in groups]
            # Groups that have no name on the page share one row, which may be anywhere.
            named = [ns for (ns,) in expected][:4]
            assert [ns for ns in sums if ns in named] == named
            assert sum(ns for ns, _ in whole.values()) == sum(ns for (ns,) in expected)


def test_bystanders_are_those_of_the_report(phased: Phased, inputs: Inputs) -> None:
    bars_of = """[...document.querySelectorAll('#bystanders .by[data-kind]')].map((bar) =>
      [bar.dataset.kind, bar.dataset.comm || null, Number(bar.dataset.value), bar.offsetWidth])"""
    text = get("text", "document.querySelector('#bystanders .body').textContent")
    found = visit(phased.pages["counted"], [get("bars", bars_of), text])
    rows = run_report(phased.engine, "bystanders").as_dicts()
    shown = [[row["kind"], row["comm"], row["ahead_ns"]] for row in rows]
    assert [bar[:3] for bar in found["bars"]] == shown[:8]
    widest = max(bar[3] for bar in found["bars"])
    longest = max(row["ahead_ns"] for row in rows)
    for _, _, ns, width in found["bars"]:
        assert width == pytest.approx(widest * ns / longest, abs=1.5)
    # The thesis format names no device.
    missing = get("text", "document.querySelector('#missing').textContent")
    assert "no bio has a known device" in visit(inputs.pages["all"], [missing])["text"]


@pytest.mark.parametrize("page", ["all", "counted", "compared"])
def test_without_waits_the_page_does_not_mention_them(inputs: Inputs, page: str) -> None:
    steps = [
        get("figures", FIGURES),
        get("options", OPTIONS),
        get(
            "columns",
            "[...document.querySelectorAll('#files thead th, #threads thead th')].map((one) => one.textContent)",
        ),
        get("text", "document.getElementById('page').textContent"),
    ]
    found = visit(inputs.pages[page], steps)
    assert len(found["columns"]) > 15
    for name in (*found["figures"], *found["options"], *found["columns"]):
        assert not re.search("journal|flush", name), name
    assert not re.search("journal|flush", found["text"].replace("fflush", ""), re.I)


class TestWaitsCompared:
    def shown(self, folder: Path, base: str, new: str, weight: str) -> dict[str, Any]:
        samples = Path(__file__).parents[2] / "kernel-patch/samples"
        paths = [DATA / one if one.endswith(".log") else samples / one for one in (base, new)]
        out = folder / "x.html"
        out.write_bytes(html.page([described(path) for path in paths]))
        steps = [
            {"choose": ["#flame select >> nth=0", weight]},
            get("figures", FIGURES),
            get("tile", "document.querySelector('.tile[data-figure=journal]').innerText"),
            get(
                "threads",
                "[...document.querySelectorAll('#threads tbody tr')].map((row) => [...row.querySelectorAll('[data-column=journal] > *, [data-column=flush] > *')].map((one) => one.textContent))",
            ),
            get(
                "flame",
                "[...document.querySelectorAll('#flame .pane')].map((one) => one.innerText)",
            ),
            get("labels", LABELS),
        ]
        return visit(out, steps)

    def test_unknown_waits_are_not_shown_as_0(self, tmp_path: Path) -> None:
        found = self.shown(tmp_path, "ext4.trace.txt", "btrfs.trace.txt", "journal")
        assert found["figures"]["journal"] is None
        assert found["figures"]["journal known of"] == "0"
        assert found["tile"].split("\n")[1] == "-"
        assert not re.search("[▲▼=]", found["tile"])
        for cells in found["threads"]:
            assert cells[0] == cells[2] == "-"
            assert not re.search("[▲▼=]", cells[1] + cells[3])
        assert (
            "Nothing to draw: wait for the journal is not known for any sync." in found["flame"][1]
        )
        found = self.shown(tmp_path, "small4.log", "ext4.trace.txt", "journal")
        assert "is not known for any sync" in found["flame"][0]
        assert "Changes are not shown" in found["flame"][1]
        assert not any(" pp " in label for label in found["labels"][1])

    def test_a_wait_of_0_is_known(self, tmp_path: Path) -> None:
        found = self.shown(tmp_path, "ext4.trace.txt", "ext4-nojournal.trace.txt", "journal")
        assert (found["figures"]["journal"], found["figures"]["journal sum"]) == ("0", "0")
        assert found["figures"]["journal known of"] == "10"
        assert "▼ -100 %" in found["tile"]
        assert (
            "Nothing to draw: wait for the journal is 0 ns in all of 10 syncs." in found["flame"][1]
        )
        assert any("▼ -100 %" in cells[1] for cells in found["threads"])


def test_text_of_a_log_is_not_executed(tmp_path: Path) -> None:
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
    with open_columns(
        write_parquet(run, tmp_path / "run"), sql=sql_root() / "tables" / "duckdb"
    ) as engine:
        side = html.describe(engine, HOSTILE)
    # The steps show every field that holds text.
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
        # It is shown, with control characters made visible.
        assert found["name"].startswith("</script><img src=x onerror=alert(1)>")
        assert "\x1b" not in found["name"]


def test_a_page_without_requests_says_so(tmp_path: Path) -> None:
    out = tmp_path / "empty.html"
    with open_columns(
        write_parquet(Run(), tmp_path / "run"), sql=sql_root() / "tables" / "duckdb"
    ) as engine:
        side = html.describe(engine, "empty")
    for sides in ([side], [side, side]):
        out.write_bytes(html.page(sides))
        found = visit(out, [get("text", "document.body.innerText")])
        assert "There is no sync request in this input" in found["text"]


@pytest.mark.parametrize("log", sorted(path.name for path in DATA.glob("*.log*")))
def test_every_recording_gives_a_page(log: str, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    with opened(str(DATA / log), Reading()) as engine:
        out.write_bytes(html.page([html.describe(engine, log)]))
        (syncs,) = run_query(engine, "SELECT COUNT(*) FROM syncline_sync").rows[0]
    found = visit(out, [get("text", "document.body.innerText")])
    assert (f"{syncs} of {syncs} syncs" in found["text"]) == (syncs > 0)
    said = "There is no sync request in this input" in found["text"]
    assert (said or ", no sync ·" in found["text"]) == (syncs == 0)
