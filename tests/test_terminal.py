"""What people see on a terminal: no line is wider than it, figures stay, words are whole, and colours can be turned off."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tarfile
import termios
from pathlib import Path

import pytest
from rich.cells import cell_len
from syncline import terminal
from syncline.cli import errors
from syncline.render import answer
from syncline.render.table import render as render_table
from syncline.report import Column, Report, Table, catalogue

from tests.coretools import ROOT
from tests.test_commands import ok

BIN = Path(sys.executable).parent
DATA = ROOT / "tests" / "data"
SMALL4 = DATA / "thesis" / "small4.log"
RUN = DATA / "dynamic-events" / "run"
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def shown(*arguments: str | Path, columns: int = 80, **env: str) -> str:
    """What `syncline` writes to a terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "COLORTERM")}  # fmt: skip
    command = [str(BIN / "syncline"), *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=subprocess.PIPE,
        env={**kept, "TERM": "xterm-256color", **env},
    )
    os.close(slave)
    found = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError as error:
            assert error.errno == errno.EIO
            break
        found += part
    os.close(master)
    process.communicate()
    return found.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    return _COLOUR.sub("", text)


# What each report is asked for. At 80 columns these figures stay, whatever else is left out.
FIGURES = {
    "bystanders": ("kind", "comm", "ahead", "share", "bytes"),
    "neighbours": ("kind", "cost", "share", "high"),
    "phases": ("op", "phase", "time", "share", "max"),
    "files": ("path", "syncs", "max", "bytes"),
    "threads": ("comm", "syncs", "wall"),
    "journal": ("kind", "commits", "syncs", "total"),
    "device": ("dev", "comm", "bios", "bytes", "busy"),
    "empty": ("path", "empty", "syncs", "share"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_stay_at_80_columns(name: str, tmp_path: Path) -> None:
    run = RUN
    if name == "neighbours":
        # Nobody delayed the syncs of the other one.
        with tarfile.open(DATA / "known-truth" / "postgres.tar.xz") as packed:
            packed.extractall(tmp_path, filter="data")
        run = tmp_path / "postgres-neighbour"
    lines = plain(shown("report", run, name)).splitlines()
    assert max(map(len, lines)) <= 80
    ruler = next(number for number, line in enumerate(lines) if line.startswith("──"))
    words = " ".join(lines[:ruler]).split()
    assert [wanted for wanted in FIGURES[name] if wanted not in words] == []


def test_the_verdict_of_a_diff_stays() -> None:
    said = shown("diff", DATA / "thesis" / "small1.log", SMALL4)
    lines = plain(said).splitlines()
    (head,) = (line for line in lines if line.startswith("scope  metric"))
    assert {"base", "new", "change", "verdict"} <= {*head.split()}
    assert "\x1b[1;31mregression\x1b[0m" in said
    assert "\x1b[33mcan't tell\x1b[0m" in said
    # A path or a stack may be longer than the terminal.
    assert [line for line in lines if len(line) > 80 and len(line.split()) > 2 and not line.startswith("  stack")] == []  # fmt: skip


def test_every_report_names_columns_that_it_has() -> None:
    for name in catalogue.names():
        report = catalogue.load(name)
        assert report.narrow, name
        assert {*report.narrow} <= {column.name for column in report.columns}, name
        assert "Narrow:" not in report.description


def test_a_wide_column_that_does_not_fit_makes_room_for_a_narrow_one() -> None:
    columns = [Column("name", "text", ""), Column("first_ns", "ns", ""), Column("wide_bytes", "bytes", ""), Column("n", "count", "")]  # fmt: skip
    report = Report("x", "X: y.", "", tuple(columns), "", ("name", "wide_bytes", "n", "first_ns"))
    table = Table([one.name for one in columns], [("a" * 30, 1_230_000, 1023 * 1024**3, 5)])
    # 16 for the name, 2 between columns, 8 for the bytes ("1023 GiB"), 1 for the count.
    text = render_table(table, report, width=16 + 2 + 10 + 2 + 1)
    head = next(line for line in text.splitlines() if "name" in line)
    assert "first" not in head
    assert head.split()[-1] == "n"
    assert "left out because" in text


def test_a_column_that_repeats_another_is_left_out_first() -> None:
    columns = [Column("comm", "text", ""), Column("process", "text", ""), Column("cost_ns", "ns", "")]  # fmt: skip
    report = Report("x", "X: y.", "", tuple(columns), "")
    rows = [("postgres-writer-1", "postgres-writer-1", 10**6), ("dd", "dd", 2 * 10**6)]
    text = render_table(Table([one.name for one in columns], rows), report, width=30)
    assert re.search(r"^comm +cost$", text, re.M)


def test_a_path_keeps_its_name_and_a_tree_its_shape() -> None:
    """At 80 columns, many paths of one program begin and end alike, and differ in the last folders."""
    folder = "/mnt/data/postgres-neighbour/cluster"
    columns = [Column("path", "text", ""), Column("a", "count", "")]
    for size, path, wanted in (
        (21, f"{folder}/base/5/16396", "/mnt/…/base/5/16396"),
        (21, f"{folder}/base/5/2619", "…/cluster/base/5/2619"),
        (16, f"{folder}/postmaster.pid", "…/postmaster.pid"),
        # Its own name is too long.
        (16, f"{folder}/pg_wal/000000010000000000000001", "…000000000000001"),
        # No path.
        (16, "main;do_sync;write_all;fsync", "main;do…ll;fsync"),
        (16, "write_everything_and_sync_it_all", "write_e…c_it_all"),
    ):
        table = Table(["path", "a"], [(path, 1)])
        text = render_table(table, Report("x", "X: y.", "", tuple(columns), ""), width=size + 3)
        assert text.splitlines()[4].split()[0] == wanted

    # Whatever the room, what is shown of a path is its end, below at most its first folder.
    for path in (
        f"{folder}/base/5/16396",
        f"{folder}/pg_wal/000000010000000000000001",
        "/日本語/データ/ファイル.log",
        "/x" * 30,
    ):
        for size in range(16, 60):
            table = Table(["path", "a"], [(path, 1)])
            row = render_table(table, Report("x", "X: y.", "", tuple(columns), ""), width=size + 3)
            shown_path = row.splitlines()[4].rsplit(maxsplit=1)[0].rstrip()
            assert cell_len(shown_path) <= size
            first, _, end = shown_path.rpartition("…")
            assert path.endswith(end)
            assert first in ("", f"/{path.split('/')[1]}/")

    columns = [Column("frame", "tree", ""), Column("depth", "count", ""), Column("self_ns", "ns", "")]  # fmt: skip
    rows = [("CheckPointGuts", 0, 1), *((f"CheckPointReplicationOrigin{at}", at, 1) for at in range(1, 7))]  # fmt: skip
    report = Report("x", "X: y.", "", tuple(columns), "", ("frame", "self_ns"))
    text = render_table(Table([one.name for one in columns], rows), report, width=32)
    shown_rows = text.splitlines()[4 : 4 + len(rows)]
    assert [len(line) - len(line.lstrip()) for line in shown_rows] == [*range(7)]


def test_a_name_that_is_looked_up_stays_whole() -> None:
    columns = [Column("reason", "text", ""), Column("meaning", "prose", ""), Column("count", "count", "")]  # fmt: skip
    rows = [("completed_after_end", "bios that completed after the end of their request", 71)]
    report = Report("x", "X: y.", "", tuple(columns), "")
    text = render_table(Table([one.name for one in columns], rows), report, width=46)
    assert "completed_after_end" in text


def test_an_error_is_broken_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["syncline", "report", "/mnt/my data/run"])
    message = "cannot read /mnt/my data/run: it has 12.3 MiB that no command of Syncline can read"
    hint = "convert the log again: syncline convert LOG -o OUT.pftrace; or list what it holds"
    monkeypatch.setattr(errors.terminal, "width", lambda _stream=None: 42)
    errors.say(f"error: {message}", hint)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "error: cannot read /mnt/my data/run: it",
        "has 12.3 MiB that no command of Syncline",
        "can read",
        "hint: convert the log again:",
        "syncline convert LOG -o OUT.pftrace; or",
        "list what it holds",
    ]
    # The mark below a line of SQL is below its column.
    errors.say(f"error: SQL error: x\nLINE 1: {'SELECT ' * 8}\n{' ' * 50}^", lines=True)
    assert [len(line) for line in capsys.readouterr().err.splitlines()] == [19, 64, 51]
    # A pipe gets what is said, one line each.
    monkeypatch.setattr(errors.terminal, "width", lambda _stream=None: None)
    errors.say(f"error: {message}", hint)
    assert capsys.readouterr().err == f"error: {message}\nhint: {hint}\n"


def test_a_check_is_no_wider_than_the_terminal() -> None:
    log = DATA / "check" / "alice-no-folder-sync.strace.gz"
    lines = plain(shown("check", log, "--rules", "atomic-replace")).splitlines()
    # Only a path is longer.
    assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []
    after = lines[next(at for at, line in enumerate(lines) if "    mend   " in line) + 1]
    assert after.startswith(" " * 11 + "rename") or after.startswith(" " * 11 + "2026")


def test_words_are_whole_and_a_figure_keeps_its_unit() -> None:
    line = "  1. /data/file, postgres: waited 10.2 ms (5.5 %) in 3 syncs of 4 KiB"
    for room in range(20, 70):
        broken = terminal.wrapped(line, room)
        assert " ".join(part.strip() for part in broken) == line.strip()
        assert max(map(len, broken)) <= room
        for part in broken[1:]:
            assert not part.strip().startswith(("ms", "%", "KiB"))


def test_sentences_break_between_words() -> None:
    lines = plain(shown("report", RUN)).splitlines()
    whole = ok("report", RUN)
    words = {*whole.split()}
    assert {word for line in lines if not line.startswith("|") for word in line.split()} <= words
    # Only a word that is longer than the terminal makes a longer line.
    assert [line for line in lines if len(line) > 80] == []


def test_colours() -> None:
    said = shown("report", RUN)
    first = said.splitlines()[0]
    assert first.startswith("\x1b[1m")
    (bar,) = (line for line in said.splitlines() if plain(line).startswith("|"))
    # As many parts have a colour as have the name of a phase.
    assert bar.count("\x1b[0m") >= 3
    # The last place stays empty, because some terminals break a line that fills it.
    assert len(plain(bar)) == 79
    assert "48;5;" in bar
    assert "48;2;174;185;242" in shown("report", RUN, COLORTERM="truecolor")


def test_colours_can_be_turned_off_and_on() -> None:
    assert "\x1b" not in shown("report", RUN, NO_COLOR="1")
    assert "\x1b" not in shown("report", RUN, TERM="dumb")
    assert "\x1b" not in shown("report", RUN, "--color", "never")
    # An empty NO_COLOR does not count, and --color counts more than NO_COLOR.
    assert "\x1b" in shown("report", RUN, NO_COLOR="")
    assert "\x1b" in shown("report", RUN, "--color", "always", NO_COLOR="1")
    # A file has colours only if they are asked for.
    done = subprocess.run(
        [BIN / "syncline", "report", RUN, "journal"], capture_output=True, text=True, check=True
    )
    assert "\x1b" not in done.stdout + done.stderr


def test_colours_of_the_bar_keep_its_widths() -> None:
    phases = {"queue": 50, "device": 30, "residue": 20}
    colours = answer.phase_colours()
    terminal.use_colour("always")
    try:
        coloured = answer.bar(phases, 60, colours)
    finally:
        terminal.use_colour("never")
    assert plain(coloured) == answer.bar(phases, 60)
    # What nothing explains has no colour of a phase.
    assert coloured.count("\x1b[0m") == 2


def test_a_ruler_of_a_file_is_no_wider_than_a_terminal() -> None:
    for name in ("bystanders", "neighbours", "journal"):
        lines = ok("report", RUN, name).splitlines()
        (ruler,) = (line for line in lines if line.startswith("──"))
        assert len(ruler) <= 80


def test_a_report_without_rows_has_no_columns_to_leave_out() -> None:
    assert plain(shown("report", RUN, "failures")) == (
        "Failures: the syncs, sync calls and bios that ended with an error.\n\n"
        "No rows: none of 10 syncs and 37 bios is recorded as failed.\n"
    )


@pytest.mark.parametrize("arguments", [("help", "bystanders"), ("help", "report"), ("doctor",)])
def test_prose_is_no_wider_than_the_terminal(arguments: tuple[str, ...]) -> None:
    for line in plain(shown(*arguments)).splitlines():
        # Paths and commands stay whole, so that they can be copied.
        is_copied = len(line.rpartition(" ")[2]) > 50 or line.startswith("    syncline ")
        assert len(line) <= 80 or is_copied, line
