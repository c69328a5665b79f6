"""How people find their way: help on commands and reports, completion, the choice of rows, names that are mistyped."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from syncline.cli.group import COMMANDS
from syncline.report import Column, Report, Table, catalogue
from syncline.report.rows import Choice, UnknownColumn

from tests.coretools import ROOT
from tests.test_commands import fails, ok, run

BIN = Path(sys.executable).parent
SMALL4 = ROOT / "tests" / "data" / "thesis" / "small4.log"
COLUMNS = (Column("path", "text", ""), Column("dur_ns", "ns", ""), Column("ts_ns", "time", ""))
REPORT = Report("x", "X: y.", "", COLUMNS, "")
TABLE = Table(["path", "dur_ns", "ts_ns"], [("b", 5, 1), ("a", None, 3), ("c", 7, 2)])


@pytest.mark.parametrize(
    ("sort", "paths"),
    [
        # Figures fall, texts and times rise, and what is not known comes last in any order.
        ("dur_ns", "cba"),
        ("dur", "cba"),
        ("dur_ns:asc", "bca"),
        ("path", "abc"),
        ("path:desc", "cba"),
        ("ts", "bca"),
        (None, "bac"),
    ],
)
def test_rows_are_sorted(sort: str | None, paths: str) -> None:
    assert "".join(str(row[0]) for row in Choice(sort).of(TABLE, REPORT).rows) == paths
    assert [row[0] for row in Choice(sort, 2).of(TABLE, REPORT).rows] == list(paths[:2])


@pytest.mark.parametrize("sort", ["nope", "dur_ns:down", "pat"])
def test_a_column_that_is_not_there_is_refused(sort: str) -> None:
    with pytest.raises(UnknownColumn):
        Choice(sort).of(TABLE, REPORT)


@pytest.mark.parametrize("form", ["table", "csv", "json", "md"])
def test_every_format_has_the_chosen_rows(form: str) -> None:
    whole = list(csv.DictReader(io.StringIO(ok("report", SMALL4, "files", "--format", "csv"))))
    longest = sorted(whole, key=lambda row: -int(row["latency_max_ns"]))
    said = ok("report", SMALL4, "files", "--sort", "latency_max", "--limit", "3", "--format", form)
    names = [row["path"] for row in longest]
    places = [said.index(name) for name in names[:3]]
    assert places == sorted(places)
    assert not [name for name in names[3:] if name in said]


def test_a_sort_that_has_no_effect_is_refused() -> None:
    said = fails(2, "report", SMALL4, "files", "--sort", "byte")
    assert "report files has no column 'byte'. Did you mean bytes?" in said
    assert "syncline help files" in said
    assert "name a report" in fails(2, "report", SMALL4, "--limit", "3")


def test_help_explains_commands_and_reports() -> None:
    assert " report [OPTIONS] INPUT [NAME...]" in ok("help", "report").splitlines()[0]
    assert " model fit [OPTIONS] INPUT" in ok("help", "model", "fit")
    assert "Commands:" in ok("help")
    for name in catalogue.names():
        report, said = catalogue.load(name), ok("help", name)
        assert said.startswith(report.title)
        # A name that is a command and a report would hide the report.
        assert name not in COMMANDS
        for column in report.columns:
            assert f"  {column.name}" in said
    assert "did you mean bystanders?" in fails(2, "help", "bystander")


def complete(*words: str) -> list[str]:
    """What bash is told for these words, the last of which is begun."""
    env = {
        **os.environ,
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
        "_SYNCLINE_COMPLETE": "bash_complete",
    }
    done = subprocess.run([BIN / "syncline"], env=env, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_shell_is_told_what_fits() -> None:
    assert complete("syncline", "rep") == ["plain,report"]
    assert complete("syncline", "report", "x.log", "by") == ["plain,bystanders"]
    # The shell completes names of files by itself.
    assert complete("syncline", "report", "x") == ["file,x"]
    assert complete("syncline", "help", "byst") == ["plain,bystanders"]
    assert complete("syncline", "report", "--format", "j") == ["plain,json"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_a_script_of_it(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(ok("completion", shell))
    assert f"_SYNCLINE_COMPLETE={shell}_complete" in script.read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", script], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("")
    words = f"""
        cd {tmp_path}; export PATH={BIN}:$PATH
        eval "$(syncline completion bash)"
        COMP_WORDS=(syncline report x.log byst) COMP_CWORD=3 COMP_LINE='syncline report x.log byst'
        _syncline_completion syncline byst x.log
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "bystanders\n"


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes() -> None:
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    words = "syncline completion fish | source; complete --do-complete 'syncline report x.log byst'"
    done = subprocess.run(
        ["fish", "-c", words], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout.split() == ["bystanders"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_is_told_what_fits() -> None:
    """zsh completes only in a terminal, so its function is called with stand-ins for what the terminal's part does."""
    words = """
        compdef() { :; }
        compadd() { print -l -- "added ${(@P)@[-1]}"; }
        eval "$(syncline completion zsh)"
        words=(syncline report x.log byst); CURRENT=4
        _syncline_completion
    """
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["zsh", "-fc", words], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout == "added bystanders\n"


def test_a_filter_without_a_match_says_what_there_is() -> None:
    for command in (("report",), ("report", "files"), ("advise",)):
        done = run(command[0], SMALL4, *command[1:], "--comm", "nosuch")
        # The workload's threads are called wl, and sync 100 times.
        assert "no sync passes --comm; the threads that sync are, with their syncs: wl (100)" in done.stderr  # fmt: skip
    assert "does not record the processes" in run("report", SMALL4, "--pid", "1").stderr
    assert "note" not in run("report", SMALL4, "--comm", "wl").stderr


def test_the_progress_bar_moves_while_sql_runs(tmp_path: Path) -> None:
    """A bar that stands still at 100 % looks like a command that hangs."""
    import pty

    master, slave = pty.openpty()
    sql = "SELECT COUNT(*) FROM range(60000) a, range(60000) b WHERE a.range + b.range = 7"
    process = subprocess.Popen(
        [BIN / "syncline", "query", SMALL4, sql],
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(slave)
    seen, ends = b"", time.monotonic() + 60
    while seen.count(b"computing") < 5 and process.poll() is None and time.monotonic() < ends:
        seen += os.read(master, 4096)
    process.kill()
    process.communicate()
    os.close(master)
    frames = re.findall(r"computing(.*?)events", seen.decode(errors="replace"))
    # The bar itself, without the time beside it. The same each time would be a bar that stands.
    assert len({*frames}) >= 2


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_pages_are_well_formed() -> None:
    """`make lint` checks that they are those of the commands."""
    pages = sorted((ROOT / "man").glob("*.1"))
    assert {page.stem for page in pages} == {"syncline", *(f"syncline-{name}" for name in COMMANDS)}
    for page in pages:
        done = subprocess.run(
            ["man", "--warnings", "-l", page],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "MANWIDTH": "80", "PAGER": "cat"},
        )
        assert done.stderr == ""
        # Bold letters are printed twice, with a backspace between them.
        assert "SYNOPSIS" in re.sub(".\b", "", done.stdout)
