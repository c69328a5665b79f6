"""Writes the table of reports by kind of recording into docs/reference/formats.md: `python -m tools.formats_page`.

Each column is a recording of tests/data, and each cell what `syncline inspect` says of the report there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "formats.md"
_BEGIN = "<!-- reports: written by `python -m tools.formats_page` -->\n"
_END = "<!-- reports: end -->\n"
RECORDINGS = {
    "`dynamic-events`": "dynamic-events/ext4.txt.gz",
    "kernel patch": "ftrace/small4.trace.txt.gz",
    "bpftrace": "thesis/small4.log",
    "tracepoints": "perf/stacks.txt.gz",
    "block layer": "blktrace/rename.blkparse.txt.gz",
    "function_graph": "function-graph/ext4.txt",
    "strace": "strace/small4.log",
    "perf trace": "perf-trace/all.txt",
    "slow calls": "slower/libbpf-ext4.txt",
    "biosnoop": "biosnoop/libbpf.txt",
}
_SHOWN = {"full": "yes", "part": "part", "no": ""}


def answers(recording: str) -> dict[str, str]:
    """What `inspect` says of each report on a recording: `full`, `part` or `no`."""
    program = Path(sys.executable).with_name("syncline")
    command = [program, "inspect", ROOT / "tests/data" / recording, "--format", "json"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    [found] = json.loads(said)["inputs"]
    return {report["report"]: report["answer"] for report in found["reports"]}


def text() -> str:
    """Returns the page with the table."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    columns = [answers(recording) for recording in RECORDINGS.values()]
    head = f"| report | {' | '.join(RECORDINGS)} |\n|---|{'---|' * len(RECORDINGS)}\n"
    rows = "".join(
        f"| `{report}` | {' | '.join(_SHOWN[column[report]] for column in columns)} |\n"
        for report in columns[0]
    )
    return f"{before}{_BEGIN}{head}{rows}{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(text())
