"""`syncline record`: a run directory, which every command takes as INPUT."""

from __future__ import annotations

import time
from pathlib import Path

import click

from syncline.cli.errors import Failure, say
from syncline.cli.options import DURATION, example
from syncline.record import routes
from syncline.record.errors import RecordError


class _Size(click.ParamType):
    name = "SIZE"
    _UNITS = {"K": 1, "M": 1 << 10, "G": 1 << 20}

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        text = str(value).strip().upper().removesuffix("B")
        unit = self._UNITS.get(text[-1:])
        if unit is None or not text[:-1].isdigit() or not 0 < int(text[:-1]) * unit <= 1 << 24:
            self.fail(f"'{value}' is no size; write 64M", param, ctx)
        return int(text[:-1]) * unit


class _Device(click.ParamType):
    name = "DEVICE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        import os
        import stat

        text = str(value)
        major, _, minor = text.replace(",", ":").partition(":")
        if major.isdigit() and minor.isdigit():
            return int(major) << 20 | int(minor)
        try:
            found = Path(text).stat()
        except OSError as error:
            self.fail(f"{text}: {error.strerror}", param, ctx)
        # A file or folder stands for the device that it is on.
        device = found.st_rdev if stat.S_ISBLK(found.st_mode) else found.st_dev
        return os.major(device) << 20 | os.minor(device)


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
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="A new folder; named by the time by default.",
)
@click.option("--pid", type=click.IntRange(min=1), help="Until this process ends, instead of CMD.")
@click.option("--for", "duration", type=DURATION, help="No longer than this: 30s, 5min.")
@click.option("--comm", help="Stacks and bpftrace's events of threads of this name only.")
@click.option(
    "--device",
    type=_Device(),
    default=None,
    help="bpftrace's events of this device only: 254:16, /dev/sdb, or a file on it.",
)
@click.option(
    "--route",
    type=click.Choice(routes.NAMES),
    help="How to record; by default the best way that this machine has.",
)
@click.option(
    "--buffer",
    "buffer_kb",
    type=_Size(),
    default="16M",
    show_default=True,
    help="Memory of the ring buffer for each CPU.",
)
@click.option("--force", is_flag=True, help="Replace a recording in DIR.")
@click.option(
    "--and-report", is_flag=True, help="Then convert it to DIR/trace.pftrace and print the summary."
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[--] [CMD...]")
@click.pass_context
def command(
    ctx: click.Context,
    output: Path | None,
    pid: int | None,
    duration: int | None,
    comm: str | None,
    device: int | None,
    route: routes.Name | None,
    buffer_kb: int,
    force: bool,
    and_report: bool,
    command: tuple[str, ...],
) -> None:
    """Records the syncs of the machine while CMD runs, a process lives, or a time passes; else until Ctrl-C."""
    from syncline.record.session import Wanted, record

    if command and pid is not None:
        raise Failure("both a command and --pid are given", "leave one of them out")
    if route == "strace" and not command and pid is None:
        raise Failure("strace needs a command or --pid", "syncline record --route strace -- CMD")
    folder = output or Path(time.strftime("syncline-%Y%m%d-%H%M%S"))
    wanted = Wanted(
        folder=folder,
        command=list(command),
        pid=pid,
        seconds=None if duration is None else duration / 1e9,
        route=route,
        comm=comm,
        device=device or 0,
        buffer_kb=buffer_kb,
        force=force,
    )
    try:
        manifest = record(wanted, say)
    except RecordError as error:
        raise Failure(error.message, error.hint or None, code=3) from None
    say(f"recorded in {folder}: {', '.join(one['file'] for one in manifest['inputs'])}")
    code = manifest["exit_code"]
    if code:
        say(f"warning: the command ended with {code}")
    if str(manifest["ended_by"]).startswith("failure"):
        raise Failure(
            f"the recording ended early: {manifest['ended_by'].partition(': ')[2]}",
            f"what was recorded until then is in {folder}",
            code=3,
        )
    if not and_report:
        say(f"hint: syncline report {folder}")
        return
    from syncline.cli.convert import command as convert
    from syncline.cli.report import command as report

    ctx.invoke(convert, inputs=(str(folder),), output=str(folder / "trace.pftrace"))
    ctx.invoke(report, input=str(folder / "trace.pftrace"))
