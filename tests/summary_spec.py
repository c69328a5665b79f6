"""Writes sql/perfetto/summary.textproto, the TraceSummarySpec, from the reports: `python -m tests.summary_spec`.

Its SQL is that of the reports, word for word, so its figures are theirs.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from syncline.diff.metrics import NO_DIRECTION
from syncline.report import Column, Report, load

FILE = Path(__file__).parents[1] / "sql" / "perfetto" / "summary.textproto"
TABLES = ("bio", "call", "loss", "mark", "meta", "parallel", "sync")
# Report, what its metrics are called, and which columns say what of.
REPORTS = (
    ("summary", "syncline_summary", ("metric", "scope", "unit")),
    ("files", "syncline_by_file", ("path",)),
    ("threads", "syncline_by_thread", ("tid", "pid", "comm", "process")),
    ("empty", "syncline_by_caller", ("comm", "op", "path", "stack")),
)
UNITS = {"ns": "unit: TIME_NANOS", "bytes": "unit: BYTES", "count": "unit: COUNT"}
# Of the summary, with the scope `all`: the unit of each.
FIGURES = {
    "runs": "count",
    "syncs": "count",
    "unique_files": "count",
    "empty_share": "share",
    **{
        f"{kind}_latency_{part}": "ns"
        for kind in ("syscall", "writeback")
        for part in ("avg", "p50", "p90", "p99", "p999", "max", "sum")
    },
    **{
        f"{kind}_wait_{part}": "ns"
        for kind in ("journal", "flush")
        for part in ("avg", "p50", "p99", "sum")
    },
    **{f"writeback_amount_{part}": "bytes" for part in ("avg", "p50", "p99", "max", "sum")},
    "sync_time_sum": "ns",
    "sync_wall_time": "ns",
    "parallelism": "ratio",
    "unmatched_calls": "count",
    "background_bios": "count",
    "background_bytes": "bytes",
    "losses": "count",
}

HEAD = """\
# What Perfetto's own tools compute of a trace of Syncline: `summarize`, BigTrace, `trace_summary()` of the Python package.
# Written by tests/summary_spec.py from sql/reports/, whose head comments say what each figure is. To use it:
#
#   trace_processor summarize --metrics-v2 all --add-sql-package sql/perfetto@dev.syncline TRACE sql/perfetto/summary.textproto
"""


def select(report: Report) -> str:
    """The report's SELECT, without its head comment."""
    lines = report.sql.splitlines()
    while lines[0].startswith("--"):
        lines.pop(0)
    return "\n".join(lines).rstrip().removesuffix(";")


def query(sql: str, columns: list[str]) -> list[str]:
    """A query of a spec, and the modules whose tables it names."""
    # One literal: Perfetto's reader of text protos does not join several.
    quoted = sql.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    lines = ["query {", "  sql {", f'    sql: "{quoted}"']
    lines += [f'    column_names: "{column}"' for column in columns]
    lines += ["  }"]
    used = [table for table in TABLES if f"syncline_{table}" in sql]
    lines += [f'  referenced_modules: "dev.syncline.{table}"' for table in used]
    return [*lines, "}"]


def value(name: str, unit: str) -> str:
    """A column that is a metric."""
    direction = (
        unit in ("ns", "bytes") or name in ("syncs", "empty", "empty_share")
    ) and not any(fnmatchcase(name, pattern) for pattern in NO_DIRECTION)  # fmt: skip
    polarity = "LOWER_IS_BETTER" if direction else "NOT_APPLICABLE"
    of = UNITS.get(unit, f'custom_unit: "{unit}"')
    return f'value_column_specs {{ name: "{name}" {of} polarity: {polarity} }}'


def template(prefix: str, lines: list[str]) -> list[str]:
    body = [f'id_prefix: "{prefix}"', *lines]
    return ["metric_template_spec {", *(f"  {line}" for line in body), "}"]


def figures() -> list[str]:
    """Each figure of the whole as a metric of its own: one row."""
    picked = ",\n".join(
        f"  MAX(CASE WHEN metric = '{name}' THEN value END) AS {name}" for name in FIGURES
    )
    sql = f"SELECT\n{picked}\nFROM (\n{select(load('summary'))}\n)\nWHERE\n  scope = 'all'"
    values = [value(name, unit) for name, unit in FIGURES.items()]
    return template("syncline", [*values, *query(sql, list(FIGURES))])


def report(name: str, prefix: str, dimensions: tuple[str, ...]) -> list[str]:
    """A report with the columns that say what of as dimensions."""
    known = load(name)
    columns: list[Column] = [column for column in known.columns if column.name != "run"]
    lines = []
    for dimension in dimensions:
        unit = known.unit(dimension)
        kind = "INT64" if unit == "id" else "STRING"
        lines.append(f'dimensions_specs {{ name: "{dimension}" type: {kind} }}')
    lines += [value(c.name, c.unit) for c in columns if c.name not in dimensions]
    lines.append("dimension_uniqueness: UNIQUE")
    names = [column.name for column in columns]
    return template(prefix, [*lines, *query(select(known), names)])


def text() -> str:
    """The whole file."""
    specs = [figures(), *(report(*one) for one in REPORTS)]
    return HEAD + "".join("\n" + "\n".join(lines) + "\n" for lines in specs)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
