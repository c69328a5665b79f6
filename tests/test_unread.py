"""Texts that hold no event: each kind is named, with what it answers and what records the rest, and no log is taken for one."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from syncline import _core
from syncline.unread import KINDS, explained, stacks
from syncline.unread.texts import kind_of

from tests.coretools import ROOT
from tests.test_commands import fails, run
from tools import unread_page

DATA = ROOT / "tests" / "data"
HERE = DATA / "unread"
OF_FILE = dict(line.split("\t") for line in (HERE / "kinds.tsv").read_text().splitlines())
MAX_BYTES = 1 << 16


@pytest.mark.parametrize("name", OF_FILE)
def test_each_kind_is_named(name: str) -> None:
    kind = kind_of((HERE / name).read_bytes())
    assert kind is not None
    assert OF_FILE[name] in kind.what


def test_each_text_and_each_kind_has_an_example() -> None:
    assert {path.name for path in HERE.glob("*.txt")} == set(OF_FILE)
    shown = {kind_of((HERE / name).read_bytes()) for name in OF_FILE}
    assert shown == set(KINDS)


@pytest.mark.parametrize("name", ["iostat-x.txt", "bpftrace-histogram.txt", "hung_task.txt"])
def test_commands_refuse_by_name(name: str) -> None:
    kind = kind_of((HERE / name).read_bytes())
    assert kind is not None
    for command in ("report", "inspect"):
        said = fails(3, command, str(HERE / name))
        assert f"hint: record the single events instead while syncs are slow: `{kind.record}`" in (
            said
        )
        assert "--from" not in said
    error = json.loads(run("report", str(HERE / name), "--json").stderr)["error"]
    assert error["code"] == 3
    assert error["message"].startswith(str(HERE / name))
    assert kind.record in error["hint"]


def test_a_text_of_standard_input_is_named() -> None:
    text = (HERE / "vmstat.txt").read_bytes()
    said = fails(3, "report", "-", stdin=text)
    assert "it is the output of vmstat. It says how much the machine read" in said


def test_a_text_of_an_archive_is_named(tmp_path: Path) -> None:
    packed = tmp_path / "x.gz"
    packed.write_bytes(gzip.compress((HERE / "etcd.txt").read_bytes()))
    assert "it is etcd's log of slow syncs" in fails(3, "report", str(packed))


def quoted(text: str) -> str:
    return "".join(f"> {line}\n" for line in text.splitlines())


def of_a_web_page(text: str) -> str:
    return text.replace("  ", "\xa0 ").replace(">", "&gt;").replace("<", "&lt;")


def in_colours(text: str) -> str:
    return "".join(f"\x1b[1m{line}\x1b[0m\n" for line in text.splitlines())


def with_line_ends_of_windows(text: str) -> str:
    return text.replace("\n", "\r\n")


@pytest.mark.parametrize(
    "change",
    [quoted, of_a_web_page, in_colours, with_line_ends_of_windows],
    ids=lambda x: x.__name__,
)
@pytest.mark.parametrize("name", OF_FILE)
def test_a_pasted_text_is_named_too(name: str, change) -> None:  # type: ignore[no-untyped-def]
    text = (HERE / name).read_text()
    assert kind_of(change(text).encode()) is kind_of(text.encode())


def test_a_text_in_utf16_is_named_too() -> None:
    text = (HERE / "iotop.txt").read_text()
    assert kind_of(text.encode("utf-16")) is kind_of(text.encode())


def beginnings(folder: Path) -> list[tuple[Path, bytes]]:
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or "unread" in path.parts:
            continue
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            try:
                data = gzip.decompress(data)
            except (OSError, EOFError):
                continue
        found.append((path, data[:MAX_BYTES]))
    return found


# Of tests/data/pasted, which holds what Syncline refuses too.
REFUSED = {
    "fsyncsnoop.txt",
    "bpftrace_hist.txt",
    "sysdig.txt",
    "hung_task.txt",
    "strace_c.txt",
}


def test_no_log_is_taken_for_another_text() -> None:
    """A log may end with maps or quote a tool, but it begins as no other text does."""
    formats = set()
    for path, head in beginnings(DATA):
        if path.parent.name == "pasted" and path.name in REFUSED:
            assert kind_of(head) is not None, path
            continue
        first = b"".join(head.splitlines(keepends=True)[:3])
        kind = kind_of(first)
        assert kind is None, (path, kind)
        try:
            formats.add(_core.detect_format(str(path)))
        except _core.CoreError:
            continue
    assert len(formats - {None}) >= 8


def test_a_log_without_syncs_is_not_named_by_what_its_program_prints(tmp_path: Path) -> None:
    log = tmp_path / "x.strace"
    log.write_text(
        "7 1700000000.5 getpid() = 7 <0.000010>\n"
        "mytest: (groupid=0, jobs=1): err= 0: pid=7\n"
        "7 1700000000.6 getpid() = 7 <0.000010>\n"
    )
    assert "fio" not in fails(3, "report", str(log))


@pytest.mark.parametrize("name", OF_FILE)
def test_a_text_that_is_cut_anywhere_is_no_error(name: str) -> None:
    """A part of a text is named as the whole is, or not at all."""
    data = (HERE / name).read_bytes()
    whole = kind_of(data)
    for end in range(0, len(data), 7):
        assert kind_of(data[:end]) in (None, whole)
        explained(data[:end])
        explained(data[end:])
        explained(data[:end] + b"\x00\xff\x1b[" + data[end:])


def test_a_long_line_takes_no_time() -> None:
    for text in (b"a " * 40_000, b"Device " * 10_000, b"1) " + b"|" * 60_000, b"@x[" * 20_000):
        assert kind_of(text) is None


def test_each_kind_says_all_in_few_words() -> None:
    for kind in KINDS:
        for text in (kind.what, kind.answers, kind.lacks):
            assert text
            assert not text.endswith(".")
            assert "|" not in text
        assert len(f"{kind.what} {kind.answers} {kind.lacks}".split()) < 60


def test_the_page_has_each_kind() -> None:
    assert unread_page.PAGE.read_text() == unread_page.text(), "python -m tools.unread_page"


# Stacks


def waits(text: str) -> list[tuple[str | None, int | None, int | None, str | None]]:
    """Name, pid and seconds of each task, and the function that says what it waits for."""
    found = stacks.tasks(text.splitlines())
    return [
        (one.name, one.pid, one.seconds, one.deciding(one.wait) if one.wait else None)
        for one in found
    ]


def test_a_blocked_task_has_its_name_its_pid_and_its_seconds() -> None:
    for name, want in {
        "hung_task.txt": ("fsstress", 4440, 122, "jbd2_log_wait_commit"),
        "hung_task-journald.txt": ("postgres", 3492, 120, "rq_qos_wait"),
        "proc_stack.txt": (None, 2211, None, "xlog_wait_on_iclog"),
    }.items():
        assert waits((HERE / name).read_text()) == [want]


@pytest.mark.parametrize(
    ("functions", "what"),
    [
        ("schedule jbd2_log_wait_commit ext4_sync_file", "a commit of the journal"),
        ("schedule wait_transaction_locked add_transaction_credits start_this_handle", "a handle"),
        ("schedule add_transaction_credits start_this_handle jbd2__journal_start", "a handle"),
        ("schedule xlog_wait_on_iclog xlog_force_lsn xfs_log_force_seq", "the log of xfs to be"),
        ("schedule xfs_log_force_umount xfs_fs_sync_fs", "the log of xfs to be"),
        ("schedule_timeout io_schedule_timeout __cv_timedwait_common zil_commit_impl", "ZFS"),
        ("schedule wait_for_writer btrfs_sync_log btrfs_sync_file", "log tree of btrfs"),
        ("io_schedule rq_qos_wait wbt_wait __rq_qos_throttle blk_mq_submit_bio", "throttling of"),
        ("io_schedule blk_mq_get_tag __blk_mq_alloc_requests submit_bio", "a free tag"),
        ("io_schedule_timeout balance_dirty_pages generic_perform_write", "too much page cache"),
        ("io_schedule folio_wait_bit_common folio_wait_writeback ext4_sync_file", "writeback of"),
        ("io_schedule wait_on_page_bit wait_on_page_writeback ext4_sync_file", "writeback of"),
        ("wait_for_completion_io submit_bio_wait blkdev_issue_flush ext4_sync_file", "a flush of"),
        ("wait_for_completion_io submit_bio_wait xfs_buf_submit", "a bio that it has submitted"),
        ("wb_wait_for_completion sync_inodes_sb sync_filesystem ovl_sync_fs", "below overlayfs"),
        ("io_schedule bit_wait_io __wait_on_buffer", "a block or a folio"),
        ("schedule rwsem_down_write_slowpath ext4_file_write_iter", "a lock"),
    ],
)
def test_a_wait_is_told_by_its_functions(functions: str, what: str) -> None:
    text = "\n".join(f"[<0>] {name}+0x1/0x20" for name in functions.split())
    (task,) = stacks.tasks(text.splitlines())
    assert task.wait is not None
    assert what in task.wait.what
    # The compiler's own names are of the same functions.
    compiled = text.replace("+0x1", ".constprop.0+0x1")
    (again,) = stacks.tasks(compiled.splitlines())
    assert again.wait is task.wait


def test_a_leftover_of_the_stack_is_no_caller() -> None:
    text = (
        "[ 1.0] Call Trace:\n[ 1.0]  ? jbd2_log_wait_commit+0x1/0x2\n[ 1.0]  futex_wait+0x1/0x2\n"
    )
    (task,) = stacks.tasks(text.splitlines())
    assert task.functions == ["futex_wait"]
    assert task.wait is None
    assert "does not say what it waits for" in task.said()


def test_a_sync_through_overlayfs_says_both() -> None:
    text = "".join(
        f"[<0>] {name}+0x1/0x2\n"
        for name in ("jbd2_log_wait_commit", "ext4_sync_fs", "sync_filesystem", "ovl_sync_fs")
    )
    (task,) = stacks.tasks(text.splitlines())
    assert re.search("a commit of the journal.*the whole file system below overlayfs", task.said())


def test_several_tasks_are_told_apart() -> None:
    head = "[ {at}] INFO: task {name}:{pid} blocked for more than {seconds} seconds.\n"
    frame = "[ 1.0]  {}+0x1/0x2\n"
    text = (
        head.format(at=1, name="kworker/u8:1", pid=9, seconds=120)
        + frame.format("blk_mq_get_tag")
        + head.format(at=1, name="a b", pid=10, seconds=120)
        + frame.format("jbd2_log_wait_commit")
        # The kernel reports the second one again.
        + head.format(at=121, name="a b", pid=10, seconds=241)
        + frame.format("jbd2_log_wait_commit")
    )
    assert [row[:3] for row in waits(text)] == [
        ("kworker/u8:1", 9, 120),
        ("a b", 10, 120),
        ("a b", 10, 241),
    ]
    said = stacks.said(text.splitlines())
    assert said is not None
    rows = [line for line in said.splitlines() if line.startswith("  ")]
    assert [row.split(":")[0] for row in rows[:1]] == ["  kworker/u8"]
    assert len(rows) == 2
    assert rows[1].startswith("  a b 10, blocked for more than 241 s: waits for a commit")
    assert "not a duration" in said


def test_stacks_without_names_are_tasks_of_their_own() -> None:
    text = "[<0>] blk_mq_get_tag+0x1/0x2\n\n[<0>] jbd2_log_wait_commit+0x1/0x2\n"
    assert [row[3] for row in waits(text)] == ["blk_mq_get_tag", "jbd2_log_wait_commit"]


def test_a_task_without_its_stack_has_no_wait() -> None:
    text = "[ 1.0] INFO: task db:7 blocked for more than 120 seconds.\n"
    said = stacks.said(text.splitlines())
    assert said is not None
    assert "db 7, blocked for more than 120 s: its stack is not in the text" in said
