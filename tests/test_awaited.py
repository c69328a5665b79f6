"""What a recording waits for because a filter names it, and the size at which it ends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from syncline.record import awaited, session
from syncline.record.awaited import Awaited
from syncline.record.recorders import Recorders
from syncline.record.watch import Scanner
from syncline.run_directory import Filter


class Machine:
    """Processes by id: control group and names of threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups = {1: "/init.scope", 5: "/system.slice/postgresql.service"}
        self.scanner = Scanner()
        self.scanner.maps._comms = {1: {"systemd"}, 5: {"postgres", "checkpointer"}}
        self.recorders = Recorders()
        self.recorders.ring = SimpleNamespace(comms={})  # type: ignore[assignment]
        self.said: list[str] = []
        self.scanned: list[int] = []
        self.scanner.tasks.scan = lambda pids, again=True: self.scanned.extend(pids)  # type: ignore[method-assign]
        monkeypatch.setattr(awaited, "all_processes", lambda: [*self.groups])
        monkeypatch.setattr(awaited, "cgroup", lambda pid: self.groups[pid])

    def await_(self, wanted: Filter) -> Awaited:
        return Awaited(wanted, self.scanner, self.recorders, self.said.append)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.mark.parametrize(
    "wanted",
    [Filter(), Filter(cgroup="/system.slice"), Filter(cgroup="postgres"), Filter(comm="checkpointer")],
)  # fmt: skip
def test_what_exists_is_not_waited_for(wanted: Filter, here: Machine) -> None:
    found = here.await_(wanted)
    assert (found.missing, here.said) == ({}, [])


def test_a_control_group_may_come_later(here: Machine) -> None:
    """A container's first process is started elsewhere and moved, so its group is read once more."""
    found = here.await_(Filter(cgroup="/system.slice/postgres.service"))
    assert here.said == [
        "waiting for a process in a control group /system.slice/postgres.service, because there is none yet;"
        " did you mean /system.slice/postgresql.service?"
    ]
    found.look_if_due()
    assert found.missing
    here.groups[9] = "/system.slice/postgres.service"
    found._next = 0
    found.look_if_due()
    assert not found.missing
    assert here.scanned == [9]
    assert here.said[1:] == [
        "there is a process in a control group /system.slice/postgres.service now"
    ]


@pytest.mark.parametrize("where", ["process", "event"])
def test_a_name_may_come_later(where: str, here: Machine) -> None:
    found = here.await_(Filter(comm="wal"))
    assert here.said == ["waiting for a thread named wal, because there is none yet"]
    if where == "process":
        here.scanner.maps._comms[7] = {"wal"}
    else:
        here.recorders.ring.comms[70] = "wal"  # type: ignore[union-attr]
    found.look_if_due()
    assert (found.missing, here.said[1:]) == ({}, ["there is a thread named wal now"])


def test_looking_takes_little_of_a_cpu(here: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that takes 100 ms is followed by none for 2 s."""
    found = here.await_(Filter(cgroup="x"))
    clock = iter([100.0, 100.1])
    monkeypatch.setattr(awaited.time, "monotonic", lambda: next(clock))
    found.look_if_due()
    assert found._next == pytest.approx(102.1)


def test_a_recording_ends_at_its_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 600)
    for limit, expected in ((None, None), (601, None), (600, "disk"), (1, "disk")):
        assert session._Disk(tmp_path, limit).look_if_due() == expected
    disk = session._Disk(tmp_path, 1000)
    assert disk.look_if_due() is None
    (tmp_path / "b").write_bytes(b"x" * 400)
    # It looks twice a second at most.
    assert disk.look_if_due() is None
    disk._next = 0
    assert disk.look_if_due() == "disk"
