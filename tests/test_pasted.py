"""Texts as terminals, mails, wikis and Markdown pages change them: they give what the text before gives."""

from __future__ import annotations

import gzip
import html
import quopri
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests.coretools import convert, core

DATA = Path(__file__).parent / "data"
OBJECTS = "bpftrace-json/stock-0.27.json.gz"
TEXTS = [
    "thesis/small4.log",
    "thesis/rename.log",
    "strace/small4.log",
    "strace/odd-yy.log",
    "strace/odd-stacks.log",
    "strace/odd-terminal.log",
    "strace/odd-relative.log",
    "ftrace/small1.trace.txt.gz",
    "ftrace/rename.report.txt.gz",
    "perf/stacks.txt.gz",
    "blktrace/rename.blkparse.txt.gz",
    "function-graph/xfs.txt",
]


def padded(line: str) -> str:
    return line.ljust(160)


def in_a_code_block(line: str) -> str:
    return f"    {line}" if line else ""


def after_a_tab(line: str) -> str:
    return f"\t{line}" if line else ""


def of_another_system(line: str) -> str:
    return f"{line} \t\r"


def quoted(line: str) -> str:
    return f"> {line}" if line else ">"


def escaped(line: str) -> str:
    return html.escape(line)


def escaped_in_a_code_block(line: str) -> str:
    return padded(in_a_code_block(escaped(line)))


def coloured(line: str) -> str:
    return f"\x1b[1;32m{line}\x1b[0m"


def with_hard_spaces(line: str) -> str:
    return line.replace(" ", "\xc2\xa0")


def after_the_time_of_the_kernel(line: str) -> str:
    return f"[  512.100000] {line}"


def of_a_system_log(line: str) -> str:
    return f"Nov  8 09:00:00 db1 trace[12]: {line}"


def of_a_journal(line: str) -> str:
    return f"2026-11-28T09:00:00.123456+0000 db1 trace[12]: {line}"


CHANGES = [
    padded,
    in_a_code_block,
    after_a_tab,
    of_another_system,
    quoted,
    escaped,
    escaped_in_a_code_block,
    coloured,
    with_hard_spaces,
    after_the_time_of_the_kernel,
    of_a_system_log,
    of_a_journal,
]


def numbered(text: str) -> str:
    """As `cat -n` writes it."""
    return "".join(f"{at:6}\t{line}\n" for at, line in enumerate(text.splitlines(), 1))


def numbered_by_grep(text: str) -> str:
    return "".join(f"{at}:{line}\n" for at, line in enumerate(text.splitlines(), 1))


def as_a_list(text: str) -> str:
    return "".join(f"{at}. {line}\n" for at, line in enumerate(text.splitlines(), 1))


def little(text: str) -> str:
    """As PowerShell writes it."""
    lines = ("\ufeff" + text.replace("\n", "\r\n")).encode("utf-16-le")
    return lines.decode("latin-1")


def big(text: str) -> str:
    return ("\ufeff" + text).encode("utf-16-be").decode("latin-1")


def by_mail(text: str) -> str:
    return quopri.encodestring(text.encode("latin-1")).decode("ascii")


def found_by_grep(text: str) -> str:
    return text.replace("sync", "\x1b[01;31m\x1b[Ksync\x1b[m\x1b[K")


# These change the text as a whole, and not line by line.
WHOLE = [numbered, numbered_by_grep, as_a_list, little, big, by_mail, found_by_grep]
LETTER = """\
Hi all,

we see slow syncs on our database since the upgrade.
The kernel is 6.1 and the disk an NVMe.

Here is what I recorded:

"""
END = "\nThanks,\nX\n"


def after_a_letter(text: str) -> str:
    return f"{LETTER}{text}{END}"


def indented_after_a_letter(text: str) -> str:
    return after_a_letter("".join(f"    {line}\n" for line in text.splitlines()))


def answered(text: str) -> str:
    return after_a_letter("On Mon, X wrote:\n" + "".join(f"> {x}\n" for x in text.splitlines()))


def by_tail(text: str) -> str:
    return f"==> trace.txt <==\n{text}"


def cut_out(text: str) -> str:
    return f"[...]\n{text}[...]\n"


# How many lines are of other text.
AMONG_TEXT = {
    after_a_letter: 6,
    indented_after_a_letter: 6,
    answered: 7,
    by_tail: 1,
    cut_out: 2,
}


def text_of(name: str) -> str:
    data = (DATA / name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode("latin-1")


def rows(folder: Path, text: str, **options: Any) -> dict[str, list[dict[str, Any]]]:
    found = core(folder, text.encode("latin-1"), **options)
    del found["meta"]
    for loss in found["loss"]:
        del loss["example"]
    return found


@cache
def rows_before(name: str, folder: Path) -> dict[str, list[dict[str, Any]]]:
    return rows(folder, text_of(name))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", TEXTS)
def test_a_pasted_text_gives_the_tables_of_the_text(
    name: str,
    change: Callable[[str], str],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    text = "".join(f"{change(line)}\n" for line in text_of(name).splitlines())
    assert rows(tmp_path, text) == rows_before(name, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("change", WHOLE, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_was_changed_as_a_whole_gives_its_tables(
    name: str,
    change: Callable[[str], str],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if change is by_mail and "blkparse" in name:
        pytest.skip("its lines are too short to be broken, except for a summary at its end")
    found = rows(tmp_path, change(text_of(name)))
    assert found == rows_before(name, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("change", AMONG_TEXT, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", TEXTS)
def test_a_log_among_other_text_gives_its_durations(
    name: str,
    change: Callable[[str], str],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The other text is counted as unparsed, line by line."""
    before = rows_before(name, tmp_path_factory.getbasetemp())
    after = rows(tmp_path, change(text_of(name)))
    for table in ("sync", "bio", "call"):
        assert len(after[table]) == len(before[table])
        assert [row["dur_ns"] for row in after[table]] == [row["dur_ns"] for row in before[table]]
    counts = [
        sum(row["count"] for row in tables["loss"] if row["reason"] == "unparsed_line")
        for tables in (before, after)
    ]
    assert counts[1] > counts[0]
    assert counts[1] - counts[0] <= AMONG_TEXT[change] + 1


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_pasted_log_of_objects_gives_the_tables_of_the_log(
    change: Callable[[str], str], tmp_path: Path
) -> None:
    text = text_of("thesis/small1.log")
    log = convert(tmp_path, text.encode("latin-1"), "low.events.jsonl").read_text("latin-1")
    for objects in (log, gzip.decompress((DATA / OBJECTS).read_bytes()).decode("latin-1")):
        (tmp_path / "as").mkdir(exist_ok=True)
        expected = rows(tmp_path / "as", objects)
        changed = "".join(f"{change(line)}\n" for line in objects.split("\n"))
        assert rows(tmp_path, changed) == expected


STRACE = """\
262   1700000000.527240 openat(AT_FDCWD, "/srv/a", O_WRONLY|O_CREAT, 0644) = 3 <0.000020>
262   1700000000.527631 fsync(3) = 0 <0.001060>
262   1700000000.627285 fsync(3 <unfinished ...>
263   1700000000.627300 write(4, "x", 1) = 1 <0.000010>
262   1700000000.629345 <... fsync resumed>) = 0 <0.002060>
"""


def durations(folder: Path, text: str, **options: Any) -> list[tuple[str | None, int | None]]:
    return [(row["path"], row["dur_ns"]) for row in core(folder, text.encode(), **options)["sync"]]


@pytest.mark.parametrize(
    "before", ["<unfinished ...>", "<0.001060>", "<... fsync resumed>) = 0 <0.002060>"]
)
def test_blanks_after_a_single_line_hide_nothing(before: str, tmp_path: Path) -> None:
    text = STRACE.replace(before, f"{before}   ")
    assert text != STRACE
    assert durations(tmp_path, text) == [("/srv/a", 1_060_000), ("/srv/a", 2_060_000)]


def test_the_format_may_be_given(tmp_path: Path) -> None:
    text = "".join(f"    {line}\n" for line in STRACE.splitlines())
    assert durations(tmp_path, text, source="strace") == [
        ("/srv/a", 1_060_000),
        ("/srv/a", 2_060_000),
    ]


def test_files_of_descriptors_may_be_escaped(tmp_path: Path) -> None:
    text = "7 1700000000.5 fsync(3&lt;/d/a&amp;lt;b&gt;) = 0 &lt;0.001060>\n"
    assert durations(tmp_path, text) == [("/d/a&lt;b", 1_060_000)]


@pytest.mark.parametrize("path", ["/d/a&lt;b&gt;", "/d/&amp;", "/d/a "])
def test_a_path_of_a_clean_log_is_not_changed(path: str, tmp_path: Path) -> None:
    text = f"100 7 wl start id 1 start 0 end 9 datasync 0 path {path}\n200 7 wl exit id 1 ret 0\n"
    (row,) = core(tmp_path, text.encode())["sync"]
    assert row["path"] == path
    text = STRACE.replace("/srv/a", path)
    assert [path_of for path_of, _ in durations(tmp_path, text)] == [path, path]


def test_a_path_is_not_padded_where_most_lines_are(tmp_path: Path) -> None:
    text = "100 7 wl start id 1 start 0 end 9 datasync 0 path /d/a\n200 7 wl exit id 1 ret 0\n"
    (row,) = core(tmp_path, "".join(f"{line:80}\n" for line in text.splitlines()).encode())["sync"]
    assert (row["path"], row["ret"]) == ("/d/a", 0)


def test_an_indented_pid_is_no_relative_time(tmp_path: Path) -> None:
    text = "    262 fsync(3) = 0\n    1263 fsync(3) = 0\n"
    rows_of = core(tmp_path, text.encode())["sync"]
    assert [row["tid"] for row in rows_of] == [262, 1263]
    # As `strace -r --relative-timestamps=s` prints it.
    text = "     0 fsync(3) = 0\n    10 fsync(3) = 0\n"
    rows_of = core(tmp_path, text.encode())["sync"]
    assert [row["ts_ns"] for row in rows_of] == [0, 10_000_000_000]


@pytest.mark.parametrize(
    "first",
    [
        "```",
        "$ cat trace",
        "capturing trace... done\nTRACE:",
        "#Maj,Mn CPU   SeqNo     Seconds     PID  Evt Typ Sector   +Len Description",
        "7240:       syscalls:sys_enter_fsync: fd: 0x00000003",
    ],
)
@pytest.mark.parametrize(
    "name", ["strace/small4.log", "ftrace/rename.report.txt.gz", "blktrace/rename.blkparse.txt.gz"]
)
def test_a_log_after_lines_of_other_text_is_recognized(
    name: str, first: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The other lines are unparsed, unless they are comments of the format, and hide no event."""
    before = rows_before(name, tmp_path_factory.getbasetemp())
    after = rows(tmp_path, f"{first}\n{text_of(name)}")
    for table in ("bio", "call"):
        assert len(after[table]) == len(before[table])
    durations_of = [[row["dur_ns"] for row in tables["bio"]] for tables in (before, after)]
    assert durations_of[0] == durations_of[1]


def test_a_log_after_much_other_text_is_in_no_format(tmp_path: Path) -> None:
    with pytest.raises(_core.CoreError, match="in no format"):
        core(tmp_path, ("some text\n" * 50 + STRACE).encode())


# A text of each format whose numbers have points.
WITH_POINTS = [
    "strace/small4.log",
    "strace/odd-relative.log",
    "ftrace/small1.trace.txt.gz",
    "ftrace/rename.report.txt.gz",
    "perf/stacks.txt.gz",
    "perf-trace/calls.txt",
    "perf-trace/postgres.txt",
    "babeltrace/lttng.txt.gz",
    "blktrace/rename.blkparse.txt.gz",
    "function-graph/ext4.txt",
    "function-graph/xfs.txt",
    "slower/libbpf-ext4.txt",
    "slower/bcc-btrfs-by-source.txt",
    "syncsnoop/libbpf.txt",
    "biosnoop/bcc-by-source.txt",
    "biosnoop/libbpf-Q.txt",
]
# A number with a part, such as a time of day, but no version and no name of a file.
_NUMBER = re.compile(r"(?<![\w.,/])(\d+(?::\d\d:\d\d)?)\.(\d{2,9})(?![\w.])")


@pytest.mark.parametrize("name", WITH_POINTS)
def test_decimal_commas_are_refused_by_name(name: str, tmp_path: Path) -> None:
    """No number is read without its part, and what the refusal says to type gives the text that the format can read."""
    text = text_of(name)
    commas = _NUMBER.sub(r"\1,\2", text)
    assert commas != text
    file, mended = tmp_path / "FILE", tmp_path / "NEW"
    file.write_text(commas)
    with pytest.raises(_core.CoreError, match="numbers have commas where the format has") as said:
        _core.convert([str(file)], f"{tmp_path}/refused/")
    command = re.search("`(.*)`", said.value.args[1])
    assert command is not None
    subprocess.run(command[1], shell=True, check=True, cwd=tmp_path)
    assert rows(tmp_path, mended.read_text()) == rows(tmp_path, text)


# A time of `strace -r` counts from the line before.
@pytest.mark.parametrize("name", [name for name in WITH_POINTS if "relative" not in name])
def test_a_number_with_a_comma_among_others_is_counted(name: str, tmp_path: Path) -> None:
    """A line whose numbers have commas is no event, and nothing gets another time or length by it."""
    lines = text_of(name).splitlines(keepends=True)
    numbered = [at for at, line in enumerate(lines) if _NUMBER.search(line)]
    at = numbered[len(numbered) // 2]
    lines[at] = _NUMBER.sub(r"\1,\2", lines[at])
    whole, changed = rows(tmp_path, text_of(name)), rows(tmp_path, "".join(lines))
    unparsed = [
        sum(loss["count"] for loss in tables["loss"] if loss["reason"] == "unparsed_line")
        for tables in (whole, changed)
    ]
    assert unparsed[1] > unparsed[0]
    for table in ("sync", "call", "bio"):
        known = {(row["ts_ns"], row["dur_ns"]) for row in whole[table]}
        # Without its submit, a bio is known by its request alone, which begins later.
        kept = [row for row in changed[table] if not row.get("is_request")]
        found = {(row["ts_ns"], row["dur_ns"]) for row in kept}
        assert {one for one in found if one[1] is not None} <= known
