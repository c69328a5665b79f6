"""No figure that is marked exact and complete differs from that of the complete recording, whatever an input lacks: see tests/missing."""

from __future__ import annotations

import csv
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from syncline import _core
from syncline.report.inspect import _GRANTED

from tests.coretools import ROOT
from tests.missing import lists, oracle
from tests.missing.drops import Loss, kinds
from tests.missing.kinds import GROUPS, PATTERNS
from tests.missing.oracle import Row, Tables
from tests.missing.recordings import FACTS, Recording, recordings
from tests.missing.run import MEMORY, QUICK, RANDOM, Plan, Result, try_all

HERE = Path(__file__).parent / "missing"
KINDS = {kind for kind, _ in PATTERNS} | {"beginning", "rest", "id", "read", "block flush"}


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def with_facts(facts: str) -> list[Recording]:
    return [recording for recording in recordings().values() if recording.facts == facts]


@pytest.mark.parametrize("facts", FACTS)
def test_the_recordings_are_complete(facts: str, memory: Path) -> None:
    assert with_facts(facts)
    for recording in with_facts(facts):
        whole = oracle.convert(memory, recording.text(recording.events), recording.source)
        # The scripts of bpf/ end their logs with a line that a part of them lacks.
        assert oracle.is_complete(whole, ignoring=("cut_off",)) == [], recording.name
        assert oracle.compare(whole, whole) == []
        assert whole["sync"] or whole["bio"]


def tried(facts: str, plan: Plan, memory: Path) -> Result:
    """What a plan shows. Nothing that is exact and complete may differ without a line of a list."""
    result = Result()
    for recording in with_facts(facts):
        try_all(recording, plan, memory, result)
    assert [
        f"{loss.recording.name} without {loss.detail}: {violation}"
        for loss, violation in result.violations
    ] == []
    return result


@pytest.mark.parametrize("facts", FACTS)
def test_what_is_exact_and_complete_is_that_of_the_complete_recording(
    facts: str, memory: Path
) -> None:
    result = tried(facts, QUICK, memory)
    listed = [entry for entry in lists.known() if facts in entry.facts and entry.seen_in == "quick"]
    unseen = [entry for entry in listed if not seen(entry, facts, result)]
    assert unseen == [], "these are no longer wrong: remove them from known.tsv"
    assert len(result.tried) > 40


@pytest.mark.parametrize("facts", FACTS)
def test_random_losses_leave_what_is_exact_and_complete(facts: str, memory: Path) -> None:
    """Random shares of random kinds of events, the same ones each time."""
    result = tried(facts, RANDOM, memory)
    assert len(result.tried) == RANDOM.random * len(with_facts(facts))


def seen(entry: lists.Entry, facts: str, result: Result) -> bool:
    return any(loss.recording.facts == facts for loss, _ in result.covered.get(entry, []))


@pytest.mark.parametrize("name", ["limits", "known"])
def test_the_lists_name_what_there_is(name: str) -> None:
    for entry in lists.read(name):
        assert set(entry.facts) <= {*FACTS, *recordings()}, entry
        assert set(entry.missing) <= KINDS, entry
        assert entry.scope in ("all", "name", "first", "one", "some", "any") or entry.missing == (
            "id",
        )
        assert all("." in name or name.startswith("sum of ") for name in entry.columns), entry
        assert entry.reason.endswith("."), entry


def test_each_limit_names_what_the_user_sees() -> None:
    """The sentence of a format, a reason, or what `inspect` says is taken for granted."""
    granted = set(_GRANTED)
    reasons = (ROOT / "docs" / "reference" / "loss-reasons.md").read_text()
    for entry in lists.limits():
        for shown in entry.shown.split(", "):
            kind, _, reason = shown.partition(" ")
            if kind == "format":
                sources = {
                    source
                    for facts in entry.facts
                    for source in FACTS.get(facts) or {recordings()[facts].source}
                }
                assert sources <= set(_core.HIDDEN_LOSSES)
            elif kind == "loss":
                assert f"| `{reason}` |" in reasons, entry
            else:
                assert kind in granted or kind == "phases", entry
    assert {name for entry in lists.limits() for name in entry.shown.split(", ")} >= granted


# What the output must say.


def said() -> list[dict[str, str]]:
    """The lines of `missing.tsv`."""
    with (HERE / "missing.tsv").open(encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#"))
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def without(recording: Recording, missing: str) -> Loss | None:
    """The recording without a kind, or a group of kinds."""
    return next((loss for loss in kinds(recording) if loss.detail == f"all: {missing}"), None)


def known_values(tables: Tables, column: str) -> tuple[int, int]:
    """How many rows have the column, and how many of them a value. Only bios that write data count: flushes, reads and
    requests of the block layer are rows of their own.
    """
    table, name = column.split(".")
    rows = [row for row in tables[table] if row.get("direction") not in ("flush", "read")]
    values = [row[name] for row in rows if not row.get("is_request")]
    return len(values), sum(value is not None for value in values)


def reasons(rows: list[Row]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in rows}


@pytest.mark.parametrize("line", said(), ids=lambda line: f"{line['facts']}-{line['missing']}")
def test_the_output_says_what_is_missing(line: dict[str, str], memory: Path) -> None:
    tried = 0
    for recording in with_facts(line["facts"]):
        loss = without(recording, line["missing"])
        if loss is None:
            continue
        tried += 1
        whole = oracle.convert(memory, recording.text(recording.events), recording.source)
        try:
            part = oracle.convert(memory, recording.text(loss.events), recording.source)
        except _core.CoreError as error:
            assert "is a sync call" in str(error)
            continue
        before, after = reasons(whole["loss"]), reasons(part["loss"])
        expected = [reason for reason in line["reasons"].split(", ") if reason]
        found = [reason for reason in expected if after.get(reason, 0) > before.get(reason, 0)]
        assert found or not expected, (recording.name, after)
        for column in line["null"].split(", ") if line["null"] else ():
            assert known_values(whole, column)[1] > 0 or len(with_facts(line["facts"])) > 1
            assert known_values(part, column)[1] == 0, (recording.name, column)
    assert tried > 0


def test_the_table_has_each_kind_of_each_recording() -> None:
    """What is in no line of the table changes no figure, or is in the list of limits."""
    listed = {(line["facts"], line["missing"]) for line in said()}
    needed: dict[str, set[str]] = defaultdict(set)
    for recording in recordings().values():
        needed[recording.facts] |= set(recording.kinds) - {"note", "other"}
    silent = {"merge", "read", "pass", "commit request", "process", "close", "remap", "block flush"}
    for facts, present in needed.items():
        lacking = {kind for kind in present - silent if (facts, kind) not in listed}
        assert lacking == set(), facts
    assert {missing for _, missing in listed} <= KINDS | set(GROUPS)
