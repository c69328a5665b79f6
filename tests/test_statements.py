"""A command that knows its statements reads only the columns that they name. The results are those of all columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from syncline.engine import EngineError
from syncline.inputs import opened
from syncline.reading import Reading
from syncline.report import names
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
            for name in names():
                with opened(str(path), Reading(), statements=statements([name])) as engine:
                    assert run_report(engine, name) == run_report(whole, name), name
                    assert caveats(engine) == caveats(whole)


def test_columns_that_are_not_named_are_not_read() -> None:
    wanted = ["SELECT bytes, Folios FROM syncline_sync\n-- path"]
    with opened(str(DATA / "small4.log"), Reading(), statements=wanted) as engine:
        assert run_query(engine, "SELECT SUM(bytes), SUM(folios) > 0 FROM syncline_sync").rows
        for sql in ("SELECT path FROM syncline_sync", 'SELECT "TID" FROM syncline_bio'):
            with pytest.raises(EngineError, match=r"path|tid"):
                run_query(engine, sql)
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
