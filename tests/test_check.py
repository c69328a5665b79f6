"""`syncline check`: recordings of small programs with planted faults, of real programs, and rule files."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from syncline.check import Outcome, RuleError, Unanswerable, check, kinds, load_rules, output, sets
from syncline.check.rules import load_kind
from syncline.inputs import Reading, opened
from syncline.report.tables import modules

from tests.coretools import ROOT
from tests.test_commands import fails, ok, run

DATA = ROOT / "tests" / "data" / "check"
# The table of operations on files, of which all of this is made.
pytestmark = pytest.mark.skipif(
    "file_op" not in modules(), reason="this build has no table syncline_file_op"
)

ATOMIC = '[[rule]]\nkind = "replaced-file-synced"\n'
CREATED = '[[rule]]\nkind = "created-file-synced"\n'
APPENDED = '[[rule]]\nkind = "appended-synced"\n'
FAILED = '[[rule]]\nkind = "failed-sync"\nfiles = "*/data"\n'
ANSWER = '[[rule]]\nkind = "acknowledged-after-sync"\nfiles = "*/data"\nlog = "*/replies"\nsockets = true\n'
JOURNAL = "sqlite-rollback"

# Of each recording: the rules, the verdict, and what is found, as (last part of the path, fault or doubt). All of it follows from
# programs/faults.py, which names the fault that it plants.
CASES = {
    "replace-right": (ATOMIC, "ok", []),
    "alice-no-folder-sync": (ATOMIC, "violated", [("conf", "folder")]),
    "alice-no-file-sync": (ATOMIC, "violated", [("conf", "data")]),
    "alice-append-after-sync": (ATOMIC, "violated", [("conf", "data")]),
    "folder-sync-of-last-only": (ATOMIC, "violated", [("conf", "folder")]),
    "sync-before-folder": (ATOMIC, "violated", [("conf", "folder")]),
    "sync-of-all": (ATOMIC, "ok", []),
    "rename-twice-right": (ATOMIC, "ok", []),
    "rename-twice-unsynced": (ATOMIC, "violated", [("b", "data"), ("conf", "data")]),
    # A rename of a file to its own name gives no name to anything.
    "rename-over-itself": (ATOMIC, "not checked", []),
    "link-unsynced": (ATOMIC, "violated", [("conf", "data")]),
    "sync-by-duplicate": (ATOMIC, "ok", []),
    "passed-through-socket": (ATOMIC, "violated", [("conf", "data")]),
    "folder-moves": (ATOMIC, "cannot tell", [("conf", "moved"), ("conf", "moved")]),
    "mapped": (ATOMIC, "cannot tell", [("conf", "mapped"), ("conf", "mapped")]),
    "temporary-file": (ATOMIC, "ok", []),
    "create-right": (CREATED, "ok", []),
    "create-without-folder": (CREATED, "violated", [("table", "folder")]),
    "append-right": ("append-only", "ok", []),
    "append-right-by-flag": ("append-only", "ok", []),
    "lazyfs-unsynced-append": (APPENDED, "violated", [("log", "unsynced")]),
    "lazyfs-torn-append": (APPENDED, "violated", [("log", "unsynced")]),
    "acknowledge-right": (ANSWER, "ok", []),
    "acknowledge-early": (ANSWER, "violated", [("data", "acknowledged")]),
    "acknowledge-early-to-socket": (ANSWER, "violated", [("data", "acknowledged")]),
    "acknowledge-by-thread": (ANSWER, "ok", []),
    "cuttlefs-retry": (FAILED, "violated", [("data", "retried")]),
    "failed-sync-exit": (FAILED, "ok", []),
    "failed-sync-reopen": (FAILED, "ok", []),
    "journal-right": (JOURNAL, "ok", []),
    "journal-removed-early": (JOURNAL, "violated", [("main-journal", "removed")]),
    "journal-unsynced": (JOURNAL, "violated", [("main", "ahead")]),
}
# Real programs: the rules, the verdict, and the kinds of faults.
REAL = {
    "sqlite-full": ("sqlite-rollback", "ok", set()),
    "sqlite-off": ("sqlite-rollback", "violated", {"ahead", "removed"}),
    "sqlite-truncate-full": ("sqlite-rollback", "ok", set()),
    "sqlite-truncate-off": ("sqlite-rollback", "violated", {"ahead", "removed"}),
    "sqlite-wal-full": ("sqlite-wal", "ok", set()),
    "sqlite-wal-normal": ("sqlite-wal", "ok", set()),
    "sqlite-wal-off": ("sqlite-wal", "violated", {"ahead", "removed"}),
    "lmdb-right": ("lmdb", "ok", set()),
    "lmdb-nosync": ("lmdb", "violated", {"unsynced"}),
    # git syncs files if it is asked to, and no folders.
    "git-fsync-all": (ATOMIC + "folder = false\n", "ok", set()),
    "git-fsync-none": (ATOMIC + "folder = false\n", "violated", {"data"}),
    "postgres-fsync-on": (ATOMIC + 'files = "*/pg_logical/*"\n', "ok", set()),
    "postgres-fsync-off": (ATOMIC + 'files = "*/pg_logical/*"\n', "violated", {"data", "folder"}),
    # All that dpkg replaces in its own folder. It was empty before the recording, and so is status-old, a link to it.
    "dpkg": (ATOMIC + 'files = "*/admin/*"\nexcept = "*-old"\n', "ok", set()),
}


def rules_in(tmp_path: Path, rules: str) -> str:
    """Returns the name of a set, or a file that holds the rules."""
    if rules in sets():
        return rules
    path = tmp_path / "rules.toml"
    path.write_text(rules)
    return str(path)


def log_of(name: str) -> Path:
    return DATA / f"{name}.strace.gz"


def outcomes(log: Path, rules: str) -> list[Outcome]:
    with opened(str(log), Reading()) as engine:
        return check(engine, load_rules(rules))


def found(checked: Sequence[Outcome]) -> list[tuple[str, str]]:
    return sorted(
        (Path(one.row["path"]).name, one.row["doubt"] or one.row["fault"])
        for outcome in checked
        for one in outcome.shown
    )


@pytest.mark.parametrize("name", CASES)
def test_a_planted_fault_is_found_and_a_right_program_passes(name: str, tmp_path: Path) -> None:
    rules, verdict, faults = CASES[name]
    checked = outcomes(log_of(name), rules_in(tmp_path, rules))
    assert (output.verdict(checked), found(checked)) == (verdict, sorted(faults))


@pytest.mark.parametrize("name", REAL)
def test_real_programs(name: str, tmp_path: Path) -> None:
    rules, verdict, faults = REAL[name]
    checked = outcomes(log_of(name), rules_in(tmp_path, rules))
    assert output.verdict(checked) == verdict
    assert {fault for _, fault in found(checked)} == faults


def test_every_recording_is_tested() -> None:
    assert {*CASES, *REAL} == {path.name.removesuffix(".strace.gz") for path in DATA.glob("*.gz")}


def lines(*calls: str, end: bool = True) -> str:
    """A log of strace -f -y -T -ttt: a call each 10 ms, each of which lasts 1 ms."""
    text = [f"7 {1000 + n / 100:.6f} {call} <0.001000>\n" for n, call in enumerate(calls)]
    last = 1000 + len(calls) / 100
    return "".join(text) + (f"7 {last:.6f} exit_group(0) = ?\n7 {last:.6f} +++ exited with 0 +++\n" if end else "")  # fmt: skip


OPEN = 'openat(AT_FDCWD</d>, "/d/t", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3</d/t>'
WRITE = 'write(3</d/t>, "x", 1) = 1'
SYNC = "fsync(3</d/t>) = 0"
RENAME = 'rename("/d/t", "/d/f") = 0'
FOLDER = "fsync(4</d>) = 0"


def verdict_of(tmp_path: Path, text: str, rules: str = ATOMIC) -> tuple[str, list[tuple[str, str]]]:
    log = tmp_path / "x.log"
    log.write_text(text)
    checked = outcomes(log, rules_in(tmp_path, rules))
    return output.verdict(checked), found(checked)


def test_what_the_recording_cannot_show_is_no_verdict(tmp_path: Path) -> None:
    right = lines(OPEN, WRITE, SYNC, RENAME, FOLDER)
    assert verdict_of(tmp_path, right) == ("ok", [])
    # The program goes on after the recording, and may sync the folder then.
    still = lines(OPEN, WRITE, SYNC, RENAME, end=False)
    assert verdict_of(tmp_path, still) == ("cannot tell", [("f", "pending")])
    # A write that the sync may not have seen: it begins before the write has ended.
    other = "8 1000.015000 fsync(3</d/t>) = 0 <0.005000>\n"
    both = right.splitlines(keepends=True)
    both = [*both[:2], other, *both[3:]]
    assert verdict_of(tmp_path, "".join(both))[0] == "ok"
    both[2] = "8 1000.010500 fsync(3</d/t>) = 0 <0.005000>\n"
    assert verdict_of(tmp_path, "".join(both)) == ("violated", [("f", "data")])
    # A sync that returns after the rename has begun.
    both[2] = "8 1000.015000 fsync(3</d/t>) = 0 <0.020000>\n"
    assert verdict_of(tmp_path, "".join(both)) == ("violated", [("f", "data")])
    # A file that is not known, because its descriptor is older than the recording and -y was not given.
    assert verdict_of(tmp_path, lines(OPEN, WRITE, 'write(9, "x", 1) = 1', SYNC, RENAME, FOLDER)) == ("cannot tell", [("f", "unknown"), ("f", "unknown")])  # fmt: skip
    # A sync of a file that is not known may be the one that is missing.
    assert verdict_of(tmp_path, lines(OPEN, WRITE, "fsync(9) = 0", RENAME, FOLDER))[0] == "cannot tell"  # fmt: skip
    # A torn line may be any call.
    first, rest = right.split("7 1000.020000", 1)
    torn = f'{first}7 1000.015000 write(3</d/t>, "x\n7 1000.020000{rest}'
    assert verdict_of(tmp_path, torn)[0] == "cannot tell"
    exchange = 'renameat2(AT_FDCWD</d>, "/d/t", AT_FDCWD</d>, "/d/f", RENAME_EXCHANGE) = 0'
    assert verdict_of(tmp_path, lines(OPEN, WRITE, SYNC, exchange, FOLDER))[0] == "cannot tell"


def test_a_program_may_use_relative_names(tmp_path: Path) -> None:
    """With -y, only calls that take a folder say which one relative names are in; rename() does not."""
    opened, renamed = OPEN.replace('"/d/t"', '"t"'), 'rename("t", "f") = 0'
    assert verdict_of(tmp_path, lines(opened, WRITE, SYNC, renamed, FOLDER)) == ("ok", [])
    assert verdict_of(tmp_path, lines(opened, WRITE, SYNC, renamed)) == ("violated", [("f", "folder")])  # fmt: skip
    assert verdict_of(tmp_path, lines(opened, WRITE, renamed, FOLDER)) == ("violated", [("f", "data")])  # fmt: skip


def test_a_long_chain_of_renames_is_followed(tmp_path: Path) -> None:
    moves = [f'rename("/d/n{n}", "/d/n{n + 1}") = 0' for n in range(100)]
    first = 'rename("/d/t", "/d/n0") = 0'
    rules = ATOMIC + 'files = "/d/n100"\n'
    assert verdict_of(tmp_path, lines(OPEN, WRITE, SYNC, first, *moves, FOLDER), rules)[0] == "ok"
    assert verdict_of(tmp_path, lines(OPEN, WRITE, first, *moves, FOLDER), rules) == ("violated", [("n100", "data")])  # fmt: skip


def test_a_name_is_not_a_file(tmp_path: Path) -> None:
    """The second file of a name is not synced, and the sync of the first one says nothing about it."""
    text = lines(OPEN, WRITE, SYNC, RENAME, FOLDER, OPEN, WRITE, RENAME, FOLDER)
    assert verdict_of(tmp_path, text) == ("violated", [("f", "data")])
    # Nor does the removal of a name remove what was written under it before.
    gone = lines(OPEN, WRITE, 'unlink("/d/t") = 0', OPEN, WRITE, SYNC, RENAME, FOLDER)
    assert verdict_of(tmp_path, gone) == ("ok", [])


def test_a_rename_between_two_links_of_a_file_gives_no_name(tmp_path: Path) -> None:
    """It does nothing (POSIX), so the folder that was synced after the link needs no second sync."""
    link = 'link("/d/t", "/d/f") = 0'
    assert verdict_of(tmp_path, lines(OPEN, WRITE, SYNC, link, FOLDER, RENAME)) == ("ok", [])
    # With the removal of one name, they are two files.
    two = lines(OPEN, WRITE, SYNC, link, FOLDER, 'unlink("/d/f") = 0', RENAME)
    assert verdict_of(tmp_path, two) == ("violated", [("f", "folder")])


def test_a_failed_sync_covers_nothing(tmp_path: Path) -> None:
    failed = SYNC.replace("= 0", "= -1 EIO (Input/output error)")
    assert verdict_of(tmp_path, lines(OPEN, WRITE, failed, RENAME, FOLDER)) == ("violated", [("f", "data")])  # fmt: skip
    # An error of the call says nothing about the device.
    wrong = SYNC.replace("= 0", "= -1 EINVAL (Invalid argument)")
    rules = FAILED.replace("*/data", "/d/t")
    assert verdict_of(tmp_path, lines(OPEN, WRITE, wrong, SYNC), rules) == ("ok", [])
    assert verdict_of(tmp_path, lines(OPEN, WRITE, failed, SYNC), rules) == ("violated", [("t", "retried")])  # fmt: skip


def test_sync_of_everything_says_nothing_after_a_sync_has_failed(tmp_path: Path) -> None:
    """It returns no error, although the journal may have failed for good."""
    every, other = "sync() = 0", SYNC.replace("/d/t", "/d/x").replace("= 0", "= -1 EROFS (x)")
    assert verdict_of(tmp_path, lines(OPEN, WRITE, every, RENAME, FOLDER)) == ("ok", [])
    assert verdict_of(tmp_path, lines(OPEN, WRITE, every, other, RENAME, FOLDER)) == ("ok", [])
    doubtful = lines(OPEN, WRITE, other, every, RENAME, FOLDER)
    assert verdict_of(tmp_path, doubtful)[0] == "cannot tell"
    # An error of the call says nothing about the device.
    wrong = other.replace("EROFS", "EINVAL")
    assert verdict_of(tmp_path, lines(OPEN, WRITE, wrong, every, RENAME, FOLDER)) == ("ok", [])


def test_the_command_says_what_to_mend(tmp_path: Path) -> None:
    log = log_of("alice-no-folder-sync")
    done = run("check", log, "--rules", "atomic-replace", "-o", tmp_path / "x.xml", "-o", tmp_path / "x.json", "-o", tmp_path / "x.md")  # fmt: skip
    assert done.returncode == 1
    assert "mend   fsync the folder /tmp/syncline-check/alice_no_folder_sync after the rename at" in done.stdout  # fmt: skip
    suite = ElementTree.parse(tmp_path / "x.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "2", "0")
    assert "fsync the folder" in str(suite.findall("testcase/failure")[1].get("message"))
    (rule,) = json.loads((tmp_path / "x.json").read_text())["rules"]
    (one,) = rule["found"]
    assert rule["files"] == {"violated": 1, "cannot tell": 0, "ok": 0}
    text = gzip.decompress(log.read_bytes()).decode()
    (call,) = [line for line in text.splitlines() if "rename(" in line]
    seconds, micros = call.split()[1].split(".")
    assert one["ts_ns"] == int(seconds) * 10**9 + int(micros) * 1000
    assert (one["op"], one["tid"], one["comm"]) == ("rename", int(call.split()[0]), "python3")
    assert "fsync the folder" in (tmp_path / "x.md").read_text()
    assert ok("check", log_of("replace-right"), "--rules", "atomic-replace").count("ok: ") == 1
    assert run("check", log_of("mapped"), "--rules", "atomic-replace").returncode == 5
    everything = ok("check", "--list")
    assert all(name in everything for name in [*sets(), *kinds()])


def test_a_rule_that_says_nothing_is_no_pass(tmp_path: Path) -> None:
    log = log_of("replace-right")
    done = run("check", log, "--rules", "atomic-replace", "--files", "/no/such/*")
    assert done.returncode == 3
    assert "no file of the recording matches files = '/no/such/*'" in done.stdout
    assert run("check", log, "--rules", "sqlite-wal").returncode == 3
    # A violated rule is more than one that says nothing.
    both = run("check", log_of("alice-no-file-sync"), "--rules", "atomic-replace", "--rules", "sqlite-wal")  # fmt: skip
    assert both.returncode == 1
    # Several rules are counted, and the verb goes with the count: sqlite-wal has two, of which none says anything.
    assert "Not checked: 2 of 2 rules say nothing" in " ".join(run("check", log, "--rules", "sqlite-wal").stdout.split())  # fmt: skip
    assert "Not checked: 1 of 1 rule says nothing" in " ".join(done.stdout.split())
    only = tmp_path / "only-sync.log"
    only.write_text(lines(SYNC, SYNC))
    message = fails(3, "check", only, "--rules", "atomic-replace")
    assert "no operations on files are recorded" in message
    assert "strace -f -y -T" in message
    opens = tmp_path / "no-writes.log"
    opens.write_text(lines(OPEN, SYNC, RENAME, FOLDER))
    assert "no writes are recorded" in fails(3, "check", opens, "--rules", "atomic-replace")
    with opened(str(only), Reading()) as engine, pytest.raises(Unanswerable):
        check(engine, load_rules("atomic-replace"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[rule]\nkind = "x"\n', "rules.toml:1: not valid TOML"),
        ('\n[[rule]]\nkind = "replaced"\n', 'rules.toml:3: no kind of rule \'replaced\''),
        ('[[rule]]\nkind = "failed-sync"\n\n[[rule]]\nkind = "appended-synced"\nfile = "x"\n', "rules.toml:6: a rule of kind appended-synced has no 'file', did you mean files?: file = \"x\""),
        ('[[rule]]\nfiles = "x"\n', "rules.toml:1: the rule has no kind: [[rule]]"),
        ('[[rule]]\nkind = "failed-sync"\nfiles = 7\n', "rules.toml:3: 'files' is no pattern: files = 7"),
        ('[[rule]]\nkind = "replaced-file-synced"\nfolder = "yes"\n', "rules.toml:3: 'folder' is 'yes': folder = \"yes\""),
        ('[[rule]]\nkind = "removed-after-sync"\nfiles = "*-wal"\n', "rules.toml:2: a rule of kind removed-after-sync needs 'suffix'"),
        ('[[rule]]\nkind = "acknowledged-after-sync"\nfiles = "*"\n', "rules.toml:2: the rule does not say what an acknowledgement is"),
        ('rules = 1\n', "rules.toml:1: unknown key 'rules': rules = 1"),
        ("", "no rules"),
    ],
)  # fmt: skip
def test_a_malformed_rule_file_names_line_and_text(text: str, message: str, tmp_path: Path) -> None:
    path = rules_in(tmp_path, text or "\n")
    with pytest.raises(RuleError) as error:
        load_rules(path)
    assert message in error.value.message
    assert error.value.hint


def test_rules_that_do_not_exist_are_wrong_use(tmp_path: Path) -> None:
    log = log_of("replace-right")
    assert "did you mean atomic-replace?" in fails(2, "check", log, "--rules", "atomic-replce")
    assert "sqlite-wal" in fails(2, "check", log, "--rules", "nothing")
    assert "cannot read" in fails(2, "check", log, "--rules", tmp_path / "no.toml")
    assert "no ending" in fails(2, "check", log, "--rules", "lmdb", "-o", tmp_path / "x.pdf")


def test_each_kind_says_why() -> None:
    for name in kinds():
        said = load_kind(name).said
        assert {"Demands", "Why", "Kernel", "Instead"} <= {*said}, name
    for name in sets():
        assert load_rules(name)


def test_a_file_that_may_be_another_is_no_verdict(tmp_path: Path) -> None:
    exchange = 'renameat2(AT_FDCWD</d>, "/d/t", AT_FDCWD</d>, "/d/x", RENAME_EXCHANGE) = 0'
    # The next name of a file that was exchanged.
    later = lines(OPEN, WRITE, SYNC, exchange, RENAME, FOLDER)
    assert verdict_of(tmp_path, later, ATOMIC + 'files = "/d/f"\n')[0] == "cannot tell"
    # A folder two levels above.
    deep = [call.replace("/d/", "/d/e/") for call in (OPEN, WRITE, SYNC, RENAME)]
    moved = lines(*deep, 'rename("/d", "/z") = 0', FOLDER.replace("/d", "/d/e"))
    assert verdict_of(tmp_path, moved)[0] == "cannot tell"
    # Without -y, the second write is of /d/f.
    opened, wrote, synced = (call.replace("3</d/t>", "3") for call in (OPEN, WRITE, SYNC))
    stale = lines(opened, wrote, synced, RENAME, FOLDER, wrote)
    assert verdict_of(tmp_path, stale)[0] == "cannot tell"
    assert verdict_of(tmp_path, lines(opened, wrote, synced, RENAME, FOLDER))[0] == "ok"


def test_a_sync_that_failed_elsewhere_may_have_covered_the_file(tmp_path: Path) -> None:
    """syncfs does not say of which file system; if it fails there, another file may have failed."""
    rules = APPENDED + 'files = "/d/t"\n'
    for result, verdict in (("EIO (x)", "cannot tell"), ("EBADF (x)", "violated")):
        text = lines(OPEN, WRITE, f"syncfs(9</d>) = -1 {result}")
        assert verdict_of(tmp_path, text, rules)[0] == verdict


def test_an_open_that_empties_a_file_is_to_be_synced(tmp_path: Path) -> None:
    rules = APPENDED + 'files = "/d/t"\n'
    emptied = lines(OPEN, WRITE, SYNC, OPEN)
    assert verdict_of(tmp_path, emptied, rules) == ("violated", [("t", "unsynced")])
    assert verdict_of(tmp_path, lines(OPEN, WRITE, SYNC, OPEN, SYNC), rules) == ("ok", [])
    # The first open may have created the file.
    assert verdict_of(tmp_path, lines(OPEN, WRITE, SYNC), rules) == ("ok", [])


def test_a_reader_does_not_make_a_failed_sync_good(tmp_path: Path) -> None:
    rules = FAILED.replace("*/data", "/d/t")
    failed = SYNC.replace("= 0", "= -1 ENODATA (No data available)")
    read = 'openat(AT_FDCWD</d>, "/d/t", O_RDONLY) = 5</d/t>'
    assert verdict_of(tmp_path, lines(OPEN, WRITE, failed, read, SYNC), rules) == ("violated", [("t", "retried")])  # fmt: skip
    assert verdict_of(tmp_path, lines(OPEN, WRITE, failed, OPEN, WRITE, SYNC), rules) == ("ok", [])


def test_a_log_without_durations_is_judged_where_the_order_is_known(tmp_path: Path) -> None:
    """strace without -T: a thread's call has ended when it makes the next one."""
    plain = lambda *calls, **more: lines(*calls, **more).replace(" <0.001000>", "")  # noqa: E731
    assert verdict_of(tmp_path, plain(OPEN, WRITE, SYNC, RENAME, FOLDER)) == ("ok", [])
    assert verdict_of(tmp_path, plain(OPEN, WRITE, RENAME, FOLDER)) == ("violated", [("f", "data")])
    assert verdict_of(tmp_path, plain(OPEN, WRITE, SYNC, RENAME)) == ("violated", [("f", "folder")])
    # Another thread syncs before the writer makes its next call: the write may not have ended, or the sync not before the rename.
    by_other = plain(OPEN, WRITE, "getpid() = 7", RENAME, FOLDER)
    other = "8 1000.015000 fsync(3</d/t>) = 0\n8 1001.000000 +++ exited with 0 +++\n"
    merged = by_other.replace("7 1000.020000", f"{other}7 1000.020000")
    assert verdict_of(tmp_path, merged) == ("cannot tell", [("f", "untimed")])
    # But the lines of one strace are in the order of the calls, as lines that interrupt a call show.
    torn = "7 1000.016000 wait4(-1, <unfinished ...>\n8 1000.017000 getpid() = 8\n7 1000.018000 <... wait4 resumed>) = 9\n"
    assert verdict_of(tmp_path, merged.replace("7 1000.020000", f"{torn}7 1000.020000")) == ("ok", [])  # fmt: skip


def test_a_clock_of_seconds_is_no_verdict(tmp_path: Path) -> None:
    """strace -t."""
    text = lines(OPEN, WRITE, RENAME, SYNC, FOLDER)
    coarse = re.sub(r"1000\.\d+", "20:18:27", text)
    verdict, shown = verdict_of(tmp_path, coarse)
    assert (verdict, {doubt for _, doubt in shown}) == ("cannot tell", {"coarse"})


def test_what_needs_no_sync_matches_no_rule(tmp_path: Path) -> None:
    """A program prints to a terminal, and its shell to a pipe and to /dev/null."""
    text = lines(OPEN, WRITE, SYNC, 'openat(AT_FDCWD</d>, "/dev/null", O_WRONLY|O_CREAT, 0666) = 5</dev/null>', *(f'write(1<{name}>, "x", 1) = 1' for name in ("/dev/pts/0", "pipe:[7]", "/dev/null", "TCP:[1->2]")))  # fmt: skip
    assert verdict_of(tmp_path, text, '[[rule]]\nkind = "appended-synced"\n') == ("ok", [])
    created = '[[rule]]\nkind = "created-file-synced"\nfolder = false\n'
    assert verdict_of(tmp_path, text, created) == ("ok", [])


def test_a_process_ends_with_its_last_thread(tmp_path: Path) -> None:
    """The recording ends while the other thread goes on, which may sync."""
    begin = '7 999.000000 execve("/p", ["/p"], 0x1 /* 1 var */) = 0 <0.001000>\n7 999.100000 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 8 <0.001000>\n'
    text = begin + lines(OPEN, WRITE, SYNC, RENAME, end=False)
    ended = "8 1001.000000 exit(0) = ?\n8 1001.000000 +++ exited with 0 +++\n"
    assert verdict_of(tmp_path, text + ended) == ("cannot tell", [("f", "pending")])
    killed = "7 1002.000000 +++ killed by SIGKILL +++\n"
    assert verdict_of(tmp_path, text + ended + killed) == ("violated", [("f", "folder")])
