"""What `import syncline` offers: the same figures and the same words as the commands, and nothing loaded before it is used."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest
import syncline
from syncline.cli.group import COMMANDS, cli

from tests import known_truth
from tests.coretools import ROOT
from tests.test_commands import fails, ok
from tests.test_commands import run as command
from tools import notebook

LOG = str(ROOT / "tests" / "data" / "thesis" / "small4.log")
DIFF = ROOT / "tests" / "data" / "diff"


@pytest.fixture(scope="module")
def run():
    with syncline.open(LOG) as opened:
        yield opened


def test_the_public_names_are_there_and_load_nothing() -> None:
    """A script that only imports the package, and each command, would pay for DuckDB and the engines."""
    code = (
        "import sys, syncline; before = {*sys.modules}; print(sorted(syncline.__all__));"
        " print([n for n in ('duckdb', 'rich', 'click', 'wasmtime', 'perfetto', 'syncline.api') if n in before])"
    )
    names, loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert json.loads(names.replace("'", '"')) == [
        *("Answer", "Comparison", "Error", "Run", "Table", "diff", "open", "reports"),
    ]
    assert loaded == "[]"
    assert {*syncline.__all__} <= {*dir(syncline)}
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = syncline.nope


def test_help_imports_no_command() -> None:
    """Its texts are those of the commands, which are imported only when they run."""
    code = (
        "import sys; sys.argv = ['syncline', '--help']; from syncline.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*(name for name in sys.modules if name.startswith('syncline')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [*done.stderr.split()]
    assert {f"syncline.cli.{name.replace('-', '_')}" for name in COMMANDS}.isdisjoint(loaded)
    assert len(loaded) <= 15, loaded
    context = click.Context(cli)
    for name, text in COMMANDS.items():
        command = cli.get_command(context, name)
        assert command is not None
        assert text == command.get_short_help_str(10**6)


def test_importing_other_modules_does_not_hide_a_function() -> None:
    code = "import syncline, syncline.cli.diff, syncline.comparison.compare; assert callable(syncline.diff), syncline.diff; assert callable(syncline.open)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tables_have_the_rows_of_the_command(run) -> None:
    rows = json.loads(
        ok("query", LOG, "SELECT * FROM syncline_sync ORDER BY sync_id", "--format", "json")
    )
    table = run.sql("SELECT * FROM syncline_sync ORDER BY sync_id")
    assert table.dicts() == rows
    assert len(run.syncs) == len(rows) == 100
    assert run.syncs.columns == list(rows[0])
    assert next(iter(run.syncs)).keys() == rows[0].keys()
    assert run.syncs.rows()[0] == tuple(next(iter(run.syncs)).values())


@pytest.mark.parametrize(
    ("attribute", "table"),
    [
        *(
            ("syncs", "sync"),
            ("calls", "call"),
            ("bios", "bio"),
            ("phases", "phase"),
            ("waits", "wait"),
        ),
        *(("commits", "journal"), ("marks", "mark"), ("losses", "loss"), ("meta", "meta")),
    ],
)
def test_each_table_is_the_one_of_the_docs(run, attribute: str, table: str) -> None:
    of_sql = run.sql(f"SELECT * FROM syncline_{table}")
    assert getattr(run, attribute).rows() == of_sql.rows()
    assert getattr(run, attribute).columns == of_sql.columns


def test_frames_have_the_rows(run) -> None:
    arrow = run.syncs.arrow()
    assert arrow.column_names == run.syncs.columns
    assert [tuple(row.values()) for row in arrow.to_pylist()] == run.syncs.rows()
    none = run.sql("SELECT path FROM syncline_sync WHERE false")
    assert none.arrow().column_names == ["path"]
    assert (len(none), none.rows()) == (0, [])


def test_an_unknown_value_is_none_and_not_zero(run) -> None:
    lost = run.sql("SELECT writeback_ns FROM syncline_sync WHERE incomplete = 'bio'")
    assert len(lost) == 15
    assert {row[0] for row in lost.rows()} == {None}
    assert lost.arrow().column("writeback_ns").null_count == 15


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_of_other_packages(run, package: str) -> None:
    method = {"pandas": "df", "polars": "pl"}[package]
    try:
        __import__(package)
    except ImportError:
        with pytest.raises(
            ImportError, match=rf"\.{method}\(\) needs the package {package}: pip install"
        ):
            getattr(run.syncs, method)()
        return
    frame = getattr(run.syncs, method)()
    assert [*frame.columns] == run.syncs.columns
    assert len(frame) == 100
    assert int(frame["bytes"].sum()) == sum(row["bytes"] or 0 for row in run.syncs)


def test_frames_of_a_trace_processor_are_the_same(run) -> None:
    with syncline.open(LOG, engine="embedded") as other:
        sql = "SELECT sync_id, path, dur_ns, writeback_ns FROM syncline_sync ORDER BY sync_id"
        assert other.sql(sql).arrow().to_pylist() == run.sql(sql).arrow().to_pylist()


@pytest.mark.parametrize("name", ["threads", "summary", "phases", "neighbours"])
def test_a_report_has_the_rows_of_the_command(run, name: str) -> None:
    assert (
        run.report(name).dicts() == json.loads(ok("report", LOG, name, "--format", "json"))["rows"]
    )


def test_reports_are_listed_with_their_question() -> None:
    listed = syncline.reports()
    assert next(iter(listed)) == "summary"
    assert "who" in listed["bystanders"].lower() or listed["bystanders"]
    assert all(listed.values())


def test_a_report_without_rows_says_why(run) -> None:
    assert len(run.report("marks")) == 0
    assert "No rows: " in str(run.report("marks"))
    assert "No rows: " in run.report("marks")._repr_html_()


def test_the_answer_is_the_one_of_the_command(run) -> None:
    answer = run.answer()
    assert str(answer) == ok("report", LOG)
    assert answer.data["phases_ns"]
    assert sum(answer.data["phases_ns"].values()) == answer.data["total"]["time_ns"]
    assert json.loads(json.dumps(answer.data))["total"]["syncs"] == 100
    assert answer.sentences["total"].startswith("100 syncs of 100 files")


def test_a_notebook_shows_the_answer_with_its_bar(run) -> None:
    shown = run._repr_html_()
    assert run.answer().sentences["total"] in shown
    assert "15 of 100 bios: never_completed" in shown
    # A box for each phase, and as wide as its share.
    phases = run.answer().data["phases_ns"]
    assert shown.count("<div title=") == len(phases)
    longest, ns = next(iter(phases.items()))
    assert f'<div title="{longest}: {ns / sum(phases.values()):.1%}"' in shown
    # The commands run as they stand, also those in a sentence.
    for step in run.answer().data["next"]:
        assert f"<code>{step['command']}</code>" in shown
    assert "INPUT" not in shown


def test_a_table_in_a_notebook_is_one_text(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, rich displays what it is to write into a text, unless it is told not to."""
    table = run.report("threads")
    before = str(table)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(
        "rich.jupyter.display", lambda *_: pytest.fail("a line was displayed"), raising=False
    )
    assert str(table) == before
    assert before.startswith("Threads: ")


def test_names_of_a_log_cannot_write_html(tmp_path: Path) -> None:
    log = tmp_path / "x.strace"
    log.write_text("1 1.000000 fsync(3</a/<script>alert(1)</script>>) = 0 <0.001>\n")
    with syncline.open(log) as run:
        shown = run._repr_html_() + run.syncs._repr_html_() + run.report("files")._repr_html_()
    assert "<script>" not in shown


def test_a_table_shows_its_first_rows(run) -> None:
    shown = run.syncs._repr_html_()
    assert shown.count("<tr>") == 1 + 20
    assert "80 more rows" in shown


def test_a_filter_selects_as_the_option_does(tmp_path: Path) -> None:
    case = known_truth.unpacked("postgres-neighbour", tmp_path)
    with syncline.open(case, comm="postgres") as run:
        assert run.is_filtered
        assert {row[0] for row in run.sql("SELECT comm FROM syncline_sync").rows()} == {"postgres"}
        assert str(run.answer()) == ok("report", case, "--comm", "postgres")
        # Those whose syncs were left out are neighbours still.
        assert (
            run.report("neighbours").dicts()
            == json.loads(
                ok("report", case, "neighbours", "--comm", "postgres", "--format", "json")
            )["rows"]
        )


def test_convert_writes_what_the_command_writes(run, tmp_path: Path) -> None:
    out = run.convert(tmp_path / "run.pftrace")
    assert out == tmp_path / "run.pftrace"
    with syncline.open(out) as trace:
        assert trace.kind == "trace"
        assert trace.syncs.rows() == run.syncs.rows()


def test_diff_has_the_verdict_of_the_command() -> None:
    same = syncline.diff(DIFF / "base", DIFF / "slower")
    done = command("diff", DIFF / "base", DIFF / "slower", "--format", "json")
    assert done.returncode == 1
    of_command = json.loads(done.stdout)
    assert same.verdict == of_command["verdict"] == "regression"
    assert same.rows == of_command["rows"]
    assert same.reason == ""
    assert "regression" in str(same)
    assert "<pre>" in same._repr_html_()


def test_diff_takes_runs_that_are_open(run) -> None:
    found = syncline.diff(run, [run.path])
    assert found.verdict == "no regression"
    with syncline.open(LOG, comm="wl") as filtered, pytest.raises(syncline.Error, match="filter"):
        syncline.diff(filtered, LOG)


class TestErrors:
    """Each says what the command says: the text, and what to do."""

    @pytest.mark.parametrize("name", ["nosuch", "README.md", "tests"])
    def test_no_input(self, name: str) -> None:
        path = str(ROOT / name)
        with pytest.raises(syncline.Error) as raised:
            syncline.open(path).syncs.rows()
        said = fails(3, "report", path)
        assert f"error: {raised.value.message}" in said
        # An option of the commands is a parameter in Python.
        assert raised.value.hint.replace("`format=`", "`--from`") in said
        assert raised.value.kind == "input"

    def test_sql(self, run) -> None:
        sql = "SELECT path,\n nope\nFROM syncline_sync"
        with pytest.raises(syncline.Error) as raised:
            run.sql(sql).rows()
        assert raised.value.kind == "usage"
        done = command("query", LOG, sql)
        assert (done.returncode, raised.value.message in done.stderr) == (2, True)
        assert "LINE 2" in raised.value.message
        with pytest.raises(syncline.Error) as of_arrow:
            run.sql(sql).arrow()
        assert of_arrow.value.message == raised.value.message

    def test_sql_reads_no_other_file(self, run, tmp_path: Path) -> None:
        secret = tmp_path / "secret.csv"
        secret.write_text("a\n1\n")
        for read in ("rows", "arrow"):
            with pytest.raises(syncline.Error):
                getattr(run.sql(f"SELECT * FROM '{secret}'"), read)()

    def test_a_report_that_does_not_exist(self, run) -> None:
        with pytest.raises(
            syncline.Error, match=r"no report 'bystander'\. Did you mean bystanders\?"
        ):
            run.report("bystander")

    def test_a_format_that_does_not_exist(self) -> None:
        with pytest.raises(syncline.Error, match="no format 'nope'"):
            syncline.open(LOG, format="nope")

    def test_a_filter_on_what_is_converted(self, run, tmp_path: Path) -> None:
        trace = run.convert(tmp_path / "x.pftrace")
        with pytest.raises(syncline.Error, match="already converted"):
            syncline.open(trace, comm="wl")

    def test_a_closed_run(self) -> None:
        run = syncline.open(LOG)
        table = run.syncs
        kept = run.report("threads")
        kept.rows()
        run.close()
        run.close()
        for use in (table.rows, table.arrow, run.answer, run.caveats, lambda: run.convert("x.csv")):
            with pytest.raises(syncline.Error, match="is closed"):
                use()
        # Rows that were read stay.
        assert kept.rows()
        assert "closed" in repr(run)

    def test_an_output_that_is_the_input(self, tmp_path: Path) -> None:
        log = tmp_path / "x.log"
        log.write_bytes(Path(LOG).read_bytes())
        with syncline.open(log) as run, pytest.raises(syncline.Error):
            run.convert(log)
        assert log.read_bytes() == Path(LOG).read_bytes()

    def test_a_deleted_file(self, tmp_path: Path) -> None:
        """The tables of a log stay, since they were made when it was opened; a conversion reads it again."""
        log = tmp_path / "x.log"
        log.write_bytes(Path(LOG).read_bytes())
        with syncline.open(log) as run:
            log.unlink()
            assert len(run.syncs) == 100
            with pytest.raises(syncline.Error, match="No such file"):
                run.convert(tmp_path / "y.csv")
        assert not (tmp_path / "y.csv").exists()


def test_two_runs_in_two_threads() -> None:
    found: dict[str, int] = {}

    def read(name: str) -> None:
        with syncline.open(ROOT / "tests" / "data" / "thesis" / name) as run:
            for _ in range(3):
                found[name] = len(run.syncs.arrow()) + len(run.report("phases"))

    names = ("small4.log", "parallel4.log")
    threads = [threading.Thread(target=read, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        log = str(ROOT / "tests" / "data" / "thesis" / name)
        with syncline.open(log) as run:
            assert found[name] == len(run.syncs) + len(run.report("phases"))


def test_nothing_is_left_when_a_run_is_forgotten(tmp_path: Path) -> None:
    code = f"import syncline; run = syncline.open({LOG!r}); print(len(run.syncs))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("100\n", "")
    assert [*tmp_path.iterdir()] == []
    run = syncline.open(LOG)
    close = run._close
    del run
    gc.collect()
    assert not close.alive


def test_an_interrupt_ends_a_query_and_not_the_run() -> None:
    """As in a notebook, where the kernel of the cell gets the signal."""
    code = f"""
import _thread, signal, threading, syncline
signal.signal(signal.SIGINT, signal.default_int_handler)
run = syncline.open({LOG!r})
threading.Timer(0.5, _thread.interrupt_main).start()
try:
    run.sql("SELECT COUNT(*) FROM range(100000000000) AS a, range(1000) AS b").rows()
except KeyboardInterrupt:
    print("interrupted", len(run.syncs))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "interrupted 100\n", done.stderr


def test_the_guide_and_its_notebook_are_up_to_date(tmp_path: Path) -> None:
    page, made = notebook.made(tmp_path)
    assert page == notebook.PAGE.read_text(encoding="utf-8"), "python -m tools.notebook"
    assert made == notebook.NOTEBOOK.read_text(encoding="utf-8"), "python -m tools.notebook"
    # A cell without an output would be an example that shows nothing.
    assert page.count("```text\n```") == 0
    assert page.count("```python") == len(notebook.CELL.findall(page))
