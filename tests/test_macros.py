"""The macros of sql/macros/: how calls expand, and what each macro gives on both engines.

Expected values are worked out by hand from the rows that each test writes.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from syncline import _core
from syncline.engine import SqlError, macros, open_trace
from syncline.engine.expanded import expanded, known
from syncline.inputs import opened
from syncline.reading import Reading
from syncline.report import names
from syncline.report.run import run_query, run_report

from tests.coretools import ROOT
from tests.test_commands import ok

SYNCLINE = Path(sys.executable).parent / "syncline"
LOG = ROOT / "tests" / "data" / "strace" / "failed.log"
FULL = ROOT / "tests" / "data" / "dynamic-events" / "ext4-both.txt.gz"


def library(tmp_path: Path, **bodies: str) -> dict[str, macros.Macro]:
    for name, text in bodies.items():
        (tmp_path / f"{name}.sql").write_text(text)
    macros.load.cache_clear()
    return macros.load(tmp_path)


def macro(name: str, arguments: str, body: str, head: str = "-- What it is.\n") -> str:
    return (
        f"{head}CREATE PERFETTO MACRO {name}({arguments})\nRETURNS TableOrSubquery\nAS\n({body});\n"
    )


@pytest.mark.parametrize("engine", macros.ENGINES)
def test_a_call_has_as_many_lines_as_its_expansion(tmp_path: Path, engine: str) -> None:
    found = library(
        tmp_path,
        twice=macro(
            "twice",
            "a TableOrSubquery, b ColumnNameList",
            "WITH _one AS (\n  SELECT $b -- a comment\n FROM $a\n)\nSELECT $b FROM _one JOIN $a",
        ),
    )
    sql = "SELECT 1,\ntwice!(\n  (SELECT x\n   FROM t -- it's ) here\n   WHERE y = '),('),\n  (x,\n   y)\n),\nlast"
    text = macros.expand(sql, found, engine).split("\n")
    assert len(text) == len(sql.split("\n"))
    # What is written on a line is on that line, and the rest of the body is around it.
    assert "FROM t" in text[3]
    assert "y = '),('" in text[4]
    assert text[-1] == "last"
    whole = "\n".join(text)
    # The second use has no comment, because it shares its line with what follows.
    assert whole.count("it's") == 1
    assert whole.count("x, y") == 2
    assert "_twice_one" in whole


def test_names_of_a_macro_hide_no_table_of_its_caller(tmp_path: Path) -> None:
    found = library(
        tmp_path,
        outer=macro(
            "outer", "a TableOrSubquery", "WITH _t AS (SELECT * FROM $a) SELECT * FROM inner!(_t)"
        ),
        inner=macro("inner", "a TableOrSubquery", "WITH _t AS (SELECT * FROM $a) SELECT * FROM _t"),
    )
    text = macros.expand("SELECT * FROM outer!(_t)", found, "duckdb")
    assert text.count("_outer_t") == 2
    assert text.count("_inner_t") == 2
    # That of the caller.
    assert text.count(" _t)") == 1


def test_same_and_of_write_out_lists() -> None:
    text = macros.expand("SELECT of!(a, (x, y)) FROM a JOIN b ON same!(a, b, (x, y))", {}, "duckdb")
    assert text == (
        "SELECT a.x, a.y FROM a JOIN b ON (a.x IS NOT DISTINCT FROM b.x AND a.y IS NOT DISTINCT FROM b.y)"
    )


@pytest.mark.parametrize(
    ("sql", "reason", "hint"),
    [
        ("SELECT\n* FROM wal_time!(a, (b))", "line 2: there is no macro wal_time", "wall_time!(intervals, (groups))"),
        ("SELECT 1,\n* FROM wall_time!(\n(SELECT *\n FROM wal_time!(x)),\n(run))", "line 4: there is no macro wal_time", ""),
        ("SELECT * FROM wall_time!(t,\n (run)),\n wall_time!(u,\n run)", "line 3: a list of columns", "Write wall_time!"),
        ("SELECT 1 FROM wall_time!(a)", "line 1: the macro wall_time has 2 arguments, not 1", "Write wall_time!"),
        ("SELECT 1 FROM wall_time!(a, run)", "in parentheses, not as run", "Write wall_time!"),
        ("SELECT 1 FROM wall_time!(a, ())", "names of columns, not ()", "Write wall_time!"),
        ("SELECT 1 FROM wall_time!(a, (x + 1))", "names of columns, not (x + 1)", "Write wall_time!"),
        ("SELECT 1 FROM wall_time!(, (x))", "the argument intervals of wall_time is empty", "Write wall_time!"),
        ("SELECT 1 FROM wall_time!(a, (x)", "a parenthesis is not closed", ""),
        ("SELECT same!(a, b)", "the macro same has 3 arguments, not 2", "same!(a, b, (columns))"),
    ],
)  # fmt: skip
def test_a_wrong_call_names_its_line_and_says_what_to_write(
    sql: str, reason: str, hint: str
) -> None:
    with pytest.raises(SqlError) as caught:
        expanded(sql, "duckdb")
    assert reason in caught.value.reason
    assert hint in caught.value.hint


def test_a_macro_that_expands_to_itself_is_refused(tmp_path: Path) -> None:
    found = library(tmp_path, loop=macro("loop", "a TableOrSubquery", "SELECT * FROM loop!($a)"))
    with pytest.raises(macros.MacroError, match="line 1: the macro loop expands to itself"):
        macros.expand("SELECT * FROM loop!(t)", found, "duckdb")


def test_what_is_no_call_stays(tmp_path: Path) -> None:
    sql = "SELECT 'wall_time!(a)', \"same!(x)\" -- of!(\n/* of!( */ FROM t WHERE a != (1)"
    assert macros.expand(sql, known(), "duckdb") == sql
    # Perfetto expands its own macros.
    assert macros.expand("SELECT * FROM intervals_overlap_count!(a)", known(), "perfetto").startswith("SELECT * FROM intervals")  # fmt: skip


def test_an_expression_stays_one(tmp_path: Path) -> None:
    found = library(tmp_path, twice=macro("twice", "a Expr", "2 * $a"))
    assert macros.expand("twice!(1 + 1)", found, "duckdb") == "(2 * (1 + 1))"
    assert macros.expand("twice!(t.x)", found, "duckdb") == "(2 * t.x)"


def test_the_tables_of_a_trace_need_no_expansion() -> None:
    """A native trace processor reads the files unexpanded: `--add-sql-package sql/tables/perfetto@dev.syncline`."""
    for file in (ROOT / "sql" / "tables" / "perfetto").glob("*.sql"):
        assert expanded(file.read_text(), "perfetto") == file.read_text(), file


def test_a_body_of_one_engine(tmp_path: Path) -> None:
    other = macro("own", "a Expr", "duck($a)", "\n-- Engine: duckdb\n")
    found = library(tmp_path, own=macro("own", "a Expr", "lite($a)") + other)
    assert macros.expand("own!(1)", found, "duckdb") == "(duck(1))"
    assert macros.expand("own!(1)", found, "perfetto") == "(lite(1))"


@pytest.mark.parametrize(
    "text", ["SELECT 1;\n", macro("another", "a Expr", "$a"), macro("bad", "a", "$a")]
)
def test_a_file_that_is_no_macro_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(macros.MacroError, match=r"bad\.sql: not one macro|not an argument"):
        library(tmp_path, bad=text)


def test_the_program_expands_for_builds_without_python() -> None:
    sql = ["SELECT * FROM wall_time!(t, (a))", "SELECT 1"]
    done = subprocess.run(
        [sys.executable, str(Path(str(macros.__file__))), str(ROOT / "sql" / "macros"), "perfetto"],
        input=json.dumps(sql), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [expanded(one, "perfetto") for one in sql]


def test_each_macro_says_what_it_takes_and_gives() -> None:
    for name, one in known().items():
        assert "Result:" in one.text, name
        assert "Example:" in one.text, name
        assert all(argument.text for argument in one.arguments), name


@pytest.mark.parametrize("folder", ["reports", "macros", "tables"])
def test_sql_has_no_name_that_only_python_fills_in(folder: str) -> None:
    """The plugin and whoever pastes a text have only the text."""
    for file in (ROOT / "sql" / folder).rglob("*.sql"):
        text = re.sub(r"'[^']*'", "''", macros.without_comments(file.read_text()))
        assert not re.findall(r"(?<![:\w]):[a-z_]+", text), file


def engines(tmp_path: Path) -> list[Path]:
    trace = tmp_path / "x.pftrace"
    _core.convert([str(LOG)], str(trace))
    return [LOG, trace]


def rows(tmp_path: Path, sql: str) -> list[tuple[object, ...]]:
    """Returns the rows of SQL, which both engines give."""
    found = []
    for path, name in zip(engines(tmp_path), ("duckdb", "embedded"), strict=True):
        with opened(str(path), Reading(), engine=name) as engine:
            found.append(run_query(engine, sql).rows)
    assert found[0] == found[1]
    return found[0]


def table(*values: tuple[object, ...], columns: str) -> str:
    """Returns a subquery with these rows."""

    def literal(value: object) -> str:
        return "NULL" if value is None else repr(value)

    selects = [f"SELECT {', '.join(f'{literal(v)} AS {c}' for v, c in zip(row, columns.split(), strict=True))}" for row in values]  # fmt: skip
    return f"({' UNION ALL '.join(selects)})"


def test_wall_time(tmp_path: Path) -> None:
    # In a: 0-10 and 5-8 and 20-25, and one of unknown length; in null: twice the same; in b: unknown only.
    intervals = table(
        ("a", 0, 10), ("a", 5, 3), ("a", 20, 5), ("a", 30, None),
        (None, 0, 4), (None, 0, 4), ("b", 7, None),
        columns="g ts_ns dur_ns",
    )  # fmt: skip
    found = rows(tmp_path, f"SELECT * FROM wall_time!({intervals}, (g)) ORDER BY g NULLS FIRST")
    assert found == [(None, 2, 2, 8, 4), ("a", 4, 3, 18, 15), ("b", 1, 0, None, None)]


def test_wall_time_of_random_intervals(tmp_path: Path) -> None:
    random.seed(7)
    spans = [(random.choice("xy"), random.randrange(100), random.randrange(12)) for _ in range(60)]
    found = rows(tmp_path, f"SELECT g, wall_ns FROM wall_time!({table(*spans, columns='g ts_ns dur_ns')}, (g)) ORDER BY g")  # fmt: skip
    for group, wall in found:
        covered = {at for g, ts, dur in spans if g == group for at in range(ts, ts + dur)}
        assert wall == len(covered)


def test_share(tmp_path: Path) -> None:
    found = rows(
        tmp_path, "SELECT share!(1, 4), share!(1, 0), share!(NULL, 2), share!(1 + 1, 2 + 2)"
    )
    assert found == [(0.25, None, None, 0.5)]


def test_is_kernel_thread(tmp_path: Path) -> None:
    kernel = [
        *("kworker/u8:2-flush-254:16", "jbd2/sda1-8", "ext4lazyinit", "xfsaild/dm-0", "xfs-cil/sda"),
        *("btrfs-transacti", "f2fs_ckpt-254:16", "dmcrypt_write/254:3", "dm-io/1", "loop0", "md127_raid5"),
        *("drbd_w_r0", "nfsd", "kswapd0", "kthreadd", "<idle>"),
        *("ksoftirqd/0", "irq/33-nvme0q1", "migration/0", "rcu_sched", "rcu_preempt", "khugepaged", "kcompactd0"),
    ]  # fmt: skip
    programs = [
        *("postgres", "my/app", "Kworker/1", "ext4lazyinit2", "xfs-fsr", "dm-tool", "looper", "mdadm", "nfsdcld"),
        *("f2fs", "iou-wrk-12", "", "kswapd", "kcompactd", "irq", "rcu_tests", None),
    ]  # fmt: skip
    names = table(*((name,) for name in kernel + programs), columns="name")
    found = rows(tmp_path, f"SELECT name, is_kernel_thread!(name) FROM {names}")
    assert {name: bool(is_kernel) for name, is_kernel in found} == (
        dict.fromkeys(kernel, True) | dict.fromkeys(programs, False)
    )
    assert all(value is not None for _, value in found)


def test_percent(tmp_path: Path) -> None:
    assert rows(tmp_path, "SELECT percent!(0.126), percent!(NULL), percent!(1 - 0.5)") == [("13 %", None, "50 %")]  # fmt: skip


def test_depth(tmp_path: Path) -> None:
    # In a: 0-10 and 10-20, so that one ends when the other begins; a gap; 30-40 twice. In b, nothing that is ever open.
    intervals = table(
        ("a", 0, 10), ("a", 10, 10), ("a", 30, 10), ("a", 30, 10), ("b", 5, 0), ("b", 6, None),
        columns="g ts_ns dur_ns",
    )  # fmt: skip
    found = rows(tmp_path, f"SELECT * FROM depth!({intervals}, (g)) ORDER BY ts_ns")
    assert found == [("a", 0, 10, 1), ("a", 10, 10, 1), ("a", 20, 10, 0), ("a", 30, 10, 2)]


def test_merged(tmp_path: Path) -> None:
    intervals = table(
        ("a", 0, 10), ("a", 2, 3), ("a", 10, 5), ("a", 16, 1), (None, 3, 4), (None, 5, 9), ("b", 1, None), ("b", 2, 0),
        columns="g ts_ns dur_ns",
    )  # fmt: skip
    found = rows(tmp_path, f"SELECT * FROM merged!({intervals}, (g)) ORDER BY g NULLS FIRST, ts_ns")
    assert found == [(None, 3, 11), ("a", 0, 15), ("a", 16, 1)]


def random_spans(seed: int) -> list[tuple[str, str, int, int]]:
    random.seed(seed)
    return [
        (random.choice("xy"), random.choice("kmn"), random.randrange(80), random.randrange(9))
        for _ in range(50)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_depth_merged_and_only_time_of_random_intervals(tmp_path: Path, seed: int) -> None:
    spans = random_spans(seed)
    intervals = table(*spans, columns="g k ts_ns dur_ns")
    # What is open at each instant, one by one.
    open_at = {
        (g, at): [k for h, k, ts, dur in spans if h == g and ts <= at < ts + dur]
        for g in "xy"
        for at in range(100)
    }
    depth = dict.fromkeys(open_at, 0)
    for g, ts, dur, number in rows(
        tmp_path, f"SELECT * FROM depth!({intervals}, (g)) ORDER BY 1, 2"
    ):
        depth |= dict.fromkeys([(g, at) for at in range(ts, ts + dur)], number)
    assert depth == {key: len(keys) for key, keys in open_at.items()}
    union = set()
    for g, ts, dur in rows(tmp_path, f"SELECT * FROM merged!({intervals}, (g)) ORDER BY 1, 2"):
        instants = {(g, at) for at in range(ts, ts + dur)}
        assert not instants & union
        union |= instants
    assert union == {key for key, keys in open_at.items() if keys}
    only = Counter((g, keys[0]) for (g, _), keys in open_at.items() if len({*keys}) == 1)
    found = rows(
        tmp_path, f"SELECT g, k, only_ns FROM only_time!({intervals}, k, (g)) ORDER BY 1, 2"
    )
    assert {(g, k): ns for g, k, ns in found} == only


def test_overlapped(tmp_path: Path) -> None:
    intervals = table(("a", 1, 10, 10), ("a", 2, 25, 5), ("b", 3, 10, 10), ("a", 4, 40, None), columns="g id ts_ns dur_ns")  # fmt: skip
    # The first ends before 1 begins but for an instant; 18-30 is in 1 and in 2; none is in b but one of unknown length.
    others = table(("a", 0, 10), ("a", 18, 12), ("b", 11, None), columns="g ts_ns dur_ns")
    found = rows(tmp_path, f"SELECT id, has_overlap FROM overlapped!({intervals}, id, {others}, (g)) ORDER BY id")  # fmt: skip
    assert found == [(1, 1), (2, 1), (3, 0)]
    only = table(("a", 0, 10), columns="g ts_ns dur_ns")
    found = rows(tmp_path, f"SELECT id, has_overlap FROM overlapped!({intervals}, id, {only}, (g)) ORDER BY id")  # fmt: skip
    assert found == [(1, 0), (2, 0), (3, 0)]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recording as a trace, and as tables in a folder that SQL has to quote."""
    folder = tmp_path_factory.mktemp("full")
    _core.convert([str(FULL)], f"{folder}/it's/")
    _core.convert([str(FULL)], f"{folder}/x.pftrace")
    return folder


@pytest.fixture(scope="module")
def engine_of_tables(full: Path) -> Iterator[Any]:
    with opened(f"{full}/it's/", Reading()) as engine:
        yield engine


def printed(*arguments: str) -> str:
    return ok("sql", *arguments)


@pytest.mark.parametrize("report", names())
def test_the_sql_of_a_report_runs_without_syncline(
    full: Path, engine_of_tables: Any, report: str
) -> None:
    """What `syncline sql` prints runs in an engine that knows nothing of Syncline, with the rows of `syncline report`."""
    folder, trace = f"{full}/it's/", full / "x.pftrace"
    expected = run_report(engine_of_tables, report).rows
    with duckdb.connect() as db:
        rows = db.execute(printed("--tables", folder, report)).fetchall()
    assert [tuple(map(near, row)) for row in rows] == [tuple(map(near, row)) for row in expected]
    with open_trace(trace, engine="embedded") as plain:
        rows = plain.query(printed("--for", "perfetto", report)).rows
    assert [tuple(map(near, row)) for row in rows] == [tuple(map(near, row)) for row in expected]


def near(value: object) -> object:
    """Returns a value that compares equal in both engines: DuckDB has numbers of a type of its own."""
    return float(f"{float(value):.9g}") if isinstance(value, int | float | Decimal) else value


def test_sql_lists_the_macros_and_reads_its_input() -> None:
    listed = printed("--list")
    assert all(f"{one.signature} " in listed for one in known().values())
    done = subprocess.run(
        [SYNCLINE, "sql", "--for", "spark", "-"],
        input="SELECT share!(1, 2)", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "SELECT ( CAST(1 AS DOUBLE) / NULLIF(2, 0) )\n"


def test_islands(tmp_path: Path) -> None:
    # In a: 0-10 holds 2-4 and touches 10-12, and 13-14 is on the next one; in null: 5-6; in b: a begin of null, and 3-4.
    intervals = table(
        ("a", 0, 10), ("a", 2, 4), ("a", 10, 12), ("a", 13, 14), (None, 5, 6), ("b", None, None), ("b", 3, 4),
        columns="g x y",
    )  # fmt: skip
    found = rows(tmp_path, f"SELECT g, x, island FROM islands!({intervals}, x, y, (g)) ORDER BY g NULLS FIRST, x NULLS FIRST")  # fmt: skip
    assert found == [
        (None, 5, 0),
        ("a", 0, 0), ("a", 2, 0), ("a", 10, 0), ("a", 13, 1),
        ("b", None, 0), ("b", 3, 0),
    ]  # fmt: skip


def test_islands_of_random_intervals(tmp_path: Path) -> None:
    random.seed(3)
    spans = [(random.choice("xy"), at, at + random.randrange(1, 5)) for at in random.choices(range(100), k=40)]  # fmt: skip
    sql = f"SELECT g, MIN(x), MAX(y) FROM islands!({table(*spans, columns='g x y')}, x, y, (g)) GROUP BY g, island ORDER BY 1, 2"
    found = rows(tmp_path, sql)
    for group in "xy":
        covered = {at for g, begin, end in spans if g == group for at in range(begin, end)}
        # An island has no gap, and the next one begins after a gap.
        islands = [(begin, end) for g, begin, end in found if g == group]
        assert {at for begin, end in islands for at in range(begin, end)} == covered
        assert all(end < begin for (_, end), (begin, _) in pairwise(islands))


def test_weighted_depth(tmp_path: Path) -> None:
    # In a: 0-10 of weight 1 and 4-6 of weight 5, then nothing until 20-21; one without a length and two of unknown.
    intervals = table(
        ("a", 0, 10, 1), ("a", 4, 2, 5), ("a", 20, 1, 1), ("a", 8, 0, 9), ("a", 1, None, 9), ("a", None, 1, 9),
        # What ends makes room for what begins at the same moment. A weight of null counts 0.
        (None, 0, 5, 1), (None, 5, 5, None),
        columns="g ts_ns dur_ns w",
    )  # fmt: skip
    sql = f"SELECT g, ts_ns, dur_ns, depth, weight FROM weighted_depth!({intervals}, w, (g)) ORDER BY g NULLS FIRST, ts_ns"
    assert rows(tmp_path, sql) == [
        (None, 0, 5, 1, 1), (None, 5, 5, 1, 0),
        ("a", 0, 4, 1, 1), ("a", 4, 2, 2, 6), ("a", 6, 4, 1, 1), ("a", 10, 10, 0, 0), ("a", 20, 1, 1, 1),
    ]  # fmt: skip


def test_weighted_depth_of_random_intervals(tmp_path: Path) -> None:
    random.seed(5)
    spans = [(random.choice("xy"), random.randrange(50), random.randrange(9), random.randrange(4)) for _ in range(50)]  # fmt: skip
    sql = f"SELECT * FROM weighted_depth!({table(*spans, columns='g ts_ns dur_ns w')}, w, (g)) ORDER BY 1, 2"
    found = rows(tmp_path, sql)
    for group in "xy":
        own = [span for span in spans if span[0] == group and span[2]]
        seen = {at: (depth, w) for g, ts, dur, depth, w in found if g == group for at in range(ts, ts + dur)}  # fmt: skip
        assert sorted(seen) == [*range(min(s[1] for s in own), max(s[1] + s[2] for s in own))]
        for at, (depth, weight) in seen.items():
            is_open = [w for _, ts, dur, w in own if ts <= at < ts + dur]
            assert (depth, weight) == (len(is_open), sum(is_open))


def test_latest_until(tmp_path: Path) -> None:
    moments = table(("a", 1, 10), ("a", 2, 4), ("b", 3, 9), (None, 4, 9), columns="g id at_ns")
    # Until 10, a has facts at 5 and 10; the earlier one has the greater value, and the next one is too late.
    facts = table(
        ("a", 5, 8), ("a", 10, 3), ("a", 11, 99), ("a", None, 99), (None, 9, None), ("c", 1, 1),
        columns="g at_ns value_ns",
    )  # fmt: skip
    sql = f"SELECT g, id, at_ns, fact_ns, value_ns FROM latest_until!({moments}, {facts}, (id), (g)) ORDER BY id"
    assert rows(tmp_path, sql) == [
        ("a", 1, 10, 10, 8),
        ("a", 2, 4, None, None),
        ("b", 3, 9, None, None),
        (None, 4, 9, 9, None),
    ]


def test_latest_until_of_random_facts(tmp_path: Path) -> None:
    random.seed(11)
    moments = [(random.choice("xy"), at, random.randrange(60)) for at in range(30)]
    facts = [(random.choice("xy"), random.randrange(60), random.randrange(60)) for _ in range(20)]
    sql = f"SELECT id, fact_ns, value_ns FROM latest_until!({table(*moments, columns='g id at_ns')}, {table(*facts, columns='g at_ns value_ns')}, (id), (g)) ORDER BY id"
    for (group, _, at), (_, fact, value) in zip(moments, rows(tmp_path, sql), strict=True):
        known = [one for one in facts if one[0] == group and one[1] <= at]
        assert fact == max((one[1] for one in known), default=None)
        assert value == max((one[2] for one in known), default=None)


def test_overlaps(tmp_path: Path) -> None:
    # A moment at 5 is in 0-10, and in what begins there; not in what ends there, nor in another group.
    one = table(("a", 1, 5, 1), ("a", 2, 20, 9), (None, 3, 0, 9), ("a", 4, 0, None), columns="g x ts_ns dur_ns")  # fmt: skip
    other = table(
        ("a", 6, 0, 10), ("a", 7, 5, 1), ("a", 8, 0, 5), ("b", 9, 0, 99), (None, 10, 0, 99), ("a", 11, 25, 99), ("a", 12, 2, None),
        columns="g y ts_ns dur_ns",
    )  # fmt: skip
    sql = f"SELECT g, x, y, from_ns, until_ns FROM overlaps!({one}, {other}, (x), (y), (g)) ORDER BY x, y"
    assert rows(tmp_path, sql) == [
        ("a", 1, 6, 5, 6),
        ("a", 1, 7, 5, 6),
        ("a", 2, 11, 25, 29),
    ]


def test_overlaps_of_random_intervals(tmp_path: Path) -> None:
    # Some are longer than a slot of DuckDB's body, and begin in another one.
    random.seed(13)

    def spans(number: int) -> list[tuple[str, int, int, int]]:
        return [(random.choice("xy"), at, random.randrange(1 << 30), random.randrange(1, 1 << 28)) for at in range(number)]  # fmt: skip

    ours, theirs = spans(20), spans(25)
    sql = f"SELECT x, y, from_ns, until_ns FROM overlaps!({table(*ours, columns='g x ts_ns dur_ns')}, {table(*theirs, columns='g y ts_ns dur_ns')}, (x), (y), (g)) ORDER BY x, y"
    assert rows(tmp_path, sql) == [
        (x, y, max(a, c), min(a + b, c + d))
        for g, x, a, b in ours
        for h, y, c, d in theirs
        if g == h and max(a, c) < min(a + b, c + d)
    ]


def test_ahead_at_device(tmp_path: Path) -> None:
    # Both syncs wait from 10 to 20 for what was issued at 15: 1 for a bio of A that was redirected to B, and 2 for
    # one of A whose redirection is not recorded, if there was any.
    waits = table(
        ("r", 1, 10, 10, 15, "A", "B"), ("r", 2, 10, 10, 15, "A", "A"),
        columns="run sync_id ts_ns dur_ns before_ns dev place",
    )  # fmt: skip
    bios = table(
        ("r", 1, "C", "B", 5, 12),  # Is at B until 12.
        ("r", 2, "A", None, 14, 30),  # Was not redirected, so it may be at B too.
        ("r", 3, "A", "D", 5, 30),  # Is at D, and not at B.
        ("r", 4, "B", None, 15, 30),  # Is not before.
        ("r", 5, "B", None, 9, 30),
        ("r", 6, "A", "B", 12, 13),
        ("r", 7, "B", None, 5, 10),  # Is done when the wait begins.
        ("s", 8, "B", None, 9, 30),  # Is of another run.
        columns="run bio_id dev below issue_ns complete_ns",
    )  # fmt: skip
    found = rows(tmp_path, f"SELECT sync_id, bio_id, from_ns, until_ns FROM ahead_at_device!({waits}, {bios}) ORDER BY 1, 2")  # fmt: skip
    assert found == [
        (1, 1, 10, 12), (1, 2, 14, 20), (1, 5, 10, 20), (1, 6, 12, 13),
        (2, 2, 14, 20), (2, 3, 10, 20), (2, 6, 12, 13),
    ]  # fmt: skip


def test_earlier_and_later(tmp_path: Path) -> None:
    sql = "SELECT {0}!(1, 2), {0}!(2, 1), {0}!(NULL, 1), {0}!(1, NULL), {0}!(NULL, NULL)"
    assert rows(tmp_path, sql.format("earlier")) == [(1, 1, 1, 1, None)]
    assert rows(tmp_path, sql.format("later")) == [(2, 2, 1, 1, None)]


def test_device_name(tmp_path: Path) -> None:
    # No recorder names devices in this log.
    meta = table(
        ("device_name.8:0", "sda", "a"), ("device_name.8:1", "sdb", "b"), ("other.8:0", "x", "a"),
        columns="key value run",
    )  # fmt: skip
    bios = table(("a", "8:0"), ("b", "8:0"), ("a", None), ("b", "8:1"), columns="run dev")
    sql = f"WITH syncline_meta AS {meta} SELECT run, dev, device_name!(bio) FROM {bios} AS bio ORDER BY run, dev NULLS LAST"
    assert rows(tmp_path, sql) == [
        ("a", "8:0", "sda"), ("a", None, None), ("b", "8:0", None), ("b", "8:1", "sdb"),
    ]  # fmt: skip


def test_file_name(tmp_path: Path) -> None:
    syncs = table(
        (1, "/a", 7, "8:0", None), (2, None, 7, "8:0", None), (3, None, 7, None, None),
        (4, None, None, "8:0", "several files"), (5, None, None, None, None),
        columns="number path ino dev what",
    )  # fmt: skip
    found = rows(tmp_path, f"SELECT file_name!(sync) FROM {syncs} AS sync ORDER BY number")
    assert [name for (name,) in found] == [
        "/a", "inode 7 on 8:0", "[unknown file]", "[several files]", "[unknown file]",
    ]  # fmt: skip


def test_whole_and_empty_syncs(tmp_path: Path) -> None:
    # The last one has no bio that is recorded, and may have had one before its start or after its end.
    syncs = table(
        (1, None, 0, 0), (2, None, 0, None), (3, None, 2, 0), (4, None, 0, -5), (5, "bio", 0, 0),
        (6, None, None, 0), (7, "start", 0, 0), (8, "end", 0, None),
        columns="number incomplete bios ret",
    )  # fmt: skip
    found = rows(
        tmp_path,
        f"SELECT number FROM {syncs} AS sync WHERE is_whole!(sync) ORDER BY number",
    )
    assert [number for (number,) in found] == [1, 2, 3, 4, 5, 6]
    found = rows(tmp_path, f"SELECT is_empty!(sync) FROM {syncs} AS sync ORDER BY number")
    assert [is_empty for (is_empty,) in found] == [1, 1, 0, 0, 1, None, 0, 0]


def test_writeback_sum(tmp_path: Path) -> None:
    syncs = table(
        # Only empty syncs; a known one with bios; one with bios that is not known; both; nothing known.
        ("a", 0, 0), ("a", 0, 0), ("b", 0, 0), ("b", 2, 9), ("c", 0, 0), ("c", 2, None),
        ("d", 2, None), ("d", 1, 4), ("e", None, None),
        # An empty sync beside one of which it is not known whether it has bios.
        ("f", 0, 0), ("f", None, None),
        columns="g bios writeback_ns",
    )  # fmt: skip
    found = rows(
        tmp_path,
        f"SELECT g, writeback_sum!(sync) FROM {syncs} AS sync GROUP BY g ORDER BY g",
    )
    assert found == [("a", 0), ("b", 9), ("c", None), ("d", 4), ("e", None), ("f", None)]


def test_sum_where(tmp_path: Path) -> None:
    # No row meets the condition, all do, one does, one of unknown value does; a condition of null is not met.
    values = table(
        ("a", 0, 5), ("b", 1, 5), ("b", 1, 6), ("c", 0, 5), ("c", 1, 7), ("d", 1, None), ("d", 0, 3),
        ("e", None, 4),
        columns="g met value",
    )  # fmt: skip
    sql = f"SELECT g, sum_where!(value, met = 1) FROM {values} AS t GROUP BY g ORDER BY g"
    assert rows(tmp_path, sql) == [("a", 0), ("b", 11), ("c", 7), ("d", None), ("e", 0)]


def test_distribution(tmp_path: Path) -> None:
    # The values 0, 10, ..., 1000: position p of 100 holds 10 p. One value only. None in c, which has no row.
    many = [("a", 10 * n) for n in range(101)]
    values = table(*many, ("a", None), ("b", 7), ("c", None), (None, 3), (None, 5), columns="g x")
    sql = f"SELECT * FROM distribution!({values}, x, (g)) ORDER BY g NULLS LAST"
    found = rows(tmp_path, sql)
    assert found == [
        ("a", 101, 50_500, 500.0, 1_000, 500.0, 900.0, 990.0, pytest.approx(999)),
        ("b", 1, 7, 7.0, 7, 7.0, 7.0, 7.0, 7.0),
        (None, 2, 8, 4.0, 5, 4.0, pytest.approx(4.8), pytest.approx(4.98), pytest.approx(4.998)),
    ]


def test_decimal_buckets(tmp_path: Path) -> None:
    found = rows(tmp_path, "SELECT lower, upper FROM decimal_buckets!() ORDER BY lower")
    assert found[:7] == [(0, 1), (1, 2), (2, 5), (5, 10), (10, 20), (20, 50), (50, 100)]
    assert found[-1] == (5 * 10**17, 10**18)
    assert all(before[1] == after[0] for before, after in pairwise(found))


def test_decimal_floor_is_the_bound_of_the_bucket(tmp_path: Path) -> None:
    random.seed(7)
    edges = [lead * 10**power + step for power in range(18) for lead in (1, 2, 5) for step in (-1, 0, 1)]  # fmt: skip
    numbers = sorted({0, *edges, *(random.randrange(10 ** random.randrange(1, 18)) for _ in range(100))})  # fmt: skip
    # A number is in the bucket with the largest bound that it reaches.
    bounds = [0, *(lead * 10**power for power in range(18) for lead in (1, 2, 5))]
    values = ", ".join(f"(CAST({n} AS BIGINT))" for n in numbers)
    found = rows(
        tmp_path, f"WITH t(n) AS (VALUES {values}) SELECT n, decimal_floor!(n) FROM t ORDER BY n"
    )
    assert found == [(n, max(bound for bound in bounds if bound <= n)) for n in numbers]


def test_syncs_of_marks(tmp_path: Path) -> None:
    # A sync belongs to the marks during which it begins: 10 begins mark 1, 20 ends it. Nothing begins in mark 3.
    marks = table(
        ("r", 1, 10, 10), ("r", 2, 15, 10), ("r", 3, 40, 5), ("s", 1, 0, 100),
        columns="run mark_id ts_ns dur_ns",
    )  # fmt: skip
    syncs = table(
        *(("r", n, ts, None, None, None, None, None, None, None) for n, ts in enumerate((9, 10, 19, 20, 45))),
        columns="run sync_id ts_ns dur_ns incomplete bios ret bytes syscall_ns writeback_ns",
    )  # fmt: skip
    sql = (
        f"WITH syncline_mark AS {marks}, syncline_sync_call AS {syncs}"
        " SELECT run, mark_id, sync_id FROM syncs_of_marks!() ORDER BY run, mark_id, sync_id"
    )
    assert rows(tmp_path, sql) == [
        ("r", 1, 1), ("r", 1, 2), ("r", 2, 2), ("r", 2, 3), ("r", 3, None), ("s", 1, None),
    ]  # fmt: skip


def test_time_of_phases(tmp_path: Path) -> None:
    # Request 1 is in a phase twice; the same number in another run is another request.
    phases = table(
        ("a", 1, "cpu", 5), ("a", 1, "device", 7), ("a", 1, "cpu", 2), ("a", 2, "cpu", 0), ("b", 1, "cpu", 9),
        columns="run sync_id phase dur_ns",
    )  # fmt: skip
    sql = (
        f"WITH syncline_phase AS {phases}"
        " SELECT run, sync_id, phase, dur_ns FROM time_of_phases!() ORDER BY run, sync_id, phase"
    )
    assert rows(tmp_path, sql) == [
        ("a", 1, "cpu", 7), ("a", 1, "device", 7), ("a", 2, "cpu", 0), ("b", 1, "cpu", 9),
    ]  # fmt: skip


def test_bio_times(tmp_path: Path) -> None:
    # The second one was redirected, and its issue is not recorded; then one without an end, and one without a device.
    bios = table(
        ("r", 1, "A", None, 10, 3, 20), ("r", 2, "A", "B", 10, None, 20), ("r", 3, "A", None, 10, 3, None),
        ("r", 4, None, None, 10, 3, 20),
        columns="run bio_id dev below ts_ns queue_ns dur_ns",
    )  # fmt: skip
    sql = f"WITH syncline_bio AS {bios} SELECT bio_id, place, submit_ns, issue_ns, complete_ns FROM bio_times!() ORDER BY bio_id"
    assert rows(tmp_path, sql) == [(1, "A", 10, 13, 30), (2, "B", 10, 10, 30)]


def test_place_of_file_system(tmp_path: Path) -> None:
    # Two of the three bios of the partition p are issued at the disk; nobody's bio is on q; a device of null has one.
    syncs = table(("r", 1, "p"), ("r", 2, "q"), ("r", 3, None), columns="run sync_id dev")
    bios = table(
        ("r", 1, "p", "disk"), ("r", 1, "p", "disk"), ("r", 1, "p", None), ("r", None, "q", None), ("r", 3, "x", None),
        columns="run sync_id dev below",
    )  # fmt: skip
    sql = (
        f"WITH syncline_sync AS {syncs},"
        f" syncline_bio AS (SELECT *, 0 AS ts_ns, 0 AS queue_ns, 1 AS dur_ns FROM {bios} AS bio)"
        " SELECT dev, place FROM place_of_file_system!() ORDER BY place"
    )
    assert rows(tmp_path, sql) == [("p", "disk"), (None, "x")]


OWNERS = (
    "SELECT bio_id, part, process, cgroup, owner, issue_ns, is_log, is_metadata, has_preflush"
    " FROM owned_bios!() ORDER BY bio_id"
)


def owned(
    tmp_path: Path, bios: str, syncs: str, waits: str = "", meta: str = "", select: str = OWNERS
) -> list[tuple[object, ...]]:
    """Returns the owners of bios; the sync 2 started the commit 7."""
    none = "(SELECT 'r' AS run, 'no' AS key, '' AS value)"
    no_wait = "(SELECT 'r' AS run, -1 AS sync_id, 'log' AS wait, NULL AS commit_id, 0 AS ts_ns, 0 AS dur_ns)"
    sql = (
        f"WITH syncline_bio AS {bios}, syncline_sync AS {syncs},"
        " syncline_journal AS (SELECT 'r' AS run, 7 AS commit_id, 2 AS sync_id, CAST(NULL AS BIGINT) AS ts_ns,"
        " CAST(NULL AS BIGINT) AS dur_ns, CAST(NULL AS BIGINT) AS logging_ns),"
        f" syncline_wait AS {waits or no_wait}, syncline_meta AS {meta or none}"
        f" {select}"
    )
    return rows(tmp_path, sql)


BIO = "run bio_id sync_id commit_id dev below ts_ns queue_ns dur_ns direction bytes rwbs comm process cgroup writers writers_cgroup"  # fmt: skip
SYNC = "run sync_id dev process comm cgroup start_ns ts_ns dur_ns"


def test_owned_bios(tmp_path: Path) -> None:
    syncs = table(
        ("r", 1, "D", "db", "t", "/db", 0, 0, 100), ("r", 2, "D", None, "vim", None, 0, 0, 100), columns=SYNC,
    )  # fmt: skip
    written = ("D", None, 10, 5, 20, "write", 1, "W")
    bios = table(
        # The owner is the program of the sync; who wrote the data; whose sync started the commit; nobody known; the program itself.
        ("r", 1, 1, None, *written, "kworker/1", None, "/x", "no", "/no"),
        ("r", 2, None, 7, *written, "kworker/1", None, "/x", "dd", "/dd"),
        ("r", 3, None, 7, *written, "jbd2/a", None, "/x", None, None),
        ("r", 4, None, None, *written, "kworker/2", None, "/x", None, None),
        ("r", 5, None, None, "D", None, 10, 5, 20, "write", 1, "FWM", "cp", "copy", "/cp", None, None),
        ("r", 6, None, None, "D", None, 10, 5, 20, "flush", 0, "FF", None, None, None, None, None),
        columns=BIO,
    )  # fmt: skip
    expected = [
        (1, "sync", "db", "/db", "db /db", 15, 0, 0, 0),
        (2, "data", "dd", "/dd", "dd /dd", 15, 1, 0, 0),
        (3, "commit", "vim", None, "vim ", 15, 1, 0, 0),
        (4, "kernel", "kworker", None, "kworker ", 15, 0, 0, 0),
        (5, "process", "copy", "/cp", "copy /cp", 15, 0, 1, 1),
        (6, "process", "", None, " ", 15, 0, 1, 0),
    ]
    assert owned(tmp_path, bios, syncs) == expected
    through = table(("r", "device_cache.D", "write through"), columns="run key value")
    expected[4] = (*expected[4][:-1], 0)
    assert owned(tmp_path, bios, syncs, meta=through) == expected


def test_owned_bios_of_a_log_and_without_issues(tmp_path: Path) -> None:
    # Both syncs wait for a log, the second one longer; the bio at 40 is submitted in both waits, that at 60 in one, and that at 95 in none.
    syncs = table(
        ("r", 1, "D", "db", "t", "/db", 0, 0, 100), ("r", 2, "D", "vim", "t", "/v", 0, 0, 100), columns=SYNC,
    )  # fmt: skip
    waits = table(
        ("r", 1, "log", None, 20, 30), ("r", 2, "log", None, 30, 60), ("r", 1, "flush", None, 90, 10),
        columns="run sync_id wait commit_id ts_ns dur_ns",
    )  # fmt: skip
    kernel = ("write", 1, "W", "xfsaild/a", None, "/x", None, None)
    bios = table(
        ("r", 1, None, None, "D", None, 40, None, 5, *kernel),
        ("r", 2, None, None, "D", None, 60, None, 8, *kernel),
        ("r", 3, None, None, "D", None, 95, None, 2, *kernel),
        # Without an issue, it is served when that of 60 is complete.
        ("r", 4, 1, None, "D", None, 61, None, 9, *kernel),
        columns=BIO,
    )  # fmt: skip
    assert owned(tmp_path, bios, syncs, waits) == [
        (1, "commit", "vim", "/v", "vim /v", 40, 1, 0, 0),
        (2, "commit", "vim", "/v", "vim /v", 60, 1, 0, 0),
        (3, "kernel", "xfsaild/a", None, "xfsaild/a ", 95, 0, 0, 0),
        (4, "sync", "db", "/db", "db /db", 68, 0, 0, 0),
    ]


def test_device_users(tmp_path: Path) -> None:
    syncs = table(
        ("r", 1, "D", "db", "t", "/db", 0, 0, 100), ("r", 2, "D", None, "vim", None, 0, 0, 100), columns=SYNC,
    )  # fmt: skip
    other = ("kworker/1", None, "/x", None, None)
    bios = table(
        # Two of one sync that touch; one of the other, at the device below; a commit; data of a program; what it reads.
        ("r", 1, 1, None, "D", None, 10, 5, 20, "write", 1, "W", *other),
        ("r", 2, 1, None, "D", None, 20, 10, 20, "write", 1, "W", *other),
        ("r", 3, 2, None, "D", "B", 10, 5, 20, "write", 1, "W", *other),
        ("r", 4, None, 7, "D", None, 50, 5, 20, "write", 1, "W", "jbd2/a", None, "/x", None, None),
        ("r", 5, None, None, "D", None, 60, 5, 20, "write", 1, "W", *other[:3], "dd", "/dd"),
        ("r", 6, None, None, "D", None, 62, 5, 20, "read", 1, "R", "cp", "copy", "/cp", None, None),
        # The device is not known; neither is the end of the last one.
        ("r", 7, 1, None, None, None, 10, 5, 20, "write", 1, "W", *other),
        ("r", 8, None, None, None, None, 10, None, 20, "write", 1, "W", "wl", None, None, None, None),
        ("r", 9, None, None, "D", None, 90, 5, None, "write", 1, "W", *other),
        columns=BIO,
    )  # fmt: skip
    columns = "place, use, process, cgroup, ts_ns, dur_ns"
    select = f"SELECT {columns} FROM device_users!() ORDER BY place, ts_ns, use"
    assert owned(tmp_path, bios, syncs, select=select) == [
        ("", "writes", "wl", None, 10, 20),
        ("", "syncs", "db", "/db", 15, 15),
        ("B", "syncs", "vim", None, 15, 15),
        ("D", "syncs", "db", "/db", 15, 25),
        ("D", "journal", None, None, 55, 15),
        ("D", "writes", "dd", "/dd", 65, 15),
        ("D", "reads", "copy", "/cp", 67, 15),
    ]


def uses(tmp_path: Path, *bios: tuple[object, ...]) -> list[tuple[object, ...]]:
    given = table(*bios, columns="g party ts_ns issue_ns dur_ns is_log is_kept has_preflush")
    return rows(
        tmp_path,
        f"SELECT ts_ns, dur_ns, party, state, is_sole, is_awaited, of_log FROM device_use!({given}, (g)) ORDER BY g, ts_ns, state",
    )


def test_device_use(tmp_path: Path) -> None:
    # 1 has the device from 10 to 50. It works for the bio that was issued last; a log is queued from 30.
    assert uses(
        tmp_path,
        ("a", 1, 0, 10, 50, 0, 0, 0), ("a", 2, 15, 20, 10, 0, 0, 0), ("a", 3, 30, 50, 30, 1, 0, 0),
    ) == [
        (0, 10, 1, "working", 0, 0, 0),
        (10, 5, 1, "working", 1, 0, 0), (15, 5, 1, "working", 1, 0, 0),
        (20, 5, 2, "working", 0, 0, 0),
        (25, 5, 1, "working", 1, 0, 0), (30, 20, 1, "working", 1, 1, 0),
        (50, 10, 3, "working", 1, 0, 1),
    ]  # fmt: skip


def test_device_use_while_nothing_is_at_the_device(tmp_path: Path) -> None:
    ms = 1_000_000
    # In a: kept data; in b: queued for 2 ms; in c: likewise, for a flush before it.
    assert uses(
        tmp_path,
        ("a", 1, 0, 2 * ms, 3 * ms, 0, 1, 0), ("b", 2, 0, 2 * ms, 3 * ms, 1, 0, 0), ("c", 3, 0, 2 * ms, 3 * ms, 0, 0, 1),
    ) == [
        (0, 2 * ms, 1, "idle", 0, 0, 0), (2 * ms, ms, 1, "working", 1, 0, 0),
        (0, 2 * ms, 2, "idle", 0, 0, 1), (0, 2 * ms, 2, "stalled", 0, 0, 0), (2 * ms, ms, 2, "working", 1, 0, 1),
        (0, 2 * ms, 3, "working", 0, 0, 0), (2 * ms, ms, 3, "working", 1, 0, 0),
    ]  # fmt: skip


def test_device_use_of_random_bios_is_the_same_in_both_engines(tmp_path: Path) -> None:
    """One engine computes each device by itself, the other one all of them in a row."""
    random.seed(23)
    bios: list[tuple[object, ...]] = []
    for group, first in (("late", 1 << 40), ("early", 0), ("middle", 1 << 30)):
        for _ in range(40):
            ts = first + random.randrange(60) * 500_000
            issue = ts + random.randrange(8) * 500_000
            end = issue + random.randrange(1, 9) * 500_000
            flags = [random.randrange(2) for _ in range(3)]
            bios.append((group, random.randrange(1, 5), ts, issue, end - ts, *flags))
    found = uses(tmp_path, *bios)
    for state in ("working", "idle", "stalled"):
        spans = sorted((row[0], row[0] + row[1]) for row in found if row[3] == state)  # type: ignore[operator]
        assert spans
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_slots(tmp_path: Path) -> None:
    slot = 1 << 23
    spans = table((1, 5, slot), (1, slot + 1, 2), (2, 0, 1), columns="id ts_ns dur_ns")
    found = rows(tmp_path, f"SELECT id, slot FROM slots!({spans}, (id)) ORDER BY id, slot")
    assert found == [(1, 0), (1, 1), (2, 0)]


def test_common_time(tmp_path: Path) -> None:
    # The wait 1 is in two pieces, 0-10 and 20-30. k is open 5-25, so 5 and 5; m only between them; n in another group.
    waits = table(("a", 1, 0, 10), ("a", 1, 20, 10), ("a", 2, 0, 7), columns="g x ts_ns dur_ns")
    spans = table(
        ("a", "k", 5, 20), ("a", "m", 10, 10), ("b", "n", 0, 99), ("a", "k", 28, 9), columns="g y ts_ns dur_ns",
    )  # fmt: skip
    found = rows(tmp_path, f"SELECT g, x, y, SUM(common_ns) FROM common_time!({waits}, {spans}, (x), (y), (g)) GROUP BY g, x, y ORDER BY x, y")  # fmt: skip
    assert found == [("a", 1, "k", 5 + 5 + 2), ("a", 2, "k", 2)]


# DuckDB finds what waits shorter than 2^25 ns meet in another way than what longer ones do.
@pytest.mark.parametrize("longest", [1 << 24, 1 << 26, 1 << 28])
def test_common_time_of_random_intervals(tmp_path: Path, longest: int) -> None:
    random.seed(17)
    ours = [(random.choice("ab"), random.randrange(5), random.randrange(1 << 27), random.randrange(longest)) for _ in range(30)]  # fmt: skip
    theirs = []
    for group, key in (("a", 1), ("a", 2), ("b", 1)):
        # The macro takes for granted that intervals of one key do not overlap.
        at = 0
        for _ in range(15):
            begin = at + random.randrange(1 << 22)
            at = begin + random.randrange(1, 1 << 24)
            theirs.append((group, key, begin, at - begin))
    sql = f"SELECT g, x, y, CAST(SUM(common_ns) AS BIGINT) AS ns FROM common_time!({table(*ours, columns='g x ts_ns dur_ns')}, {table(*theirs, columns='g y ts_ns dur_ns')}, (x), (y), (g)) GROUP BY g, x, y"
    expected: Counter[tuple[str, int, int]] = Counter()
    for g, x, a, b in ours:
        for h, y, c, d in theirs:
            if g == h:
                expected[g, x, y] += max(0, min(a + b, c + d) - max(a, c))
    assert {(g, x, y): ns for g, x, y, ns in rows(tmp_path, f"{sql} ORDER BY 1, 2, 3")} == +expected


def test_mean_difference(tmp_path: Path) -> None:
    # In a: 10 and 20 with it, 1, 2 and 3 without, and one that is neither. In b: none without.
    values = table(
        ("a", 10, 1), ("a", 20, 1), ("a", 1, 0), ("a", 2, 0), ("a", 3, 0), ("a", 999, None), ("b", 5, 1),
        columns="g x so",
    )  # fmt: skip
    found = rows(tmp_path, f"SELECT * FROM mean_difference!({values}, x, so, (g)) ORDER BY g")
    # The variance of 10 and 20 is 25, and that of 1, 2 and 3 is 2/3.
    assert found == [("a", 2, 3, 13.0, pytest.approx(25 / 2 + 2 / 9)), ("b", 1, 0, None, None)]


def test_met_parties(tmp_path: Path) -> None:
    second = 1_000_000_000
    syncs = table(
        ("r", "D", 1, 9, 10 * second, 5), ("r", "D", 2, 9, 20 * second, 5), ("r", "E", 3, 9, 10 * second, 5),
        columns="run place sync_id party ts_ns dur_ns",
    )  # fmt: skip
    # 1 is active until 9.5 s and again at 10.4 s: the gap is short. 2 is a thread of the kernel at 20 s; 3 was at 8 s.
    deeds = table(
        ("r", "D", 1, 0, 9 * second, second // 2), ("r", None, 1, 0, 10 * second + 2 * second // 5, 5),
        ("r", "D", 2, 1, 20 * second, 5), ("r", "D", 3, 0, 8 * second, 5), ("r", "D", 9, 0, 0, 100 * second),
        columns="run place party is_kernel ts_ns dur_ns",
    )  # fmt: skip
    found = rows(tmp_path, f"SELECT sync_id, party, is_active, is_met FROM met_parties!({syncs}, {deeds}) ORDER BY 1, 2")  # fmt: skip
    assert found == [
        (1, 1, 1, 1), (1, 2, 0, None), (1, 3, 0, None),
        (2, 1, 0, 0), (2, 2, 1, 1), (2, 3, 0, 0),
    ]  # fmt: skip


def test_way_of_phase(tmp_path: Path) -> None:
    phases = {
        "submit": None, "residue": None, "after completion": None, "queue": "queue", "device": "device", "flush": "flush",
        "writeback": "earlier", "earlier writeback": "earlier", "commit locking": "locking", "commit start": "commit",
        "commit flushing": "data", "commit logging": "commit", "commit wait": "lock", "lock wait": "lock",
        "earlier commit": "before", "before submit": "lock", "cpu wait": "cpu", "completion": "cpu",
    }  # fmt: skip
    names = table(*((name,) for name in phases), columns="phase")
    assert dict(rows(tmp_path, f"SELECT phase, way_of_phase!(phase) FROM {names}")) == phases


def test_waits_for_bios(tmp_path: Path) -> None:
    syncs = table(("r", 1, 0, 100), columns="run sync_id start_ns end_ns")
    # Until 50, it waits for bio 2, which completes last of those that are submitted before 50; from 60, also for 3.
    bios = table(
        ("r", 1, 0, 2, 20, "A", "A"), ("r", 1, 5, 8, 50, "A", "B"), ("r", 1, 50, 55, 90, "C", "C"), ("s", 1, 0, 1, 99, "A", "A"),
        columns="run sync_id submit_ns issue_ns complete_ns dev place",
    )  # fmt: skip
    phases = table(
        ("r", 1, "queue", 5, 3), ("r", 1, "device", 8, 42), ("r", 1, "device", 60, 30), ("r", 1, "flush", 92, 5),
        ("r", 1, "earlier writeback", 97, 3), ("r", 1, "residue", 0, 5), ("r", 1, "writeback", 55, 0),
        columns="run sync_id phase ts_ns dur_ns",
    )  # fmt: skip
    waits = table(("r", 1, "flush", 91), ("r", 1, "log", 92), columns="run sync_id wait ts_ns")
    sql = (
        f"WITH syncline_phase AS {phases}, syncline_wait AS {waits}"
        f" SELECT ts_ns, dur_ns, before_ns, dev, place FROM waits_for_bios!({syncs}, {bios}) ORDER BY ts_ns"
    )
    assert rows(tmp_path, sql) == [
        (5, 3, 8, "A", "B"), (8, 42, 8, "A", "B"), (60, 30, 55, "C", "C"), (92, 5, 91, None, None), (97, 3, 100, None, None),
    ]  # fmt: skip


def test_flushes(tmp_path: Path) -> None:
    # The last one failed, so it made nothing durable.
    bios = table(
        ("r", "A", 5, 9, None, True), ("r", "A", 6, 9, 0, False), ("r", "A", 7, 9, -5, True),
        columns="run dev ts_ns end_ns error has_flush",
    )  # fmt: skip
    waits = table(("r", 1, "flush", 20, 4), ("r", 1, "log", 30, 4), columns="run sync_id wait ts_ns dur_ns")  # fmt: skip
    sql = (
        f"WITH syncline_wait AS {waits}, syncline_sync AS (SELECT 'r' AS run, 1 AS sync_id, 'P' AS dev)"
        f" SELECT place, place_dev, value_ns, at_ns FROM flushes!({bios}) ORDER BY place"
    )
    assert rows(tmp_path, sql) == [("device", "A", 5, 9), ("file system", "P", 20, 24)]


def test_latest_flush(tmp_path: Path) -> None:
    # Flushes of the device A begin at 5 and at 6, and the later one ends first. One of B begins before the sync and ends after it.
    bios = table(
        ("r", "A", 5, 9, 0, True), ("r", "A", 6, 8, 0, True), ("r", "A", 7, 8, 0, False), ("r", "B", 8, 12, 0, True),
        ("s", "C", 1, 2, 0, True), columns="run dev ts_ns end_ns error has_flush",
    )  # fmt: skip
    waits = table(("r", 2, "flush", 20, 4), ("r", 2, "log", 25, 4), columns="run sync_id wait ts_ns dur_ns")  # fmt: skip
    data = table(
        ("r", 1, "A", "A", 10), ("r", 1, "B", "A", 10), ("r", 2, "C", "P", 30), ("r", 3, None, None, 30),
        columns="run sync_id dev file_system sync_end_ns",
    )  # fmt: skip
    sql = (
        f"WITH syncline_wait AS {waits}, syncline_sync AS (SELECT 'r' AS run, 2 AS sync_id, 'P' AS dev)"
        f" SELECT sync_id, dev, begin_ns, end_ns FROM latest_flush!({data}, {bios}) ORDER BY sync_id, dev"
    )
    # The file system on A flushed nothing itself, so the data on B have no flush. The one of C is in another run.
    assert rows(tmp_path, sql) == [(1, "A", 6, 9), (1, "B", None, None), (2, "C", 20, 24), (3, None, None, None)]  # fmt: skip


def test_lost_before(tmp_path: Path) -> None:
    # The file 7 loses a sector at 10, which is written again at 50; the file 8 loses one that never is; 9 loses none.
    bios = table(
        ("r", 1, "D", "D", 7, 5, 10, -5, 0, 512, 0, 511, True), ("r", 2, "D", "D", 7, 40, 50, 0, 0, 1024, None, None, True),
        ("r", 3, "D", "D", 8, 5, 10, -5, 99, 512, 0, 511, True), ("r", 4, "D", "D", 9, 5, 10, 0, 8, 512, 0, 511, True),
        # At another place of the file 8, and at the same one before the loss.
        ("r", 5, "D", "D", 8, 40, 50, 0, 200, 512, 512, 1023, True), ("r", 6, "D", "D", 8, 8, 9, 0, 200, 512, 0, 511, True),
        # The first of these is tried again, and refused again.
        ("r", 8, "D", "D", 8, 15, 20, -5, 700, 512, 0, 511, True),
        # The file 8 loses two more sectors elsewhere.
        ("r", 7, "D", "D", 8, 5, 10, -5, 300, 1024, 4096, 5119, True),
        columns="run bio_id dev file_dev file_ino ts_ns end_ns error sector bytes first_offset last_offset has_data",
    )  # fmt: skip
    syncs = table(
        ("r", 1, "D", 7, 20, 30), ("r", 2, "D", 7, 20, 60), ("r", 3, "D", 7, 5, 30), ("r", 4, "D", 8, 80, 90),
        ("r", 5, "D", 9, 20, 30), ("r", 6, "E", 8, 80, 90), ("s", 7, "D", 8, 80, 90),
        columns="run sync_id dev ino begin_ns end_ns",
    )  # fmt: skip
    found = rows(
        tmp_path, f"SELECT sync_id, lost_bytes FROM lost_before!({syncs}, {bios}) ORDER BY sync_id"
    )
    assert found == [(1, 512), (4, 512 + 1024)]


def test_unseen_phases(tmp_path: Path) -> None:
    # In r, all is seen, but of one of two requests it is not known how long it waited for a CPU. In s, nothing is said;
    # commits are inferred for x.
    totals = table(("r", None, 2, 1, 1), ("s", "x", 1, 0, 0), ("s", "y", 1, 0, 1), columns="run op syncs waits_known cpu_known")  # fmt: skip
    parts = table(("r", None, "commit wait"), ("s", "x", "commit start"), ("s", "y", "queue"), columns="run op phase")  # fmt: skip
    seen = "lock wait, device, earlier writeback, commit wait, flush"
    sql = (
        f"WITH syncline_meta AS {table(('r', 'phases_seen', seen), columns='run key value')}"
        f" SELECT run, op, phases FROM unseen_phases!({totals}, {parts}, (run, op)) ORDER BY run, op"
    )
    assert rows(tmp_path, sql) == [
        ("r", None, "cpu wait of 1 requests"),
        ("s", "x", "cpu wait, lock wait, device, earlier writeback, earlier commit, commit start, flush"),
        ("s", "y", "lock wait, device, earlier writeback, commit wait, flush"),
    ]  # fmt: skip


def test_summary_metrics(tmp_path: Path) -> None:
    found = rows(tmp_path, "SELECT * FROM summary_metrics!() ORDER BY place")
    assert [place for place, *_ in found] == [*range(1, len(found) + 1)]
    assert len({(measure, statistic) for _, measure, statistic, _ in found}) == len(found)
    assert {unit for *_, unit in found} == {"count", "share", "ns", "bytes", "ratio"}
    assert found[0] == (1, "runs", None, "count")


def test_time_of_programs(tmp_path: Path) -> None:
    # Process 1 has threads of two names, which overlap for 5; a thread without a process; one without any name.
    named = [
        ("r", 1, "db", "db-1", 0, 10), ("r", 1, "db", "db-2", 5, 10), ("r", None, None, "t", 100, 7),
        ("r", 9, None, None, 200, None),
    ]  # fmt: skip
    # 50 more programs, each shorter than these: those after the first 50 are the others.
    many = [("r", 100 + n, f"p{n:02}", "x", 1000, 1) for n in range(50)]
    columns = "run pid process comm ts_ns dur_ns"
    found = rows(
        tmp_path,
        f"WITH syncline_sync_call AS {table(*named, *many, columns=columns)}"
        " SELECT scope, syncs, known, time_ns, wall_ns FROM time_of_programs!() ORDER BY scope",
    )
    by_scope = {scope: figures for scope, *figures in found}
    assert len(found) == 50 + 2
    assert by_scope["all"] == [54, 53, 77, 15 + 7 + 1]
    assert by_scope["process:db"] == [2, 2, 20, 15]
    assert by_scope["comm:t"] == [1, 1, 7, 7]
    # p48 and p49, and the one without a name, whose length is unknown.
    assert by_scope["others"] == [3, 2, 2, 2]
    assert by_scope["process:p47"] == [1, 1, 1, 1]
    few = rows(
        tmp_path,
        f"WITH syncline_sync_call AS {table(named[3], columns=columns)} SELECT * FROM time_of_programs!() ORDER BY scope",
    )
    assert few == [("all", 1, 0, None, None), ("pid:9", 1, 0, None, None)]


def test_sums_of_marks(tmp_path: Path) -> None:
    columns = "run sync_id ts_ns dur_ns incomplete bios ret bytes syscall_ns writeback_ns"
    # Both syncs are in the mark, one in the other, overlapping for 5; a third one is in none.
    syncs = table(
        ("r", 1, 10, 10, None, 0, 0, 5, 9, None), ("r", 2, 15, 10, None, 0, 0, None, 8, None), ("r", 3, 90, 10, None, 0, 0, 5, 9, 9),
        columns=columns,
    )  # fmt: skip
    marks = table(("r", 1, 10, 10), ("r", 2, 12, 10), columns="run mark_id ts_ns dur_ns")
    found = rows(
        tmp_path,
        f"WITH syncline_mark AS {marks}, syncline_sync_call AS {syncs} SELECT * FROM sums_of_marks!() ORDER BY measure",
    )
    assert found == [
        ("sync_wall_time", 15 + 10, 3, 3),
        ("syncs", 3, None, None),
        ("syscall_latency", 9 + 8 + 8, 3, 3),
        ("writeback_amount", 5, 1, 3),
        ("writeback_latency", None, 0, 3),
    ]


@pytest.mark.parametrize(
    ("meta", "syncs", "bios", "expected"),
    [
        # Syncs and bios; syncs with no bio; a run without syncs and a bio; likewise, next to another run; only requests.
        ([("a", "x", "")], [2], 1, (1, True, True, True, True)),
        ([("a", "x", "")], [None], 0, (1, True, False, True, True)),
        ([("a", "syncs_recorded", "no")], [], 1, (1, True, True, False, False)),
        ([("a", "syncs_recorded", "no"), ("b", "x", "")], [], 1, (2, True, True, True, False)),
        ([("a", "tables", "sync")], [2], 0, (1, False, False, True, True)),
    ],
)
def test_shown_figures(
    tmp_path: Path,
    meta: list[tuple[str, str, str]],
    syncs: list[int | None],
    bios: int,
    expected: tuple[object, ...],
) -> None:
    def some(number: int) -> str:
        return f" LIMIT {number}"

    requests = table(*((one,) for one in [*syncs, 0]), columns="bios")
    found = rows(
        tmp_path,
        f"WITH syncline_meta AS {table(*meta, columns='run key value')},"
        f" syncline_sync AS (SELECT * FROM {requests} AS t{some(len(syncs))}),"
        f" syncline_bio AS (SELECT 1 AS bio_id{some(bios)})"
        " SELECT runs, has_tables, has_bios, has_syncs, all_have_syncs FROM shown_figures!()",
    )
    assert found == [expected]


def test_split_stacks(tmp_path: Path) -> None:
    # A name may be empty, or hold what JSON writes with an escape.
    stacks = table(("r", 1, 'main;a"b;'), ("r", 2, "one"), columns="run stack_id stack")
    sql = f"SELECT stack_id, depth, frame FROM split_stacks!({stacks}) ORDER BY 1, 2"
    assert rows(tmp_path, sql) == [(1, 0, "main"), (1, 1, 'a"b'), (1, 2, ""), (2, 0, "one")]


def test_stack_frames(tmp_path: Path) -> None:
    # The stack of the call was used first, at 5. A stack of 258 frames ends with the mark.
    deep = ";".join("f" for _ in range(258))
    syncs = table(("r", "b;c", 10), ("r", "a", 7), ("r", None, 1), columns="run stack ts_ns")
    calls = table(("r", "b;c", 5), ("s", deep, 1), columns="run stack ts_ns")
    sql = (
        f"WITH syncline_sync AS {syncs}, syncline_call AS {calls}"
        " SELECT run, stack_id, depth, frame, stack FROM stack_frames!()"
        " WHERE depth IN (0, 1, 255, 256, 257) ORDER BY 1, 2, 3"
    )
    assert rows(tmp_path, sql) == [
        ("r", 1, 0, "b", "b;c"), ("r", 1, 1, "c", "b;c"), ("r", 2, 0, "a", "a"),
        *(("s", 1, depth, "f", deep) for depth in (0, 1, 255)), ("s", 1, 256, "[deeper frames]", deep),
    ]  # fmt: skip


def test_flight_edges(tmp_path: Path) -> None:
    # 1 is in flight in 0-10, and 2 in 4-6. 3 starts when 1 ends, so they do not overlap. 4 has no length.
    syncs = table(
        ("r", 1, 0, 10), ("r", 2, 4, 2), ("r", 3, 10, 5), ("r", 4, 3, None), ("s", 1, 1, 1),
        columns="run sync_id ts_ns dur_ns",
    )  # fmt: skip
    sql = (
        f"WITH syncline_sync_call AS {syncs}"
        " SELECT run, position, sync_id, flying, CAST(flown AS BIGINT), CAST(shared_ns AS BIGINT)"
        " FROM flight_edges!() ORDER BY 1, 2"
    )
    assert rows(tmp_path, sql) == [
        ("r", 1, 1, 1, 0, 0), ("r", 2, 2, 2, 4, 0), ("r", 3, 2, 1, 8, 2), ("r", 4, 1, 0, 12, 2),
        ("r", 5, 3, 1, 12, 2), ("r", 6, 3, 0, 17, 2), ("s", 1, 1, 1, 0, 0), ("s", 2, 1, 0, 1, 0),
    ]  # fmt: skip


def test_flight_peaks(tmp_path: Path) -> None:
    # During 1, there are 3 at once; during 2, which ends before that, 2; during 3, the 3 of its own start.
    edges = table(
        ("r", 1, 1, 1), ("r", 2, 2, 2), ("r", 2, 3, 1), ("r", 4, 4, 2), ("r", 3, 5, 3), ("r", 3, 6, 2),
        ("r", 4, 7, 1), ("r", 1, 8, 0), ("s", 1, 1, 1), ("s", 1, 2, 0),
        columns="run sync_id position flying",
    )  # fmt: skip
    sql = f"SELECT run, sync_id, peak FROM flight_peaks!({edges}) WHERE peak IS NOT NULL ORDER BY 1, 2"
    with opened(str(LOG), Reading()) as engine:
        found = run_query(engine, sql).rows
    assert found == [("r", 1, 3), ("r", 2, 2), ("r", 3, 3), ("r", 4, 3), ("s", 1, 1)]


def test_sync_calls(tmp_path: Path) -> None:
    # Call 1 has two requests: of two files, both with their journal time and one with its bytes. 3 is a call of one.
    names = (
        "run sync_id call_sync_id ts_ns dur_ns tid pid comm process cgroup op path container_path dev ino id ret syscall_ns"
        " writeback_ns before_submit_ns after_complete_ns journal_ns flush_ns bytes ranges bios stack confidence incomplete start_ns"
    )
    known: dict[str, object] = {"run": "r", "tid": 7, "op": "msync", "dev": "8,0", "id": 1, "journal_ns": 2, "confidence": "exact"}  # fmt: skip
    one: dict[str, object] = {"sync_id": 1, "call_sync_id": 1, "ts_ns": 10, "dur_ns": 5, "path": "/a", "bytes": 4096, "syscall_ns": 30}  # fmt: skip
    two: dict[str, object] = {"sync_id": 2, "call_sync_id": 1, "ts_ns": 15, "dur_ns": 20, "path": "/b", "confidence": "inferred", "op": None}  # fmt: skip
    three: dict[str, object] = {"sync_id": 3, "call_sync_id": 3, "ts_ns": 50, "dur_ns": 9, "path": "/a", "bytes": 1, "op": "fsync"}  # fmt: skip
    syncs = table(*(tuple((known | each).get(name) for name in names.split()) for each in (one, two, three)), columns=names)  # fmt: skip
    sql = (
        f"WITH syncline_sync AS {syncs} SELECT sync_id, ts_ns, dur_ns, op, path, dev, what, journal_ns, bytes, confidence, requests"
        " FROM sync_calls!() ORDER BY 1"
    )
    assert rows(tmp_path, sql) == [
        (1, 10, 30, "msync", None, "8,0", "several files", 4, None, "inferred", 2),
        (3, 50, 9, "fsync", "/a", "8,0", None, 2, 1, "exact", 1),
    ]  # fmt: skip


def test_last_name_and_folder_of(tmp_path: Path) -> None:
    paths = table(("/a/b.c",), ("b",), ("/b",), ("/a/",), ("//a//b",), (None,), columns="path")
    sql = f"SELECT path, last_name!(path), folder_of!(path) FROM {paths} AS t ORDER BY path IS NULL, path"
    assert rows(tmp_path, sql) == [
        ("//a//b", "b", "//a"), ("/a/", "", "/a"), ("/a/b.c", "b.c", "/a"), ("/b", "b", ""), ("b", "b", ""),
        (None, None, None),
    ]  # fmt: skip


def test_may_be_folder(tmp_path: Path) -> None:
    # 1 is of the folder of 2. 3 is a file of another run, and 4 has no path.
    syncs = table(
        ("r", 1, "/x/d"),
        ("r", 2, ".../d/a"),
        ("s", 3, "/x/d"),
        ("r", 4, None),
        columns="run sync_id path",
    )
    sql = f"WITH syncline_sync AS {syncs} SELECT run, sync_id FROM may_be_folder!() ORDER BY 1, 2"
    assert rows(tmp_path, sql) == [("r", 1)]
