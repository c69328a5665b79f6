"""The data of the page that `report --html` writes: compared with independent counts and between the engines."""

from __future__ import annotations

import json
import math
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from syncline.cli import errors
from syncline.cli.group import cli
from syncline.comparison.comparability import differences
from syncline.engine.columns import open_columns
from syncline.inputs import Reading, opened
from syncline.report import html, run_report, sql_root
from syncline.report.html import Limits
from syncline.report.run import run_query

from tests import known_truth
from tests.coretools import DATA, file_name
from tests.difftools import collect
from tests.sqltools import Row, Run, write_parquet
from tests.test_sql import RUNS, Both, T, one_run, opened_runs

# Small limits force the counts by bin, which these tests compute independently.
FEW = Limits(
    requests=5, cells=40, points=20, longest=3, stacks=4, ladder=((6, 5, 1), (3, 2, 1), (3, 2, 7))
)
ROOM = Limits(requests=5, cells=10**6, points=20, longest=3, stacks=4, ladder=((6, 5, 1),))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Both]]:
    with opened_runs(tmp_path_factory.mktemp("runs")) as get:
        yield get


def rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rounded(value: Any) -> Any:
    """Rounds doubles to twelve digits, because the engines add in different orders."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("limits", "compared"), [(Limits(), False), (FEW, True)], ids=["all", "few-compared"]
)
@pytest.mark.parametrize("run", RUNS)
def test_both_engines_give_the_same_data(both, run: str, limits: Limits, compared: bool) -> None:
    ours, theirs = (
        html.describe(engine, "x", limits, compared=compared) for engine in both(run).engines()
    )
    assert rounded(ours) == rounded(theirs)


@pytest.mark.parametrize(
    ("limits", "compared"), [(Limits(), True), (FEW, False)], ids=["all-compared", "few"]
)
@pytest.mark.parametrize("run", RUNS)
def test_both_engines_number_stacks_alike(both, run: str, limits: Limits, compared: bool) -> None:
    """Nothing else of a page depends on limits and on what it is compared with together."""
    ours, theirs = (
        (
            html._number_stacks(engine, limits, compared=compared),
            run_query(engine, "SELECT * FROM _page_stack ORDER BY 1, 2").rows,
        )
        for engine in both(run).engines()
    )
    assert ours == theirs


# Independent counts.


def ranked(run: Run, key: Any) -> list[Any]:
    """Returns values in descending order of the time in sync of their requests."""
    sums: Counter = Counter()
    amounts: Counter = Counter()
    for row in run.sync:
        sums[key(row)] += row["dur_ns"] or 0
        amounts[key(row)] += row["bytes"]
    return sorted(sums, key=lambda one: (-sums[one], -amounts[one], one))


def latency_bucket(ns: int) -> int:
    bounds = [0] + [lead * 10**power for power in range(18) for lead in (1, 2, 5)]
    return max(number for number, bound in enumerate(bounds) if bound <= ns)


def amount_bucket(size: int) -> int:
    return 0 if size < 1 else int(math.log2(size)) + 1


class Counted:
    """The requests of a run with the bins, files, threads and stacks that the page assigns to them."""

    def __init__(self, run: Run, limits: dict[str, int]) -> None:
        self.limits = limits
        files = ranked(run, lambda row: row["path"])
        threads = ranked(run, lambda row: (row["tid"], row["comm"]))
        first = min(row["ts_ns"] for row in run.sync)
        self.length = max(row["ts_ns"] for row in run.sync) - first
        self.width = next(
            lead * 10**power
            for power in range(18)
            for lead in (1, 2, 5)
            if lead * 10**power > self.length / 100
        )
        stacks = Counter(row["stack"] for row in run.sync if row.get("stack"))
        order = sorted(stacks, key=lambda one: (-stacks[one], one))
        self.rows: list[tuple[int, int, int, Row]] = []
        self.stack: list[int] = []
        for row in run.sync:
            since = row["ts_ns"] - first
            file = min(files.index(row["path"]), limits["files"])
            thread = min(threads.index((row["tid"], row["comm"])), limits["threads"])
            self.rows.append((self.bin(since), file, thread, row | {"since_ns": since}))
            place = order.index(row["stack"]) if row.get("stack") else -1
            self.stack.append(min(place, limits["stacks"]))
        self.files = files

    def bin(self, since: int) -> int:
        number = since // self.width
        return number - number % self.limits["step"]


@pytest.mark.parametrize("limits", [FEW, ROOM], ids=["few", "room"])
@pytest.mark.parametrize("run", ["crowd", "one", "waiting"])
def test_cubes_count_every_request(both, run: str, limits: Limits) -> None:
    data = html.describe(both(run).columns, "x", limits)
    assert data["mode"] == "bins"
    rung = data["limits"]
    if run == "crowd" and limits is FEW:
        # The first two rungs of the ladder are too fine.
        assert (rung["files"], rung["threads"], rung["step"]) == (3, 2, 7)
    made = RUNS[run]()
    for row in made.sync:
        row["path"] = file_name(row)
    counted = Counted(made, rung)
    assert data["width_ns"] == counted.width

    slots: dict[tuple, Counter] = {}
    most: dict[tuple, dict[str, int]] = {}
    for bin_, file, thread, row in counted.rows:
        sums = slots.setdefault((bin_, file, thread), Counter())
        whole = row.get("incomplete") not in ("start", "end")
        sums.update(syncs=1, whole=whole, empty=whole and row["bios"] == 0)
        sums.update(incomplete=row.get("incomplete") is not None, attributed=1)
        sums.update(exact=row["confidence"] == "exact", amounts=1, bytes=row["bytes"])
        for kind in ("syscall", "writeback", "journal"):
            if row.get(f"{kind}_ns") is not None:
                sums.update({f"{kind}s": 1, f"{kind}_ns": row[f"{kind}_ns"]})
                tops = most.setdefault((bin_, file, thread), {})
                tops[kind] = max(tops.get(kind, 0), row[f"{kind}_ns"])
        if row["dur_ns"] is not None:
            sums.update(timed=1, dur_ns=row["dur_ns"])
        if row.get("journal_ns") is not None:
            sums.update(journal_dur_ns=row["dur_ns"])
        if row.get("flush_ns") is not None:
            sums.update(flushes=1, flush_ns=row["flush_ns"])
    found = rows(data["cubes"]["slot"])
    assert [(row["bin"], row["file"], row["thread"]) for row in found] == sorted(slots)
    for row in found:
        key = (row["bin"], row["file"], row["thread"])
        for name, value in slots[key].items():
            # A sum without any known value is null.
            assert (row[name] or 0) == value, (key, name)
        for kind in ("syscall", "writeback", *(["journal"] if run == "waiting" else [])):
            assert row[f"{kind}_max_ns"] == most.get(key, {}).get(kind)
        if run == "waiting":
            for known, sums_ in (("journals", "journal_ns"), ("flushes", "flush_ns")):
                assert row[known] == slots[key][known]
                # If no request has a known wait, the sum is null, not 0.
                assert row[sums_] == (slots[key][sums_] if slots[key][known] else None)
        else:
            assert not [name for name in row if name.startswith(("journal", "flush"))]

    kinds = ["syscall", "writeback", *(["journal"] if run == "waiting" else [])]
    assert sorted(data["cubes"]) == sorted([*kinds, "slot", "amount", "busy", "code", "phase"])
    for kind in kinds:
        expected = Counter(
            (bin_, file, thread, latency_bucket(row[f"{kind}_ns"]))
            for bin_, file, thread, row in counted.rows
            if row.get(f"{kind}_ns") is not None
        )
        assert Counter(tuple_of(data["cubes"][kind], "bucket")) == expected
    expected = Counter(
        (bin_, file, thread, amount_bucket(row["bytes"]))
        for bin_, file, thread, row in counted.rows
        if row.get("incomplete") not in ("start", "end")
    )
    assert Counter(tuple_of(data["cubes"]["amount"], "bucket")) == expected


def tuple_of(columns: dict[str, list[int]], last: str) -> dict[tuple, int]:
    return {
        (row["bin"], row["file"], row["thread"], row[last]): row["syncs"] for row in rows(columns)
    }


def test_time_in_flight_is_split_over_the_bins(both) -> None:
    """One request of the run `crowd` lasts as long as the run."""
    data = html.describe(both("crowd").columns, "x", ROOM)
    counted = Counted(RUNS["crowd"](), data["limits"])
    busy: Counter = Counter()
    for _, file, thread, row in counted.rows:
        since, end = row["since_ns"], row["since_ns"] + row["dur_ns"]
        while since < end:
            until = min(end, (since // counted.width + 1) * counted.width)
            busy[since // counted.width, file, thread] += until - since
            since = until
    found = {
        (row["bin"], row["file"], row["thread"]): row["busy_ns"]
        for row in rows(data["cubes"]["busy"])
    }
    assert found == dict(busy)


def test_the_use_of_the_disk_is_split_over_the_bins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each user but those that are not named, from the first sync to the end of the last one."""
    monkeypatch.setattr(html, "_USERS", 1)
    with opened(str(known_truth.unpacked("neighbour-direct", tmp_path)), Reading()) as engine:
        data = html.describe(engine, "run")
        (span,) = run_query(
            engine,
            "SELECT MIN(ts_ns) AS first, MAX(ts_ns + COALESCE(dur_ns, 0)) AS last FROM syncline_sync_call",
        ).as_dicts()
        bios = run_query(engine, "SELECT * FROM owned_bios!()").as_dicts()
    uses: dict[tuple[Any, ...], list[tuple[int, int, int]]] = {}
    for bio in bios:
        begin = max(bio["issue_ns"], span["first"]) - span["first"]
        end = min(bio["ts_ns"] + bio["dur_ns"], span["last"]) - span["first"]
        if bio["issue_ns"] >= span["last"] or bio["ts_ns"] + bio["dur_ns"] <= span["first"]:
            continue
        what = "journal" if bio["is_log"] else "syncs" if bio["part"] == "sync" else "writes"
        what = "reads" if bio["direction"] == "read" else what
        uses.setdefault((bio["process"], bio["cgroup"], what), []).append((begin, end, bio["bytes"]))  # fmt: skip
    order = sorted(uses, key=lambda use: -sum(end - begin for begin, end, _ in uses[use]))
    assert len(order) == 3
    named = rows(data["disk"]["users"])
    assert [(one["process"], one["cgroup"], one["what"]) for one in named] == [order[0], (None, None, None)]  # fmt: skip
    assert [one["users"] for one in named] == [1, 2]
    expected: Counter = Counter()
    for place, use in enumerate(order):
        number = min(place, 1)
        for begin, end, size in uses[use]:
            expected["bios", begin // data["width_ns"], number] += 1
            expected["bytes", begin // data["width_ns"], number] += size or 0
            at = begin
            while at < end:
                until = min(end, (at // data["width_ns"] + 1) * data["width_ns"])
                expected["device_ns", at // data["width_ns"], number] += until - at
                at = until
    found = {
        (key, row["bin"], row["number"]): row[key]
        for row in rows(data["disk"]["slots"])
        for key in ("bios", "bytes", "device_ns")
        if row[key]
    }
    assert found == {key: value for key, value in expected.items() if value}


def test_stacks_are_counted_by_all_dimensions_or_by_each(both) -> None:
    data = html.describe(both("crowd").columns, "x", ROOM)
    counted = Counted(RUNS["crowd"](), data["limits"])
    keys = [row[:3] for row in counted.rows]
    expected = Counter((*key, stack) for key, stack in zip(keys, counted.stack, strict=True))
    assert Counter(tuple_of(data["cubes"]["code"]["all"], "stack")) == expected
    # With too many cells, each dimension has its own counts.
    data = html.describe(both("crowd").columns, "x", FEW)
    counted = Counted(RUNS["crowd"](), data["limits"])
    assert list(data["cubes"]["code"]) == ["time", "file", "thread"]
    for place, part in enumerate(data["cubes"]["code"]):
        expected = Counter(
            (*(one if index == place else 0 for index, one in enumerate(row[:3])), stack)
            for row, stack in zip(counted.rows, counted.stack, strict=True)
        )
        assert Counter(tuple_of(data["cubes"]["code"][part], "stack")) == expected


@pytest.mark.parametrize("cells", [None, 10**6, 3], ids=["all", "room", "few"])
def test_both_engines_give_the_same_phases(both, cells: int | None) -> None:
    limits = Limits() if cells is None else Limits(requests=2, cells=cells, ladder=((6, 5, 1),))
    trace, columns = (html.describe(engine, "x", limits) for engine in both("waits").engines())
    assert trace["phase_names"] == columns["phase_names"]
    assert len(columns["phase_names"]) > 4
    # A page of parts has the phases of its slowest syncs too.
    found = [side.get("cubes", {}).get("phase") or side["phases"] for side in (trace, columns)]
    assert found[0] == found[1]
    parts = {None: ["row", "phase", "dur_ns"], 10**6: ["all"], 3: ["time", "file", "thread"]}
    assert list(found[0]) == parts[cells]


@pytest.mark.parametrize("limits", [Limits(), ROOM], ids=["all", "bins"])
def test_compared_stacks_have_no_addresses(tmp_path: Path, limits: Limits) -> None:
    """Ten processes have different addresses for one function. They are merged into one stack."""
    run = Run()
    for number in range(30):
        stack = ["main;write", f"main;{0x7F0000 + number % 10:#x}", "main;[libx.so]"][number % 3]
        run.add(1000 * number, 500, stack=stack, path="/f", comm="db", bytes=4096, bios=1)
    run.add(40_000, 500, stack="main;write", path="/f", comm="db", bytes=4096, bios=1)
    run.add(41_000, 500, stack=None, path="/f", comm="db", bytes=4096, bios=1)
    with open_columns(
        write_parquet(run, tmp_path / "run"), sql=sql_root() / "tables" / "duckdb"
    ) as engine:
        single = html.describe(engine, "x", limits)
        data = html.describe(engine, "x", limits, compared=True)
    assert any(name.startswith("main;0x7f") for name in single["stack_names"])
    assert "nameless" not in single
    assert data["stack_names"] == ["main;write", "main;[address]", "main;[libx.so]"]
    assert data["stacks"] == 3
    assert data["nameless"] == ["[address]", "[libx.so]"]
    # 11 requests have the first stack, 10 each of the others, and one has none.
    expected = Counter({0: 11, 1: 10, 2: 10})
    if limits is ROOM:
        cells = rows(data["cubes"]["code"]["all"])
        found: Counter = Counter()
        for cell in cells:
            found[cell["stack"]] += cell["syncs"]
        assert found == expected + Counter({-1: 1})
    else:
        assert Counter(data["rows"]["stack"]) == expected + Counter({None: 1})


def test_stacks_have_the_sums_of_waits(both) -> None:
    data = html.describe(both("waiting").columns, "x", ROOM)
    counted = Counted(RUNS["waiting"](), data["limits"])
    for name in ("journal_ns", "flush_ns"):
        expected: dict[tuple, int] = {}
        for row, stack in zip(counted.rows, counted.stack, strict=True):
            if row[3].get(name) is not None:
                key = (*row[:3], stack)
                expected[key] = expected.get(key, 0) + row[3][name]
        found = {
            (row["bin"], row["file"], row["thread"], row["stack"]): row[name]
            for row in rows(data["cubes"]["code"]["all"])
            if row[name] is not None
        }
        assert found == expected


def test_a_small_run_has_the_waits_of_each_request(both) -> None:
    data = html.describe(both("waits").columns, "x")
    assert (data["journals"], data["flushes"]) == (3, 4)
    assert data["rows"]["journal_ns"] == [30, 70, 0, None, None]
    assert data["rows"]["flush_ns"] == [5, 10, 0, 0, None]


@pytest.mark.parametrize("limits", [Limits(), FEW], ids=["all", "few"])
def test_without_known_waits_the_data_has_only_their_counts(limits: Limits) -> None:
    with opened(str(DATA / "parallel4.log"), Reading()) as engine:
        data = html.describe(engine, "x", limits)

    def names(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from value
        for one in value.values() if isinstance(value, dict) else ():
            yield from names(one)

    found = {name for name in names(data) if name.startswith(("journal", "flush"))}
    # The number of requests with a known wait: 0.
    assert found == {"journals", "flushes"}
    assert (data["journals"], data["flushes"]) == (0, 0)


def test_a_sample_has_every_nth_request_and_the_longest(both) -> None:
    data = html.describe(both("crowd").columns, "x", FEW)
    made = RUNS["crowd"]()
    every = data["limits"]["every"]
    assert every == math.ceil(601 / 20)
    order = sorted(made.sync, key=lambda row: row["sync_id"])
    first = min(row["ts_ns"] for row in order)
    sampled = [row["ts_ns"] - first for row in order[::every]]
    points = rows(data["points"])
    assert sorted(p["since_ns"] for p in points if p["sampled"]) == sorted(sampled)
    longest = sorted(row["dur_ns"] for row in order)[-3:]
    assert set(longest) <= {point["dur_ns"] for point in points}


def test_files_and_threads_match_their_reports(both) -> None:
    engine = both("crowd").columns
    data = html.describe(engine, "x", FEW)
    for name in ("files", "threads"):
        report = run_report(engine, name)
        count = data["limits"][name]
        assert data[name] > count
        assert rows(data[f"{name}_table"]) == [
            dict(zip(report.columns, row, strict=True)) for row in report.rows[:count]
        ]
    # The numbers in the cubes are indexes into these tables.
    by_file = Counter()
    for row in rows(data["cubes"]["slot"]):
        by_file[row["file"]] += row["syncs"]
    table = data["files_table"]["syncs"]
    assert [by_file[number] for number in range(len(table))] == table
    assert sum(by_file.values()) == data["requests"] == 601


def test_a_small_run_is_described_request_by_request(both) -> None:
    data = html.describe(both("one").columns, "x")
    made = one_run()
    assert data["mode"] == "requests"
    found = rows(data["rows"])
    assert [row["since_ns"] for row in found] == [row["ts_ns"] - T for row in made.sync]
    for name in ("dur_ns", "syscall_ns", "writeback_ns", "bytes", "ranges", "bios"):
        assert [row[name] for row in found] == [row[name] for row in made.sync]
    lack = {None: 0, "start": 1, "end": 2, "bio": 3, "call": 4}
    assert [row["incomplete"] for row in found] == [lack[r.get("incomplete")] for r in made.sync]
    paths = data["files_table"]["path"]
    assert [paths[row["file"]] for row in found] == [file_name(row) for row in made.sync]
    stacks = [None if r["stack"] is None else data["stack_names"][r["stack"]] for r in found]
    assert stacks == [row.get("stack") for row in made.sync]
    operations = [data["operations"][row["op"]] for row in found]
    assert operations == [row["op"] or "none" for row in made.sync]


def test_bins_match_the_report(both) -> None:
    engine = both("crowd").columns
    data = html.describe(engine, "x", ROOM)
    report = run_report(engine, "over-time")
    by_bin = Counter()
    for row in rows(data["cubes"]["slot"]):
        by_bin[row["bin"]] += row["syncs"]
    assert [by_bin[number] for number in range(data["bins"])] == [row[2] for row in report.rows]


# The page as a file.


HOSTILE = "</script><img src=x onerror=alert(1)>&amp;<!-- \u2028 \x1b[31m ' \" \\"


def embedded(page: bytes) -> Any:
    text = page.decode()
    begin = text.index('id="data">') + len('id="data">')
    return json.loads(text[begin : text.index("</script>", begin)])


def test_text_of_a_log_is_never_markup(tmp_path: Path) -> None:
    from syncline.engine.columns import open_columns
    from syncline.report import sql_root

    from tests.sqltools import write_parquet

    run = Run()
    run.add(T, 100, path=HOSTILE, comm=HOSTILE, stack=f"{HOSTILE};f", op=HOSTILE)
    run.mark = [{"mark_id": 1, "ts_ns": T, "dur_ns": 5, "name": HOSTILE}]
    with open_columns(
        write_parquet(run, tmp_path / "run"), sql=sql_root() / "tables" / "duckdb"
    ) as engine:
        page = html.page([html.describe(engine, HOSTILE)])
    assert page.count(b"</script>") == html.template().count(b"</script>")
    assert page.count(b"onerror") == 0 or b"<img" not in page
    (side,) = embedded(page)["sides"]
    assert side["files_table"]["path"] == [HOSTILE]
    assert side["name"] == HOSTILE


def test_the_page_is_self_contained_and_small() -> None:
    template = html.template()
    assert len(template) < 3_000_000
    text = template.decode()
    policy = text[text.index("Content-Security-Policy") :]
    assert "default-src 'none'" in policy[: policy.index(">")]
    assert "unsafe-eval" not in text
    for attribute in (' src="', ' href="http', "@import", "url(http"):
        assert attribute not in text.partition("<script")[0]
    # The licenses require that they are distributed with the code.
    assert "Copyright 2020-2025 Observable, Inc." in text


def test_the_same_input_gives_the_same_page() -> None:
    pages = set()
    for _ in range(2):
        with opened(str(DATA / "small4.log"), Reading()) as engine:
            pages.add(html.page([html.describe(engine, "x", FEW)]))
    assert len(pages) == 1


def syncline(*arguments: str | Path) -> tuple[int, str]:
    """Runs `syncline`. Returns the exit code and the text on stderr."""
    import contextlib
    import io
    import sys

    streams = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["syncline", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            code = errors.run(cli)
    finally:
        sys.argv = before
    return code, streams[1].getvalue()


class TestCommand:
    LOG = DATA / "parallel4.log"

    def test_a_page_of_one_input_and_of_two(self, tmp_path: Path) -> None:
        one, two = tmp_path / "one.html", tmp_path / "two.html"
        assert syncline("report", self.LOG, "--html", one)[0] == 0
        assert syncline("report", self.LOG, "--html", two, "--base", DATA / "small1.log")[0] == 0
        assert [side["name"] for side in embedded(two.read_bytes())["sides"]] == [
            str(DATA / "small1.log"),
            str(self.LOG),
        ]
        assert sorted(tmp_path.iterdir()) == [one, two]

    def test_what_failed_and_what_was_lost_is_on_the_page(self, tmp_path: Path) -> None:
        """The program's second fdatasync returned 0 after the device had refused its data: nothing is more serious."""
        with tarfile.open(DATA.parent / "refused" / "recordings.tar.xz") as tar:
            tar.extractall(tmp_path, [one for one in tar if one.name.startswith("ext4")], filter="data")  # fmt: skip
        out = tmp_path / "x.html"
        code, said = syncline("report", tmp_path / "ext4", "--html", out)
        assert code == 0
        (side,) = embedded(out.read_bytes())["sides"]
        syncs, bios, lost = side["failed"]
        assert syncs.startswith("1 of 4 syncs failed (EIO 1)")
        assert bios.startswith("1 of ")
        assert lost.startswith("1 sync returned 0 although the device had refused 16 KiB")
        for sentence in side["failed"]:
            assert f"warning: {sentence.removesuffix('.')}" in said
        assert side["failures"]["rows"]["what"] == ["sync", "bio"]
        assert side["failures"]["more"] == 0
        # A device mapper's name is no finding, and nothing else is to be changed.
        assert side["advice"]["found"] == []
        assert "neighbour" in side["advice"]["none"]

    def test_differences_are_named_as_in_diff(self, tmp_path: Path) -> None:
        bpf = DATA.parent / "bpf"
        base, new, out = bpf / "patched.log.gz", bpf / "stock.log.gz", tmp_path / "two.html"
        assert syncline("report", new, "--html", out, "--base", base)[0] == 0
        warnings = embedded(out.read_bytes())["warnings"]
        for words in ("recorders differ", "kernels differ", "file systems differ", "attribution"):
            assert any(warning.startswith(words) for warning in warnings), words
        sides = [
            collect(name, [str(path)], Reading()) for name, path in (("base", base), ("new", new))
        ]
        assert warnings == differences(*sides)
        assert syncline("report", new, "--html", out)[0] == 0
        assert embedded(out.read_bytes())["warnings"] == []
        assert syncline("report", new, "--html", out, "--base", new)[0] == 0
        (same,) = embedded(out.read_bytes())["warnings"]
        assert same.startswith("base and new are the same runs, so nothing is compared")

    def test_different_filters_and_marks_are_named(self, tmp_path: Path) -> None:
        log, out = DATA / "parallel4.log", tmp_path / "two.html"
        marks = tmp_path / "marks.csv"
        marks.write_text("time,name\n48000000000,load\n")
        kept = tmp_path / "some.parquet"
        tables = f"{tmp_path}/some/"
        options = ("--min-latency", "1us", "--marks", marks)
        assert syncline("convert", log, "-o", tables, *options)[0] == 0
        assert syncline("report", tables, "--html", out, "--base", log)[0] == 0
        warnings = "\n".join(embedded(out.read_bytes())["warnings"])
        assert "filters differ: all requests in base, " in warnings
        assert "marks differ: none in base, load in new" in warnings
        # A high-level log has only requests: losses and all other facts are unknown.
        assert syncline("convert", log, "-o", kept)[0] == 0
        assert syncline("report", kept, "--html", out, "--base", log)[0] == 0

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--base", "x.log"], "--base has no effect without --html"),
            (["files", "--html", "OUT"], "files has no effect"),
            (["--format", "csv", "--html", "OUT"], "--format has no effect"),
            (["--html", "missing/OUT"], "cannot write"),
        ],
    )
    def test_wrong_use_is_refused(self, tmp_path: Path, arguments: list[str], words: str) -> None:
        typed = [str(tmp_path / one) if "OUT" in one else one for one in arguments]
        code, stderr = syncline("report", self.LOG, *typed)
        assert code == 2
        assert words in stderr
        assert "hint: " in stderr
        assert not list(tmp_path.iterdir())

    def test_an_unreadable_base_leaves_the_old_page(self, tmp_path: Path) -> None:
        out = tmp_path / "out.html"
        out.write_text("before")
        code, stderr = syncline("report", self.LOG, "--html", out, "--base", tmp_path / "none.log")
        assert code == 3
        assert "none.log" in stderr
        assert out.read_text() == "before"
        assert list(tmp_path.iterdir()) == [out]

    def test_a_page_that_has_not_been_built_is_an_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing() -> bytes:
            raise html.PageMissing("the page of --html has not been built: page.html is missing")

        monkeypatch.setattr(html, "template", missing)
        code, stderr = syncline("report", self.LOG, "--html", tmp_path / "out.html")
        assert code == 2
        assert "has not been built" in stderr
        assert "make page" in stderr

    def test_a_run_without_requests_gives_a_page(self, tmp_path: Path, both) -> None:
        data = html.describe(both("empty").columns, "empty")
        assert (data["requests"], data["bins"], data["mode"]) == (0, None, "requests")
        assert b'"requests":0' in html.page([data])
