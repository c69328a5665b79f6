"""What programs are told: the schema against the engine's own columns, errors as JSON, and the page for agents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from syncline.inputs import Reading, opened
from syncline.report import catalogue, schema

from tests.coretools import ROOT
from tests.test_commands import ok

SYNCLINE = Path(sys.executable).parent / "syncline"
SMALL4 = ROOT / "tests" / "data" / "thesis" / "small4.log"


def test_the_schema_has_the_columns_of_the_engine() -> None:
    found = {table["name"]: table for table in schema.tables()}
    with opened(str(SMALL4), Reading(), engine="duckdb") as engine:
        for name, table in found.items():
            columns = engine.query(f"SELECT * FROM {name} LIMIT 0").columns
            assert [column["name"] for column in table["columns"]] == [*columns], name
    # The tables of docs/reference/tables.md, each with a heading of its own.
    page = (ROOT / "docs" / "reference" / "tables.md").read_text()
    assert {*found} == {*re.findall(r"^## (syncline_\w+)", page, re.M)}


def test_units_and_nulls_are_those_that_are_declared() -> None:
    declared = tomllib.loads((ROOT / "sql" / "columns.toml").read_text())
    found = {table["name"].removeprefix("syncline_"): table for table in schema.tables()}
    checked = 0
    for name, columns in declared.items():
        if name == "recorded_by":
            continue
        by_name = {column["name"]: column for column in found[name]["columns"]}
        for column, said in columns.items():
            of_time = "ns" if said["type"] in ("timestamp", "duration") else None
            assert by_name[column]["unit"] == said.get("unit", of_time), (name, column)
            assert (by_name[column]["null"] == "Never null.") == ("null" not in said), (
                name,
                column,
            )
            checked += 1
    assert checked > 100


def test_the_schema_as_json() -> None:
    whole = json.loads(ok("schema", "--format", "json"))
    assert [report["name"] for report in whole["reports"]] == catalogue.names()
    assert all(column["unit"] and column["meaning"] for report in whole["reports"] for column in report["columns"])  # fmt: skip
    one = json.loads(ok("schema", "bio", "--format", "json"))
    assert [table["name"] for table in one["tables"]] == ["syncline_bio"]


def said(*arguments: str | Path) -> tuple[int, list[dict[str, dict[str, object]]], str]:
    """The exit code, the objects on stderr, and stdout of a command of its own process."""
    done = subprocess.run([SYNCLINE, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines()], done.stdout


def test_errors_as_json(tmp_path: Path) -> None:
    code, (line,), out = said("report", "nosuch.log", "--json")
    assert (code, line["error"]["code"], out) == (3, 3, "")
    assert "no such file" in str(line["error"]["message"])
    assert line["error"]["hint"]
    code, (line,), _ = said("report", SMALL4, "--nope", "--json")
    assert (code, line["error"]["code"]) == (2, 2)
    code, lines, _ = said("query", SMALL4, "SELECT\n nope FROM syncline_sync", "--json")
    assert lines[-1]["error"]["place"] == {
        "file": None,
        "line": 2,
        "text": " nope FROM syncline_sync",
    }
    marks = tmp_path / "marks.csv"
    marks.write_text("time,name\n1,a\nx,b\n")
    code, lines, _ = said("report", SMALL4, "marks", "--marks", marks, "--json")
    assert lines[-1]["error"]["place"]["file"] == str(marks)  # type: ignore[index]
    assert lines[-1]["error"]["place"]["line"] == 3  # type: ignore[index]


def test_results_and_warnings_as_json() -> None:
    code, lines, out = said("report", SMALL4, "files", "--json")
    assert code == 0
    assert json.loads(out)["report"] == "files"
    # The log lost the completions of 15 bios.
    assert [key for line in lines for key in line] == ["warning"]


def test_the_page_for_agents_names_commands_that_exist(tmp_path: Path) -> None:
    page = ok("schema", "--agents")
    assert len(page.splitlines()) < 60
    names = re.findall(r"`syncline (\w+)", page)
    for name in {*names}:
        ok(name, "--help")
    for report in re.findall(
        r"`([a-z-]+)`", page[page.index("a neighbour:") : page.index("5. **")]
    ):
        catalogue.load(report)
    whole = json.loads(ok("report", SMALL4, "--format", "json"))
    for key in ("causes", "phases_ns", "caveats", "next", "sentences"):
        assert f"`{key}`" in page or f"`{key}." in page
        assert key in whole
