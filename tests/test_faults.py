"""Every command under faults: signals, full disks, closed outputs, endless queries, hostile names, damaged files.

After each fault there is no half-written output and no temporary file, the exit code is the documented one, and
stderr has one clear message.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import io
import json
import os
import pty
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syncline import _core, interruptible, render, scratch
from syncline.comparison import baseline, policy
from syncline.engine import EngineError, SqlError
from syncline.engine.columns import ColumnsEngine, open_columns
from syncline.errors import InputError
from syncline.inputs import Reading
from syncline.printable import json_text, printable
from syncline.recordings import read_recording, strace_clocks
from syncline.render import markdown
from syncline.report import Table, sql_root

from tests.coretools import DATA, recording
from tests.signals import use_default_signals

MAIN = [sys.executable, "-c", "from syncline.cli import main; main()"]
SMALL1 = str(DATA / "small1.log")
SMALL4 = str(DATA / "small4.log")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
ENDLESS_QUERY = (
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"
    " SELECT 'n' AS key, COUNT(*) AS value FROM n"
)

# Each command that writes to standard output, with its exit code if all is well. `OUT` commands write a file too.
PRINTING = {
    "convert": (["convert", SMALL1, "-o", "-", "--to", "csv"], 0),
    "inspect": (["inspect", SMALL1], 0),
    "report": (["report", SMALL1], 0),
    "report html": (["report", SMALL1, "--html", "-"], 0),
    "report list": (["report", "--list"], 0),
    "query": (["query", SMALL1, "SELECT * FROM syncline_sync", "--format", "json"], 0),
    "flamegraph": (["flamegraph", SMALL1], 0),
    "diff": (["diff", SMALL1, SMALL4, "--by", "none"], 1),
    "baseline": (["baseline", "save", SMALL1, "-o", "-"], 0),
    "doctor": (["doctor"], 0),
    "help": (["--help"], 0),
}
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


class Command:
    """A running command with a folder for its output and one for its temporary files."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        before: Callable[[], None] | None = None,
        **streams: Any,
    ) -> None:
        self.out, self.temporary = folder / "out", folder / "temporary"
        for made in (self.out, self.temporary):
            made.mkdir(exist_ok=True)

        def prepare() -> None:
            use_default_signals()
            if before:
                before()

        environment = {**os.environ, "TMPDIR": str(self.temporary)}
        if before is limit_files:
            # Python 3.11 keeps a compiled module even if it could write only its beginning. Then no later command could import it.
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        self.process = subprocess.Popen(
            [*MAIN, *arguments],
            cwd=self.out,
            env=environment,
            preexec_fn=prepare,
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **streams,
            },
        )

    def wait_for_handlers(self) -> None:
        """Waits until the command catches signals: before, they end the start of Python with messages of its own."""
        status = Path(f"/proc/{self.process.pid}/status")
        while (
            not int(status.read_text().partition("SigCgt:")[2].split()[0], 16) >> signal.SIGTERM - 1
            & 1
        ):
            time.sleep(0.002)

    def end(self, number: int | None = None) -> tuple[int, str]:
        """Sends a signal, and returns the exit code and stderr."""
        if number is not None:
            self.process.send_signal(number)
        try:
            _, errors = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, (errors or b"").decode()

    def left(self) -> list[str]:
        """Returns what the command left in its two folders."""
        return sorted(
            path.name for folder in (self.out, self.temporary) for path in folder.iterdir()
        )


def message(errors: str) -> list[str]:
    """Returns the lines of stderr that are neither warnings nor notes."""
    assert "Traceback" not in errors, errors
    return [line for line in errors.splitlines() if not line.startswith(("warning: ", "note: "))]


# --- signals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["query log", "query table", "query trace", "diff", "baseline"])
def test_a_signal_ends_an_endless_query(command: str, tmp_path: Path) -> None:
    sql = tmp_path / "endless.sql"
    sql.write_text(ENDLESS_QUERY)
    if command == "query table":
        _core.convert([SMALL1], f"{tmp_path}/t.parquet")
    arguments, number = {
        "query log": (["query", SMALL1, ENDLESS], signal.SIGINT),
        "query table": (["query", f"{tmp_path}/t.parquet", ENDLESS], signal.SIGTERM),
        "query trace": (["query", SMALL1, ENDLESS, "--engine", "embedded"], signal.SIGTERM),
        "diff": (["diff", SMALL1, SMALL4, "--query", str(sql), "-o", "diff.json"], signal.SIGHUP),
        "baseline": (
            ["baseline", "save", SMALL1, "--query", str(sql), "-o", "b.json"],
            signal.SIGINT,
        ),
    }[command]
    running = Command(tmp_path, *arguments)
    # The query has begun when the process has used the CPU for longer than everything before it takes.
    busy = Path(f"/proc/{running.process.pid}/stat")
    while int(busy.read_text().rpartition(")")[2].split()[11]) < 1.5 * os.sysconf("SC_CLK_TCK"):
        time.sleep(0.05)
    code, errors = running.end(number)
    assert code == 128 + number
    assert len(message(errors)) == 1
    assert running.left() == []


COMMANDS_WITH_FILES = {
    "convert": ["convert", str(DATA / "bg.log.gz"), "-o", "out.pftrace"],
    "tables": ["convert", SMALL4, "-o", "out.parquet"],
    "report html": ["report", SMALL1, "--html", "out.html"],
    "report": ["report", SMALL4],
    "flamegraph": ["flamegraph", SMALL1, "-o", "out.svg"],
    "diff": ["diff", SMALL1, SMALL4, "--by", "none", "-o", "out.json"],
    "baseline": ["baseline", "save", SMALL1, "-o", "out.json"],
    "inspect": ["inspect", SMALL4],
}


@pytest.mark.parametrize("command", COMMANDS_WITH_FILES)
def test_a_signal_at_any_moment_leaves_nothing(command: str, tmp_path: Path) -> None:
    """The signal arrives at a moment that a seed chooses, while the command starts, reads, computes, writes or ends."""
    chosen = random.Random(command)
    for turn in range(2):
        number = chosen.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        folder = tmp_path / str(turn)
        folder.mkdir()
        running = Command(folder, *COMMANDS_WITH_FILES[command])
        running.wait_for_handlers()
        time.sleep(chosen.uniform(0, 0.8))
        code, errors = running.end(number)
        left = running.left()
        if code == 128 + number:
            assert len(message(errors)) == 1, errors
        else:
            # The command was faster, or its output was already complete.
            assert code == (1 if command == "diff" else 0), errors
        assert left in ([], [COMMANDS_WITH_FILES[command][-1]]), (code, left)


def test_a_killed_command_leaves_no_output_under_its_name(tmp_path: Path) -> None:
    running = Command(tmp_path, "convert", "-", "-o", "out.pftrace", stdin=subprocess.PIPE)
    assert running.process.stdin
    running.process.stdin.write(recording("bg.log.gz"))
    running.process.stdin.flush()
    while not running.left():
        time.sleep(0.01)
    running.process.kill()
    running.process.wait()
    assert not (running.out / "out.pftrace").exists()


@pytest.mark.parametrize("fault", ["no writer", "no reader"])
def test_a_signal_ends_the_wait_for_a_pipe(fault: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    arguments = {
        "no writer": ["report", f"{tmp_path}/pipe"],
        "no reader": ["convert", str(DATA / "bg.log.gz"), "-o", "-", "--to", "events.jsonl"],
    }[fault]
    reader, writer = os.pipe()
    running = Command(tmp_path, *arguments, stdout=writer)
    os.close(writer)
    if fault == "no reader":
        # Until the pipe is full.
        while (
            int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), sys.byteorder) < 1 << 16
        ):
            time.sleep(0.05)
    else:
        while not running.left():
            time.sleep(0.05)
    time.sleep(0.3)
    code, errors = running.end(signal.SIGTERM)
    os.close(reader)
    assert code == 143
    assert message(errors)[0].startswith("terminated")
    assert running.left() == []


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """`nohup` ignores SIGHUP."""
    running = Command(
        tmp_path, "report", SMALL1, before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    running.wait_for_handlers()
    code, errors = running.end(signal.SIGHUP)
    assert (code, message(errors)) == (0, [])


def test_interruptible_work_is_cancelled_and_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    assert interruptible.call(lambda: 7) == 7
    with pytest.raises(KeyError):
        interruptible.call(lambda: {}["x"])
    ended = []

    def work(stop: list[bool]) -> None:
        while not stop:
            time.sleep(0.01)
        ended.append(True)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        stop: list[bool] = []
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            interruptible.call(lambda: work(stop), cancel=lambda: stop.append(True))
        assert (ended, interruptible.was_abandoned()) == ([True], False)
        monkeypatch.setattr(interruptible, "_GRACE_S", 0.1)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        never: list[bool] = []
        with pytest.raises(KeyboardInterrupt):
            interruptible.call(lambda: work(never))
        assert interruptible.was_abandoned()
        never.append(True)
    finally:
        signal.signal(signal.SIGALRM, before)
        interruptible._abandoned.clear()


def test_a_signal_whose_exception_was_lost_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler may raise in a destructor, where Python ignores the exception."""
    monkeypatch.setattr(interruptible, "_stops", [])
    monkeypatch.setattr(interruptible, "_POLL_S", 0.01)
    interruptible.remember(KeyboardInterrupt())
    stop: list[bool] = []

    def work() -> None:
        while not stop:
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        interruptible.call(work, cancel=lambda: stop.append(True))


def test_temporary_folders_are_removed_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    left = scratch.create()
    (left / "file").write_text("x")
    with scratch.folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
    assert [*tmp_path.iterdir()] == [left]
    scratch.remove_all()
    assert [*tmp_path.iterdir()] == []


# --- outputs that cannot be written ------------------------------------------------------------------


@needs_full
@pytest.mark.parametrize("command", PRINTING)
def test_standard_output_is_full_or_closed_or_has_no_reader(command: str, tmp_path: Path) -> None:
    arguments, fine = PRINTING[command]
    with Path("/dev/full").open("wb") as full:
        code, errors = Command(tmp_path, *arguments, stdout=full).end()
    assert code == 2, errors
    (line,) = message(errors)
    assert line.lower().startswith("error: cannot write standard output: no space left on device")

    code, errors = Command(tmp_path, *arguments, before=lambda: os.close(1)).end()
    assert code == 2, errors
    (line,) = message(errors)
    assert line.startswith("error: cannot write standard output: ")

    reader, writer = os.pipe()
    os.close(reader)
    running = Command(tmp_path, *arguments, stdout=writer)
    os.close(writer)
    code, errors = running.end()
    assert code == fine, errors
    assert not [line for line in message(errors) if line.startswith(("error", "hint"))]
    assert running.left() == []


@pytest.mark.parametrize("command", ["convert", "report", "diff"])
def test_standard_error_or_input_is_closed(command: str, tmp_path: Path) -> None:
    """The next file that is opened must not get the number of a closed stream."""
    arguments, fine = PRINTING[command]
    if command == "convert":
        arguments = ["convert", SMALL1, "-o", "out.csv"]
    running = Command(tmp_path, *arguments, before=lambda: os.close(2))
    assert running.end()[0] == fine
    if command == "convert":
        _core.convert([SMALL1], f"{tmp_path}/want.csv")
        assert (running.out / "out.csv").read_bytes() == (tmp_path / "want.csv").read_bytes()
    assert Command(tmp_path, *arguments, before=lambda: os.close(0)).end()[0] == fine


def test_an_empty_standard_input_is_bad_input_even_if_it_is_closed(tmp_path: Path) -> None:
    code, errors = Command(tmp_path, "report", "-", before=lambda: os.close(0)).end()
    assert code == 3
    assert message(errors)[0] == "error: standard input is empty"


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


@pytest.mark.parametrize(
    "command", ["convert", "tables", "report html", "report", "flamegraph", "diff", "baseline"]
)
def test_a_full_disk_leaves_the_old_output(command: str, tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk: the first 2000 bytes are written."""
    arguments = COMMANDS_WITH_FILES[command]
    old = [arguments[-1]] if command != "report" else []
    (tmp_path / "out").mkdir()
    for name in old:
        (tmp_path / "out" / name).write_text("old")
    running = Command(tmp_path, *arguments, before=limit_files)
    code, errors = running.end()
    assert code == 2, errors
    assert message(errors)[0].startswith("error: ")
    assert os.strerror(errno.EFBIG).lower() in errors.lower()
    assert running.left() == old
    assert all((running.out / name).read_text() == "old" for name in old)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_full_disk_is_named_by_record_and_keeps_the_log(tmp_path: Path) -> None:
    arguments = ["record", "-o", "run", "--route", "strace", "--", "sync"]
    running = Command(tmp_path, *arguments, before=limit_files)
    code, errors = running.end()
    assert code == 2, errors
    error, hint = message(errors)[-2:]
    assert error == f"error: cannot write to run: {os.strerror(errno.EFBIG).lower()}"
    assert "on another disk" in hint
    assert not (running.out / "run" / "manifest.json").exists()


# --- SQL of someone else -------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    _core.convert([SMALL1], f"{tmp_path}/[a] *b.parquet")
    return tmp_path / "[a] *b.parquet"


def opened(path: Path, **options: Any) -> ColumnsEngine:
    return open_columns(path, sql=sql_root() / "tables" / "duckdb", **options)


def test_sql_reads_its_input_and_no_other_file(table: Path, tmp_path: Path) -> None:
    before = table.read_bytes()
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    other = tmp_path / "other"
    refused = [
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"CREATE TABLE t AS FROM read_blob('{secret}')",
        f"COPY (SELECT 1) TO '{other}'",
        # DuckDB allows this: the input is a file that it may use.
        f"COPY (SELECT 1) TO '{table}' (USE_TMP_FILE false)",
        f"EXPLAIN ANALYZE COPY (SELECT 1) TO '{table}' (USE_TMP_FILE false)",
        f"EXPLAIN /* */ ANALYZE COPY (SELECT 1) TO '{table}' (USE_TMP_FILE false)",
        f"EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{table}' (USE_TMP_FILE false)",
        f"PREPARE p AS COPY (SELECT 1) TO '{table}' (USE_TMP_FILE false)",
        f"SELECT 1; COPY (SELECT 1) TO '{table}' (USE_TMP_FILE false)",
        f"EXPORT DATABASE '{other}'",
        f"IMPORT DATABASE '{tmp_path}'",
        f"ATTACH '{other}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        f"LOAD '{other}'",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        f"SET profiling_output = '{other}'",
        f"PRAGMA profiling_output = '{other}'",
        f"PRAGMA log_query_path = '{other}'",
        f"CALL enable_logging('QueryLog', storage = 'file', storage_path = '{other}')",
        "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')",
    ]
    with opened(table) as engine:
        names = sorted(path.name for path in tmp_path.iterdir())
        for sql in refused:
            with pytest.raises(EngineError) as caught:
                engine.query(sql)
            assert str(secret) not in str(getattr(caught.value, "rows", ""))
        # Names of the program are not tables.
        with pytest.raises(SqlError, match="does not exist"):
            engine.query("SELECT * FROM refused")
        assert engine.query("SELECT COUNT(*) FROM syncline_sync").rows == [(50,)]
        assert engine.query("EXPLAIN SELECT 1").rows
        engine.query("CREATE TABLE mine AS SELECT 1 AS x; INSERT INTO mine VALUES (2)")
        assert engine.query("SELECT SUM(x) FROM mine").rows == [(3,)]
        assert engine.query("PRAGMA table_info('mine')").rows
    assert table.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_large_query_may_use_temporary_files(table: Path) -> None:
    sql = "SELECT COUNT(*), MAX(x) FROM (SELECT i::VARCHAR || repeat('x', 90) AS x, row_number() OVER (ORDER BY hash(i)) AS n FROM range(700000) t(i))"
    with opened(table, memory_limit=60 << 20) as engine:
        assert engine.query(sql).rows[0][0] == 700_000


def test_files_are_allowed_with_the_option(table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    with opened(table, allow_files=True) as engine:
        engine.query(f"COPY (SELECT 1 AS a) TO '{other}'")
        assert engine.query(f"SELECT a FROM read_csv('{other}')").rows == [(1,)]
    code, errors = Command(
        tmp_path, "query", str(table), f"SELECT * FROM read_csv('{other}')"
    ).end()
    assert code == 2
    assert "--allow-files" in message(errors)[-1]
    running = Command(
        tmp_path, "query", str(table), f"SELECT * FROM read_csv('{other}')", "--allow-files"
    )
    assert running.end()[0] == 0


def test_the_embedded_engine_has_no_files(tmp_path: Path) -> None:
    """SQLite's ATTACH and VACUUM INTO would create a file."""
    for sql in (
        f"ATTACH '{tmp_path}/a.db' AS a; CREATE TABLE a.t AS SELECT 1 AS x",
        f"VACUUM INTO '{tmp_path}/b.db'",
    ):
        code, errors = Command(tmp_path, "query", SMALL1, sql, "--engine", "embedded").end()
        assert code == 2, errors
    assert not list(tmp_path.rglob("*.db"))


# --- names of someone else ----------------------------------------------------------------------

HOSTILE = "/d/\x1b]0;x\x07\x1b[31m\x9b2J\u202eabc\u2066\r|<b>\\`*[x](y)_z_ 数"


def test_only_text_for_people_is_escaped() -> None:
    assert printable("a\x1bb\nc\u202e\udcff数 é") == "a\\x1bb\\nc\\u202e\\xff数 é"
    assert printable("a\nb\x9b", keep="\n") == "a\nb\\x9b"
    value = {"name": HOSTILE, "tag": "\U000e0041"}
    assert json.loads(json_text(value, indent=1)) == value
    assert json_text(value).isprintable()


def test_csv_in_a_file_is_exactly_the_data() -> None:
    rows = [(HOSTILE, 1), ("two\nlines", None), ('"quoted", \r\n', 2)]
    text = render.exporter("csv")(Table(["na\x1bme", "n"], rows), None)
    read = [*csv.reader(io.StringIO(text, newline=""))]
    assert read == [["na\x1bme", "n"], *([a, "" if b is None else str(b)] for a, b in rows)]


@pytest.mark.parametrize("form", ["table", "md", "json"])
def test_formats_for_people_hold_no_control_character(form: str) -> None:
    text = render.exporter(form)(Table(["na\x1bme"], [(HOSTILE,), ("two\nlines",)]), None)
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "数" in text
    both = render.preface(form, [f"lost in {HOSTILE}"])
    assert all(char.isprintable() or char == "\n" for part in both for char in part)


def test_markdown_shows_names_as_they_are() -> None:
    assert markdown.escaped("![x](http://y) a_b _c_ &lt; ~~d~~ <b>") == (
        "!\\[x\\](http://y) a_b \\_c\\_ &amp;lt; \\~\\~d\\~\\~ &lt;b>"
    )


def hostile_log(folder: Path) -> Path:
    log = folder / "hostile\x1b[31m.log"
    log.write_bytes(
        recording("small1.log").replace(b"/run/mnt", HOSTILE.encode().replace(b"\r", b""))
        + b"41 559 \x1b[5m odd\n"
    )
    return log


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """Returns what a command prints, with stdout and stderr on a terminal."""
    master, slave = pty.openpty()
    running = Command(folder, *arguments, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:
            break
        if not part:
            break
        shown += part
    running.process.wait(60)
    os.close(master)
    return shown.decode()


@pytest.mark.parametrize(
    "command",
    [
        "report",
        "report csv",
        "query",
        "inspect",
        "inspect json",
        "convert",
        "diff",
        "flamegraph",
        "missing",
    ],
)
def test_a_terminal_gets_no_control_character(command: str, tmp_path: Path) -> None:
    log = str(hostile_log(tmp_path))
    arguments = {
        "report": ["report", log, "files", "losses"],
        "report csv": ["report", log, "files", "--format", "csv"],
        "query": ["query", log, "SELECT path FROM syncline_sync", "--format", "json"],
        "inspect": ["inspect", log],
        "inspect json": ["inspect", log, "--format", "json"],
        "convert": ["convert", log, "-o", "-", "--to", "csv"],
        "diff": ["diff", log, SMALL1, "--all"],
        "flamegraph": ["flamegraph", log, "--by", "file"],
        "missing": ["report", log, "no\x1b[31m"],
    }[command]
    shown = on_a_terminal(tmp_path, *arguments)
    assert len(shown) > 100
    # The bar of a slow machine, which is removed before anything else is printed.
    shown = re.sub(
        r"\x1b\[\?25l.*?\x1b\[\?25h(?:\r?\n?(?:\x1b\[1A)?\x1b\[2K)*", "", shown, flags=re.DOTALL
    )
    # Our own styles: bold, dim, reset, and the colours of warnings, verdicts and the bar. The hostile log has another red.
    shown = re.sub(r"\x1b\[(?:0|1|2|1;2|33|32|1;31|48;5;\d+|\d+;48;5;\d+)m", "", shown)
    odd = {char for char in shown if not char.isprintable() and char not in "\r\n\t"}
    assert odd == set(), (odd, shown[:3000])
    assert "\\x1b" in shown or "\\u001b" in shown


def test_binary_output_does_not_reach_a_terminal(tmp_path: Path) -> None:
    shown = on_a_terminal(tmp_path, "convert", SMALL1, "-o", "-", "--to", "pftrace")
    assert "is binary, and standard output is a terminal" in shown


def test_a_name_that_is_not_utf8_is_one_message(tmp_path: Path) -> None:
    log = tmp_path / os.fsdecode(b"a\xff.log")
    log.write_bytes(recording("small1.log"))
    code, errors = Command(tmp_path, "report", str(log)).end()
    assert code == 2
    assert "a\\xff.log is not UTF-8" in message(errors)[0]


# --- damaged and hostile files --------------------------------------------------------------------------

DEEP = 5000
TOML = {
    "nested arrays": f"a = {'[' * DEEP}{']' * DEEP}",
    "nested tables": f"[{'.'.join('a' * DEEP)}]",
    "nested inline tables": "a = " + "{a = " * DEEP + "1" + "}" * DEEP,
    "number": f"[diff]\nmin_runs = {'9' * 5000}",
    "nan": "[diff]\nconfidence = nan",
    "infinite": "[diff]\ntolerance = inf",
    "type": "[diff]\nmetrics = 3",
    "rules": "[diff]\nrule = [3]",
    "date": "[diff]\ntolerance = 1979-05-27",
    "repeated key": "[diff]\nmin_runs = 1\nmin_runs = 2",
    "not TOML": "\x00",
}


@pytest.mark.parametrize("fault", TOML)
def test_a_damaged_policy_is_one_message(fault: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(TOML[fault])
    with pytest.raises(policy.PolicyError) as caught:
        policy.read(file)
    assert str(file) in caught.value.message


def test_a_policy_that_is_no_text_file_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "latin1").write_bytes(b"a = '\xe9'")
    for file in (tmp_path, tmp_path / "absent", tmp_path / "latin1"):
        with pytest.raises(policy.PolicyError):
            policy.read(file)


def odd_values() -> list[str]:
    """Returns JSON texts that are wrong in most places."""
    nested = "[" * DEEP + "]" * DEEP
    return ["null", "true", "-1", "1e400", "NaN", "1.5", "9" * 30, "9" * 5000, '"x"', '"\\ud800"', "[]", "{}", '{"a": 1, "a": 2}', "[[1, 2, 3]]", nested]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the path of each value in parsed JSON, at most two of each list."""
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 2)):
            found += places(value[index], (*path, index))
    return found


def replaced(value: Any, path: tuple[Any, ...], mark: str) -> Any:
    if not path:
        return mark
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], mark)
    return copy


def mutants(text: str, count: int) -> list[bytes]:
    """Returns JSON with one value replaced, and cut-off JSON. A seed chooses."""
    chosen, whole = random.Random(count), json.loads(text)
    where = places(whole)
    found = [b"", b"\xff\xfe", text.encode("utf-16"), text[: len(text) // 2].encode()]
    for _ in range(count):
        changed = json.dumps(replaced(whole, chosen.choice(where), "@@"))
        found.append(changed.replace('"@@"', chosen.choice(odd_values())).encode())
    return found


RUN = DATA.parent / "several-recorders" / "run"


@pytest.mark.parametrize("name", ["manifest.json", "tasks.json", "symbols.json", "devices.json"])
def test_a_damaged_run_directory_is_read_or_refused(name: str, tmp_path: Path) -> None:
    for file in RUN.iterdir():
        if file.suffix == ".json":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    text = (tmp_path / name).read_text() if (tmp_path / name).exists() else '[[1, 2, "f"]]'
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    for one in manifest["inputs"]:
        (tmp_path / one["file"]).write_bytes(
            b"".join(recording("small1.log").splitlines(True)[:30])
        )
    refused = 0
    for mutant in mutants(text, 150):
        (tmp_path / name).write_bytes(mutant)
        try:
            read_recording(str(tmp_path))
            strace_clocks(str(tmp_path / manifest["inputs"][0]["file"]))
            Reading(source="bpftrace").convert([str(tmp_path)], f"{tmp_path}/out.csv")
        except (InputError, _core.CoreError) as error:
            refused += 1
            assert str(tmp_path) in str(error), (mutant[:300], error)
    assert refused > 10


def test_a_run_directory_names_no_other_files(tmp_path: Path) -> None:
    for name in ("../secret", "/etc/passwd", "a/../../b"):
        (tmp_path / "manifest.json").write_text(
            json.dumps({"inputs": [{"file": name, "source": "bpftrace"}]})
        )
        with pytest.raises(InputError, match="is not in this folder"):
            read_recording(str(tmp_path))


def test_a_damaged_baseline_is_compared_or_refused(tmp_path: Path) -> None:
    from syncline.comparison.compare import compare
    from syncline.comparison.output import render as render_diff
    from syncline.comparison.policy import Policy

    from tests.difftools import collect

    side = collect("base", [SMALL1], Reading())
    file = tmp_path / "base.json"
    baseline.save(side.runs, [], str(file))
    refused = loaded = 0
    for mutant in mutants(file.read_text(), 150):
        file.write_bytes(mutant)
        try:
            runs = baseline.load(str(file))
        except InputError as error:
            refused += 1
            assert str(file) in error.message
            continue
        loaded += 1
        if loaded > 8:
            continue
        damaged = collect("new", [str(file)], Reading())
        for form in ("table", "json", "md", "junit"):
            render_diff(
                form, compare(side, damaged, Policy(), [], seed=1, by=["file"]), everything=True
            )
        assert runs
    assert refused > 75


def test_deeply_nested_sql_is_an_error(table: Path) -> None:
    deep = "(" * 20_000 + "1" + ")" * 20_000
    with opened(table) as engine, pytest.raises(EngineError):
        engine.query(f"SELECT {deep}")
