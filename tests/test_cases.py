"""Minimal inputs that were once answered wrongly, and what is right for them: see tests/data/pasted and tests/data/lost."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.coretools import ROOT, Rows, tables
from tests.test_commands import run

DATA = ROOT / "tests" / "data"
FOLDERS = ("pasted", "lost")


def lines(name: str) -> Iterator[dict[str, str]]:
    for folder in FOLDERS:
        text = (DATA / folder / f"{name}.tsv").read_text().splitlines()
        without_comments = [line for line in text if not line.startswith("#")]
        for line in csv.DictReader(without_comments, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield {**line, "folder": folder}


def named(line: dict[str, str]) -> str:
    return f"{line['folder']}-{line['case']}-{line['table']}"


@cache
def converted(folder: str, inputs: str, out: Path) -> dict[str, Rows]:
    where = DATA / folder
    where = where if folder == "pasted" else where / inputs.split("/")[0]
    arguments = shlex.split(inputs.split("/")[-1])
    target = out / f"cases-{folder}-{inputs.replace('/', '-')}"
    done = run("convert", "-q", *arguments, "-o", f"{target}/", cwd=where)
    assert done.returncode == 0, done.stderr
    return tables(target)


def expected(text: str, rows: int) -> list[str | None]:
    """One value for all rows, or one for each. A device, such as `259,0`, is one value."""
    values = text.split(",")
    if len(values) != rows and len(values) > 1:
        values = [text]
    each = values * rows if len(values) == 1 else values
    return [None if value == "-" else value.replace("_", " ") for value in each]


def shown(value: Any) -> str | None:
    return None if value is None else str(value).replace("_", " ")


@pytest.mark.parametrize("line", [*lines("expected")], ids=named)
def test_a_case_gives_what_is_right(
    line: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    inputs = line["inputs"] if line["folder"] == "pasted" else f"{line['case']}/{line['inputs']}"
    rows = converted(line["folder"], inputs, tmp_path_factory.getbasetemp())[line["table"]]
    pairs = dict(pair.split("=", 1) for pair in line["values"].split())
    if line["table"] == "loss":
        counts = {row["reason"]: row["count"] for row in rows}
        assert {reason: counts.get(reason, 0) for reason in pairs} == {
            reason: int(count) for reason, count in pairs.items()
        }
        return
    rows = sorted(rows, key=lambda row: row["ts_ns"])
    assert len(rows) == int(line["rows"])
    for column, text in pairs.items():
        found = [shown(row[column]) for row in rows]
        assert found == expected(text, len(rows)), column


def test_each_input_is_in_a_table() -> None:
    used = {(line["folder"], line["case"]) for line in lines("expected")}
    used |= {(line["folder"], line["case"]) for line in lines("said")}
    pasted = {path.name for path in (DATA / "pasted").glob("*.txt")}
    for name in pasted:
        assert any(folder == "pasted" and name.startswith(case) for folder, case in used), name
    for path in (DATA / "lost").iterdir():
        assert not path.is_dir() or ("lost", path.name) in used, path.name


@pytest.mark.parametrize(
    "line",
    [*lines("said")],
    ids=lambda line: f"{line['folder']}-{line['case']}-{line['command']}",
)
def test_a_case_is_answered_in_true_sentences(line: dict[str, str], tmp_path: Path) -> None:
    """What a command says of an input, and what it must not say."""
    where = DATA / line["folder"] / (line["case"] if line["folder"] == "lost" else "")
    done = run(*shlex.split(line["command"].replace("OUT", str(tmp_path))), cwd=where)
    text = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == int(line["code"]), text
    for sentence in filter(None, line["says"].split(" | ")):
        assert sentence in text
    for sentence in filter(None, line["never"].split(" | ")):
        assert sentence not in text
