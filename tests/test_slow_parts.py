"""What `advise` says of slow writes of parts of pages in a log of strace, which shows no reads."""

from __future__ import annotations

import tarfile
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
    every: float = 0.03,
) -> str:
    lines = [before] if before else []
    lines += [f'7 10.000000 openat(AT_FDCWD, "/d/f", {flags}) = 3 <0.000010>']
    for n in range(writes):
        place = f", {n * 4096}" if call == "pwrite64" else ""
        at = 11 + n * every
        lines.append(f'7 {at:.6f} {call}(3, "x"..., {size}{place}) = {size} <{took}>')
    return "\n".join([*lines, "7 90.000000 fsync(3) = 0 <0.010000>", ""])


def reason_of(path: Path, engine: str = "duckdb") -> str:
    with opened(str(path), Reading(), engine=engine) as made:
        (reads,) = [one for one in advise(made) if one.finding.name == "reads"]
    assert reads.status == "not checked"
    return reads.reason or ""


def reason(tmp_path: Path, text: str) -> str:
    path = tmp_path / "slow.log"
    path.write_text(text)
    said, other = (reason_of(path, engine) for engine in ("duckdb", "embedded"))
    assert said == other
    return said


@pytest.mark.parametrize("call", ["pwrite64", "write"])
def test_slow_writes_of_parts_of_pages_are_named_and_no_read_is_claimed(
    tmp_path: Path, call: str
) -> None:
    said = reason(tmp_path, log(call=call))
    assert said.startswith("it needs the reads of the thread before its write, which the route")
    assert "; 12 writes of parts of pages of /d/f took 240.0 ms, and their thread did little else meanwhile: " in said  # fmt: skip
    assert said.endswith("is not recorded")


@pytest.mark.parametrize(
    "text",
    [
        log(size=4096),
        log(writes=9),
        # Writes that are as slow as anything else that the thread does: the machine is slow.
        log(took="0.020000", every=0.041),
        # And writes that no device can have read for.
        log(took="0.000040", every=0.00005),
        # The file is new, so that there is nothing to read.
        log("O_RDWR|O_CREAT|O_EXCL"),
        log("O_RDWR|O_CREAT|O_TRUNC"),
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


@pytest.mark.parametrize("cache", ["cold", "warm"])
@pytest.mark.parametrize("size", ["aligned", "unaligned"])
def test_the_program_of_page_sized_writes(cache: str, size: str, tmp_path: Path) -> None:
    """On a fast disk, and with O_CREAT for a file that exists. tests/data/reads/README.md has the times that strace measured."""
    with tarfile.open(Path(__file__).parent / "data/reads/stalls.tar.xz") as packed:
        packed.extract(f"{cache}-{size}.strace", tmp_path, filter="data")
    said = reason_of(tmp_path / f"{cache}-{size}.strace")
    if (cache, size) == ("cold", "unaligned"):
        assert "; 60 writes of parts of pages of /tmp/stalls/d/stalls.txt took 38.9 ms, and their thread" in said  # fmt: skip
    else:
        assert "parts of pages" not in said


def test_an_open_that_may_create_says_nothing_of_the_file(tmp_path: Path) -> None:
    assert "12 writes" in reason(tmp_path, log("O_RDWR|O_CREAT"))


def test_a_folder_is_no_direct_io(tmp_path: Path) -> None:
    folder = '8 9.000000 openat(AT_FDCWD, "/d/f", O_RDONLY|O_DIRECTORY) = -1 ENOTDIR (x) <0.000010>'
    assert "12 writes" in reason(tmp_path, log(before=folder))
