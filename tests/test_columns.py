"""The declarations of columns: what is generated from sql/columns.toml is up to date, and mistakes are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import columns


def test_generated_files_are_up_to_date() -> None:
    assert [str(path.relative_to(columns.ROOT)) for path in columns.stale()] == [], (
        "python -m tools.columns"
    )


def test_a_new_column_reaches_every_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = columns.SOURCE.read_text()
    text = text.replace("[sync.flush_ns]", NEW + "[sync.flush_ns]")
    text = text.replace('["journal_ns", "flush_ns"', '["journal_ns", "lock_ns", "flush_ns"')
    source = tmp_path / "columns.toml"
    source.write_text(text)
    monkeypatch.setattr(columns, "SOURCE", source)
    found = {str(path.relative_to(columns.ROOT)): text for path, text in columns.stale().items()}
    assert {path: "lock_ns" in text for path, text in found.items()} == dict.fromkeys(FILES, True)
    assert "  extract_arg(arg_set_id, 'debug.lock_ns') AS lock_ns,\n" in found[FILES[0]]
    assert (
        "  -- Time spent waiting for locks. Null if unknown.\n  lock_ns LONG,\n" in found[FILES[0]]
    )


NEW = """\
[sync.lock_ns]
type = "int"
unit = "ns"
meaning = "Time spent waiting for locks."
null = "Null if unknown."

"""
FILES = (
    "sql/tables/perfetto/sync.sql",
    "converter/syncline/engine/file_columns.py",
    "sql/tables/duckdb/sync.sql",
    "sql/commands/inspect/known.sql",
    "converter/core/src/rows/columns.rs",
    "converter/syncline/report/recorded_by.py",
    "docs/reference/tables.md",
    "docs/reference/inspect.md",
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('type = "uint"', 'type = "u64"', "sync.id: no type 'u64'"),
        ("[sync.bios]", "[sync.bios_ns]", "sync.bios_ns: a column in ns"),
        ('"Path of the file."', '"Path of the file"', "sync.path: not a sentence"),
        (
            'columns = ["path"]',
            'columns = ["paths"]',
            "recorded_by: unknown or listed twice: paths",
        ),
        ('["dur_ns", "ret"]', '["ret"]', "add to a [[recorded_by]] group: dur_ns"),
        ("[bio.sector]\n", "[bio.lba]\nexpression = true\n", "bio.sql: no expression `... AS lba`"),
    ],
)
def test_mistakes_are_reported(
    old: str, new: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = columns.SOURCE.read_text()
    assert old in text
    source = tmp_path / "columns.toml"
    source.write_text(text.replace(old, new, 1))
    monkeypatch.setattr(columns, "SOURCE", source)
    with pytest.raises(ValueError, match=r"columns\.toml|bio\.sql") as caught:
        columns.stale()
    assert message in str(caught.value)
