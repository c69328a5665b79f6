"""Queries in steps: the rows are those of the query as a whole."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from syncline.engine import SqlError, columns, open_trace
from syncline.engine.columns import ColumnsEngine, open_columns
from syncline.engine.expanded import expanded
from syncline.engine.staged import Staged, staged, staged_for_memory
from syncline.inputs import Reading, opened
from syncline.report import catalogue, names, run_query, run_report
from syncline.report.catalogue import sql_root
from syncline.report.run import include, keep, run_report_in_batches

from tests.coretools import ROOT

FULL = ROOT / "tests" / "data" / "dynamic-events" / "ext4-both.txt.gz"
# Each link uses the one before twice, so the last one stands for 2^10 selects.
LINKS = 10


def chain(links: int = LINKS) -> str:
    """The numbers 0 to 2^links - 1, as a table for each bit."""
    tables = ["a0 AS (SELECT 0 AS n) -- it's ) here, (\n"]
    for at in range(1, links + 1):
        tables.append(
            f"A{at}(n) AS (SELECT n FROM a{at - 1} /* ' ) */ UNION ALL SELECT n + {2 ** (at - 1)} FROM a{at - 1})"
        )
    return f"WITH {', '.join(tables)}\nSELECT n, ')(' AS \"b)(\" FROM a{links} WHERE n <> 7 ORDER BY n DESC;"


def run(steps: Staged) -> tuple[list[str], list[tuple[object, ...]], list[str]]:
    """The columns and the rows of the query, and the tables that are left."""
    with sqlite3.connect(":memory:") as db:
        db.executescript(steps.before)
        found = db.execute(steps.query)
        columns, rows = [column[0] for column in found.description], found.fetchall()
        db.executescript(steps.after)
        left = [name for (name,) in db.execute("SELECT name FROM sqlite_schema")]
    return columns, rows, left


def test_the_rows_are_those_of_the_whole_query() -> None:
    steps = staged(chain())
    assert steps.before.count("CREATE TABLE") >= 2
    # A table that is used once is copied once.
    assert f"_a{LINKS} AS" not in steps.before
    columns, rows, left = run(steps)
    assert columns == ["n", "b)("]
    assert rows == [(n, ")(") for n in range(2**LINKS - 1, -1, -1) if n != 7]
    assert left == []


def test_no_step_is_a_copy_of_a_copy() -> None:
    """What SQLite plans grows with the length of the text, although the last table stands for 2^30 selects."""
    steps = staged(chain(30))
    assert steps.before.count("CREATE TABLE") >= 8
    with sqlite3.connect(":memory:") as db:
        # The rows would be too many: an empty table stands for each step.
        for step in steps.before.split(";\n")[:-1]:
            name = step.split()[2]
            if step.startswith("DROP"):
                db.execute(step)
                continue
            assert len(db.execute(f"EXPLAIN {step}").fetchall()) < 1000
            db.execute(f"CREATE TABLE {name}(n)")
        assert len(db.execute(f"EXPLAIN {steps.query}").fetchall()) < 1000


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "WITH a AS (SELECT 1) SELECT * FROM a JOIN a AS b",
        "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 9) SELECT * FROM a",
        "WITH a AS (SELECT (1) SELECT * FROM a",
        'WITH "a b" AS (SELECT 1) SELECT * FROM "a b"',
        chain(2),
    ],
)
def test_what_costs_little_or_has_another_form_stays_whole(sql: str) -> None:
    assert staged(sql) == Staged("", sql, "")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "out.pftrace"
    Reading().convert([str(FULL)], str(path))
    return path


def test_reports_have_the_rows_of_the_text_that_users_get(trace: Path) -> None:
    """`syncline sql` prints a report as one query, which any trace processor runs."""
    in_steps = 0
    with opened(str(trace), Reading(), engine="embedded") as engine:
        for name in names():
            sql = catalogue.load(name).sql
            steps = staged(expanded(sql, "perfetto"))
            in_steps += bool(steps.before)
            include(engine, sql)
            assert run_query(engine, sql).rows == engine.query(sql).rows, name
    assert in_steps >= 3


def test_nothing_is_left_of_the_steps(trace: Path) -> None:
    def left() -> list[tuple[object, ...]]:
        return engine.query(
            "SELECT name FROM sqlite_schema WHERE name GLOB '_syncline_step_*'"
        ).rows

    with open_trace(trace, engine="embedded") as engine:
        # Perfetto's tables have no such column.
        keep(engine, "kept", chain().replace('"b)("', "b").removesuffix(";"))
        assert engine.query("SELECT COUNT(*) FROM kept").rows == [(2**LINKS - 1,)]
        assert left() == []
        # The query fails after its first steps.
        with pytest.raises(SqlError, match="nosuch"):
            run_query(engine, chain().replace("WHERE n <> 7", "WHERE nosuch"))
        assert left() == []
        assert len(run_query(engine, chain()).rows) == 2**LINKS - 1


# A table that is kept, in words that are spread over lines, and one that is not.
KEPT = """
WITH a AS (SELECT 1 AS n), b AS /* ( */ MATERIALIZED -- )
  (SELECT n + 1 AS n FROM a UNION ALL SELECT n FROM a),
c(m) AS NOT MATERIALIZED (SELECT n FROM b), d AS materialized (SELECT m FROM c)
SELECT ' AS MATERIALIZED (', SUM(m) FROM d JOIN b ON n <= m;
"""


def test_duckdb_keeps_what_is_materialized() -> None:
    steps = staged_for_memory(KEPT, in_file=False)
    assert steps.before.count("CREATE") == steps.after.count("DROP") == 2
    assert staged_for_memory(chain(), in_file=True) == Staged("", chain(), "")


def test_a_step_is_removed_after_its_last_use() -> None:
    """`a` is read by `b`, and by `d` by way of `c`, which is no step; `b` only by the query."""
    sql = """WITH a AS MATERIALIZED (SELECT 1 AS n), b AS MATERIALIZED (SELECT n + 1 AS n FROM a),
c AS (SELECT n + 2 AS n FROM a), d AS MATERIALIZED (SELECT n FROM c), e AS MATERIALIZED (SELECT 5 AS n)
SELECT b.n, d.n, e.n FROM b, d, e;"""
    steps = staged_for_memory(sql, in_file=False)
    done = re.findall(r"(CREATE|DROP)[A-Z ]* _syncline_step_(\w)", steps.before)
    assert done == [
        *(("CREATE", "a"), ("CREATE", "b")),
        *(("CREATE", "d"), ("DROP", "a"), ("CREATE", "e")),
    ]
    with duckdb.connect() as db:
        assert db.execute(steps.before + steps.query).fetchall() == [(2, 3, 5)]


def test_tables_are_large_by_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million of them may be half a megabyte."""
    Reading().convert([str(FULL)], f"{tmp_path}/run/")
    counts = [pq.read_metadata(file).num_rows for file in (tmp_path / "run").glob("*.parquet")]
    for most, is_large in ((sum(counts), False), (sum(counts) - 1, True)):
        monkeypatch.setattr(columns, "_LARGE_ROWS", most)
        with open_columns(tmp_path / "run", sql=sql_root() / "tables" / "duckdb") as engine:
            assert engine.is_large == is_large


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ColumnsEngine]:
    """Two runs, as an engine that takes their tables for large ones."""
    for name in ("a", "b"):
        Reading().convert([str(FULL)], f"{tmp_path}/runs/{name}/")
    monkeypatch.setattr(columns, "_LARGE_ROWS", 0)
    with open_columns(tmp_path / "runs", sql=sql_root() / "tables" / "duckdb") as engine:
        assert engine.is_large
        yield engine


def left_in(engine: ColumnsEngine) -> list[tuple[object, ...]]:
    return engine.query(
        "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '%step%'"
    ).rows


def test_reports_of_large_tables_have_the_rows_of_the_whole_query(large: ColumnsEngine) -> None:
    in_steps = 0
    for name in names():
        sql = catalogue.load(name).sql
        in_steps += bool(staged_for_memory(expanded(sql, "duckdb"), in_file=True).before)
        assert run_report(large, name).rows == large.query(sql).rows, name
        assert left_in(large) == []
    assert in_steps >= 1


def test_nothing_is_left_in_duckdb_of_the_steps(large: ColumnsEngine) -> None:
    assert run_query(large, KEPT).rows == [(" AS MATERIALIZED (", 1 + 2 + 2)]
    assert left_in(large) == []
    with pytest.raises(SqlError, match="nosuch"):
        run_query(large, KEPT.replace("SUM(m)", "SUM(nosuch)"))
    assert left_in(large) == []
    # The SQL of a user stays what it is.
    assert run_query(large, KEPT, is_of_user=True).rows == run_query(large, KEPT).rows
    # Whoever takes the first batch only.
    with closing(run_report_in_batches(large, "neighbours")) as batches:
        first = next(batches)
    assert "cost_ns" in first.columns
    assert left_in(large) == []
