"""A server for tests/test_host.py: it gets a recorder and a request, and sends pages of its own instead of recording.

python -m tests.host_server MODE FOLDER ...
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from syncline.record import salvage, serve, wire
from syncline.record.mirror import Channel, Mirror
from syncline.record.wire import Frame
from syncline.run_directory import LEFT

from tests.test_record import EXIT_FORMAT, HEADER_PAGE, page

# (time, thread, return value) of each CPU. All but the last pages arrive before the connection may end.
CPUS = [[(1000, 7, 0), (9000, 7, -5)], [], [(5000, 8, 3)]]
KNOWN_UNTIL = 6000
TRACE_DAT = {
    "header_page": HEADER_PAGE,
    "header_event": "",
    "ftrace_formats": [],
    "formats": {"syscalls": [EXIT_FORMAT]},
    "clock": "local global [boot]\n",
    "uname": "Linux db1 6.12 x86_64",
    "version": "syncline test",
    "page_bytes": 4096,
    "symbols": "",
}
MANIFEST = {
    "schema_version": 1,
    "route": "dynamic-events",
    "ended_by": "time",
    "exit_code": None,
    "inputs": [{"file": "trace.dat", "source": "trace-dat", "events": ["syscalls/sys_exit_fsync"]}],
    "filter_at_conversion": {},
    "before": {"boot_id": "b", "host": "db1"},
}


def main(mode: str, folder: Path) -> None:
    print("Welcome to db1", flush=True)
    source, out = open(os.dup(0), "rb"), os.dup(1)  # noqa: SIM115, PTH123
    if mode == "terminal":
        os.write(out, wire.MAGIC.replace(b"\n", b"\r\n"))
        return
    source.read(int(source.readline()))
    channel = Channel(source, out)
    channel.send_bytes(wire.MAGIC)
    request = serve.unpacked(source.readline())
    channel.send(Frame(wire.SAY, data=json.dumps(request.filter.path).encode()))
    if mode == "refuses":
        error = {"kind": "NoRouteError", "message": "it cannot", "hint": "see `syncline doctor`"}
        channel.send(Frame(wire.ERROR, data=json.dumps(error).encode()))
        return
    if mode == "visits":
        error = {"kind": "RecordError", "message": "user 1000 is not root, and more", "hint": ""}
        channel.send(Frame(wire.ERROR, data=json.dumps(error).encode()))
        return
    if mode == "attacks":
        channel.send(Frame(wire.PART, "../stolen", b"x"))
        return
    if mode in ("no-object", "no-json", "no-error"):
        said = {
            "no-object": b"[1]",
            "no-json": b"{",
            "no-error": b'{"kind": "annotations", "message": "odd"}',
        }
        channel.send(Frame(wire.ERROR, data=said[mode]))
        return
    channel.listen()
    if mode == "starts":
        # Longer than the other end would wait for a word, if there were none.
        time.sleep(8)
    pages = [folder / f".cpu{cpu}.pages" for cpu in range(len(CPUS))]
    for file, events in zip(pages, CPUS, strict=True):
        file.write_bytes(b"".join(page(*event) for event in events))
    facts = {"owner": [1, "1"], "events": MANIFEST["inputs"][0]["events"]}
    facts |= {"buffers": {"": [file.name for file in pages]}, "trace_dat": TRACE_DAT}
    (folder / LEFT).write_text(json.dumps(facts))
    (folder / salvage.BEGUN).write_text(json.dumps(MANIFEST))
    (folder / "tasks.json").write_text('{"threads": [[7, 6]], "processes": {"6": "program"}}')
    (folder / "maps").mkdir()
    (folder / "maps/6.maps").write_text("# /bin/program\n")
    state = {"known_until_ns": KNOWN_UNTIL, "comms": {"7": "a b", "8": "c"}, "stats": {}}
    (folder / salvage.STATE).write_text(json.dumps(state) + "\nthe rest of an older state")
    buffer = SimpleNamespace(name="", is_written=True, pages=pages)
    mirror = Mirror(folder, channel)
    mirror.attach(SimpleNamespace(buffers=[buffer], page_bytes=4096, sending=None))
    mirror.send_pages()
    if mode == "waits":
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: os._exit(9))
        signal.pause()
    elif mode == "large":
        channel.send(Frame(wire.PART, "stacks.log.part", b"x" * (1 << 20), 1 << 20))
        time.sleep(20)
    elif mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "drops":
        os._exit(1)
    mirror.finish()
    channel.send(Frame(wire.MANIFEST, data=json.dumps(MANIFEST).encode()))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
