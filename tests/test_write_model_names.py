"""`syncline model predict` of logs of strace in which files move: what is dirty is known by construction."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from syncline.kinds import resolve
from syncline.reading import Reading
from syncline.record.strace import strace_command
from syncline.write_model import parameters as parameter_file
from syncline.write_model import recording
from syncline.write_model.predict import predict
from syncline.write_model.writes import Writes

from tests.coretools import ROOT

PROGRAM = ROOT / "tests" / "workloads" / "moved_names.py"
HOST = parameter_file.read(str(ROOT / "tests" / "data" / "writes" / "machine.toml"))
PAGE = 4096


def dirty_pages(recorded: Writes) -> list[tuple[str, float]]:
    """Returns the names of the files that state what is dirty, each with what is predicted after its write."""
    found = predict(HOST, recorded).predicted
    names = [(Path(one.write.path).name, one.dirty_bytes / PAGE) for one in found]
    return [(name, pages) for name, pages in names if name[:1].isdigit()]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("change", ["", "without -yy", "-xx", "-x"])
def test_names_that_move(change: str, tmp_path: Path) -> None:
    folder, log = tmp_path / "w", tmp_path / "strace.log"
    folder.mkdir()
    program = [sys.executable, "-S", "-B", str(PROGRAM), str(folder)]
    command = strace_command(program, None, log, has_writes=True)
    if change == "without -yy":
        command.remove("-yy")
    elif change:
        command.insert(1, change)
    subprocess.run(command, check=True)
    recorded = recording.read(resolve(str(log)), Reading())
    found = dirty_pages(recorded)
    assert len(found) == 33
    expected = [(name, float(name.split()[1])) for name, _ in found]
    unknown = [note for note in recorded.notes if "names" in note or "renames" in note]
    if change == "without -yy":
        # Where `..` leads is not printed, so a deletion after chdir("..") is not followed, and counted.
        at = [name for name, _ in found].index("18 22 relative names of two folders")
        expected[at:] = [(name, pages + 2) for name, pages in expected[at:]]
        assert unknown == ["not used: deletions of names that no other call has (1)"]
    else:
        assert unknown == []
    assert found == expected


# Another process renamed 4 and deleted 5, and made the name e free. 9 has the id of a thread of an unknown process.
OTHERS = """\
1 100.000010 execve("/bin/p", ["p"], 0x7f) = 0 <0.000001>
1 100.000011 openat(AT_FDCWD</w>, "/link/f", O_WRONLY|O_CREAT, 0600) = 3</real/f> <0.000001>
1 100.000012 write(3</real/f>, "x", 8192) = 8192 <0.000001>
1 100.000013 close(3</real/f>) = 0 <0.000001>
1 100.000014 unlink("/link/f") = 0 <0.000001>
1 100.000015 openat(AT_FDCWD</w>, "g", O_WRONLY|O_CREAT, 0600) = 4</w/g> <0.000001>
1 100.000016 write(4</w/g>, "x", 4096) = 4096 <0.000001>
1 100.000017 openat(AT_FDCWD</w>, "i", O_WRONLY|O_CREAT, 0600) = 5</w/i> <0.000001>
1 100.000018 write(5</w/i>, "x", 8192) = 8192 <0.000001>
1 100.000019 write(4</w/h>, "x", 4096) = 4096 <0.000001>
1 100.000020 close(5</w/i>(deleted)) = 0 <0.000001>
1 100.000021 close(4</w/h>) = 0 <0.000001>
1 100.000022 openat(AT_FDCWD</w>, "e", O_WRONLY|O_CREAT, 0600) = 3</w/e> <0.000001>
1 100.000023 write(3</w/e>, "x", 12288) = 12288 <0.000001>
1 100.000024 unlink("h") = 0 <0.000001>
1 100.000025 close(3</w/e>) = 0 <0.000001>
1 100.000026 openat(AT_FDCWD</w>, "e", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3</w/e> <0.000001>
1 100.000027 write(3</w/e>, "x", 4096) = 4096 <0.000001>
1 100.000028 rename("/gone/a", 7) = 0 <0.000001>
9 100.000030 openat(AT_FDCWD</w>, "t", O_WRONLY|O_CREAT, 0600) = 3</w/t> <0.000001>
9 100.000031 write(3</w/t>, "x", 8192) = 8192 <0.000001>
9 100.000032 unlink("t") = 0 <0.000001>
9 100.000033 +++ exited with 0 +++
1 100.000034 write(3</w/e>, "x", 4096) = 4096 <0.000001>
1 100.000035 unlink("/w/other") = 0 <0.000001>
"""


def test_names_that_other_processes_change(tmp_path: Path) -> None:
    log = tmp_path / "strace.log"
    log.write_text(OTHERS.replace(" 100.000", " 1700000100.000"))
    recorded = recording.read(resolve(str(log)), Reading())
    found = predict(HOST, recorded).predicted
    # f 2, deleted. g 1. i 2. h is g, 1 more. i is gone, 3 of e. h is gone, and e another file. 1. t 2, which may be open. e 1 more.
    assert [one.dirty_bytes / PAGE for one in found] == [2, 1, 3, 4, 5, 1, 3, 4]
    assert [one.write.path for one in found][3:6] == ["/w/h", "/w/e", "/w/e"]
    assert found[4].write.key != found[5].write.key
    assert sorted(recorded.notes) == [
        "3 names of files changed without a call in the log, as later lines show",
        "not used: deletions of names that no other call has (1)",
        "not used: renames, links, deletions and truncations whose file or size is not known (1)",
    ]


# Data and names that look like flags, and like the working directory.
LOOKS = """\
1 100.000010 execve("/bin/p", ["p"], 0x7f) = 0 <0.000001>
1 100.000011 openat(AT_FDCWD</w>, "RENAME_EXCHANGE", O_WRONLY|O_CREAT, 0600) = 3</w/RENAME_EXCHANGE> <0.000001>
1 100.000012 pwritev2(3</w/RENAME_EXCHANGE>, [{iov_base="RWF_SYNC", iov_len=8}], 1, 0, 0) = 8 <0.000001>
1 100.000013 openat(AT_FDCWD</w>, "AT_REMOVEDIR", O_WRONLY|O_CREAT, 0600) = 4</w/AT_REMOVEDIR> <0.000001>
1 100.000014 write(4</w/AT_REMOVEDIR>, "AT_FDCWD</x>", 12) = 12 <0.000001>
1 100.000015 close(3</w/RENAME_EXCHANGE>) = 0 <0.000001>
1 100.000016 close(4</w/AT_REMOVEDIR>) = 0 <0.000001>
1 100.000017 rename("AT_REMOVEDIR", "RENAME_EXCHANGE") = 0 <0.000001>
1 100.000018 symlink("AT_FDCWD</x>", "l") = 0 <0.000001>
1 100.000019 openat(AT_FDCWD</w>, "e", O_WRONLY|O_CREAT, 0600) = 3</w/e> <0.000001>
1 100.000020 write(3</w/e>, "x", 1) = 1 <0.000001>
1 100.000021 unlinkat(AT_FDCWD</w>, "RENAME_EXCHANGE", 0) = 0 <0.000001>
1 100.000022 link("AT_FDCWD</x>", "AT_EMPTY_PATH") = 0 <0.000001>
1 100.000023 rename("e", "f") = 0 <0.000001>
1 100.000024 write(3</w/f>, "x", 1) = 1 <0.000001>
"""


def test_names_and_data_that_look_like_flags(tmp_path: Path) -> None:
    log = tmp_path / "strace.log"
    log.write_text(LOOKS.replace(" 100.000", " 1700000100.000"))
    recorded = recording.read(resolve(str(log)), Reading())
    found = predict(HOST, recorded).predicted
    assert [one.write.kind for one in found] == ["cached"] * 4
    # The rename removed the page of the first file, and the deletion that of the second.
    assert [one.dirty_bytes / PAGE for one in found] == [1, 2, 2, 1]
    assert found[3].write.path == "/w/f"
    assert recorded.notes == []


def test_a_long_log_keeps_its_order(tmp_path: Path) -> None:
    # The engine reads in blocks, on several threads.
    log = tmp_path / "strace.log"
    lines = ['1 1700000100.000001 openat(AT_FDCWD</w>, "f", O_WRONLY|O_CREAT, 0600) = 3</w/f> <0.000001>\n']  # fmt: skip
    number = 100_000
    for n in range(number):
        lines.append(f'1 {1_700_000_101 + n / 1e5:.6f} write(3</w/f>, "x"..., 4096) = 4096 <0.000005>\n')  # fmt: skip
    log.write_text("".join(lines))
    recorded = recording.read(resolve(str(log)), Reading())
    assert [one.offset for one in recorded.writes] == [4096 * n for n in range(number)]
    assert recorded.notes == []
