"""`syncline ingest`: adds runs to a dataset."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from syncline.cli.errors import OK, Failure, reported, say
from syncline.cli.options import example, reading, refuse_where
from syncline.cli.output import show
from syncline.cli.progress import bar
from syncline.cli.types import FACT, PLACE, TIME
from syncline.reading import Reading
from syncline.render import human

if TYPE_CHECKING:
    from syncline.input import Input


@click.command(
    "ingest",
    epilog=example(
        "syncline ingest tests/data/thesis/small4.log --into history --host db1 --started 2026-11-24",
        "syncline report history --where \"host = 'db1'\" latency",
        "syncline ingest tests/data/thesis/parallel4.log --into history --fact branch=main",
    ),
)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--into",
    "dataset",
    required=True,
    type=PLACE,
    metavar="DATASET",
    help="Folder of the dataset, or s3://BUCKET/FOLDER. It is made if it does not exist.",
)
@click.option(
    "--host", metavar="NAME", help="Host of the runs. By default the one that the recording names."
)
@click.option(
    "--started",
    type=TIME,
    help="When the run began, in ISO 8601: 2026-11-24, or 2026-11-24T08:30:00Z; for one RUN. By default what"
    " the recording says; a log whose clock has no date says nothing.",
)
@click.option(
    "--fact",
    "facts",
    type=FACT,
    multiple=True,
    help="A fact of the runs, such as branch=main. It becomes a column of syncline_run, for --where."
    " A fact `url` is what the page of `trend` links to. May be given several times.",
)
@click.option("--replace", is_flag=True, help="Replace runs that are in the dataset and differ.")
@click.option(
    "--spark",
    metavar="MASTER",
    help="Convert the runs as tasks of this Spark master: local[2], or spark://HOST:PORT. All workers must"
    " reach RUN and DATASET under the same names.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only warnings and errors.")
@reading
def command(
    runs: tuple[str, ...],
    dataset: str,
    host: str | None,
    started: int | None,
    facts: tuple[tuple[str, str], ...],
    replace: bool,
    spark: str | None,
    quiet: bool,
    reading: Reading,
) -> int:
    """Adds runs to a dataset: the tables of each run, in a partition of its host and day.

    RUN is a log, a run directory, a trace or a folder of tables. A run that is in the dataset stays as it
    is, in whichever form it comes. RUNs that cannot be read are skipped; the exit code is then that of the first one.
    """
    from syncline.dataset import ingest, layout
    from syncline.dataset.store import open_store
    from syncline.kinds import resolve

    refuse_where(reading)
    if host is not None:
        try:
            layout.check_host(host)
        except ValueError as error:
            raise Failure(f"--host: {error}", "name the machine that was recorded") from None
    described = ingest.Described(host, started, dict(facts), replace)
    code = OK
    found: list[Input] = []
    for run in runs:
        try:
            # `--from` is for those that are runs. What is not a run says so in any case.
            found += resolve(run).runs(reading.source)
        except Exception as error:
            code = reported(error, code)
    if started is not None and len(found) > 1:
        raise Failure(
            f"--started is the time of one run, and these are {len(found):,}",
            "ingest the runs one by one, or leave it out: most recordings say their time",
        )
    store = open_store(dataset)
    made = ingest.create(store)
    ingest.remove_dead(store)
    undated: list[str] = []
    hostless: list[str] = []
    counts = {"added": 0, "replaced": 0, "present": 0}
    requests = bytes_ = 0

    def done(path: str, outcome: ingest.Outcome) -> None:
        nonlocal requests, bytes_
        counts[outcome.status] += 1
        entry = outcome.entry
        if outcome.status != "present":
            requests += entry.requests
            bytes_ += entry.bytes
            if entry.started_ns is None:
                undated.append(path)
            if entry.host is None:
                hostless.append(path)
        if not quiet:
            said = {"present": "is in the dataset", "replaced": "replaces"}.get(outcome.status)
            note = f" ({said} as {entry.run})" if outcome.status == "present" else ""
            size = f"{human.count(entry.requests, 'request')}, {human.text(entry.bytes, 'bytes')}"
            lost = "1 loss" if entry.lost == 1 else f"{entry.lost:,} losses" if entry.lost else ""
            size += f", {lost}" if lost else ""
            show(f"{path} -> {entry.partition}: {size}{note}\n")

    try:
        if spark is not None:
            from syncline.dataset import spark_ingest

            for one in spark_ingest.ingest_all(found, dataset, reading, described, spark):
                for message, hint in one.warnings:
                    say(f"warning: {message}", hint)
                if one.outcome is not None:
                    done(one.path, one.outcome)
                else:
                    code = reported(one.error(), code)
        else:
            for one_run in found:
                try:
                    with bar(f"reading {one_run.path}") as progress:
                        done(
                            one_run.path,
                            ingest.ingest(one_run, store, reading, described, progress),
                        )
                except Exception as error:
                    code = reported(error, code)
    finally:
        if made is not None and not any(counts.values()):
            made.discard()
    if hostless and not quiet:
        say(f"note: the host of {_runs(hostless)} is not known", f"name it: syncline ingest {shlex.quote(hostless[0])} --into {shlex.quote(dataset)} --host NAME --replace")  # fmt: skip
    if undated and not quiet:
        say(
            f"note: the day of {_runs(undated)} is not known, so `trend` leaves {'it' if len(undated) == 1 else 'them'} out",
            f"give it: syncline ingest {shlex.quote(undated[0])} --into {shlex.quote(dataset)} --started TIME --replace",
        )
    if not quiet:
        unknown = f"{counts['added']:,} added"
        unknown += f", {counts['replaced']:,} replaced" if counts["replaced"] else ""
        unknown += f", {counts['present']:,} already there" if counts["present"] else ""
        show(
            f"{unknown}: {human.count(requests, 'request')}, {human.text(bytes_, 'bytes')} -> {dataset}\n"
        )
        if requests or counts["present"]:
            show(f"syncline report {shlex.quote(dataset)}\n")
    return code


# Paths that a note names.
_NAMED = 3


def _runs(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return f"{human.count(len(paths), 'run')} ({', '.join(paths[:_NAMED])}{more})"
