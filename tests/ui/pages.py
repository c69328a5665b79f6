"""Pages of `report --html` for the tests in a browser, and what these read of a page."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from syncline.engine.columns import ColumnsEngine, open_columns
from syncline.inputs import Reading, opened
from syncline.report import html, run_query, sql_root
from syncline.report.html import Limits

from tests.reference import loggen
from tests.sqltools import write_parquet
from tests.test_sql import waiting
from tests.ui import browser

DATA = Path(__file__).parents[1] / "data/thesis"
WIDE, NARROW = (1500, 1000), (420, 800)
Step = dict[str, Any]


def visit(
    page: Path, steps: list[Step], size: tuple[int, int] = WIDE, scheme: str = "light"
) -> dict[str, Any]:
    """Returns what the browser finds. There must be no error and no request."""
    seen = browser.visit(page, steps, size, scheme)
    assert seen["console"] == []
    assert seen["requests"] == []
    return seen["found"]


def described(path: Path) -> dict[str, Any]:
    """Returns the data of one side of a comparison."""
    with opened(str(path), Reading()) as engine:
        return html.describe(engine, path.name, compared=True)


def get(name: str, script: str) -> Step:
    return {"name": name, "get": script}


class Inputs:
    """A generated run as a page with every request (`all`) and as one with counts (`counted`), and a comparison."""

    def __init__(self, folder: Path) -> None:
        params = loggen.Params(requests=700, threads=6, files=15, dsync_threads=2)
        params.lose_end = params.lose_complete = 0.03
        made = loggen.generate(params, random.Random(3))
        log = folder / "made.log"
        log.write_bytes(made.log)
        self.tables = folder / "made"
        Reading().convert([str(log)], f"{self.tables}/")
        self.engine: ColumnsEngine = open_columns(self.tables, sql=sql_root() / "tables" / "duckdb")
        # Ten files and four threads are named. The others share one row.
        limits = Limits(requests=10, points=200, stacks=9, ladder=((10, 4, 1),))
        # How many threads a page names.
        self.named = {"all": None, "counted": 4}
        self.pages = {}
        for name, limits_ in (("all", Limits()), ("counted", limits)):
            self.pages[name] = folder / f"{name}.html"
            self.pages[name].write_bytes(
                html.page([html.describe(self.engine, "made.log", limits_)])
            )
        two = [DATA / "small4.log", DATA / "small4-slowdisk.log"]
        sides = [described(path) for path in two]
        self.pages["compared"] = folder / "compared.html"
        self.pages["compared"].write_bytes(html.page(sides))

    def one(self, select: str, where: str = "true") -> tuple[Any, ...]:
        (row,) = run_query(self.engine, f"SELECT {select} FROM syncline_sync WHERE {where}").rows
        return row


FIGURES = """Object.fromEntries([...document.querySelectorAll('.tile')].flatMap((tile) => [
  [tile.dataset.figure, tile.dataset.value ?? null],
  ...[...tile.querySelectorAll('.more span')].map((one) => [`${tile.dataset.figure} ${one.dataset.figure}`, one.dataset.value ?? null])]))"""
SELECTED = "document.getElementById('selected').textContent"
IN_SQL = "document.querySelector('.sql code').textContent"
IN_SQL_OR_NONE = "document.querySelector('.sql code')?.textContent ?? null"

# The figures of the tiles, in SQL.
EXACT = {
    "syncs": "COUNT(*)",
    "amount": "SUM(bytes)",
    "syscall max": "MAX(syscall_ns)",
    "syscall known of": "COUNT(syscall_ns)",
    "writeback max": "MAX(writeback_ns)",
    "writeback known of": "COUNT(writeback_ns)",
    "empty wrote nothing": "COUNT(*) FILTER (bios = 0 AND COALESCE(ret, 0) >= 0 AND (incomplete IS NULL OR incomplete = 'bio'))",
    "empty incomplete": "COUNT(incomplete)",
    "time": "SUM(dur_ns)",
    "exact": "AVG(CAST(confidence = 'exact' AS INTEGER))",
}
WHOLE = "CASE WHEN incomplete IS NULL OR incomplete = 'bio' THEN bytes END"
QUANTILES = {
    "syscall": "percentile(syscall_ns, 50)",
    "syscall p99": "percentile(syscall_ns, 99)",
    "writeback": "percentile(writeback_ns, 50)",
    "writeback p99": "percentile(writeback_ns, 99)",
    "amount median": f"percentile({WHOLE}, 50)",
    "amount p99": f"percentile({WHOLE}, 99)",
}


def check_figures(inputs: Inputs, figures: dict[str, str | None], where: str, counted: bool):
    for name, select in EXACT.items():
        (value,) = inputs.one(select, where)
        shown = figures[name]
        assert (shown is None) == (value is None), (name, shown, value)
        if value is not None:
            assert float(shown) == pytest.approx(value), (name, where)
    for name, select in QUANTILES.items():
        (value,) = inputs.one(select, where)
        shown = figures[name]
        if value is None:
            assert shown is None
        elif counted and ".." in shown:
            low, high = map(float, shown.split(".."))
            assert low <= value <= high, (name, where)
            # At most as wide as two buckets.
            assert high <= max(low, 1) * 5
        else:
            assert float(shown) == pytest.approx(value), (name, where)
            assert not counted or where == "true"


class Waiting:
    """A run in which some requests have waits, as a page with every request and as one with counts."""

    def __init__(self, folder: Path) -> None:
        tables = write_parquet(waiting(), folder / "waiting")
        self.engine: ColumnsEngine = open_columns(tables, sql=sql_root() / "tables" / "duckdb")
        self.pages = {}
        for name, limits in (
            ("all", Limits()),
            ("counted", Limits(requests=10, points=200, stacks=900, ladder=((12, 9, 1),))),
        ):
            self.pages[name] = folder / f"{name}.html"
            side = html.describe(self.engine, "waiting", limits)
            self.width = side["width_ns"]
            self.pages[name].write_bytes(html.page([side]))

    def one(self, select: str, where: str = "true") -> tuple[Any, ...]:
        (row,) = run_query(self.engine, f"SELECT {select} FROM syncline_sync WHERE {where}").rows
        return row


class Phased:
    """A recording with phases: as a page with every request, as one with counts, and as one with few counts."""

    def __init__(self, folder: Path) -> None:
        recording = DATA.parent / "dynamic-events" / "ext4.dat.gz"
        Reading().convert([str(recording)], f"{folder}/tables/")
        self.engine: ColumnsEngine = open_columns(
            folder / "tables", sql=sql_root() / "tables" / "duckdb"
        )
        self.named = {"all": None, "counted": 3}
        self.pages = {}
        for name, limits in (
            ("all", Limits()),
            ("counted", Limits(requests=10, ladder=((12, 3, 1),))),
            # Too few cells for the phases by time, file and thread together.
            ("parts", Limits(requests=10, cells=60, ladder=((12, 3, 1),))),
        ):
            side = html.describe(self.engine, "phased", limits)
            if name != "all":
                assert ("all" in side["cubes"]["phase"]) == (name == "counted")
            self.pages[name] = folder / f"{name}.html"
            self.pages[name].write_bytes(html.page([side]))
