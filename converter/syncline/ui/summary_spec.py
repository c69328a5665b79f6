"""The TraceSummarySpec of Syncline, which Perfetto's own tools compute from a trace.

Its SQL is the text of the reports with their macros expanded, so that its metrics equal theirs.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from syncline.comparison.metrics import NO_DIRECTION
from syncline.engine.expanded import expanded
from syncline.report import Column, Report, load

__all__ = ["REPORTS", "text"]

TABLES = ("bio", "call", "loss", "mark", "meta", "parallel", "sync", "sync_call")
# Report, prefix of its metrics, and the columns that are dimensions.
REPORTS = (
    ("summary", "syncline_summary", ("metric", "scope", "unit")),
    ("files", "syncline_by_file", ("path",)),
    ("threads", "syncline_by_thread", ("tid", "pid", "comm", "process")),
    ("empty", "syncline_by_caller", ("comm", "op", "path", "stack")),
)
UNITS = {"ns": "unit: TIME_NANOS", "bytes": "unit: BYTES", "count": "unit: COUNT"}
# The metrics of the summary with the scope `all`, and their units.
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
    "failed_syncs": "count",
    "failed_calls": "count",
    "failed_bios": "count",
    "background_bios": "count",
    "background_bytes": "bytes",
    "losses": "count",
}

HEAD = """\
# Metrics that Perfetto's own tools compute from a trace of Syncline: `summarize`, BigTrace, `trace_summary()` of the Python package.
# Written by `syncline summary-spec` from the reports, which docs/reference/reports.md describes. Its queries need the SQL package of the same
# Syncline: `syncline doctor` prints where it is.
"""


def select(report: Report) -> str:
    """Returns the report's SELECT, without its head comment and its macros."""
    lines = report.sql.splitlines()
    while lines[0].startswith("--"):
        lines.pop(0)
    return expanded("\n".join(lines).rstrip().removesuffix(";"), "perfetto")


def query(sql: str, columns: list[str]) -> list[str]:
    """Returns a query of a spec, with the modules of the tables that it names."""
    # One literal: Perfetto's text proto parser does not join several.
    quoted = sql.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    lines = ["query {", "  sql {", f'    sql: "{quoted}"']
    lines += [f'    column_names: "{column}"' for column in columns]
    lines += ["  }"]
    used = [table for table in TABLES if f"syncline_{table}" in sql]
    lines += [f'  referenced_modules: "dev.syncline.{table}"' for table in used]
    return [*lines, "}"]


def value(name: str, unit: str) -> str:
    """Returns the spec of a column that is a metric."""
    direction = (
        unit in ("ns", "bytes")
        or name in ("syncs", "empty", "empty_share")
        or name.startswith("failed_")
    ) and not any(fnmatchcase(name, pattern) for pattern in NO_DIRECTION)  # fmt: skip
    polarity = "LOWER_IS_BETTER" if direction else "NOT_APPLICABLE"
    of = UNITS.get(unit, f'custom_unit: "{unit}"')
    return f'value_column_specs {{ name: "{name}" {of} polarity: {polarity} }}'


def template(prefix: str, lines: list[str]) -> list[str]:
    body = [f'id_prefix: "{prefix}"', *lines]
    return ["metric_template_spec {", *(f"  {line}" for line in body), "}"]


def figures() -> list[str]:
    """Returns a template with each metric of the whole run as a column of one row."""
    picked = ",\n".join(
        f"  MAX(CASE WHEN metric = '{name}' THEN value END) AS {name}" for name in FIGURES
    )
    sql = f"SELECT\n{picked}\nFROM (\n{select(load('summary'))}\n)\nWHERE\n  scope = 'all'"
    values = [value(name, unit) for name, unit in FIGURES.items()]
    return template("syncline", [*values, *query(sql, list(FIGURES))])


def report(name: str, prefix: str, dimensions: tuple[str, ...]) -> list[str]:
    """Returns the template of a report."""
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
    """Returns the text of the whole specification."""
    specs = [figures(), *(report(*one) for one in REPORTS)]
    return HEAD + "".join("\n" + "\n".join(lines) + "\n" for lines in specs)
