"""`syncline record`: records into a run directory, which every command accepts as INPUT."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from platform import machine
from typing import Any

import click

from syncline.cli.errors import BAD_INPUT, OUTPUT_ERROR, Failure, say
from syncline.cli.options import example, filters
from syncline.cli.types import DURATION, SIZE, FilePath
from syncline.record import routes
from syncline.record.errors import NoRouteError, OutputError, RecordError
from syncline.recordings import Filter


def _filters(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        filters("Record only the requests of this process, until it ends. Not together with CMD.")
    ):
        function = option(function)
    return function


def _absolute(path: str) -> str:
    """Returns the path as the kernel records it. A slash at the end is kept."""
    return str(Path(path).resolve()) + ("/" if path.endswith("/") and path != "/" else "")


@click.command(
    "record",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=example(
        "sudo syncline record -o run -- tests/workloads/small_files.py /mnt/data threads=4",
        "sudo syncline record --for 30s --and-report",
    ),
)
@click.option(
    "-o",
    "--output",
    type=FilePath(file_okay=False, path_type=Path),
    metavar="DIR",
    help="New folder for the recording. By default syncline-DATE-TIME.",
)
@click.option(
    "--for",
    "duration",
    type=DURATION,
    help="Stop after this time: 30s, 5min. By default there is no limit.",
)
@click.option(
    "--route",
    type=click.Choice(routes.NAMES),
    help="How to record. By default the best route that this machine has, in this order.",
)
@click.option(
    "--buffer",
    "buffer_kb",
    type=SIZE,
    default="16M",
    show_default=True,
    help="Size of the ring buffer of each CPU (routes ring-buffer and dynamic-events).",
)
@_filters
@click.option(
    "--writes",
    is_flag=True,
    help="Also record each write, for `syncline model predict` (routes dynamic-events and strace).",
)
@click.option(
    "--reads",
    type=click.Choice(["all", "none"]),
    default="all",
    show_default=True,
    help="Which bios that read are recorded (routes ring-buffer and dynamic-events): a read takes three events.",
)
@click.option(
    "--files",
    is_flag=True,
    help="Also record what is done to files, for `syncline check`: open, write, rename and others (route dynamic-events).",
)
@click.option("--force", is_flag=True, help="Replace the recording in DIR.")
@click.option(
    "--and-report",
    is_flag=True,
    help="Convert the recording to DIR/trace.pftrace and print the answer: why syncs were slow.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[--] [CMD...]")
@click.pass_context
def command(
    ctx: click.Context,
    output: Path | None,
    duration: int | None,
    pid: int | None,
    comm: str | None,
    path: str | None,
    device: int | None,
    min_latency: int | None,
    cgroup: str | None,
    route: routes.Name | None,
    buffer_kb: int,
    writes: bool,
    reads: str,
    files: bool,
    force: bool,
    and_report: bool,
    command: tuple[str, ...],
) -> None:
    """Records the syncs of this machine into a run directory.

    The recording ends when CMD or the process of --pid exits, when the time of --for has passed, or with
    Ctrl-C.
    """
    from syncline.record.session import Request, recorded

    if command and pid is not None:
        raise Failure("both a command and --pid are given", "leave one of them out")
    if route == "strace" and not command and pid is None:
        raise Failure("strace needs a command or --pid", "syncline record --route strace -- CMD")
    if writes and route is not None and route not in routes.WITH_WRITES:
        raise Failure(
            f"the route {route} does not record writes",
            f"choose --route {' or '.join(routes.WITH_WRITES)}, or leave it out",
        )
    if files and route is not None and route not in routes.WITH_FILES:
        raise Failure(
            f"the route {route} does not record operations on files",
            f"choose --route {' or '.join(routes.WITH_FILES)}, or leave it out",
        )
    if files and machine() != "x86_64":
        raise Failure(
            "operations on files are recorded on x86_64 only, because the flags of an open have other numbers elsewhere",
            "record with strace for `syncline check`",
        )
    folder = output or Path(time.strftime("syncline-%Y%m%d-%H%M%S"))
    request = Request(
        folder=folder,
        command=list(command),
        seconds=None if duration is None else duration / 1e9,
        route=route,
        filter=Filter(pid, comm, path and _absolute(path), device, min_latency, cgroup),
        buffer_kb=buffer_kb,
        force=force,
        has_writes=writes,
        has_reads=reads == "all",
        has_files=files,
    )
    try:
        with recorded(request, say) as (run, manifest):
            _report_end(folder, manifest)
            if and_report:
                if not run.has_name():
                    raise RecordError(f"another folder has the name {folder} now")
                _convert_and_report(ctx, folder)
            else:
                say(f"hint: syncline report {folder}")
                if writes:
                    say(
                        f"hint: syncline model predict {folder} --parameters FILE, which syncline model measure writes"
                    )
    except RecordError as error:
        code = OUTPUT_ERROR if isinstance(error, OutputError) else BAD_INPUT
        raise Failure(
            error.message, error.hint or None, code, has_lines=isinstance(error, NoRouteError)
        ) from None


def _report_end(folder: Path, manifest: dict[str, Any]) -> None:
    """Says what was recorded.

    Raises:
        Failure: the recording ended early.
    """
    say(f"recorded in {folder}: {', '.join(one['file'] for one in manifest['inputs'])}")
    logs = [folder / one["file"] for one in manifest["inputs"]]
    if all(log.is_file() and not log.stat().st_size for log in logs):
        say("warning: nothing was recorded: there was no sync, or the recorder was not ready yet")
    code = manifest["exit_code"]
    if code:
        say(f"warning: the command exited with {code}")
    if str(manifest["ended_by"]).startswith("failure"):
        raise Failure(
            f"the recording ended early: {manifest['ended_by'].partition(': ')[2]}",
            f"what was recorded until then is in {folder}",
            code=3,
        )


def _convert_and_report(ctx: click.Context, folder: Path) -> None:
    from syncline.cli.convert import command as convert
    from syncline.cli.report import command as report

    ctx.invoke(convert, inputs=(str(folder),), output=str(folder / "trace.pftrace"))
    ctx.invoke(report, input=str(folder / "trace.pftrace"))
