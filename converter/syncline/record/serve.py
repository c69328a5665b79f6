"""Records on a server for a `syncline record --host` elsewhere: gets a request, and sends the recording. Nothing stays here."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from dataclasses import asdict, replace
from pathlib import Path
from typing import BinaryIO

from syncline.record import scratch, session, wire
from syncline.record.errors import RecordError
from syncline.record.mirror import Channel, Lost, Mirror
from syncline.record.request import (
    Request,
    check_exists,
    choose,
    remove_dead_instances,
    unable,
)
from syncline.record.tracefs_mount import mounted
from syncline.record.wire import Frame
from syncline.run_directory import Filter


def packed(request: Request) -> bytes:
    """Returns a request as a line."""
    wanted = asdict(request) | {"folder": str(request.folder)}
    return json.dumps(wanted).encode() + b"\n"


def unpacked(line: bytes) -> Request:
    """Returns the request of a line."""
    wanted = json.loads(line)
    kept = Filter(**wanted.pop("filter"))
    return Request(**wanted | {"folder": Path(wanted["folder"]), "filter": kept})


def main(source: BinaryIO) -> None:
    """Records as the first line of `source` says, and sends to standard output."""
    # Neither a program that is recorded nor a message may get into the stream.
    out = os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(1))
    channel = Channel(source, out)
    try:
        channel.send_bytes(wire.MAGIC)
        request = unpacked(source.readline())
        channel.listen()
        try:
            _record(request, channel)
        except Exception as error:
            if not isinstance(error, RecordError):
                if isinstance(error, Lost):
                    raise
                traceback.print_exc()
                error = RecordError(f"an internal error of the recorder: {type(error).__name__}: {error}", "report it together with the lines above")  # fmt: skip
            what = {"kind": type(error).__name__, "message": error.message, "hint": error.hint}
            channel.send(Frame(wire.ERROR, data=json.dumps(what).encode()))
    except Lost:
        sys.exit(1)


def _record(request: Request, channel: Channel) -> None:
    if os.geteuid() != 0:
        raise RecordError(f"user {os.geteuid()} is not root, and tracing the kernel needs root")

    def say(text: str) -> None:
        # Without the connection, nobody hears it, and the recorder still has to clean up.
        with contextlib.suppress(Lost):
            channel.send(Frame(wire.SAY, data=text.encode()[: wire.MAX_DATA]))

    def show(text: str) -> None:
        with contextlib.suppress(Lost):
            channel.send(Frame(wire.LINE, data=text.encode()[: wire.MAX_DATA]))

    if request.filter.path is not None:
        request = replace(request, filter=replace(request.filter, path=_resolved(request.filter.path)))  # fmt: skip
    session.check_command(request)
    check_exists(request.filter.pid)
    with mounted(say):
        remove_dead_instances(say)
        scratch.remove_dead()
        route = choose(request, unable(request))
        with scratch.folder() as folder:
            mirror = Mirror(folder, channel)
            try:
                manifest = session.record_by_best(
                    folder, request, route, say, mirror.attach, show if request.has_reader else None
                )
                mirror.finish()
            finally:
                mirror.close()
    text = json.dumps(manifest).replace(f"{folder}/", "")
    channel.send(Frame(wire.MANIFEST, data=text.encode()))


def _resolved(path: str) -> str:
    """Returns a path as the kernel records it. A slash at the end is kept."""
    return os.path.realpath(path) + ("/" if path.endswith("/") and path != "/" else "")
