"""Reports: one SQL file each, run on any engine."""

from .catalogue import Column, Report, UnknownReport, load, names, read_sql, sql_root
from .run import Table, caveats, include, run_query, run_report

__all__ = [
    "Column",
    "Report",
    "Table",
    "UnknownReport",
    "caveats",
    "include",
    "load",
    "names",
    "read_sql",
    "run_query",
    "run_report",
    "sql_root",
]
