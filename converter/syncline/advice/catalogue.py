"""Lists the findings, and parses the head comment of each.

A finding is a file of sql/findings/: a SELECT of its evidence, whose head comment is that of a report. Some of its paragraphs
begin with a name, `Seen:` for example; `Finding` describes them. All findings have the same columns.
"""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass
from pathlib import Path

from syncline.report import Report, catalogue
from syncline.report.answer import CAUSE_SHARE, CAUSE_SYNCS

__all__ = [
    "DELAYS",
    "NEIGHBOURS",
    "OF_KERNEL",
    "SHARED",
    "Finding",
    "UnknownFinding",
    "load",
    "names",
    "shared",
]

# In the order in which they are checked and listed.
_ORDER = (
    *("needless", "fdatasync", "small-files", "rename-file", "rename-folder", "direct-io"),
    *("reads", "background", "neighbour", "unrecorded", "cpu", "rebuildable", "commit", "append"),
)
# Tables that several findings read. Their SQL uses these names.
DELAYS = "_syncline_delay"
NEIGHBOURS = "_syncline_neighbour"
OF_KERNEL = "_syncline_of_kernel"
SHARED = (OF_KERNEL, DELAYS, NEIGHBOURS)
_PARAGRAPH = re.compile(
    r"^(Seen|Cost|Inferred|Instead|Needs|Not checked): (.*?)(?:\n\n|\Z)", re.M | re.S
)
_COMMENT = re.compile(r"\A(--[^\n]*\n)+")


class UnknownFinding(Exception):
    """There is no finding of that name; the message lists the findings."""


@dataclass(frozen=True)
class Finding:
    """A finding: what it looks for, and the SQL of its evidence.

    `seen`: what was seen, with the placeholders `{syncs}`, `{of_syncs}` (`151 syncs`), `{are}` (or `is`) and `{where}`.
    `cost`: how the cost is computed. `inferred`: what no event says; empty if all of it is recorded.
    `instead`: what people do about it.
    `needs`: what an input must hold: `TABLE.COLUMN` with a value, `phase:NAME` that it can show, or `fact:KEY` of `syncline_meta`.
    `not_checked`: why the finding cannot be checked without what it needs, and which route records that.
    `report`: the evidence as a report.
    """

    name: str
    title: str
    description: str
    seen: str
    cost: str
    inferred: str
    instead: str
    needs: tuple[str, ...]
    not_checked: str
    report: Report

    @property
    def page(self) -> str:
        """The section of the documentation."""
        return f"docs/reference/advice.md#{self.name}"


def names() -> list[str]:
    """Returns the names of all findings, in the order of the output."""
    return list(_ORDER)


@functools.cache
def load(name: str) -> Finding:
    """Reads a finding.

    Raises:
        UnknownFinding: there is no finding of that name.
    """
    if name not in _ORDER:
        close = difflib.get_close_matches(name, _ORDER, 1)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise UnknownFinding(f"no finding '{name}'. {hint}The findings are: {', '.join(_ORDER)}.")
    text = (_folder() / f"{name}.sql").read_text(encoding="utf-8")
    parsed = catalogue.parse(name, text)
    said = {
        found[1]: " ".join(found[2].split()) for found in _PARAGRAPH.finditer(parsed.description)
    }
    description = _PARAGRAPH.sub("", parsed.description).strip()
    sql = _filled(_COMMENT.sub("", text))
    report = Report(name, parsed.title, description, parsed.columns, sql)
    return Finding(
        name,
        parsed.title,
        description,
        said["Seen"],
        said["Cost"],
        said.get("Inferred", ""),
        said["Instead"],
        _needs(parsed.description),
        said["Not checked"].rstrip("."),
        report,
    )


def shared(table: str) -> str:
    """Returns the SQL of a table of `SHARED`: the kernel's syncs, which are no evidence; the bystanders that delayed syncs; or the report `neighbours`."""
    if table == NEIGHBOURS:
        return _body("neighbours")
    file = "of-kernel" if table == OF_KERNEL else "delays"
    return _filled(_COMMENT.sub("", catalogue.read_sql("findings/evidence", file))).rstrip(";\n")


def _body(report: str) -> str:
    return _COMMENT.sub("", catalogue.load(report).sql).rstrip().removesuffix(";")


def _needs(description: str) -> tuple[str, ...]:
    """Parses the needs, such as `sync.bios`, `bio.tid`, `fact:page_reads` or `phase:commit wait`: the name of a phase may have blanks."""
    found = next(match[2] for match in _PARAGRAPH.finditer(description) if match[1] == "Needs")
    return tuple(
        re.findall(r"phase:[a-z ]+?(?= \w+\.|$)|fact:\w+|\w+\.\w+", " ".join(found.split()))
    )


def _folder() -> Path:
    return catalogue.sql_root() / "findings"


def _filled(sql: str) -> str:
    """Fills in the placeholders of SQL: the report `bystanders`, the rows of a .tsv file, and the limits from which on something is a cause."""
    if "SELECT :bystanders" in sql:
        sql = sql.replace("SELECT :bystanders", _body("bystanders"))
    if ":patterns" in sql:
        rows = enumerate(catalogue.rows_of_tsv("rebuildable.tsv"))
        sql = sql.replace(
            ":patterns", "), (".join(f"{place}, {_texts(row)}" for place, row in rows)
        )
    sql = sql.replace(":cause_share", str(CAUSE_SHARE)).replace(":cause_syncs", str(CAUSE_SYNCS))
    return sql


def _texts(columns: list[str]) -> str:
    return ", ".join("'" + column.replace("'", "''") + "'" for column in columns)
