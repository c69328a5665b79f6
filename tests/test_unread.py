"""Texts that hold no event: each kind is named, with what it answers and what records the rest, and no log is taken for one."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from syncline import _core
from syncline.unread import KINDS, Kind, explained, kinds_of, stacks

from tests.coretools import ROOT
from tests.test_commands import fails, run
from tools import unread_page

DATA = ROOT / "tests" / "data"
HERE = DATA / "unread"
OF_FILE = dict(line.split("\t") for line in (HERE / "kinds.tsv").read_text().splitlines())
MAX_BYTES = 1 << 16


def kind_of(head: bytes) -> Kind | None:
    found = kinds_of(head)
    assert len(found) < 2, [kind.what for kind in found]
    return found[0] if found else None


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
    said = fails(3, "report", str(log))
    assert "none of its 3 lines is a sync call" in said
    assert "; beside its own lines it has the result of fio" in said
    assert "it is the result of fio" not in said


@pytest.mark.parametrize("first", OF_FILE)
def test_two_kinds_in_one_paste_are_both_named(first: str) -> None:
    """In the order of the text, whatever the two are, and with one command that records what both lack."""
    one = (HERE / first).read_bytes()
    (kind,) = kinds_of(one)
    for second in OF_FILE:
        two = (HERE / second).read_bytes()
        if kinds_of(two) == [kind]:
            continue
        both = one + b"\nIt is slow since Monday, and here is what else I have:\n\n" + two
        assert kinds_of(both) == [kind, *kinds_of(two)], second
        said = explained(both)
        assert said is not None
        assert said.message.startswith("it has 2 kinds of text:\n")
        assert said.hint.count("`") in (2, 4)


PASTE = """\
Our commits take seconds. First iostat:

```
{iostat}```

and then the kernel says

```
{hung}```
"""


def test_a_thread_with_iostat_and_stacks_says_both(tmp_path: Path) -> None:
    paste = tmp_path / "thread.txt"
    paste.write_text(
        PASTE.format(
            iostat=(HERE / "iostat-x.txt").read_text(), hung=(HERE / "hung_task.txt").read_text()
        )
    )
    said = fails(3, "report", str(paste))
    assert "it has 2 kinds of text:\n  the output of iostat: it says how busy each device" in said
    assert "\n  the kernel's log of blocked tasks:\n    fsstress 4440, blocked for more" in said
    assert said.count("hint:") == 1
    assert "`sudo syncline record --for 30s --and-report`" in said


def test_what_is_beside_a_log_is_named(tmp_path: Path) -> None:
    """The log is read, and the answer says what else there is, which the warning only counts."""
    paste = tmp_path / "thread.txt"
    paste.write_text(
        "$ sudo biosnoop\n"
        "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)\n"
        "0.000004    db             2211    sda       W 13092560   4096      0.78\n"
        "0.100004    db             2211    sda       W 13092568   4096      0.81\n\n"
        + (HERE / "biolatency.txt").read_text()
        + (HERE / "hung_task.txt").read_text()
    )
    said = run("report", str(paste)).stderr
    assert f"note: beside its own lines, {paste} has a histogram that biolatency" in said
    assert "and the kernel's log of blocked tasks (fsstress 4440, blocked for more than" in said


def test_what_is_beside_events_of_no_sync_is_named(tmp_path: Path) -> None:
    paste = tmp_path / "thread.txt"
    paste.write_text(
        "  flush-8:0-240   [005]   236.655363: jbd2_lock_buffer_stall: dev 8,8 stall_ms 1096\n"
        "  flush-8:0-240   [005]   238.655363: jbd2_lock_buffer_stall: dev 8,8 stall_ms 1196\n"
        "[<ffffffff811a35b9>] sleep_on_buffer+0x9/0x10\n"
        "[<ffffffff8123a21f>] do_get_write_access+0x43f/0x4b0\n"
    )
    said = fails(3, "report", str(paste))
    assert "none of its 2 events has to do with a sync" in said
    assert "; beside its own lines it has the stack of a task" in said
    assert "(`do_get_write_access`)" in said


def test_a_log_of_the_kernel_in_one_line_is_told_apart() -> None:
    lines = (HERE / "hung_task.txt").read_text().splitlines()
    said = explained(" ".join(lines).encode())
    whole = explained("\n".join(lines).encode())
    assert said is not None
    assert whole is not None
    assert said.message == whole.message


@pytest.mark.parametrize(
    "sentence",
    [
        "Try `zpool iostat -l 1` and `iostat -x -k 1`, and ps -eo pid,wchan beside it.",
        "We ran fio, pg_test_fsync, sysbench, dd and ioping, and all of them are slow.",
        "#12 is the same problem (I think)",
        "Fixed in #4011 (see there), blocked for more than a week now",
        "strace -c says 90 % of the time is fsync, and biolatency shows a peak at 8 -> 15 ms",
        "The jbd2 thread waits in jbd2_log_wait_commit, and checkpoints take 30 s to sync.",
        "12 Dell servers, 4 slow operators, tps is 412",
    ],
)
def test_a_sentence_about_a_tool_is_not_its_output(sentence: str) -> None:
    assert kinds_of(sentence.encode()) == []


def test_prose_gets_the_command_that_records(tmp_path: Path) -> None:
    paste = tmp_path / "thread.txt"
    paste.write_text("Our fsync takes 40 seconds since the upgrade. Any idea?\n")
    assert "to record syncs instead: `sudo syncline record --for 30s" in fails(
        3, "report", str(paste)
    )


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
        ("io_schedule cv_wait_common __cv_wait_io zio_wait dsl_pool_sync spa_sync", "I/O of ZFS"),
        ("schedule cv_wait_common __cv_wait txg_wait_synced zil_commit zfs_fsync", "a transaction"),
        ("io_schedule cv_wait_common txg_sync_thread", "something of ZFS"),
        ("schedule wb_wait_for_completion sync_inodes_sb iterate_supers ksys_sync", "all that is"),
        ("rpc_wait_bit_killable __wait_on_bit nfs4_do_open path_openat", "the NFS server"),
        ("wait_on_page_writeback filemap_fdatawait_range nfs_wb_all nfs_file_fsync", "the NFS"),
        ("request_wait_answer fuse_simple_request fuse_fsync_common", "the daemon of a FUSE"),
        ("schedule md_flush_request raid1_make_request blkdev_issue_flush", "the software RAID"),
        ("schedule bch2_journal_flush_seq bch2_fsync", "the journal of bcachefs"),
        ("io_schedule sleep_on_buffer __lock_buffer do_get_write_access", "a metadata block"),
        ("io_schedule sync_buffer __wait_on_bit jbd2_journal_commit_transaction", "a block or"),
        ("io_schedule wait_for_x", "its stack does not say which"),
        ("futex_wait_queue __futex_wait do_futex __x64_sys_futex", "another thread of its program"),
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
        "[ 1.0] Call Trace:\n[ 1.0]  ? jbd2_log_wait_commit+0x1/0x2\n[ 1.0]  do_nanosleep+0x1/0x2\n"
    )
    (task,) = stacks.tasks(text.splitlines())
    assert task.functions == ["do_nanosleep"]
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


# As mm/memory.c prints it (print_bad_pte), for a task that unmaps memory, and so runs.
BAD_PAGE_MAP = """\
[ 1234.567890] BUG: Bad page map in process postgres  pte:8000000123456067 pmd:123456067
[ 1234.567893] file:libc.so.6 fault:ext4_filemap_fault mmap:ext4_file_mmap read_folio:ext4_read_folio
[ 1234.567894] CPU: 3 PID: 2211 Comm: postgres Tainted: G    B             6.1.0-13-amd64 #1
[ 1234.567895] Call Trace:
[ 1234.567896]  <TASK>
[ 1234.567897]  dump_stack_lvl+0x44/0x5c
[ 1234.567899]  zap_pte_range+0x5c1/0xb70
[ 1234.567901]  exit_mmap+0xd3/0x2e0
[ 1234.567902]  </TASK>
"""


@pytest.mark.parametrize(
    "head",
    [
        "",
        "[ 1.0] WARNING: CPU: 3 PID: 2211 at fs/ext4/inode.c:1 ext4_writepages+0x1/0x2\n",
        "[ 1.0] postgres: page allocation failure: order:4, mode:0x40dc0\n",
        "[ 1.0] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [postgres:2211]\n",
    ],
)
def test_a_task_that_runs_waits_for_nothing(head: str) -> None:
    text = head + BAD_PAGE_MAP.split("\n", 1)[1] if head else BAD_PAGE_MAP
    assert kinds_of(text.encode()) == []
    assert explained(text.encode()) is None


def test_a_blocked_task_beside_one_that_runs_is_the_only_one() -> None:
    blocked = (HERE / "hung_task.txt").read_text()
    alone = explained(blocked.encode())
    assert alone is not None
    for text in (BAD_PAGE_MAP + blocked, blocked + BAD_PAGE_MAP):
        assert explained(text.encode()) == alone
