"""`syncline query`: runs SQL on the tables of docs/reference/tables.md."""

from __future__ import annotations

from itertools import islice

import click

from syncline.cli import options
from syncline.cli.errors import say
from syncline.cli.options import example, reading
from syncline.cli.output import show
from syncline.cli.progress import bar
from syncline.reading import Reading


class _Query(click.Command):
    """A command whose SQL may begin with a comment, which looks like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = {
            name: one for one in self.params if isinstance(one, click.Option) for name in one.opts
        }
        taken: list[str] = []
        rest = iter(args)
        for one in rest:
            if one == "--":
                taken += [one, *rest]
            elif one in options:
                value = [] if options[one].is_flag else [*islice(rest, 1)]
                taken += [one, *value]
            else:
                # The SQL follows the comment on a line of its own.
                is_comment = one.startswith("--") and "\n" in one
                is_option = one.partition("=")[0] in options
                taken.append(f" {one}" if is_comment and not is_option else one)
        return super().parse_args(ctx, taken)


@click.command(
    "query",
    cls=_Query,
    epilog=example(
        'syncline query tests/data/thesis/small4.log "SELECT path, syscall_ns FROM syncline_sync ORDER BY 2 DESC LIMIT 5"',
        'syncline query tests/data/thesis/small4.log "SELECT comm, percentile(syscall_ns, 99) FROM syncline_sync GROUP BY comm"',
    ),
)
@click.argument("input", metavar="INPUT")
@click.argument("sql", metavar="SQL")
@options.table_format()
@click.option(
    "--allow-files",
    is_flag=True,
    help="Let the SQL read and write all your files, and load extensions of DuckDB. By default it reads only"
    " INPUT. No effect on a trace.",
)
@options.engine
@reading
def command(
    input: str, sql: str, form: str, allow_files: bool, engine: str, reading: Reading
) -> None:
    """Runs SQL on a log, a trace, or Parquet.

    The tables are syncline_sync, syncline_bio, syncline_call, syncline_wait, syncline_phase, syncline_journal, syncline_write_wait,
    syncline_file_op, syncline_stack, syncline_sync_call, syncline_parallel, syncline_loss, syncline_mark and syncline_meta;
    syncline schema lists their columns.
    trace_processor runs the SQL for a trace, which has Perfetto's tables too; DuckDB runs it for all other
    inputs. Both have percentile(x, p), with p from 0 to 100.
    """
    from syncline import render
    from syncline.report.run import caveats, run_query

    found = options.resolved(input, reading)
    with (
        bar("reading") as progress,
        found.open(
            reading, engine, progress, allow_files=allow_files, perfetto=True
        ) as open_engine,
    ):
        # To stderr in every format, because standard output is data.
        for caveat in caveats(open_engine, sql):
            say(f"warning: {caveat}")
        table = run_query(open_engine, sql, is_of_user=True)
    show(render.exporter(form)(table, None))
