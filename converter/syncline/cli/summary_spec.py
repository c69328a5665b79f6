"""`syncline summary-spec`: writes the figures of the reports for Perfetto's trace summaries."""

from __future__ import annotations

import click

from syncline import _core, interruptible
from syncline.cli.errors import say
from syncline.cli.options import example
from syncline.cli.types import FILE


@click.command("summary-spec", epilog=example("syncline summary-spec --out summary.textproto"))
@click.option(
    "--out",
    required=True,
    type=FILE,
    metavar="FILE",
    help="File for the specification. It is replaced if it exists.",
)
def command(out: str) -> None:
    """Writes a specification of metrics for Perfetto's trace summaries.

    With it, `trace_processor summarize`, BigTrace and trace_summary() of the Python package compute the figures of the
    reports summary, files, threads and empty from a trace that Syncline wrote.
    """
    from syncline.report.catalogue import sql_root
    from syncline.ui import summary_spec

    text = summary_spec.text().encode()
    interruptible.call(lambda: _core.write_all([(out, text)]))
    package = sql_root() / "tables" / "perfetto"
    say(f"the specification -> {out}")
    say(
        f"use it: trace_processor summarize --metrics-v2 all --add-sql-package {package}@dev.syncline TRACE {out}"
    )
