"""`syncline record`: records into a run directory, which every command accepts as INPUT."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from platform import machine
from typing import TYPE_CHECKING, Any

import click

from syncline.cli import live_line
from syncline.cli.errors import BAD_INPUT, OUTPUT_ERROR, Failure, say
from syncline.cli.options import example, filters
from syncline.cli.types import DEVICE, DURATION, PERCENT, PLACE, SIZE, FilePath
from syncline.record import armed as armed_recording
from syncline.record import routes
from syncline.record.errors import NoRouteError, OutputError, RecordError
from syncline.record.request import Request
from syncline.recordings import Filter

if TYPE_CHECKING:
    from syncline.record.host import Place
    from syncline.record.live import Show
    from syncline.record.recorders import Say
    from syncline.record.run_folder import RunFolder


def _filters(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        filters("Record only the requests of this process, until it ends. Not together with CMD.")
    ):
        function = option(function)
    for parameter in getattr(function, "__click_params__", ()):
        if parameter.name == "device":
            parameter.type = _DeviceText()
    return function


class _DeviceText(click.ParamType):
    """A device as it was typed, because on another machine it is another one."""

    name = "DEVICE"


def _host(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter(f"'{value}' is no host; write root@db1")
    return value


def _absolute(path: str) -> str:
    """Returns the path as the kernel records it. A slash at the end is kept."""
    return str(Path(path).resolve()) + ("/" if path.endswith("/") and path != "/" else "")


def _pattern(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> re.Pattern[str] | None:
    try:
        return None if value is None else re.compile(value)
    except re.error as error:
        raise click.BadParameter(f"'{value}' is no regular expression: {error}") from None


@click.command(
    "record",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=example(
        "sudo syncline record -o run -- tests/workloads/small_files.py /mnt/data threads=4",
        "sudo syncline record --for 30s --and-report",
        "sudo syncline record --slower-than 200ms --keep 20s --every 10min -o captures",
        "syncline record --host root@db1 --for 30s -o run",
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
@click.option(
    "--slower-than",
    type=DURATION,
    help="Keep the newest events only, for days, and save them into a folder in DIR when a sync takes longer than this: 200ms.",
)
@click.option(
    "--when",
    metavar="REGEX",
    callback=_pattern,
    help="The same when a line of --log matches this expression.",
)
@click.option(
    "--log",
    type=FilePath(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="The log of --when, followed as `tail -F` does; - is standard input.",
)
@click.option(
    "--pressure",
    type=PERCENT,
    help="The same when some task waits for I/O for more than this of two seconds (/proc/pressure/io).",
)
@click.option("--keep", type=DURATION, help="How much is saved before it.  [default: 20s]")
@click.option("--after", type=DURATION, help="How much is saved after it.  [default: 2s]")
@click.option("--captures", type=click.IntRange(1), help="End after so many of them.")
@click.option("--every", type=DURATION, help="Save at most one in this time: 10min.")
@click.option(
    "--disk",
    type=SIZE,
    help="Size of all of them: the one whose longest sync is shortest goes first.  [default: 1G]  Of a single recording: it ends at this size.",
)
@click.option(
    "--host",
    type=PLACE,
    metavar="[USER@]HOST",
    callback=_host,
    help="Record there through ssh, into DIR here. The server needs root and Python 3.9, and nothing stays on it.",
)
@click.option(
    "--via",
    type=PLACE,
    metavar="COMMAND",
    help="The same through a command: 'kubectl exec -i POD --', 'docker exec -i NAME', sudo. With --host, on the host.",
)
@click.option(
    "--write-recorder",
    type=FilePath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Record nothing: write the recorder as one file, to be copied to a server: python3 FILE --for 30s -o run.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Record nothing: make a recording of what a recorder that was killed has left in DIR.",
)
@click.option("--force", is_flag=True, help="Replace the recording in DIR.")
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Without the line that says once a second what happens, which a terminal gets.",
)
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
    device: str | None,
    min_latency: int | None,
    cgroup: str | None,
    route: routes.Name | None,
    buffer_kb: int,
    writes: bool,
    reads: str,
    files: bool,
    slower_than: int | None,
    when: re.Pattern[str] | None,
    log: str | None,
    pressure: float | None,
    keep: int | None,
    after: int | None,
    captures: int | None,
    every: int | None,
    disk: int | None,
    host: str | None,
    via: str | None,
    write_recorder: Path | None,
    resume: bool,
    force: bool,
    quiet: bool,
    and_report: bool,
    command: tuple[str, ...],
) -> None:
    """Records the syncs of this machine into a run directory.

    The recording ends when CMD or the process of --pid exits, when the time of --for has passed, or with
    Ctrl-C. With --slower-than, --when or --pressure, or after SIGUSR1 then, it saves what was recorded before such
    a moment, as often as there is one.
    """
    if write_recorder is not None:
        _write_recorder(write_recorder)
        return
    place = _place(host, via, device)
    if resume:
        if command or duration is not None or pid is not None:
            raise Failure(
                "--resume records nothing, so it takes no command, --for or --pid", "leave them out"
            )
        _resume(output)
        return
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
    if files and place is None and machine() != "x86_64":
        raise Failure(
            "operations on files are recorded on x86_64 only, because the flags of an open have other numbers elsewhere",
            "record with strace for `syncline check`",
        )
    line = None if quiet or not live_line.can_be_shown() else live_line.LiveLine()
    said = say if line is None else line.say
    folder = output or Path(time.strftime("syncline-%Y%m%d-%H%M%S"))
    request = Request(
        folder=folder,
        command=list(command),
        seconds=None if duration is None else duration / 1e9,
        route=route,
        # Only the server knows what a path leads to there.
        filter=Filter(
            pid,
            comm,
            path and (path if place is not None else _absolute(path)),
            None if device is None else DEVICE.convert(device, None, ctx),
            min_latency,
            cgroup,
        ),
        buffer_kb=buffer_kb,
        force=force,
        has_writes=writes,
        has_reads=reads == "all",
        has_files=files,
        is_alone=place is not None,
        disk_bytes=None if disk is None else disk * 1024,
        has_reader=place is not None and line is not None,
    )
    if place is not None and route in ("bpftrace", "strace"):
        raise Failure(
            f"the route {route} is a program, and the recorder brings none with it",
            "leave --route out",
        )
    limits = {"keep": keep, "after": after, "captures": captures, "every": every, "disk": disk}
    if slower_than is None and when is None and pressure is None:
        if given := [
            f"--{name}"
            for name, value in (limits | {"log": log}).items()
            if value is not None and name != "disk"
        ]:
            raise Failure(
                f"{given[0]} is of a recording that waits for something, and nothing to wait for is named",
                "add --slower-than 200ms, --when REGEX --log FILE, or --pressure 50%",
            )
    elif place is not None:
        raise Failure(
            "a recording that waits for something runs on the server, because a connection does not last for days",
            "syncline record --write-recorder FILE, copy FILE there, and run it there: python3 FILE --slower-than 200ms -o captures",
        )
    else:
        _check_armed(request, when, log, and_report=and_report)
        _armed(request, slower_than, when, log, pressure, limits)
        return
    try:
        with _recorded(request, place, said, line and line.show) as (run, manifest):
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


def _recorded(
    request: Request, place: Place | None, say: Say, show: Show | None
) -> AbstractContextManager[tuple[RunFolder, dict[str, Any]]]:
    from syncline.record import host, session

    if place is None:
        return session.recorded(request, say, show)
    return host.recorded(request, place, say, show)


def _place(host: str | None, via: str | None, device: str | None) -> Place | None:
    """Returns where to record; None for this machine.

    Raises:
        Failure: the options do not say it.
    """
    if host is None and via is None:
        return None
    from syncline.record.host import Place

    try:
        words = shlex.split(via or "")
    except ValueError as error:
        raise Failure(f"--via '{via}' is no command: {error}", "quote it as a shell does") from None
    if host is None and not words:
        raise Failure("--via names no command", "--via 'kubectl exec -i POD --'")
    if device is not None and not re.fullmatch(r"\d+[:,]\d+", device):
        raise Failure(
            f"--device {device} is a device of this machine, and the recording is made elsewhere",
            "name its number there: lsblk -o NAME,MAJ:MIN",
        )
    return Place(host, via or "")


def _write_recorder(file: Path) -> None:
    """Writes the recorder as one file."""
    from syncline.record.portable import archive

    try:
        part = file.with_name(f".{file.name}.part")
        part.write_bytes(archive())
        part.chmod(0o755)
        part.replace(file)
    except OSError as error:
        raise Failure(
            f"cannot write {file}: {(error.strerror or '').lower()}", None, OUTPUT_ERROR
        ) from None
    say(f"wrote {file}, which needs Python 3.9 or later and root")
    say(f"hint: copy it to the server, and run it there: python3 {file.name} --for 30s -o run")


def _resume(folder: Path | None) -> None:
    """Makes a recording of what a killed recorder has left."""
    from syncline.record.salvage import salvage

    if folder is None:
        raise Failure("--resume needs the folder", "name it with -o DIR")
    try:
        manifest = salvage(folder)
    except RecordError as error:
        raise Failure(error.message, error.hint or None, BAD_INPUT) from None
    until_s = manifest["inputs"][0]["known_until_ns"] / 1e9
    say(f"recorded in {folder}, until the recorder was killed: complete up to {until_s:.3f} s")
    say(f"hint: syncline report {folder}")


def _check_armed(
    request: Request, when: re.Pattern[str] | None, log: str | None, *, and_report: bool
) -> None:
    """Raises Failure if a recording that waits for something cannot be as requested."""
    if request.command:
        raise Failure(
            "a recording that waits for something runs no command",
            "start the command yourself, and name its process with --pid",
        )
    if (when is None) != (log is None):
        missing, given = ("--when REGEX", "--log") if when is None else ("--log FILE", "--when")
        raise Failure(f"{given} needs {missing.split()[0]}", f"add {missing}")
    if and_report or request.force:
        what = "--and-report" if and_report else "--force"
        raise Failure(
            f"{what} is of a single recording", "leave it out, and report the folder of captures"
        )
    if request.route is not None and request.route not in armed_recording.ROUTES:
        raise Failure(
            f"the route {request.route} cannot keep the newest events only",
            f"choose --route {' or '.join(armed_recording.ROUTES)}, or leave it out",
        )


def _armed(
    request: Request,
    slower_than: int | None,
    when: re.Pattern[str] | None,
    log: str | None,
    pressure: float | None,
    limits: dict[str, int | None],
) -> None:
    """Records until the end of a recording that waits for something."""
    times = {f"{name}_s": limits[name] for name in ("keep", "after", "every")}
    arming = armed_recording.Arming(
        slower_than_ns=slower_than,
        pattern=when,
        log=log,
        pressure=None if pressure is None else pressure / 100,
        captures=limits["captures"],
        **{name: ns / 1e9 for name, ns in times.items() if ns is not None},
        **({} if (disk_kb := limits["disk"]) is None else {"disk_bytes": disk_kb * 1024}),
    )
    try:
        armed_recording.armed(request, arming, say)
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
    if manifest["ended_by"] == "disk":
        say("ended because --disk is reached")
    for what in manifest.get("never_appeared", ()):
        raise Failure(
            f"the recording has ended, and there was never {what}",
            f"list them: {'systemd-cgls' if 'group' in what else 'ps -eLo comm'}; {folder} has the syncs of all others: syncline report {folder}/trace.dat",
            code=3,
        )
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
