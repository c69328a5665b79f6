"""Limits of control groups: what the recorder reads, and what the answer says of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.record.limits import Limits
from syncline.recordings import read_recording
from syncline.render import answer as rendered

from tests.test_answer import Log, read


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """A hierarchy as the kernel shows it: /bg.slice has limits, /bg.slice/io has none of its own, and /free has none at all."""
    root = tmp_path / "cgroup"
    for name in ("bg.slice/io", "free"):
        (root / name).mkdir(parents=True)
    (root / "bg.slice/io.max").write_text("8:0 rbps=max wbps=10485760 riops=max wiops=max\n")
    (root / "bg.slice/cpu.max").write_text("50000 100000\n")
    for name in ("bg.slice/io", "free"):
        (root / name / "io.max").write_text("")
        (root / name / "cpu.max").write_text("max 100000\n")
        (root / name / "cpu.weight").write_text("100\n")
        (root / name / "io.weight").write_text("default 100\n")
    return root


def recorded(limits: Limits, folder: Path) -> dict[str, str]:
    """What a run says whose recorder found these limits."""
    folder.mkdir()
    (folder / "strace.log").write_text("")
    inputs = [{"file": "strace.log", "source": "strace"}]
    (folder / "manifest.json").write_text(json.dumps({"schema_version": 1, "inputs": inputs}))
    limits.write(folder / "limits.json")
    return read_recording(str(folder)).limits


def test_a_group_has_the_limits_of_those_above_it(groups: Path, tmp_path: Path) -> None:
    limits = Limits(groups)
    limits.see("/bg.slice/io")
    limits.see("/free")
    own = "cpu.max of /bg.slice: 50000 100000; io.max of /bg.slice: wbps=10485760 on 8:0"
    assert recorded(limits, tmp_path / "run") == {
        "/": "none",
        "/bg.slice": own,
        "/bg.slice/io": own,
        "/free": "none",
    }


def test_a_limit_that_changes_has_both_values(groups: Path, tmp_path: Path) -> None:
    limits = Limits(groups)
    limits.see("/bg.slice")
    (groups / "bg.slice/io.max").write_text("")
    (groups / "bg.slice/cpu.max").write_text("20000 100000\n")
    assert recorded(limits, tmp_path / "run")["/bg.slice"] == (
        "cpu.max of /bg.slice: 50000 100000, at the end 20000 100000;"
        " io.max of /bg.slice: wbps=10485760 on 8:0, at the end not set"
    )


def test_a_group_that_is_gone_keeps_what_was_read(groups: Path, tmp_path: Path) -> None:
    limits = Limits(groups)
    limits.see("/bg.slice")
    for name in ("io/io.max", "io/cpu.max", "io/cpu.weight", "io/io.weight", "io.max", "cpu.max"):
        (groups / "bg.slice" / name).unlink()
    (groups / "bg.slice/io").rmdir()
    (groups / "bg.slice").rmdir()
    # Never seen while it was there.
    limits.see("/short")
    assert recorded(limits, tmp_path / "run") == {
        "/": "none",
        "/bg.slice": "cpu.max of /bg.slice: 50000 100000; io.max of /bg.slice: wbps=10485760 on 8:0",
    }


def queued(tmp_path: Path, limits: dict[str, str]) -> str:
    """What the answer says of three syncs of /g whose bios are queued for 2000 us each at a device that does nothing."""
    log = Log()
    for number in range(3):
        at = 1_000_000 + 10_000 * number
        log.sync(at, "d/a", 5, (number,), length=2100)
        sector = 8 * (500 + number)
        log.add(at + 2010, "kworker/0:1-50", f"block_rq_issue: 254,16 WS 4096 () {sector} + 8 [kworker/0:1]")  # fmt: skip
    (tmp_path / "x.txt").write_text(log.text())
    for output in ("tables/", "out.pftrace"):
        _core.convert([str(tmp_path / "x.txt")], f"{tmp_path}/{output}", limits=limits)
    said = set()
    for path, engine in (("tables", "duckdb"), ("out.pftrace", "embedded")):
        found = read(tmp_path / path, engine)
        assert found.idle_queue is not None
        assert found.limits == limits
        queue = {**found.idle_queue, "cgroup": "/g", "cgroups": 1}
        said.add(str(rendered.sentences(replace(found, idle_queue=queue))["phases"]))
    (only,) = said
    return only


def test_the_answer_names_the_limit_of_the_group_that_was_queued(tmp_path: Path) -> None:
    of = {"/g": "cpu.max of /g: 50000 100000; io.max of /g: wbps=9 on 8:0", "/h": "none"}
    said = queued(tmp_path, of)
    assert said.endswith(" Recorded limits: io.max of /g: wbps=9 on 8:0.")


@pytest.mark.parametrize(
    ("limits", "want"),
    [
        ({}, " Limits are not recorded."),
        ({"/h": "io.max of /h: wbps=9 on 8:0"}, " Limits are not recorded."),
        ({"/g": "none"}, " No such limit is set for the group."),
        ({"/g": "cpu.max of /g: 1 2"}, " No such limit is set for the group."),
    ],
)
def test_the_answer_says_whether_limits_were_read(
    limits: dict[str, str], want: str, tmp_path: Path
) -> None:
    assert queued(tmp_path, limits).endswith(want)


@pytest.mark.parametrize(
    ("group", "limits", "want"),
    [
        ("/g", {"/g": "cpu.max of /: 1 2"}, "because of a limit: cpu.max of /: 1 2."),
        ("/g", {"/g": "io.max of /g: wbps=9 on 8:0"}, None),
        ("/g", {"/g": "none"}, None),
        (
            "/g",
            {},
            "(cpu.max) makes threads of the control group /g wait for a CPU is not recorded.",
        ),
        # Nothing limits the root.
        ("/", {}, None),
    ],
)
def test_a_wait_for_a_cpu_names_the_limit(
    group: str, limits: dict[str, str], want: str | None, tmp_path: Path
) -> None:
    log = Log()
    log.sync(1_000_000, "d/a", 5, (0,))
    (tmp_path / "x.txt").write_text(log.text())
    _core.convert([str(tmp_path / "x.txt")], f"{tmp_path}/tables/")
    found = read(tmp_path / "tables", "duckdb")
    waits: dict[str, Any] = {"cgroup": group, "wait_ns": 1000}
    plain = rendered.sentences(found)["phases"]
    said = rendered.sentences(replace(found, cpu_wait=waits, limits=limits))["phases"]
    assert said == plain if want is None else said.endswith(want)


@pytest.mark.parametrize(
    ("limits", "mappers", "want"),
    [
        ({}, [], "a limit of a control group, which is not recorded, reads, another partition"),
        ({"/g": "none"}, [], "queued: reads, another partition"),
        (
            {"/g": "io.max of /g: wbps=9 on 8:0", "/h": "io.max of /g: wbps=9 on 8:0"},
            ["dm-0"],
            "queued: the device mapper (dm-0), a limit (io.max of /g: wbps=9 on 8:0), reads, another",
        ),
    ],
)
def test_what_may_have_held_bios_back_has_limits_and_mappers(
    limits: dict[str, str], mappers: list[str], want: str, tmp_path: Path
) -> None:
    log = Log()
    # A cause is asked for from three syncs on.
    for start in (1_000_000, 1_010_000, 1_020_000):
        log.sync(start, "d/a", 5, (0,), length=2100)
        issued = "block_rq_issue: 254,16 WS 4096 () 4000 + 8 [kworker/0:1]"
        log.add(start + 2_010, "kworker/0:1-50", issued)
    (tmp_path / "x.txt").write_text(log.text())
    _core.convert([str(tmp_path / "x.txt")], f"{tmp_path}/tables/")
    found = read(tmp_path / "tables", "duckdb")
    rows = [{"device": name, "bios": 0} for name in mappers]
    found = replace(found, idle_queue=None, limits=limits, mappers=rows)
    assert want in rendered.sentences(found)["neighbours"]
