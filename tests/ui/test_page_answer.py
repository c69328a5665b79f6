"""The page of `report --html`: the answer, the slowest syncs, selections by latency and amount, the address, inputs without syncs, print.

As tests/ui/test_page.py, it compares what a browser shows with SQL. Each page is opened once, for many assertions.
"""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from syncline.advice import advise, with_advice
from syncline.comparison.answer import answer as changes
from syncline.comparison.comparability import glance
from syncline.comparison.output import answer as words_of_changes
from syncline.inputs import Reading, opened
from syncline.render import human, phase_words
from syncline.render.advice import as_page
from syncline.render.answer import sentences, sentences_of
from syncline.report import answer, html, run_query, run_report

from tests import known_truth
from tests.ui.pages import (
    DATA,
    FIGURES,
    IN_SQL,
    NARROW,
    SELECTED,
    WIDE,
    Inputs,
    Phased,
    check_figures,
    get,
    visit,
)

pytestmark = pytest.mark.ui

HASH = "decodeURIComponent(location.hash)"
ROWS = """[...document.querySelectorAll('#slowest tbody tr[data-sync]')].map((row) => [Number(row.dataset.sync), Number(row.dataset.length),
  row.querySelector('.path').textContent, Object.fromEntries([...row.querySelectorAll('[data-phase]')].map((part) => [part.dataset.phase, Number(part.dataset.value)]))])"""

# For each label in a bar: whether it is seen, and whether all of it is inside of its part.
LABELS_OF_BARS = """[...document.querySelectorAll('#answer .stack b')].map((one) => {
  const [label, part] = [one.getBoundingClientRect(), one.parentElement.getBoundingClientRect()];
  return [label.top < part.bottom, label.right <= part.right && one.scrollWidth <= one.clientWidth];
})"""


def page_of(path: Path, out: Path) -> dict[str, Any]:
    """Writes a page as the command does. Returns the sentences of the answer."""
    with opened(str(path), Reading()) as engine:
        found = advise(engine)
        side = html.describe(
            engine,
            path.name,
            answer=with_advice(engine, answer.read(engine), found),
            sentences=functools.partial(sentences_of, path=path.name, can_be_shown=True),
            advice=as_page(path.name, found),
        )
    out.write_bytes(html.page([side]))
    return side["answer"]["sentences"]


# Whose bios were at a device between the begin of the first sync and the end of the last one, and how long.
OWNERS = """
WITH span AS (SELECT MIN(ts_ns) AS first_ns, MAX(ts_ns + COALESCE(dur_ns, 0)) AS last_ns FROM syncline_sync_call),
  bio AS (SELECT *, GREATEST(issue_ns, first_ns) AS begin_ns, LEAST(ts_ns + dur_ns, last_ns) AS end_ns FROM owned_bios!(), span)
SELECT process || CASE WHEN cgroup <> '/' THEN ' in ' || cgroup ELSE '' END, CAST(SUM(end_ns - begin_ns) AS BIGINT)
FROM bio WHERE issue_ns < last_ns AND ts_ns + dur_ns > first_ns GROUP BY 1
"""


def where_of(sql: str) -> str:
    return sql.partition("WHERE ")[2]


def test_latency_and_amount_select(inputs: Inputs) -> None:
    """On a page with every request, all figures follow; the address keeps the selection."""
    first = "document.querySelectorAll('.chip').length"
    steps = [
        {"drag": ["#latency .brush", 0.4, 0.8]},
        get("latency", FIGURES),
        get("latency sql", IN_SQL),
        {"drag": ["#amount .brush", 0.0, 0.7]},
        get("both", FIGURES),
        get("both sql", IN_SQL),
        get("hash", HASH),
        {"reload": True},
        get("reloaded", FIGURES),
        {"back": True},
        get("back", FIGURES),
        {"press": "Escape"},
        {"drag": ["#scatter .two-axes", 0.4, 0.9, 0.2, 0.6]},
        get("scatter", FIGURES),
        get("scatter sql", IN_SQL),
        {"press": "Escape"},
        {"drag": ["#heat .two-axes", 0.3, 0.7, 0.15, 0.5]},
        get("heat", FIGURES),
        get("heat sql", IN_SQL),
        {"press": "Escape"},
        # A click on a bar selects it, and a second one removes the selection.
        {"click": "#latency .brush"},
        get("bar sql", IN_SQL),
        get("bar", FIGURES),
        {"click": "#latency .brush"},
        get("chips", first),
        get("cleared", FIGURES),
        {"focus": "#latency .handle[aria-label^=begin]"},
        {"press": "PageUp"},
        get("keys", FIGURES),
        get("keys sql", IN_SQL),
    ]
    found = visit(inputs.pages["all"], steps)
    for name in ("latency", "both", "scatter", "heat", "bar", "keys"):
        where = where_of(found[f"{name} sql"])
        assert "syscall_ns >= " in where, name
        check_figures(inputs, found[name], where, counted=False)
        assert 0 < float(found[name]["syncs"]) < float(found["cleared"]["syncs"]), name
    assert "bytes < " in where_of(found["both sql"])
    assert "ts_ns >= " in where_of(found["heat sql"])
    assert "waited=syscall.." in found["hash"]
    assert "wrote=" in found["hash"]
    assert found["reloaded"] == found["both"]
    assert found["back"] == found["latency"]
    assert found["chips"] == 0


def test_a_page_of_counts_selects_by_one_of_them(inputs: Inputs) -> None:
    """Counts and sums are exact; what the counts do not hold is not shown, and never 0."""
    steps = [
        {"drag": ["#latency .brush", 0.4, 0.8]},
        get("latency", FIGURES),
        get("latency sql", IN_SQL),
        {"click": "#threads tbody tr:not([data-name=others]) .pick"},
        get("thread", FIGURES),
        get("thread sql", IN_SQL),
        get("phases", "document.querySelector('#phases .body').textContent"),
        get("flame", "document.querySelector('#flame .body').textContent"),
        get("files", "[...document.querySelectorAll('#files [data-column=syncs]')].map((one) => Number(one.dataset.value))"),
        {"press": "Escape"},
        {"drag": ["#amount .brush", 0.2, 0.8]},
        get("amount", FIGURES),
        get("amount sql", IN_SQL),
        {"press": "Escape"},
        {"drag": ["#heat .two-axes", 0.3, 0.7, 0.15, 0.5]},
        get("heat", FIGURES),
        get("heat sql", IN_SQL),
    ]  # fmt: skip
    found = visit(inputs.pages["counted"], steps)
    for name in ("latency", "thread", "amount", "heat"):
        figures, where = found[name], where_of(found[f"{name} sql"])
        syncs, amount, time = inputs.one("COUNT(*), SUM(bytes), SUM(dur_ns)", where)
        assert 0 < syncs < 700
        shown = [figures[key] for key in ("syncs", "amount", "time")]
        assert [float(one or 0) for one in shown] == [syncs, amount or 0, time or 0], name
        unknown = ("syscall max", "writeback", "empty", "empty incomplete", "exact", "time wall time")  # fmt: skip
        assert [figures[key] for key in unknown] == [None] * len(unknown), name
    (median,) = inputs.one("percentile(syscall_ns, 50)", where_of(found["latency sql"]))
    low, high = map(float, found["latency"]["syscall"].split(".."))
    assert low <= median <= high
    assert sum(found["files"]) == float(found["thread"]["syncs"])
    for view in ("phases", "flame"):
        assert "Not known for a selection by latency or amount" in found[view]


@pytest.mark.parametrize("page", ["all", "counted"])
def test_the_slowest_syncs_are_those_of_sql(inputs: Inputs, phased: Phased, page: str) -> None:
    steps = [
        get("rows", ROWS),
        {"click": "#slowest tbody tr:nth-child({place}) button[aria-expanded]"},
        get("commands", "[...document.querySelectorAll('.opened .command code')].map((one) => one.textContent)"),
        {"click": "#slowest .opened button"},
        get("selected", IN_SQL),
        get("same", "document.querySelector('#slowest tbody tr').dataset.sync"),
    ]  # fmt: skip
    for run in (inputs, phased):
        slow = run_query(
            run.engine,
            "SELECT comm || ' ' || tid FROM syncline_sync WHERE dur_ns IS NOT NULL"
            " ORDER BY dur_ns DESC, sync_id LIMIT 20",
        ).rows
        # A page of counts has one row for the threads that it does not name, and no SQL for them.
        listed = run_report(run.engine, "threads").as_dicts()[: run.named[page]]
        named = {f"{row['comm']} {row['tid']}" for row in listed}
        place = next(place for place, (name,) in enumerate(slow, 1) if place > 1 and name in named)
        clicks = [
            {key: value.replace("{place}", str(place)) if key == "click" else value for key, value in step.items()}
            for step in steps
        ]  # fmt: skip
        found = visit(run.pages[page], clicks)
        expected = run_query(
            run.engine,
            "SELECT sync_id, dur_ns, path FROM syncline_sync WHERE dur_ns IS NOT NULL"
            " ORDER BY dur_ns DESC, sync_id LIMIT 20",
        ).rows
        assert [tuple(row[:3]) for row in found["rows"]] == expected
        phases: dict[int, dict[str, int]] = {}
        for sync_id, phase, ns in run_query(
            run.engine,
            "SELECT sync_id, phase, SUM(dur_ns) FROM syncline_phase GROUP BY 1, 2 HAVING SUM(dur_ns) > 0",
        ).rows:
            phases.setdefault(sync_id, {})[phase] = ns
        for sync_id, length, _, shown in found["rows"]:
            known = phases.get(sync_id, {})
            unknown = length - sum(known.values())
            assert shown == known | ({"unknown": unknown} if unknown > 0 else {})
        in_sql, its_phases, timeline = map(shlex.split, found["commands"])
        assert [one[:2] for one in (in_sql, its_phases, timeline)] == [["syncline", "query"], ["syncline", "query"], ["syncline", "open"]]  # fmt: skip
        (row,) = run_query(run.engine, in_sql[3]).as_dicts()
        assert (row["sync_id"], row["dur_ns"]) == tuple(found["rows"][place - 1][:2])
        listed = run_query(run.engine, its_phases[3]).rows
        assert sum(ns for _, _, ns in listed) == sum(phases[row["sync_id"]].values())
        # The button selects the thread, and the time in which the sync was.
        (count,) = run_query(run.engine, f"SELECT COUNT(*) FROM syncline_sync WHERE {where_of(found['selected'])} AND sync_id = {row['sync_id']}").rows[0]  # fmt: skip
        assert count == 1


def test_the_answer_is_that_of_the_report(tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    recording = DATA.parent / "dynamic-events" / "run"
    said = page_of(recording, out)
    steps = [
        get("text", "document.querySelector('main').textContent"),
        get("order", "[...document.querySelectorAll('main section[id]')].map((one) => one.id)"),
        get("contents", "[...document.querySelectorAll('.contents a')].map((one) => one.hash.slice(1))"),
        get("bar", "Object.fromEntries([...document.querySelectorAll('#answer [data-phase]')].map((one) => [one.dataset.phase, [Number(one.dataset.value), one.offsetWidth]]))"),
        get("labels", LABELS_OF_BARS),
        get("meanings", "[...document.querySelectorAll('#phase-legend li')].map((one) => one.textContent)"),
        get("commands", "[...document.querySelectorAll('.next code')].map((one) => one.textContent)"),
        get("shows", "[...document.querySelectorAll('.next .command span')].map((one) => one.textContent)"),
        get("found", "[...document.querySelectorAll('#advice [data-finding]')].map((one) => [one.dataset.finding, one.textContent])"),
        get("copied", "[...document.querySelectorAll('#slowest tr[data-sync]')].map((one) => [Number(one.dataset.sync), one.querySelector('button').title])"),
        get("slowest", "document.querySelector('#longest a').textContent"),
        get("users", "[...document.querySelectorAll('#disk .users li')].map((one) => [one.textContent, Number(one.dataset.value)])"),
        {"axe": "axe"},
        {"scheme": "dark"},
        {"axe": "axe dark"},
        {"scheme": "light"},
        {"size": [400, 800]},
        # All of a command is seen, however narrow the window is.
        get("cut", "[...document.querySelectorAll('.next code, #phase-legend li, .finding p, .users li')].filter((one) => one.getBoundingClientRect().right > innerWidth).length"),
        {"size": [700, 1000]},
        get("known", """document.querySelector('.tile [data-figure="known of"]').textContent"""),
        {"click": "#longest .worst button"},
        get("sql", IN_SQL),
        # A link within the page leaves the selection in the address.
        {"click": ".contents a[href='#files']"},
        get("there", "[document.activeElement.id, Math.round(document.getElementById('files').getBoundingClientRect().top), location.hash.startsWith('#file=')]"),
        get("selected", SELECTED),
    ]  # fmt: skip
    # Here some labels do not fit into their parts of the bar.
    found = visit(out, steps, (700, 1000))
    # The answer, and the questions that follow from it, come first.
    assert found["order"][:4] == ["answer", "disk", "longest", "advice"]
    assert found["contents"] == found["order"]
    assert (found["axe"], found["axe dark"]) == ([], [])
    # Each phase is explained where its colour is.
    with opened(str(recording), Reading()) as engine:
        figures, advice = answer.read(engine), advise(engine)
        owners = dict(run_query(engine, OWNERS).rows)
    assert len(found["meanings"]) == len(figures.phases)
    for phase, ns in figures.phases.items():
        name = {"residue": "not explained", "unknown": "no recorded phase"}.get(phase, phase)
        share = human.text(ns / figures.total["time_ns"], "share")
        words = phase_words.meaning(phase, figures.phases_seen)
        assert f"{name} {share}: {words}" in found["meanings"]
    # The advice is that of `advise`, all of it, with what helps.
    costly = [one for one in advice if one.status == "found"]
    assert [name for name, _ in found["found"]] == [one.finding.name for one in costly]
    for one, (_, shown) in zip(costly, found["found"], strict=True):
        assert one.seen in shown
        assert one.finding.instead in shown
    assert costly
    # Ten syncs are no "20 slowest".
    assert found["slowest"] == "All 10"
    assert len(found["copied"]) == 10
    assert all(line == f"syncline open run --sync {number}" for number, line in found["copied"])
    users = {words.partition(":")[0]: 0 for words, _ in found["users"]}
    for words, ns in found["users"]:
        users[words.partition(":")[0]] += ns
    assert users == owners
    assert found["commands"] == ["syncline open run --sync 9", "syncline report run journal"]
    assert found["shows"][0] == "the slowest sync in the timeline: "
    assert said["advice"].startswith("To change in the program: 5 of 10 syncs waited for a commit")
    assert "Next: syncline advise run, which" in said["cause"]
    assert found["cut"] == 0
    assert found["there"][::2] == ["files", True]
    assert 0 <= found["there"][1] < 1000
    for sentence in (said["total"], said["phases"], said["slowest"], said["neighbours"], *said["worst"]):  # fmt: skip
        assert sentence in found["text"]
    with opened(str(recording), Reading()) as engine:
        (count,) = run_query(engine, found["sql"]).rows[0][:1]
    assert {name: ns for name, (ns, _) in found["bar"].items()} == figures.phases
    assert sum(figures.phases.values()) == figures.total["time_ns"]
    width = sum(pixels for _, pixels in found["bar"].values())
    for ns, pixels in found["bar"].values():
        assert pixels == pytest.approx(width * ns / figures.total["time_ns"], abs=1.5)
    assert count == figures.worst[0]["syncs"]
    assert {seen for seen, _ in found["labels"]} == {True, False}
    assert all(fits for seen, fits in found["labels"] if seen)
    syncs = figures.total["syncs"]
    assert re.fullmatch(rf"known for \d+ of {syncs} syncs?", found["known"])
    # All of its syncs are of one program, and nobody else was at the device. The recorder, which runs bpftrace, had the CPU now and then.
    others = {(row["kind"], row["process"]) for row in figures.neighbours}
    assert others <= {("unrecorded", None), ("computes", "bpftrace")}
    assert said["neighbours"].startswith("Neighbours: nobody who is recorded delayed these syncs")


def test_the_answer_of_two_sides_is_that_of_diff(tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    sides, glances = [], []
    for name in ("small4.log", "small4-slowdisk.log"):
        with opened(str(DATA / name), Reading()) as engine:
            sides.append(
                html.describe(engine, f"long/folder/{name}", compared=True, sentences=sentences)
            )
            glances.append(glance(engine, name, run_report(engine, "summary").rows))
    change = changes(*glances)
    said = [*words_of_changes.sentences(change)]
    out.write_bytes(html.page(sides, (), {"sentences": said, "phases": change.phases}))
    curves = "[...document.querySelectorAll('#latency svg [data-mark=line] path')].length"
    steps = [
        get("text", "document.getElementById('answer').textContent"),
        get("bars", "[...document.querySelectorAll('#answer .stack')].map((one) => one.offsetWidth)"),
        get("names", "[...document.querySelectorAll('.pane h3')].map((one) => one.textContent)"),
        get("charts", "document.querySelectorAll('#latency svg[role=img]').length"),
        {"choose": ["#latency select >> nth=1", "ecdf"]},
        get("curves", curves),
        get("lanes", "[...document.querySelectorAll('#lanes canvas')].map((one) => one.offsetWidth)"),
    ]  # fmt: skip
    found = visit(out, steps)
    for sentence in said:
        assert sentence in found["text"]
    sums = [sum(phases.values()) for phases in change.phases]
    assert found["bars"][0] == pytest.approx(found["bars"][1] * sums[0] / sums[1], abs=2)
    # Full paths are said once.
    assert not any("long/folder" in name for name in found["names"])
    # Both sides are in one chart, and the difference is another one.
    assert (found["charts"], found["curves"]) == (2, 2)


def test_what_failed_comes_before_all_else(tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    path = DATA.parent / "strace" / "failed.log"
    page_of(path, out)
    steps = [
        get("rows", "[...document.querySelectorAll('#failed tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"),
        get("absent", "document.querySelector('.absent').textContent"),
        get("first", "document.querySelector('main section').id"),
        get("failed", "document.getElementById('failed').innerText"),
        get("top", "document.getElementById('failed').getBoundingClientRect().top"),
        get("missing", "document.querySelector('.caveats').innerText"),
        get("tiles", "[...document.querySelectorAll('.tile')].map((one) => one.dataset.figure)"),
    ]  # fmt: skip
    found = visit(out, steps)
    assert found["first"] == "failed"
    with opened(str(path), Reading()) as engine:
        failed = run_report(engine, "failures").as_dicts()
    assert [row[:3] for row in found["rows"]] == [
        [one["what"], one["error"], str(one["failed"])] for one in failed
    ]
    assert (
        found["absent"]
        == "Not recorded: writeback latency, written back, empty syncs, exact attribution."
    )
    assert found["top"] < 200
    assert "11 of 21 syncs failed (ENOSPC 6, EIO 3, EINVAL 2)" in found["failed"]
    assert "failed" not in found["missing"]
    # A recorder of calls cannot know what was written.
    assert found["tiles"] == ["syncs", "syscall", "time"]


def test_a_figure_of_some_syncs_says_of_how_many(tmp_path: Path) -> None:
    """15 of the 100 bios of this log never complete, so the writeback latency of as many syncs is not known."""
    out = tmp_path / "x.html"
    page_of(DATA / "small4.log", out)
    steps = [
        get("labels", "Object.fromEntries([...document.querySelectorAll('.tile')].map((one) => [one.dataset.figure, one.querySelector('dt').textContent]))"),
        get("failed", "document.getElementById('failed')"),
        get("losses", "[...document.querySelectorAll('.caveats td')].map((one) => one.textContent)"),
    ]  # fmt: skip
    found = visit(out, steps)
    assert found["labels"]["writeback"] == "Writeback latency, median of 85 of 100 syncs"
    assert found["labels"]["syscall"] == "Syscall latency, median"
    assert found["failed"] is None
    assert re.fullmatch(r"\d+\.\d{6} s", found["losses"][-1])


def test_bars_of_two_sides_and_of_their_files_are_to_one_scale(tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    sides = []
    for name in ("parallel4.log", "small4.log"):
        with opened(str(DATA / name), Reading()) as engine:
            sides.append(html.describe(engine, name, compared=True, sentences=sentences))
    out.write_bytes(html.page(sides))
    bars = """[...document.querySelectorAll('#phases .pane')].map((pane) => [...pane.querySelectorAll('.stack')].map((bar) => [
      [...bar.querySelectorAll('[data-phase]')].reduce((sum, part) => sum + Number(part.dataset.value), 0), bar.offsetWidth, bar.parentElement.offsetWidth]))"""
    found = visit(out, [get("bars", bars)])["bars"]
    assert len(found) == 2
    longest = max(side[0][0] for side in found)
    # All syncs of a side and each of its files: parallel4 has one file, and small4 a hundred.
    assert len(found[0]) == 2
    assert found[0][0][0] == found[0][1][0]
    assert len(found[1]) > 8
    for bar in (bar for side in found for bar in side):
        ns, width, room = bar
        assert width == pytest.approx(room * ns / longest, abs=2), bar


def test_a_log_of_calls_has_no_empty_chart(tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    said = page_of(DATA.parent / "strace" / "small4.log", out)
    steps = [
        get("views", "[...document.querySelectorAll('.view')].map((one) => one.id)"),
        get("bars", "[...document.querySelectorAll('#time svg [data-mark=rect] rect')].filter((one) => Number(one.getAttribute('height')) > 0).length"),
        get("missing", "document.getElementById('missing').textContent"),
        get("options", "[...document.querySelectorAll('#time select option')].map((one) => one.value)"),
        get("text", "document.body.textContent"),
    ]  # fmt: skip
    found = visit(out, steps)
    assert found["bars"] > 10
    assert not {"phases", "bystanders", "amount", "scatter"} & {*found["views"]}
    assert {"slowest", "heat", "latency", "lanes", "files"} <= {*found["views"]}
    for title in (
        "Where the time went",
        "Who used the disk",
        "Who was at the device",
        "Amount",
        "Latency against",
    ):
        assert title in found["missing"]
    assert found["options"] == ["syncs", "syscall", "syscallMax"]
    assert said["phases"] in found["text"]


def test_waits_of_writes_appear_if_there_are_some(tmp_path: Path, inputs: Inputs) -> None:
    bars = """[...document.querySelectorAll('#writes [data-wait]')].map((bar) => [bar.dataset.wait, Number(bar.dataset.value), bar.offsetWidth])"""
    table = """(document.querySelector('#writes .numbers').open = true, new Promise((done) => setTimeout(() => done(
      [...document.querySelectorAll('#writes tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))), 100)))"""
    views = get("views", "[...document.querySelectorAll('.view')].map((one) => one.id)")
    steps = [
        views,
        get("text", "document.querySelector('#writes .answer').textContent"),
        get("bars", bars),
        get("table", table),
        get("page", "document.body.innerText"),
    ]
    # One with syncs, and one without.
    for case, place in (("write-journal-handle", "phases"), ("write-inode-lock", None)):
        run = known_truth.unpacked(case, tmp_path)
        out = tmp_path / f"{case}.html"
        page_of(run, out)
        found = visit(out, steps)
        at = found["views"].index("writes")
        assert at == (found["views"].index(place) + 1 if place else 0)
        with opened(str(run), Reading()) as engine:
            rows = run_report(engine, "slow-writes").as_dicts()
        assert [bar[:2] for bar in found["bars"]] == [
            [row["wait"], row["total_ns"]] for row in rows
        ]
        widest, longest = (max(bar[at] for bar in found["bars"]) for at in (2, 1))
        for _, ns, width in found["bars"]:
            assert width == pytest.approx(widest * ns / longest, abs=1.5)
        total = human.text(sum(row["total_ns"] for row in rows), "ns")
        waits = sum(row["waits"] for row in rows)
        assert f"{waits} waits of writes took {total} in total." in found["text"]
        (worst,) = sorted(rows, key=lambda row: -row["max_ns"])[:1]
        where = f" of {worst['path']}" if worst["path"] else f" on {worst['dev']}"
        whose = f", for the work of {worst['of_comm']}" if worst["of_comm"] else ""
        said = (
            f"{human.text(worst['max_ns'], 'ns')}: {worst['comm']}: {worst['wait']}{where}{whose}."
        )
        assert said in found["text"]
        units = ("ns", "ns", "ns", "bytes")
        names = ("total_ns", "median_ns", "max_ns", "bytes")
        assert [row[5:9] for row in found["table"]] == [
            [human.text(row[name], unit) for name, unit in zip(names, units, strict=True)]
            for row in rows
        ]
        assert "nothing to draw" not in found["page"]
    assert "writes" not in visit(inputs.pages["all"], [views])["views"]


def test_an_input_of_bios_shows_what_it_holds(tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    path = DATA.parent / "blktrace" / "small4.blktrace.0"
    said = page_of(path, out)
    table = "[...document.querySelectorAll('#device tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    bars = "(document.querySelector('#bio-time .numbers').open = true, new Promise((done) => setTimeout(() => done([...document.querySelectorAll('#bio-time .numbers tbody tr')].map((row) => row.cells[2].textContent)), 100)))"
    steps = [
        get("text", "document.body.innerText"),
        get("devices", table),
        get("slowest", "[...document.querySelectorAll('#slow-bios tbody tr')].map((row) => Number(row.dataset.bio))"),
        {"choose": ["#bio-time select", "bios"]},
        get("bins", bars),
        {"choose": ["#bio-time select", "queue"]},
        get("queue", "document.querySelectorAll('#bio-time svg [data-mark=rect] rect').length"),
    ]  # fmt: skip
    found = visit(out, steps)
    assert said["devices"] in found["text"]
    for wrong in ("0 syncs", "in 0 ns", "No losses recorded", "✓"):
        assert wrong not in found["text"]
    with opened(str(path), Reading()) as engine:
        devices = run_report(engine, "device").as_dicts()
        bios, slowest = run_query(engine, "SELECT COUNT(*) FROM syncline_bio").rows[0][0], run_query(engine, "SELECT bio_id FROM syncline_bio WHERE dur_ns IS NOT NULL ORDER BY dur_ns DESC, bio_id LIMIT 20").rows  # fmt: skip
    assert [(row[0], row[2]) for row in found["devices"]] == [
        (row["dev"], human.text(row["bios"], "count")) for row in devices
    ]
    assert [(number,) for number in found["slowest"]] == slowest
    assert sum(int(one.replace(",", "")) for one in found["bins"]) == bios
    assert found["queue"] > 10


def test_many_syncs_are_drawn_by_density(inputs: Inputs) -> None:
    note = get("note", "document.querySelector('#lanes .note').textContent")
    assert "too many for a bar each" in visit(inputs.pages["all"], [note], NARROW)["note"]
    assert "too many for a bar each" not in visit(inputs.pages["all"], [note], WIDE)["note"]


def test_on_paper_nothing_is_cut_off(inputs: Inputs, tmp_path: Path) -> None:
    steps = [
        {"paper": True},
        get("controls", "[...document.querySelectorAll('select, input, .handle, button.small')].filter((one) => one.getBoundingClientRect().width > 0).length"),
        get("wide", "[...document.querySelectorAll('table.data')].filter((one) => one.offsetParent && one.getBoundingClientRect().right > document.getElementById('page').getBoundingClientRect().right + 1).map((one) => one.closest('section').id)"),
        get("scrolled", "[...document.querySelectorAll('.scroll')].filter((one) => one.offsetParent && one.scrollHeight > one.clientHeight + 1).length"),
        get("page", "document.getElementById('page').offsetWidth"),
        get("drawn", "[...document.querySelectorAll('canvas, .view svg')].map((one) => one.getBoundingClientRect().right - document.getElementById('page').getBoundingClientRect().right).filter((over) => over > 0).length"),
    ]  # fmt: skip
    # A chart is on one page, with its title: some element around both is not broken, and is not longer than a page of A4.
    steps += [
        get("split", """[...document.querySelectorAll('.view svg[role=img], .view canvas, .view .flame')].filter((chart) => {
          const isWhole = (one) => getComputedStyle(one).breakInside === 'avoid' && one.offsetHeight < 1030;
          return !isWhole(chart.closest('.view')) && !(chart.closest('.pane') && isWhole(chart.closest('.pane')));
        }).map((chart) => chart.closest('.view').id)"""),
        get("headings", "[...document.querySelectorAll('thead th')].filter((one) => one.offsetParent && (one.scrollWidth > one.clientWidth + 1 || getComputedStyle(one).overflowWrap !== 'normal')).map((one) => one.textContent)"),
    ]  # fmt: skip
    for name in ("all", "compared"):
        found = visit(inputs.pages[name], steps)
        assert (found["split"], found["headings"]) == ([], []), name
        assert (found["controls"], found["wide"], found["scrolled"], found["drawn"]) == (0, [], 0, 0), name  # fmt: skip
        assert found["page"] <= 718


def test_an_address_cannot_harm(inputs: Inputs) -> None:
    """What is not valid in the hash is ignored."""
    steps = []
    hashes = (
        "time=5..1&wrote=a..b&file=nope&measure=evil",
        "waited=x..1..2&%E0%A4%A=1",
        "time=0.5..100000000.5",
        "time=0..9007199254740993",
        "time=0..Infinity",
    )
    for number, wrong in enumerate(hashes):
        steps += [
            get(f"set {number}", f"(location.hash = {wrong!r}, 0)"),
            {"reload": True},
            get(f"chips {number}", "document.querySelectorAll('.chip').length"),
        ]
    found = visit(inputs.pages["all"], steps)
    assert [found[f"chips {number}"] for number in range(len(hashes))] == [0] * len(hashes)


def test_the_name_of_a_run_cannot_add_to_a_command(tmp_path: Path) -> None:
    """A copied command is three words for the shell, whatever the name of the run."""
    run = '$(touch pwned) `id` "it\'s"'
    for name in (run, "other"):
        Reading().convert([str(DATA / "small4.log")], f"{tmp_path}/runs/{name}/")
    out = tmp_path / "x.html"
    steps: list[Any] = []
    for row in (1, 3):
        steps += [
            {"click": f"#slowest tbody tr[data-sync]:nth-child({row}) button[aria-expanded]"},
            get(f"commands {row}", "[...document.querySelectorAll('.opened .command code')].map((one) => one.textContent)"),
            {"click": f"#slowest tbody tr[data-sync]:nth-child({row}) button[aria-expanded]"},
        ]  # fmt: skip
    with opened(str(tmp_path / "runs"), Reading()) as engine:
        out.write_bytes(html.page([html.describe(engine, "it's runs")]))
        found = visit(out, steps)
        lines = [line for row in (1, 3) for line in found[f"commands {row}"]]
        hostile = [line for line in lines if "touch pwned" in line]
        assert hostile
        for line in hostile:
            # A shell expands nothing between single quotes. `printf` shows the words of the line.
            words = subprocess.run(
                ["sh", "-c", f"printf '%s\\0' {line}"], cwd=tmp_path, capture_output=True, check=True, text=True
            ).stdout.split("\0")[:-1]  # fmt: skip
            assert words[:3] == ["syncline", "query", "it's runs"]
            assert len(words) == 4
            rows = run_query(engine, words[3]).as_dicts()
            assert rows
            assert {one.get("run", run) for one in rows} == {run}
    assert not (tmp_path / "pwned").exists()
