"""The bpftrace recorders: scripts match their parts, and recordings are read without a loss."""

from __future__ import annotations

import gzip
import json
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from syncline.record.sync_calls import SYNC_CALLS

from tests.coretools import ROOT, convert, core

RECORDINGS = sorted((ROOT / "tests" / "data" / "bpf").glob("*.log*"))


def text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def syncline(*arguments: str | Path) -> str:
    command = [str(Path(sys.executable).parent / "syncline"), *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def test_the_scripts_are_up_to_date() -> None:
    subprocess.run([sys.executable, str(ROOT / "bpf" / "generate.py"), "--check"], check=True)


def test_the_scripts_trace_the_calls_that_record_traces() -> None:
    assert tuple(runpy.run_path(str(ROOT / "bpf" / "generate.py"))["CALLS"]) == SYNC_CALLS


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_a_recording_has_every_line_that_the_recorder_counted(path: Path) -> None:
    log = text(path)
    assert log.startswith("# syncline-log 1\n")
    assert re.search(r"^# end \d+$", log, re.MULTILINE)
    counted = {
        event: int(n) for event, n in re.findall(r"^@events\[(\w+)\]: (\d+)$", log, re.MULTILINE)
    }
    assert counted
    for event, n in counted.items():
        lines = re.findall(rf"^\d+ \d+ (?:-|.*\\x00) {event}(?: .*)?$", log, re.MULTILINE)
        assert len(lines) == n, event


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_a_recording_is_read_without_a_loss(path: Path) -> None:
    losses = json.loads(syncline("report", path, "losses", "--format", "json"))
    rows = losses["rows"] if isinstance(losses, dict) else losses
    assert [row for row in rows if row["severity"] == "loss"] == []


def test_the_amount_is_known_without_folios(tmp_path: Path) -> None:
    """Tracepoints of a stock kernel record bytes but no folios."""
    data = gzip.decompress((ROOT / "tests/data/bpf/stock-tracepoints.log.gz").read_bytes())
    bytes_by_id: Counter[int] = Counter()
    for line in data.decode().splitlines():
        if found := re.search(r" bio_submit id (\d+) .* bytes (\d+)", line):
            bytes_by_id[int(found[1])] += int(found[2])
    for form in (data, convert(tmp_path, data, "x.events.jsonl").read_bytes()):
        tables = core(tmp_path, form)
        for row in tables["sync"]:
            assert row["bytes"] == bytes_by_id[row["id"]], row
            expected = 0 if row["bios"] == 0 else None
            assert (row["folios"], row["ranges"]) == (expected, expected), row
        assert sum(row["bytes"] for row in tables["sync"]) == 494_080
        assert sum(row["bytes"] for row in tables["bio"]) == bytes_by_id.total()
        assert {row["folios"] for row in tables["bio"]} == {None}


@pytest.mark.parametrize("name", ["stock.log.gz", "stock-0.17.log.gz"])
def test_the_bytes_of_bios_are_those_that_were_submitted(name: str, tmp_path: Path) -> None:
    # Bios of a journal and of metadata have no folio of a file.
    log = gzip.decompress((ROOT / "tests/data/bpf" / name).read_bytes())
    submitted = re.findall(r" bio_submit .* dev (\S+) .* bytes (\d+)", log.decode())
    want: Counter[str] = Counter()
    for dev, size in submitted:
        want[dev] += int(size)
    bios = core(tmp_path, log)["bio"]
    have: Counter[str] = Counter()
    for bio in bios:
        have[bio["dev"]] += bio["bytes"] or 0
    assert have == want
    assert {bio["folios"] for bio in bios if bio["comm"].startswith("jbd2/")} == {None}


def test_the_low_level_log_keeps_the_losses_of_its_log(tmp_path: Path) -> None:
    lines = gzip.decompress((ROOT / "tests/data/bpf/patched.log.gz").read_bytes()).splitlines(True)
    removed = [i for i, line in enumerate(lines) if b" bio_add_folio " in line][10:13]
    torn = b"".join(line for i, line in enumerate(lines) if i not in removed)
    cut = b"".join(lines[: removed[0]])
    for log, expected in ((torn, {"missing_event": 3}), (cut, {"cut_off": 1})):
        found = []
        for form in (log, convert(tmp_path, log, "x.events.jsonl").read_bytes()):
            losses = {row["reason"]: row["count"] for row in core(tmp_path, form)["loss"]}
            found.append({reason: losses.get(reason, 0) for reason in ("missing_event", "cut_off")})
        assert found == [{"missing_event": 0, "cut_off": 0} | expected] * 2
