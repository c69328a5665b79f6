"""Unusual use of the command line: messages, exit codes and remaining files."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import duckdb
import pytest
from syncline.cli.group import cli

from tests.coretools import DATA, ROOT, recording
from tests.test_commands import BIN, SMALL1, fails, left, ok, run

LOSSY = str(DATA / "small4.log")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a log that has losses, converted to `t.pftrace` and to `t/`."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("t.pftrace", "t/"):
        ok("convert", "-q", LOSSY, "-o", f"{folder}/{name}")
    return folder


def query_fails(path: str | Path, sql: str) -> str:
    """Returns the error without the warnings before it."""
    done = run("query", path, sql)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "/syncline-" not in done.stderr
    return done.stderr[done.stderr.index("error: ") :]


# Inputs.


def zstd(data: bytes) -> bytes:
    """Returns a frame of raw blocks (RFC 8878), without a content size and with a wrong checksum."""
    block = (len(data) << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd" + b"\x04\x58" + block + data + b"\0\0\0\0"


DAMAGED = {
    "corrupt.gz": lambda log: gzip.compress(log)[:-8] + b"\0" * 8,
    "cut.zst": lambda log: zstd(log)[:900],
    "corrupt.zst": zstd,
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("to", ["pftrace", "csv", "folded", "tables"])
def test_a_damaged_file_leaves_no_output(name: str, to: str, tmp_path: Path) -> None:
    log = tmp_path / name
    log.write_bytes(DAMAGED[name](recording("small1.log")))
    out = tmp_path / "out"
    message = fails(3, "convert", log, "-o", f"{out}/" if to == "tables" else out, "--to", to)
    assert f"cannot read {log}: " in message
    assert "copy it again" in message
    assert left(tmp_path) == [name]


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    # Detecting the format must not consume the first bytes.
    command = f"{BIN}/syncline convert -q <(cat {shlex.quote(SMALL1)}) -o - --to csv"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == ok("convert", "-q", SMALL1, "-o", "-", "--to", "csv")


def test_empty_standard_input_is_refused() -> None:
    for arguments in (("report", "-"), ("convert", "-", "-o", "-", "--to", "csv")):
        assert "empty" in fails(3, *arguments, stdin=b"")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no /proc here")
def test_an_unreadable_file_is_named() -> None:
    # Reading at address 0 fails for root too.
    for arguments in (("report",), ("convert", "-o", "-", "--to", "csv")):
        assert "cannot read /proc/self/mem: input/output error" in fails(
            3, *arguments, "/proc/self/mem"
        )


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    log = tmp_path / "secret.log"
    log.write_bytes(recording("small1.log"))
    log.chmod(0)
    assert f"cannot read {log}: permission denied" in fails(3, "report", log)


def test_a_folder_of_logs_is_a_folder_of_runs(tmp_path: Path) -> None:
    raw = tmp_path / "raw logs"
    raw.mkdir()
    assert "empty folder" in fails(3, "report", raw)
    (raw / "notes.md").write_text("x")
    assert f"{raw} is a folder without runs" in fails(3, "report", raw)
    for name in ("small1.log", "small4.log"):
        (raw / name).write_bytes(recording(name))
    assert "the logs in it that are of one run" in fails(
        3, "convert", raw, "-o", tmp_path / "x.csv"
    )
    done = run("report", raw)
    # The two runs have 50 and 100 syncs.
    assert re.search(r"^150 syncs of \d+ files by 5 threads in 2 runs", done.stdout, re.M)
    assert f"warning: {raw}/notes.md is skipped: it is not a run" in done.stderr
    for command in ("inspect", "advise"):
        assert "150" in ok(command, raw)
    assert "150" in ok("query", raw, "SELECT COUNT(*) FROM syncline_sync")
    # A filter selects in each of them; a trace is already converted, and would not be filtered.
    assert "No sync passes the filter" in ok("report", raw, "--comm", "nosuch")
    ok("convert", raw / "small1.log", "-o", raw / "small1.pftrace")
    assert "small1.pftrace is already converted" in fails(3, "report", raw, "--comm", "wl")


def test_the_files_of_all_cpus_are_one_log_in_a_folder(tmp_path: Path) -> None:
    for name in ("small1.blktrace.0", "small1.blktrace.1", "uring.blktrace.0", "uring.blktrace.1"):
        shutil.copy(ROOT / "tests/data/blktrace" / name, tmp_path)
    command = fails(3, "report", tmp_path).partition("Type: ")[2]
    logs = command.partition(" in ")[2].partition(";")[0].split()
    assert logs == [f"{tmp_path}/small1.blktrace.0", f"{tmp_path}/uring.blktrace.0"]


def test_a_missing_table_makes_its_figures_unknown(made: Path, tmp_path: Path) -> None:
    for file in (made / "t").iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "syncline_call.parquet").unlink()
    done = run("report", tmp_path, "--format", "csv")
    # An unknown value is not 0, and a warning says so.
    assert "unmatched_calls,all,,count,," in done.stdout.splitlines()
    assert "tables of a run are missing" in done.stderr
    assert (
        "unmatched_calls,all,0.0,count,,"
        in ok("report", made / "t", "--format", "csv").splitlines()
    )
    (tmp_path / "syncline_sync.parquet").unlink()
    message = fails(3, "report", tmp_path)
    assert "syncline_sync.parquet is missing" in message
    assert (
        "the only tables of a run in it are bio, wait, phase, journal, write_wait, file_op, loss, mark, meta"
        in message
    )
    assert "convert LOG -o DIR/" in message


# Outputs.


def test_an_output_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    message = fails(2, "convert", SMALL1, "-o", tmp_path / "folder", "--to", "csv")
    assert str(tmp_path / "folder") in message
    assert left(tmp_path / "folder") == []


@pytest.mark.parametrize("inputs", [("a", "b"), ("b", "a")])
def test_an_output_must_not_be_an_input(inputs: tuple[str, str], tmp_path: Path) -> None:
    for name in inputs:
        (tmp_path / name).write_bytes(recording("small1.log"))
    names = [str(tmp_path / name) for name in inputs]
    assert "is an input" in fails(2, "convert", *names, "-o", tmp_path / "a", "--to", "csv")
    assert all((tmp_path / name).read_bytes() == recording("small1.log") for name in inputs)


def test_tables_cannot_be_written_to_standard_output() -> None:
    for form in ("tables", "parquet"):
        assert "needs a file" in fails(2, "convert", SMALL1, "-o", "-", "--to", form)


# Options.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("frob",), ["frob", "--help"]),
        (("report",), ["INPUT"]),
        (("convert", SMALL1), ["--output"]),
        (("report", SMALL1, "thread"), ["Did you mean threads?", "--list"]),
        (("report", SMALL1, "--format", "xml"), ["'xml'", "'md'"]),
        (("report", SMALL1, "--time-unit", "h"), ["'h'", "'us'"]),
        (("report", SMALL1, "--window", "-5s"), ["--window", "-5s", "500ms"]),
        (("report", SMALL1, "--engine", "sqlite"), ["'sqlite'", "duckdb", "embedded"]),
        (("report", SMALL1, "--max-loss", "-1"), ["'-1'", "0.1%"]),
        (("report", SMALL1, "--max-loss", "101%"), ["'101%'", "0.1%"]),
        (("convert", SMALL1, "-o", "x.csv", "--weight", "lines"), ["'lines'", "'bytes'"]),
    ],
)
def test_a_wrong_option_is_named_with_the_valid_ones(
    arguments: tuple[str, ...], words: list[str]
) -> None:
    message = fails(2, *arguments)
    assert [word for word in words if word not in message] == []


def options_of(command: click.Command, *names: str) -> list[tuple[tuple[str, ...], click.Option]]:
    """Returns all options of a command and of the commands below it, each with the names of its command."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        found = [(name, command.get_command(context, name)) for name in command.list_commands(context)]  # fmt: skip
        return [one for name, child in found if child for one in options_of(child, *names, name)]
    return [(names, one) for one in command.params if isinstance(one, click.Option)]


# What options name that is no file.
NO_FILES = {"NAME", "FORMAT", "TEXT", "SQL", "N", "N|N%", "N,...", "KIND,...", "FINDING", "FINDING,...", "PATTERN", "GLOB", "SECONDS", "SECONDS,...", "MASTER", "MAJOR,MINOR", "COLUMN", "ID", "REGEX"}  # fmt: skip


@pytest.mark.parametrize("command", [("whatif",), ("model", "predict", "--parameters", "m.toml"), ("model", "fit", "--parameters", "m.toml")])  # fmt: skip
def test_a_second_input_gets_a_hint(command: tuple[str, ...]) -> None:
    assert "hint: name one INPUT:" in fails(2, *command, "a.log", "b.log")


def test_other_extra_arguments_get_no_such_hint() -> None:
    assert "name one INPUT" not in fails(2, "doctor", "a.log", "b.log")


def test_the_next_option_is_not_taken_as_a_file(tmp_path: Path) -> None:
    checked = 0
    for names, option in options_of(cli):
        name, wanted = option.opts[0], option.metavar
        if wanted is None or wanted in NO_FILES:
            continue
        message = fails(2, *names, name, "--each", cwd=tmp_path)
        assert f"{name} has no value: '--each' follows. Write: {name} {wanted}" in message
        checked += 1
    assert checked > 30
    assert left(tmp_path) == []
    # A file may have such a name.
    ok("convert", SMALL1, "-o", "./--each.csv", cwd=tmp_path)
    assert left(tmp_path) == ["--each.csv"]


@pytest.mark.parametrize(
    ("option", "name", "ending"),
    [
        (("--weight", "bytes"), "x.csv", ".folded"),
        (("--weight", "count"), "x.pftrace", ".folded"),
        (("--by", "file"), "x.parquet", ".perf"),
        (("--by", "stack"), "t/", ".perf"),
        (("--marks", "marks.csv"), "x.jsonl", "DIR/"),
        (("--window", "1s"), "x.events.jsonl", ".jsonl"),
    ],
)
def test_an_option_without_effect_on_the_output_is_refused(
    option: tuple[str, ...], name: str, ending: str, tmp_path: Path
) -> None:
    out = f"{tmp_path}/{name}"
    message = fails(2, "convert", SMALL1, "-o", out, *option)
    assert f"{option[0]} has no effect" in message
    assert ending in message
    assert left(tmp_path) == []
    # --to overrides the ending.
    if option[0] in ("--weight", "--by"):
        ok("convert", SMALL1, "-o", out.rstrip("/"), "--to", "folded", *option)


def test_input_options_are_refused_for_converted_inputs(made: Path, tmp_path: Path) -> None:
    for option in (("--max-loss", "0"), ("--window", "1s"), ("--pid-is", "process")):
        for path in (made / "t.pftrace", made / "t"):
            message = fails(2, "report", path, *option)
            assert f"{option[0]} would have no effect" in message
    assert "--time-unit" in fails(2, "query", made / "t", "SELECT 1", "--time-unit", "us")
    # With --marks, --time-unit is the unit of the marks.
    (tmp_path / "marks.csv").write_text("48060000,a\n")
    rows = ok(
        *("report", made / "t", "marks", "--marks", tmp_path / "marks.csv"),
        *("--time-unit", "us", "--format", "csv"),
    )
    assert rows.splitlines()[1].startswith("1,a,48060000000,")


# Losses.


def test_a_loss_has_the_same_total_everywhere(made: Path, tmp_path: Path) -> None:
    # The log has 100 bio_submit and 85 bio_complete events.
    warning = "15 of 100 bios: never_completed: submitted bios"
    assert f"warning: {warning}" in run("convert", LOSSY, "-o", tmp_path / "x.csv").stderr
    for path in (LOSSY, made / "t.pftrace", made / "t"):
        assert f"warning: {warning}" in run("report", path).stdout


LINES = [
    "10 7 a fsync",
    "20 7 a start id 1 start 0 end 9 datasync 0 path /a",
    "30 7 a bio_add_folio id 1 bio 0x1 start 0 len 4096",
    "40 7 a bio_submit id 1 bio 0x1",
    "50 0 s bio_complete bio 0x1",
    "60 7 a exit id 1 ret 0",
    "70 7 a fsync_exit ret 0",
]


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        # Two requests, each with all of the lines. One line of the second request is missing.
        ({"+start": None}, "1 of 2 requests: start_missing"),
        ({"+exit": None}, "1 of 2 requests: end_missing"),
        ({"+bio_submit": None}, "1 of 2 bios: never_submitted"),
        ({"+bio_complete": None}, "1 of 2 bios: never_completed"),
        # A line of the second request occurs twice: three starts for two requests.
        ({"+start": 2}, "1 of 3 starts: duplicate_start"),
        ({"+exit": 2}, "1 of 3 ends: duplicate_end"),
        ({"+bio_complete": 2}, "1 of 3 completions: unmatched_complete"),
        ({"+fsync_exit": 2}, "1 of 3 exits: unmatched_exit"),
        ({"?": 1}, "1 of 15 lines: unparsed_line"),
        ({"Lost 3 events": 1}, "3 in addition to 14 events: lost_by_tracer"),
    ],
)
def test_each_loss_is_reported_with_its_total(change: dict, warning: str, tmp_path: Path) -> None:
    (word, times), *_ = change.items()
    lines = list(LINES)
    for line in LINES:
        time, rest = line.split(" ", 1)
        line = f"{int(time) + 100} {rest}".replace("id 1", "id 2").replace("0x1", "0x2")
        kind = rest.split()[2]
        lines += [line] * (1 if word != f"+{kind}" else times or 0)
    if not word.startswith("+"):
        lines.append(word)
    log = tmp_path / "a.log"
    log.write_text("\n".join(lines) + "\n")
    assert f"warning: {warning}" in run("convert", log, "-o", tmp_path / "x.pftrace").stderr
    assert f"warning: {warning}" in run("report", tmp_path / "x.pftrace").stdout
    assert f"warning: {warning}" in run("report", log).stdout


def test_max_loss_is_a_share_of_events_and_losses_together(tmp_path: Path) -> None:
    # 585 events and 15 losses: the share is 2.5 %.
    for limit, code in (("14", 4), ("15", 0), ("2.49%", 4), ("2.5%", 0)):
        done = run("convert", LOSSY, "-o", tmp_path / "x.csv", "--max-loss", limit)
        assert done.returncode == code, limit
    assert "more than --max-loss 2.49% allows" in fails(4, "report", LOSSY, "--max-loss", "2.49%")


# Queries.


MISSPELT = [
    ("SELECT * FROM syncline_snyc", "Did you mean syncline_sync?"),
    ("SELECT * FROM syncs", "Did you mean syncline_sync?"),
    ("SELECT * FROM nothing_such", "The tables are: syncline_bio, syncline_call,"),
    ("SELECT syscal_ns FROM syncline_sync", "Did you mean syscall_ns?"),
    ("SELECT s.syscal_ns FROM syncline_sync AS s", "Did you mean syscall_ns?"),
    (
        "SELECT zzz FROM syncline_mark",
        "The columns of syncline_mark are: mark_id, ts_ns, dur_ns, name, run.",
    ),
    ("SELECT nonesuch(1)", "percentile(x, p)"),
    ("SELEC 1", "The tables are: "),
]


@pytest.mark.parametrize(("sql", "hint"), MISSPELT)
@pytest.mark.parametrize("input_", ["log", "t.pftrace", "t"])
def test_misspelt_sql_gets_a_hint(made: Path, input_: str, sql: str, hint: str) -> None:
    message = query_fails(LOSSY if input_ == "log" else made / input_, sql)
    error, _, hinted = message.partition("\nhint: ")
    assert hint in hinted
    assert error.startswith("error: SQL error: ")
    assert str(made) not in error
    # The engine's own suggestions are removed, because the hint replaces them.
    assert "Did you mean" not in error
    assert "Candidate" not in error


def test_an_sql_error_shows_its_location(made: Path) -> None:
    sql = "SELECT path,\n  pth FROM syncline_sync"
    assert query_fails(made / "t.pftrace", sql).startswith(
        "error: SQL error: no such column: pth\n  line 2, column 3:\n      pth FROM syncline_sync\n      ^\n"
    )
    assert "\nLINE 2:   pth FROM syncline_sync\n          ^^^\n" in query_fails(made / "t", sql)


def test_only_a_trace_has_the_tables_of_perfetto(made: Path) -> None:
    assert "Did you mean slice?" in query_fails(made / "t.pftrace", "SELECT * FROM slicee")
    assert "exist only on a trace" in query_fails(made / "t", "SELECT * FROM slice")
    ok("query", made / "t.pftrace", "SELECT COUNT(*) FROM slice")


def test_both_engines_have_percentile(made: Path) -> None:
    # The 25th percentile of 0, 10, 20, 30, 40 is 10. The 90th is at index 0.9 * 4 = 3.6, between 30 and 40.
    sql = (
        "SELECT percentile(x, 25) AS a, percentile(x, 90) AS b FROM (SELECT 0 AS x UNION ALL"
        " SELECT 10 UNION ALL SELECT 20 UNION ALL SELECT 30 UNION ALL SELECT 40)"
    )
    for path in (made / "t.pftrace", made / "t", LOSSY):
        line = ok("query", path, sql, "--format", "csv").splitlines()[1]
        assert [float(value) for value in line.split(",")] == pytest.approx([10, 36])


def test_only_tables_with_few_rows_are_copied(tmp_path: Path) -> None:
    # Calls at equal distances need next to no bytes in Parquet.
    for calls, copied in ((100, "1"), (60_000, "0")):
        log = tmp_path / f"{calls}.strace"
        log.write_text(
            "".join(
                f"9 {1764000000 + i / 1000:.6f} fsync(3</data/wal>) = 0 <0.000100>\n"
                for i in range(calls)
            )
        )
        tables = f"{tmp_path / str(calls)}/"
        ok("convert", log, "-o", tables)
        assert sum(file.stat().st_size for file in Path(tables).iterdir()) < 100_000
        sql = "SELECT COUNT(*) FROM duckdb_tables() WHERE table_name = '_syncline_file_sync'"
        sql = f"SELECT ({sql}) AS copied, (SELECT COUNT(*) FROM syncline_sync) AS calls"
        assert ok("query", tables, sql, "--format", "csv").split() == [
            "copied,calls",
            f"{copied},{calls}",
        ]


@pytest.mark.parametrize(
    ("rows", "column", "value"),
    [
        # All are the same, so the file is small.
        (40_000, "stack", "repeat('main;', 1600)"),
        # A query that does not read it works.
        (1, "tid", "'main/7'"),
        (1, "id", "-1"),
    ],
)
def test_rows_that_cannot_be_copied_are_read_by_each_query(
    rows: int, column: str, value: str, tmp_path: Path
) -> None:
    whole, changed = tmp_path / "whole.parquet", tmp_path / "changed.parquet"
    ok("convert", SMALL1, "-o", whole)
    duckdb.sql(
        f"COPY (SELECT * REPLACE ({value} AS {column}) FROM '{whole}', range({rows})) TO '{changed}'"
    )
    assert changed.stat().st_size < 1_000_000
    sql = "SELECT COUNT(*) AS syncs, (SELECT COUNT(*) FROM duckdb_tables() WHERE table_name = '_syncline_file_sync') AS copied FROM syncline_sync"
    assert ok("query", whole, sql, "--format", "csv").split() == ["syncs,copied", "50,1"]
    have = ok("query", changed, sql, "--format", "csv").split()
    assert have == ["syncs,copied", f"{50 * rows},0"]


@pytest.mark.parametrize(
    "comment",
    ["-- slow ones", "--slow", "--format", "---", "--\t1 = 1", "--=== title ===", "--x=1 y"],
)
def test_sql_may_begin_with_a_comment(comment: str) -> None:
    sql = "SELECT COUNT(*) AS syncs FROM syncline_sync"
    counted = ok("query", SMALL1, sql, "--format", "csv")
    sql = f"{comment}\n{sql}"
    for arguments in ((SMALL1, sql, "--format", "csv"), ("--format", "csv", SMALL1, sql)):
        assert ok("query", *arguments) == counted


def test_only_the_sql_may_begin_with_a_comment(tmp_path: Path) -> None:
    log = tmp_path / "--my log\n.log"
    shutil.copy(SMALL1, log)
    sql = "SELECT COUNT(*) AS syncs FROM syncline_sync"
    counted = ok("query", SMALL1, sql, "--format", "csv")
    assert ok("query", "--format", "csv", "--", log.name, sql, cwd=tmp_path) == counted
    # The value of an option, and an option with a value.
    for option in (("--path", "--a\nb"), ("--path=--a\nb",)):
        done = run("query", SMALL1, *option, sql, "--format", "csv")
        assert done.stdout.split() == ["syncs", "0"]
    done = run("query", SMALL1, "--format csv", sql)
    assert "Did you mean '--format'?" in done.stderr


def test_the_help_of_query_names_every_table(made: Path) -> None:
    text = ok("query", "--help")
    for table in (
        "sync",
        "bio",
        "call",
        "wait",
        "phase",
        "journal",
        "write_wait",
        "file_op",
        "stack",
        "parallel",
        "loss",
        "mark",
        "meta",
    ):
        assert f"syncline_{table}" in text
        for path in (made / "t.pftrace", made / "t"):
            ok("query", path, f"SELECT COUNT(*) FROM syncline_{table}")
    # A folder holds eleven tables. The engine derives the others.
    assert left(made / "t") == [
        f"syncline_{table}.parquet"
        for table in (
            "bio",
            "call",
            "file_op",
            "journal",
            "loss",
            "mark",
            "meta",
            "phase",
            "sync",
            "wait",
            "write_wait",
        )
    ]


# Marks. The recording lasts from 41753514022 to 41950647413 ns.


def marks(folder: Path, text: str) -> Path:
    file = folder / "marks.csv"
    file.write_bytes(text.encode())
    return file


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("41753514,a\n41800000,b\n", "multiplied by 1000 "),
        ("41.76,a\n41.8,b\n", "multiplied by 1000000000 "),
        ("41760000000000,a\n41800000000000,b\n", "divided by 1000 "),
        ("time_ms,name\n41760000,a\n", "divided by 1000 "),
        ("1763000000000000000,a\n", None),
        ("5,a,7\n41760000000,b\n", None),
    ],
)
def test_marks_outside_the_log_are_warned_of(text: str, change: str | None, tmp_path: Path) -> None:
    line = 2 if text.startswith("time") else 1
    file = marks(tmp_path, text)
    trace = f"{tmp_path}/t.pftrace"
    commands = [("convert", "-q", SMALL1, "-o", trace)]
    if text.startswith(("41753514,", "1763")):
        # One place warns, for all commands. So a time that another unit explains is tried with each, and one that none explains.
        commands += [
            ("report", SMALL1),
            ("report", trace),
            ("report", SMALL1, "--engine", "embedded"),
        ]
    for arguments in commands:
        stderr = run(*arguments, "--marks", file).stderr
        assert f"warning: {file}:{line}: the mark 'a'" in stderr, arguments
        assert "outside the log, which spans 41753514022 to 41950647413 ns" in stderr
        assert "CLOCK_BOOTTIME" in stderr
        assert (
            (f"{change}they would be inside" in stderr)
            if change
            else "would be inside" not in stderr
        )


@pytest.mark.parametrize(
    "text",
    [
        "41753514022,first\n41950647413,last\n",
        # These marks begin before the first sync and end after it.
        "41700000000,early\n41800000000,b\n",
        "41700000000,early,100000000\n",
        "41700000000,early\n",
        "time_us,name\n41760000,a\n",
        "\ufefftime,name\n41760000000,a\n",
    ],
)
def test_marks_that_touch_the_log_are_not_warned_of(text: str, tmp_path: Path) -> None:
    done = run("report", SMALL1, "--marks", marks(tmp_path, text))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_request_counts_in_each_overlapping_mark(tmp_path: Path) -> None:
    file = marks(
        tmp_path,
        "name,duration_ms,time_ms\nall,1000,41000\nall again,1000,41000\nnone,1,41000\n",
    )
    ok("convert", "-q", SMALL1, "-o", tmp_path / "t.pftrace")
    for path in (SMALL1, tmp_path / "t.pftrace"):
        rows = ok("report", path, "marks", "--marks", file, "--format", "csv").splitlines()
        assert [row.split(",")[1::3][:2] for row in rows[1:]] == [
            ["all", "50"],
            ["all again", "50"],
            ["none", "0"],
        ]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (None, "no such file"),
        ("5,a\ninf,b\n", ":2: not a mark: inf,b"),
        ("99999999999999999999,a\n", ":1: a time beyond"),
        ("41753514022\n", ":1: not a mark: 41753514022"),
        ("time,what\n5,a\n", "unknown column 'what'"),
        ("PAR1\0\x01", ":1: unknown column"),
    ],
)
def test_a_file_without_valid_marks_is_refused(text: str | None, word: str, tmp_path: Path) -> None:
    file = tmp_path / "nope.csv" if text is None else marks(tmp_path, text)
    for arguments in (("report", SMALL1), ("convert", SMALL1, "-o", tmp_path / "x.pftrace")):
        message = fails(3, *arguments, "--marks", file)
        assert word in message
        assert str(file) in message
        assert "\nhint: " in message
        assert "Errno" not in message
    assert not (tmp_path / "x.pftrace").exists()


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    for name in ("small1.log", "parallel4.log"):
        (tmp_path / "plain.log").write_bytes(recording(name))
        (tmp_path / "marked.log").write_bytes(b"\xef\xbb\xbf" + recording(name))
        tables = [
            ok("convert", "-q", tmp_path / f"{form}.log", "-o", "-", "--to", "csv")
            for form in ("plain", "marked")
        ]
        assert tables[0] == tables[1]


def test_a_new_output_folder_is_removed_after_a_failure(tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(gzip.compress(recording("small1.log"))[:-300])
    fails(3, "convert", tmp_path / "cut.gz", "-o", f"{tmp_path}/new/")
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    fails(3, "convert", tmp_path / "cut.gz", "-o", f"{tmp_path}/old/")
    assert (tmp_path / "old").is_dir()


def test_the_summary_counts_requests_and_not_events(tmp_path: Path) -> None:
    buffer = DATA.parent / "ftrace" / "small4.trace.txt.gz"
    # The kernel recorded each start twice: sync_start and ext4_sync_file_enter.
    assert "(100 sync requests)" in run("convert", buffer, "-o", tmp_path / "x.csv").stderr
    # Two logs are read as one, as `convert` reads them, and their requests add up: 50 and 100.
    logs = (DATA / "small1.log", DATA / "small4.log")
    assert "150 syncs of" in ok("report", *logs)


def test_a_log_that_begins_with_an_empty_line_is_not_a_trace(tmp_path: Path) -> None:
    """A trace begins with the same byte, followed by a length, which may be any letter."""
    for name, begin in {
        "small1.log": b"\n",
        "small4.log": b"\n\n",
        "parallel4.log": b"\r\n",
    }.items():
        (tmp_path / "x.log").write_bytes(begin + recording(name))
        table = ok("convert", "-q", tmp_path / "x.log", "-o", "-", "--to", "csv")
        (tmp_path / "x.log").write_bytes(recording(name))
        assert table == ok("convert", "-q", tmp_path / "x.log", "-o", "-", "--to", "csv")
    (tmp_path / "x.json").write_bytes(b'\n{"type": "map", "data": {"@a": 1}}\n')
    assert "no event in 2 lines" in fails(
        3, "convert", tmp_path / "x.json", "-o", tmp_path / "x.csv"
    )
    ok("convert", "-q", DATA / "small1.log", "-o", tmp_path / "x.pftrace")
    # It is read as a trace. Two of them cannot be joined.
    ok("convert", "-q", tmp_path / "x.pftrace", "-o", tmp_path / "x.csv")
    both = [tmp_path / "x.pftrace", tmp_path / "x.pftrace"]
    message = fails(3, "convert", *both, "-o", tmp_path / "y.csv")
    assert "x.pftrace is already converted" in message
