"""`syncline inspect`: what an input is, what it holds, what was lost, which reports it can feed."""

from __future__ import annotations

import json
from typing import Any

import click

from syncline import _core, inputs, recordings
from syncline.cli import options
from syncline.cli.errors import OK, code_of
from syncline.cli.options import example, reading
from syncline.cli.progress import bar
from syncline.inputs import Reading, opened


@click.command(
    "inspect",
    epilog=example(
        "syncline inspect tests/data/thesis/small4.log",
        "syncline inspect --format json tests/data/bpf/patched.log.gz",
        "syncline inspect tests/data/bpf/patched-0.17.log tests/data/bpf/stacks.log",
    ),
)
@click.argument("inputs_", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="json gives plain ns, and all that table shortens.",
)
@options.engine
@options.offsets
@reading
def command(
    inputs_: tuple[str, ...],
    form: str,
    engine: str,
    offsets: tuple[tuple[str, int], ...],
    reading: Reading,
) -> int:
    """Tells what each INPUT is: format, clock, span, events, losses, and which reports it can feed.

    INPUT is whatever `report` takes. Of several, those that can be read are told, and whether
    `convert` can join them; the exit code is that of the first which cannot be read.
    """
    from syncline.render.inspect import render

    code = OK
    reading = options.with_offsets(reading, inputs_, offsets)
    found: list[dict[str, Any]] = []
    for number, path in enumerate(inputs_):
        try:
            told = _inspect(path, engine, reading, one_of_several=len(inputs_) > 1)
        except Exception as error:
            failed = code_of(error)
            if failed is None:
                raise
            code = code or failed
            continue
        found.append(told)
        if form == "table":
            between = "\n" if number else ""
            click.echo(between + render(told), nl=False)
    joint = _together(inputs_, found, reading) if len(inputs_) > 1 else None
    if form == "json":
        click.echo(json.dumps({"inputs": found, "together": joint}, indent=1, ensure_ascii=False))
    elif joint:
        click.echo(f"\nTogether: {joint['text']}")
    return code


def _inspect(path: str, engine: str, reading: Reading, *, one_of_several: bool) -> dict[str, Any]:
    from syncline.report.inspect import inspect

    options.refuse_for_converted(path, reading)
    core: dict[str, Any] = {}
    with (
        bar(f"reading {path}") as progress,
        opened(
            path,
            reading,
            engine,
            progress,
            converted=core.update,
            count_other_events=True,
            one_of_several=one_of_several,
        ) as open_engine,
    ):
        told = inspect(open_engine, core or None, recordings.facts_beside(path))
    return {"input": path, "kind": inputs.kind_of(path, reading.source), **told}


def _together(
    paths: tuple[str, ...], found: list[dict[str, Any]], reading: Reading
) -> dict[str, Any]:
    """Whether `convert` takes the inputs together, by its own rules, and what is known of their clocks."""
    joint: dict[str, Any] = {"convertible": False, "clocks": None, "logs": None}
    if len(found) < len(paths):
        return joint | {"text": "not all of them can be read"}
    converted = [one["input"] for one in found if one["inputs_read"] is None]
    if converted:
        return joint | {
            "text": f"already converted: {', '.join(converted)}; `convert` joins logs alone"
        }
    files = [one for its in found for one in its["inputs_read"]]
    told = [
        (
            one["path"],
            one["source"],
            one["is_standalone"],
            one["clock"],
            one["boot_id"],
            one["to_realtime_ns"],
        )
        for one in files
    ]
    try:
        recordings.joined([recordings.recording_of(path) for path in paths])
        _core.check_compatible(told, reading.pid_is)
    except inputs.InputError as error:
        return joint | {"text": error.message}
    except _core.CoreError as error:
        return joint | {"text": error.args[0]}
    try:
        logs = _core.join_logs(told)
    except _core.CoreError as error:
        return joint | {"clocks": "disagree", "text": error.args[0]}
    of_nobody = [one["input"] for one in found if _is_of_nobody(one)]
    if of_nobody and len(set(logs)) > 1:
        text = f"calls of {', '.join(of_nobody)} do not say which thread makes them, and so they are not told from those of the others"
        return joint | {"text": text}
    clocks = _clocks(files)
    return joint | {
        "convertible": True,
        "clocks": clocks,
        "logs": [{"path": one["path"], "log": log} for one, log in zip(files, logs, strict=True)],
        "text": f"{_joined(files, logs)}. {_CLOCKS[clocks]}",
    }


def _is_of_nobody(told: dict[str, Any]) -> bool:
    """Whether some call tells neither thread nor process."""
    unknown = [one for one in told["columns"] if one["column"] in ("tid", "pid")]
    return all(one["known"] < one["of"] for one in unknown) and bool(unknown)


_CLOCKS = {
    "agree": "Their clock is the same, and they say so.",
    "joined": "Their clocks differ, and each tells the time of day: by that they are joined, as well as it was kept.",
    "unknown": "That their clock is the same is not known: they do not all tell clock and boot."
    " If it is another, what is joined is wrong.",
}


def _clocks(files: list[dict[str, Any]]) -> str:
    """What is known of the clocks; that none contradicts another is known already."""
    if not all(one["clock_is_recorded"] for one in files):
        return "unknown"
    if len({one["clock"] for one in files}) > 1:
        return "joined"
    boots = {one["boot_id"] for one in files}
    told = files[0]["clock"] == "realtime" or (None not in boots and len(boots) == 1)
    return "agree" if told else "unknown"


def _joined(files: list[dict[str, Any]], logs: list[int]) -> str:
    pieces = [
        " then ".join(one["path"] for one, of in zip(files, logs, strict=True) if of == log)
        for log in sorted(set(logs))
    ]
    if len(pieces) == 1:
        return f"`convert` takes them for pieces of one log, in this order: {pieces[0]}"
    return f"`convert` lays them side by side by time: {'; '.join(pieces)}"
