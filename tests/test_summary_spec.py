"""The TraceSummarySpec: Perfetto's own tools compute the values of the reports from a trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import message_factory, text_format
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from syncline.engine import Engine, open_trace
from syncline.report import run_report, sql_root
from syncline.ui import summary_spec

from tests import sqltools
from tests.coretools import DATA
from tests.difftools import READING
from tests.test_commands import run
from tests.test_sql import RUNS, same

REAL = ("parallel4.log", "small4.log", "empty.log", "odsync.log", "sqlite_wal_full.log", "sync.log")


@pytest.fixture(scope="module", params=[*REAL, *RUNS])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    path = tmp_path_factory.mktemp("trace") / "t.pftrace"
    if request.param in RUNS:
        sqltools.write_trace(RUNS[request.param](), path)
    else:
        READING.convert([str(DATA / request.param)], str(path))
    package = (sqltools.NAMESPACE, sql_root() / "tables" / "perfetto")
    with open_trace(path, engine="embedded", packages=[package]) as opened:
        yield opened


def value(of: Any) -> Any:
    """Returns a value or a dimension. Each is one of several types."""
    kind = of.WhichOneof(of.DESCRIPTOR.oneofs[0].name)
    return None if kind == "null_value" else getattr(of, kind)


def bundles(engine: Engine, ids: list[str] | None = None) -> dict[str, Any]:
    """Returns the bundles of `trace_summary`, by the id of the first metric of each."""
    spec = summary_spec.text()
    summary = engine.trace_processor.trace_summary([spec], ids)
    return {bundle.specs[0].id: bundle for bundle in summary.metric_bundles}


def metrics(bundle: Any) -> list[str]:
    return [spec.id for spec in bundle.specs]


def test_the_command_writes_it_and_says_how_to_use_it(tmp_path: Path) -> None:
    out = tmp_path / "summary.textproto"
    done = run("summary-spec", "--out", out)
    assert done.returncode == 0, done.stderr
    assert out.read_text() == summary_spec.text()
    assert (
        f"--add-sql-package {sql_root() / 'tables' / 'perfetto'}@dev.syncline TRACE {out}"
        in done.stderr
    )


def test_perfetto_gets_no_macro_of_syncline() -> None:
    """A native trace processor does not know the macros that the reports are written with."""
    assert not re.findall(r"\w!\(", summary_spec.text())


def test_it_parses_with_the_protos_of_pypi() -> None:
    # The embedded engine is older than PyPI's package. text_format rejects unknown fields.
    protos = ProtoFactory(PlatformDelegate())
    kind = protos.descriptor_pool.FindMessageTypeByName("perfetto.protos.TraceSummarySpec")
    spec = text_format.Parse(summary_spec.text(), message_factory.GetMessageClass(kind)())
    assert spec.metric_template_spec[0].id_prefix == "syncline"


def test_the_metrics_equal_the_summary(engine: Engine) -> None:
    bundle = bundles(engine)["syncline_runs"]
    got = dict(zip(metrics(bundle), map(value, bundle.row[0].values), strict=True))
    assert len(bundle.row) == 1
    want = {
        f"syncline_{metric}": (figure, unit)
        for metric, scope, figure, unit, *_ in run_report(engine, "summary").rows
        if scope == "all"
    }
    # Waits are not recorded in every run. Their metrics have no value then.
    unrecorded = {name for name in got.keys() - want.keys() if "_wait_" in name}
    assert len(unrecorded) in (0, 8)
    assert {got.pop(name) for name in unrecorded} <= {None}
    # Metrics of marks are only in syncline_summary.
    assert got.keys() == {name for name in want if "mark" not in name}
    for name, figure in got.items():
        assert same(figure, want[name][0]), name
    units = {spec.id: spec for spec in bundle.specs if spec.id not in unrecorded}
    for name, spec in units.items():
        unit = want[name][1]
        assert spec.custom_unit == unit if spec.custom_unit else unit in ("ns", "bytes", "count")


@pytest.mark.parametrize("report", [one[0] for one in summary_spec.REPORTS])
def test_the_rows_equal_the_report(engine: Engine, report: str) -> None:
    _, prefix, dimensions = next(one for one in summary_spec.REPORTS if one[0] == report)
    table = run_report(engine, report)
    wanted = {}
    for row in table.rows:
        record = dict(zip(table.columns, row, strict=True))
        wanted[tuple(record[name] for name in dimensions)] = {
            f"{prefix}_{name}": one
            for name, one in record.items()
            if name not in dimensions and name != "run"
        }
    assert len(wanted) == len(table.rows)
    found = {}
    for bundle in bundles(engine).values():
        if metrics(bundle)[0].startswith(prefix + "_"):
            for row in bundle.row:
                key = tuple(map(value, row.dimension))
                found[key] = dict(zip(metrics(bundle), map(value, row.values), strict=True))
    assert found.keys() == wanted.keys()
    for key, figures in wanted.items():
        assert found[key].keys() == figures.keys()
        for name, figure in figures.items():
            assert same(found[key][name], figure), (key, name)


def test_one_metric_can_be_requested(engine: Engine, tmp_path: Path) -> None:
    chosen = bundles(engine, ["syncline_syncs"])
    assert "syncline_syncs" in {name for bundle in chosen.values() for name in metrics(bundle)}
    assert not any(name.startswith("syncline_by_file") for name in chosen)
