"""`syncline inspect`: reports what an input is, what it holds, what was lost, which reports it can feed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from syncline import _core, interruptible
from syncline.cli import options
from syncline.cli.errors import BAD_INPUT, OK, Failure, reported, say
from syncline.cli.options import example, reading
from syncline.cli.output import show
from syncline.cli.progress import bar
from syncline.errors import InputError
from syncline.printable import json_text, printable
from syncline.reading import Reading
from syncline.recordings import join_recordings
from syncline.render.human import count

if TYPE_CHECKING:
    from syncline.input import Input


@click.command(
    "inspect",
    epilog=example(
        "syncline inspect tests/data/thesis/small4.log",
        "syncline inspect --format json tests/data/bpf/patched.log.gz",
        "syncline inspect tests/data/bpf/patched-0.17.log tests/data/bpf/stacks.log",
    ),
)
@click.argument("inputs_", nargs=-1, required=True, metavar="INPUT...")
@options.plain_or_json("table", "json gives times in ns, and lists that table shortens in full.")
@click.option("--verify", is_flag=True, help="Compare all files of a dataset with their SHA-256 of the ingest, too. Exit with code 3 if one differs.")  # fmt: skip
@options.engine
@options.offsets
@reading
def command(
    inputs_: tuple[str, ...],
    form: str,
    verify: bool,
    engine: str,
    offsets: tuple[tuple[str, int], ...],
    reading: Reading,
) -> int:
    """Reports for each INPUT the format, clock, span, events, losses, and which reports it can feed.

    INPUT is anything that `report` accepts. For several INPUTs it also reports whether `convert` can join
    them. Inputs that cannot be read are skipped; the exit code is then that of the first one.
    """
    from syncline.render.inspect import render

    code = _verified(inputs_, reading.where) if verify else OK
    reading = options.with_offsets(reading, inputs_, offsets)
    resolved: list[Input] = []
    found: list[dict[str, Any]] = []
    for number, path in enumerate(inputs_):
        try:
            resolved.append(options.resolved(path, reading))
            description = _inspect(resolved[-1], engine, reading, one_of_several=len(inputs_) > 1)
        except Exception as error:
            code = reported(error, code)
            continue
        found.append(description)
        if form == "table":
            between = "\n" if number else ""
            show(between + render(description))
    joint = _joint(inputs_, resolved, found, reading) if len(inputs_) > 1 else None
    if form == "json":
        show(json_text({"inputs": found, "together": joint}, indent=1) + "\n")
    elif joint:
        show(f"\nTogether: {printable(joint['text'])}\n")
    return code


def _verified(paths: tuple[str, ...], where: str | None) -> int:
    """Says on stderr which runs of datasets are not as they were ingested. Returns the exit code.

    Raises:
        Failure: no dataset is among the paths.
    """
    from syncline.dataset import index
    from syncline.kinds import Dataset

    # A partition that was deleted is no INPUT, and is what this finds.
    roots = [(path, *index.split(path)) for path in paths]
    datasets = [(path, root, run) for path, root, run in roots if Dataset.at(root)]
    if not datasets:
        raise Failure("--verify compares the files of a dataset, and none is named", "leave it out")
    code = OK
    for path, root, run in datasets:
        try:
            problems, whole = index.verified(root, where, run)
        except Exception as error:
            code = reported(error, code)
            continue
        for problem in problems:
            say(f"error: {path}: {problem}", f"repair it: syncline ingest RUN --into {shlex.quote(root)}")  # fmt: skip
            code = code or BAD_INPUT
        say(f"{path}: {count(whole, 'run')} as at ingest, {len(problems):,} not")
    return code


def _inspect(
    input_: Input, engine: str, reading: Reading, *, one_of_several: bool
) -> dict[str, Any]:
    from syncline.report.inspect import inspect

    core: dict[str, Any] = {}
    with (
        bar(f"reading {input_.path}") as progress,
        input_.open(
            reading,
            engine,
            progress,
            converted=core.update,
            count_other_events=True,
            one_of_several=one_of_several,
        ) as open_engine,
    ):
        description = inspect(open_engine, core or None, input_.facts)
    return {"input": input_.path, "kind": input_.kind, **description}


def _joint(
    paths: tuple[str, ...], inputs: list[Input], found: list[dict[str, Any]], reading: Reading
) -> dict[str, Any]:
    """Returns whether `convert` can join the inputs, and what is recorded about their clocks."""
    joint: dict[str, Any] = {"convertible": False, "clocks": None, "logs": None}
    if len(found) < len(paths):
        return joint | {"text": "not all of them can be read"}
    converted = [one["input"] for one in found if one["inputs_read"] is None]
    if converted:
        return joint | {
            "text": f"already converted: {', '.join(converted)}; `convert` joins only logs"
        }
    files = [file for one in found for file in one["inputs_read"]]
    try:
        join_recordings([one.recording for one in inputs])
        interruptible.call(lambda: _core.check_compatible(files, reading.pid_is))
    except InputError as error:
        return joint | {"text": error.message}
    except _core.CoreError as error:
        return joint | {"text": error.args[0]}
    try:
        logs = interruptible.call(lambda: _core.join_logs(files))
    except _core.CoreError as error:
        return joint | {"clocks": "disagree", "text": error.args[0]}
    threadless = [one["input"] for one in found if _lacks_threads(one)]
    if threadless and len(set(logs)) > 1:
        return joint | {
            "text": f"calls in {', '.join(threadless)} do not record their thread, so they cannot be"
            " matched with the calls in the other logs"
        }
    clocks = _clocks(files)
    return joint | {
        "convertible": True,
        "clocks": clocks,
        "logs": [{"path": one["path"], "log": log} for one, log in zip(files, logs, strict=True)],
        "text": f"{_arrangement(files, logs)}. {_CLOCKS[clocks]}",
    }


def _lacks_threads(described: dict[str, Any]) -> bool:
    """Returns whether some call records neither a thread nor a process."""
    columns = [one for one in described["columns"] if one["column"] in ("tid", "pid")]
    return all(one["known"] < one["of"] for one in columns) and bool(columns)


_CLOCKS = {
    "agree": "They record the same clock.",
    "joined": "Their clocks differ, and each log records the time of day. They are joined by it, as"
    " accurately as it was kept.",
    "unknown": "It is unknown whether their clocks are the same: not all of them record clock and boot."
    " If the clocks differ, the joined result is wrong.",
}


def _clocks(files: list[dict[str, Any]]) -> str:
    """Returns a key of `_CLOCKS` for logs whose clocks do not contradict each other."""
    if not all(one["clock_is_recorded"] for one in files):
        return "unknown"
    if len({one["clock"] for one in files}) > 1:
        return "joined"
    boots = {one["boot_id"] for one in files}
    is_same = files[0]["clock"] == "realtime" or (None not in boots and len(boots) == 1)
    return "agree" if is_same else "unknown"


def _arrangement(files: list[dict[str, Any]], logs: list[int]) -> str:
    """Describes which files are pieces of one log."""
    pieces = [
        " then ".join(one["path"] for one, of in zip(files, logs, strict=True) if of == log)
        for log in sorted(set(logs))
    ]
    if len(pieces) == 1:
        return f"`convert` reads them as pieces of one log, in this order: {pieces[0]}"
    return f"`convert` merges them by time: {'; '.join(pieces)}"
