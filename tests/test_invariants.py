"""The rules of tests/invariants.py, on every recording in tests/data."""

from __future__ import annotations

from pathlib import Path

import pytest
from syncline import _core
from syncline.errors import InputError
from syncline.reading import Reading

from tests import coretools, invariants
from tools.alarms import recordings


def test_the_rules_hold_for_every_recording(tmp_path: Path) -> None:
    scratch = tmp_path / "runs"
    scratch.mkdir()
    checked = 0
    broken = []
    for number, (name, path) in enumerate(recordings(scratch)):
        out = f"{tmp_path}/{number}"
        try:
            Reading().convert([str(path)], f"{out}/")
        except (_core.CoreError, InputError):
            # Some hold no sync, which is an error.
            continue
        try:
            invariants.check(coretools.tables(Path(out)))
        except AssertionError as error:
            broken.append((name, str(error)))
        checked += 1
    assert not broken
    assert checked > 150


WHOLE = {
    "sync": [
        {"sync_id": 1, "ts_ns": 100, "start_ns": 110, "dur_ns": 90, "syscall_ns": 95, "op": "fsync"}
        | {"before_submit_ns": 10, "writeback_ns": 50, "after_complete_ns": 20, "ret": 0}
        | {"bytes": 4096, "bios": 1, "confidence": "exact", "incomplete": None}
    ],
    "bio": [
        {"bio_id": 1, "sync_id": 1, "ts_ns": 120, "dur_ns": 50, "queue_ns": 20, "device_ns": 30}
        | {"requeue_ns": None, "bytes": 4096, "direction": "write", "incomplete": None}
    ],
    "phase": [{"sync_id": 1, "number": 1, "phase": "other", "ts_ns": None, "dur_ns": 80}],
}


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ("sync", {"after_complete_ns": -1}),
        ("sync", {"before_submit_ns": 11}),
        ("sync", {"bytes": 8192}),
        ("sync", {"bios": 2}),
        ("bio", {"dur_ns": 49}),
        ("bio", {"dur_ns": 81, "device_ns": 61}),
        ("bio", {"incomplete": "end"}),
        ("phase", {"dur_ns": 79}),
    ],
)
def test_each_rule_can_be_broken(table: str, changes: dict[str, object]) -> None:
    invariants.check(WHOLE)
    broken = WHOLE | {table: [WHOLE[table][0] | changes]}
    with pytest.raises(AssertionError):
        invariants.check(broken)
