"""`syncline dataset`: lists, verifies and removes the runs of a dataset."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from syncline.cli import options
from syncline.cli.errors import BAD_INPUT, OK, Failure, reported, say
from syncline.cli.options import example
from syncline.cli.output import show
from syncline.cli.progress import bar
from syncline.cli.types import PLACE
from syncline.render import human

if TYPE_CHECKING:
    from syncline.dataset.layout import Entry

_COLUMNS = (
    ("run", "text", "Key of the run."),
    ("host", "text", "Host. Null if it is not known."),
    ("day", "text", "Day of its start, in UTC. Null if it is not known."),
    ("requests", "count", "Number of requests."),
    ("lost", "count", "Number of losses. Null if they are not recorded."),
    ("bytes", "bytes", "Size of its files."),
    ("facts", "text", "What --fact said."),
)
_EXAMPLES = (
    "syncline ingest -q tests/data/thesis/small4.log --into history --started 2026-11-24",
    "syncline dataset ls history",
    "syncline dataset verify history",
    "syncline dataset rm history --where \"day < '2026-01-01'\"",
)


@click.group("dataset", epilog=example(*_EXAMPLES))
def command() -> None:
    """Lists, verifies and removes the runs of a dataset."""


_dataset = click.argument("dataset", metavar="DATASET", type=PLACE)
_where = click.option("--where", metavar="SQL", help="Only runs that pass this condition on the columns of syncline_run.")  # fmt: skip


@command.command("ls", epilog=example(*_EXAMPLES[:2]))
@_dataset
@_where
@options.table_format("csv and json have exact sizes.")
def ls(dataset: str, where: str | None, form: str) -> int:
    """Lists the runs of a dataset, in the order of their starts."""
    from syncline import render
    from syncline.dataset import index, upkeep
    from syncline.dataset.store import open_store
    from syncline.report import Column, Report, Table

    store = open_store(dataset)
    _, problems = index.read_entries(store)
    for problem in problems:
        say(f"warning: {problem}")
    rows = [_row(entry) for entry in upkeep.runs(store, [], where)]
    columns = tuple(Column(*one) for one in _COLUMNS)
    report = Report("dataset", f"Runs of {dataset}", "", columns, "SELECT NULL", ("run", "day", "requests", "bytes"))  # fmt: skip
    table = Table([name for name, _, _ in _COLUMNS], rows)
    show(render.exporter(form)(table, report))
    return OK


def _row(entry: Entry) -> tuple[Any, ...]:
    facts = ", ".join(f"{key}={value}" for key, value in sorted(entry.facts.items()))
    return (
        *(entry.run, entry.host, entry.day, entry.requests, entry.lost, entry.bytes),
        facts or None,
    )


@command.command("verify", epilog=example(_EXAMPLES[0], _EXAMPLES[2]))
@_dataset
@_where
def verify(dataset: str, where: str | None) -> int:
    """Compares all files with what was ingested, and finds partitions without an entry.

    It reads all of the dataset. Exit codes: 0, and 3 if something is not as it was.
    """
    from syncline.dataset import index, layout, upkeep
    from syncline.dataset.store import open_store

    with bar("reading"):
        problems, whole = index.verified(dataset, where)
    # A condition chooses among entries, and these have none.
    lost = [] if where is not None else upkeep.orphans(open_store(dataset))
    quoted = shlex.quote(dataset)
    for problem in problems:
        hint = f"repair it: syncline ingest RUN --into {quoted}"
        if f"/{layout.ENTRIES}/" in problem:
            hint = f"remove that file, and ingest the partition of the run, which has a copy: syncline ingest {quoted}/host=.../day=.../run=... --into {quoted}"  # fmt: skip
        say(f"error: {dataset}: {problem}", hint)
    for partition in lost:
        say(
            f"error: {dataset}: {partition} has no entry, so Syncline does not read it, and other readers of the files do",
            f"ingest it, if it is of a run that you want: syncline ingest {shlex.quote(f'{dataset}/{partition}')} --into {quoted}; or remove all"
            f" such: syncline dataset rm {quoted} --without-entry",
        )
    show(f"{dataset}: {human.count(whole, 'run')} as at ingest, {len(problems):,} not; {human.count(len(lost), 'partition')} without an entry\n")  # fmt: skip
    return BAD_INPUT if problems or lost else OK


@command.command("rm", epilog=example(_EXAMPLES[0], _EXAMPLES[3] + " --dry-run"))
@_dataset
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@_where
@click.option("--without-entry", is_flag=True, help="Remove the partitions that no entry names, which a killed command leaves.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("-q", "--quiet", is_flag=True, help="Print only warnings and errors.")
def rm(
    dataset: str,
    runs: tuple[str, ...],
    where: str | None,
    without_entry: bool,
    dry_run: bool,
    quiet: bool,
) -> int:
    """Removes runs of a dataset: their entries, and then their files.

    RUN is a key, as `ls` prints it, or the path of a partition below DATASET. With --where, all runs that pass are removed, or those among
    RUN.
    """
    from syncline.dataset import index, ingest, upkeep
    from syncline.dataset.store import open_store

    if not runs and where is None and not without_entry:
        raise Failure("nothing says which runs are meant", "name RUN..., or give --where or --without-entry")  # fmt: skip
    if (runs or where is not None) and without_entry:
        raise Failure("--without-entry removes what no entry names, and RUN and --where choose entries", "give one of them")  # fmt: skip
    store = open_store(dataset)
    index.check_dataset(store)
    chosen = upkeep.orphans(store) if without_entry else upkeep.runs(store, list(runs), where)
    if not dry_run:
        ingest.remove_dead(store)
    code, count, size = OK, 0, 0
    for one in chosen:
        partition = one if isinstance(one, str) else one.partition
        try:
            if dry_run:
                removed: upkeep.Removed | None = upkeep.Removed(partition, sum(store.sizes(partition).values()))  # fmt: skip
            else:
                removed = upkeep.remove_orphan(store, one) if isinstance(one, str) else upkeep.remove(store, one)  # fmt: skip
        except Exception as error:
            # The others are removed all the same.
            code = reported(error, code)
            continue
        if removed is None:
            say(f"note: {partition} is unchanged, because another command has changed or removed the run meanwhile")  # fmt: skip
            continue
        count, size = count + 1, size + removed.bytes
        if not quiet:
            show(f"{partition} ({human.text(removed.bytes, 'bytes')})\n")
    if not quiet:
        what = "would be removed" if dry_run else "removed"
        show(f"{what}: {human.count(count, 'run')} of {dataset}, {human.text(size, 'bytes')}\n")
    return code
