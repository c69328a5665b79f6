"""The comparison with other tools: it finds what Syncline counts otherwise, and says why."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from tools import corpus

DATA = Path(__file__).parent / "data"
TOOLS = {"tracecmd": "trace-cmd", "blktrace": "blkparse"}


@pytest.mark.parametrize(
    "files",
    [
        ["tracecmd/small4.dat"],
        ["blktrace/uring.blktrace.0", "blktrace/uring.blktrace.1"],
        ["blktrace/uring.blkparse.txt.gz"],
        ["ftrace/small4.trace.txt.gz"],
        ["several-recorders/perf.txt.gz"],
        ["strace/odd-day.log"],
        ["bpf/patched.log.gz"],
        ["thesis/small4.log"],
    ],
    ids=lambda files: files[0],
)
def test_counts_are_those_of_other_tools(files: list[str]) -> None:
    tool = TOOLS.get(files[0].split("/")[0])
    if tool and not files[0].endswith(".gz") and not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    result = corpus.compare([DATA / name for name in files], DATA)
    assert result.theirs.total() > 100
    assert not result.differences()
    assert result.is_explained()


def test_a_difference_has_the_reason_that_syncline_gives(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "ftrace" / "small4.trace.txt.gz").read_bytes())
    log = tmp_path / "torn.txt"
    # Two ends of requests without the return value, which Syncline needs.
    log.write_bytes(text.replace(b" ret 0\n", b"\n", 2))
    result = corpus.compare([log], tmp_path)
    ours, theirs = result.ours["ext4_sync_file_exit"], result.theirs["ext4_sync_file_exit"]
    assert result.differences() == [("ext4_sync_file_exit", ours, ours + 2)]
    assert theirs == ours + 2
    assert "2 unparsed_line" in result.reasons
    assert result.is_explained()
    result.reasons.clear()
    assert not result.is_explained()
