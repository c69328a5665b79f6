"""What `advise` says of slow writes of parts of pages in a log of strace, which shows no reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from syncline.advice import advise
from syncline.inputs import Reading, opened


def log(
    flags: str = "O_RDWR",
    writes: int = 12,
    size: int = 4000,
    took: str = "0.020000",
    call: str = "pwrite64",
    before: str = "",
) -> str:
    lines = [before] if before else []
    lines += [f'7 10.000000 openat(AT_FDCWD, "/d/f", {flags}) = 3 <0.000010>']
    for n in range(writes):
        place = f", {n * 4096}" if call == "pwrite64" else ""
        lines.append(f'7 {11 + n}.000000 {call}(3, "x"..., {size}{place}) = {size} <{took}>')
    return "\n".join([*lines, "7 90.000000 fsync(3) = 0 <0.010000>", ""])


def reason(tmp_path: Path, text: str) -> str:
    path = tmp_path / "slow.log"
    path.write_text(text)
    for engine in ("duckdb", "embedded"):
        with opened(str(path), Reading(), engine=engine) as made:
            (reads,) = [one for one in advise(made) if one.finding.name == "reads"]
        assert reads.status == "not checked"
        said = reads.reason or ""
    return said


@pytest.mark.parametrize("call", ["pwrite64", "write"])
def test_slow_writes_of_parts_of_pages_are_named_and_no_read_is_claimed(
    tmp_path: Path, call: str
) -> None:
    said = reason(tmp_path, log(call=call))
    assert said.startswith("it needs the reads of the thread before its write, which the route")
    assert "; 12 writes of parts of pages of /d/f took a millisecond or longer each, 240 ms together; whether they read" in said  # fmt: skip
    assert said.endswith("is not recorded")


@pytest.mark.parametrize(
    "text",
    [
        log(size=4096),
        log(took="0.000900"),
        log(writes=9),
        # The file may be new, so that there is nothing to read.
        log("O_RDWR|O_CREAT"),
        log("O_RDWR|O_TRUNC"),
        log(before='8 9.000000 rename("/d/t", "/d/f") = 0 <0.000010>'),
        # Nothing is read at the end, or the writes wait for something else.
        log("O_WRONLY|O_APPEND", call="write"),
        log("O_RDWR|O_DSYNC"),
        log("O_RDWR|O_DIRECT"),
        log("O_RDWR|O_DIRECT|O_CLOEXEC"),
    ],
)
def test_other_writes_say_nothing(tmp_path: Path, text: str) -> None:
    assert "parts of pages" not in reason(tmp_path, text)


def test_a_folder_is_no_direct_io(tmp_path: Path) -> None:
    folder = '8 9.000000 openat(AT_FDCWD, "/d/f", O_RDONLY|O_DIRECTORY) = -1 ENOTDIR (x) <0.000010>'
    assert "12 writes" in reason(tmp_path, log(before=folder))
