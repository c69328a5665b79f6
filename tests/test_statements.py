"""A command that knows its statements reads only the columns that they name. The results are those of all columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from syncline.advice import advise, statements_of_advice, with_advice
from syncline.engine import EngineError
from syncline.engine.reads import reads
from syncline.inputs import opened
from syncline.reading import Reading
from syncline.report import answer, names
from syncline.report.inspect import statements as statements_of_why
from syncline.report.inspect import why_empty
from syncline.report.run import caveats, run_query, run_report, statements

from tests.coretools import DATA, ROOT

# With failures and several devices; with waits and a journal; with background writeback; with marks.
# Each is read back from its trace. The first two are also read as logs, as all sources give rows to the same tables.
INPUTS = [
    ROOT / "tests" / "data" / "strace" / "failed.log",
    ROOT / "tests" / "data" / "dynamic-events" / "ext4-both.txt.gz",
    DATA / "bg.log.gz",
    ROOT / "tests" / "data" / "marks" / "marks.trace.txt.gz",
]


@pytest.fixture(scope="module", params=INPUTS, ids=lambda path: path.name)
def inputs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The trace of a log, and some of the logs."""
    trace = tmp_path_factory.mktemp("trace") / "t.pftrace"
    Reading().convert([str(request.param)], str(trace))
    return [trace, *({request.param} & set(INPUTS[:2]))]


def test_a_report_is_the_same_with_only_the_columns_that_it_names(inputs: list[Path]) -> None:
    for path in inputs:
        with opened(str(path), Reading()) as whole:
            expected = caveats(whole)
            for name in names():
                with opened(str(path), Reading(), statements=statements([name])) as engine:
                    assert run_report(engine, name) == run_report(whole, name), name
                    assert caveats(engine) == expected
            with opened(str(path), Reading(), statements=answer.statements()) as engine:
                assert answer.read(engine) == answer.read(whole)


def test_the_advice_of_an_answer_is_that_of_advise(inputs: list[Path]) -> None:
    """With only the columns that it names, and the costliest finding that is about the program itself."""
    # The others are about neighbours, the device and the CPUs.
    about_others = ("neighbour", "unrecorded", "cpu", "background")
    announced = [*answer.statements(), *statements_of_advice()]
    for path in inputs:
        with opened(str(path), Reading()) as whole:
            found = [
                one
                for one in advise(whole)
                if one.status == "found"
                and one.finding.name not in about_others
                and (one.share or 0) >= 0.01
            ]
        with opened(str(path), Reading(), statements=announced) as engine:
            said = with_advice(engine, answer.read(engine)).advice
        assert (said is None) == (not found)
        if said is not None:
            best = max(found, key=lambda one: one.cost_ns or 0)
            assert (said["finding"], said["cost_ns"]) == (best.finding.name, best.cost_ns)
            assert said["seen"] == best.seen


def test_the_reason_for_no_rows_is_the_same_with_only_the_columns_that_it_names(
    inputs: list[Path],
) -> None:
    path = inputs[0]
    with opened(str(path), Reading()) as whole:
        for name in names():
            announced = [*statements([name]), *statements_of_why([name])]
            with opened(str(path), Reading(), statements=announced) as engine:
                assert why_empty(engine, name) == why_empty(whole, name), name


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM syncline_bio", {"syncline_bio": "select a from syncline_bio"}),
        # What is nested counts, for a column of the outer table may be named there. What is around does not.
        (
            "SELECT x FROM (SELECT a FROM Syncline_Bio WHERE EXISTS (SELECT b FROM syncline_call)) JOIN t USING (y)",
            {
                "syncline_bio": "select a from syncline_bio where exists b syncline_call",
                "syncline_call": "select b from syncline_call",
            },
        ),
        (
            "WITH c AS (SELECT f(a), 'b''c (' FROM syncline_sync -- d (\n) SELECT e FROM c",
            {"syncline_sync": "select f a from syncline_sync"},
        ),
        (
            "SELECT '-- (', a /* ' b ( */ FROM syncline_bio -- '",
            {"syncline_bio": "select a from syncline_bio"},
        ),
        ("SELECT x.* FROM syncline_bio AS x", {"syncline_bio": "*"}),
        ("SELECT x FROM (SELECT * FROM syncline_bio)", {"syncline_bio": "*"}),
        ("SELECT COUNT(*) FROM syncline_bio", {"syncline_bio": "select count from syncline_bio"}),
        (
            "SELECT a FROM syncline_bio; SELECT b FROM syncline_call",
            {
                "syncline_bio": "select a from syncline_bio",
                "syncline_call": "select b from syncline_call",
            },
        ),
        # In the second statement, parentheses do not match.
        (
            "SELECT ((a FROM syncline_bio; ) SELECT b FROM syncline_call)",
            {
                "syncline_bio": "select a from syncline_bio",
                "syncline_call": "select b from syncline_call",
            },
        ),
        # Parentheses without a SELECT are part of the query around them.
        (
            "SELECT w.a FROM (syncline_wait AS w JOIN t USING (b)) WHERE w.c > 1",
            {"syncline_wait": "select w a from syncline_wait as join t using b where c 1"},
        ),
        (
            "WITH c AS (FROM syncline_bio) SELECT a FROM c",
            {"syncline_bio": "with c as from syncline_bio select a"},
        ),
        ("FROM syncline_bio", {"syncline_bio": "*"}),
        ("SELECT MAX(COLUMNS(*)) FROM syncline_bio", {"syncline_bio": "*"}),
        (
            'SELECT "it\'s", "a(b" FROM "Syncline_bio" WHERE c = \'d\'',
            {"syncline_bio": "select it's a(b from syncline_bio where c"},
        ),
    ],
)
def test_what_sql_may_read(sql: str, expected: dict[str, str]) -> None:
    columns = {f"{table}.{word}" for table, words in expected.items() for word in words.split()}
    assert reads(sql) == {*expected, *columns}


def test_columns_that_are_not_named_are_not_read() -> None:
    wanted = [
        "SELECT bytes, Folios FROM syncline_sync\n-- path",
        "SELECT COUNT(*), COUNT(ret) FROM syncline_call",
    ]
    with opened(str(DATA / "small4.log"), Reading(), statements=wanted) as engine:
        assert run_query(engine, "SELECT SUM(bytes), SUM(folios) > 0 FROM syncline_sync").rows
        for sql in ("SELECT path FROM syncline_sync", 'SELECT "TID" FROM syncline_bio'):
            with pytest.raises(EngineError, match=r"path|tid"):
                run_query(engine, sql)
        # A column of another table with a name that was announced.
        with pytest.raises(EngineError, match=r"syncline_call\.ts_ns"):
            run_query(engine, "SELECT ts_ns FROM syncline_call")
        with pytest.raises(EngineError, match=r"syncline_sync\.\*"):
            run_query(engine, "SELECT * FROM syncline_sync")
        with pytest.raises(EngineError, match="syncline_stack"):
            run_query(engine, "SELECT COUNT(*) FROM syncline_stack")


def test_marks_can_be_replaced_with_few_columns(tmp_path: Path) -> None:
    trace = tmp_path / "t.pftrace"
    Reading().convert([str(DATA / "small4.log")], str(trace))
    (tmp_path / "marks.csv").write_text("time,name\n41753000000,a\n41853000000,b\n")
    reading = Reading(marks=str(tmp_path / "marks.csv"))
    with (
        opened(str(trace), reading) as whole,
        opened(str(trace), reading, statements=statements(["marks"])) as engine,
    ):
        assert run_report(engine, "marks") == run_report(whole, "marks")
        assert len(run_report(engine, "marks").rows) >= 2
