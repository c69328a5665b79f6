#!/usr/bin/env python3
"""Sends SET commands to a Valkey (or Redis) server with an append-only file and `appendfsync always`, over a Unix socket.

One client waits for each reply, so each command has a sync of its own. The start and the end of the server add some.
"""

import shutil
import socket
import subprocess
import time

from workload import Run, main


def body(run: Run) -> None:
    server = shutil.which("valkey-server") or shutil.which("redis-server")
    if not server:
        raise SystemExit("valkey: the server is missing; install it: apt-get install valkey-server")
    # A socket address holds only about 100 bytes, and DIR may be longer, so the server runs in DIR.
    words = [
        server,
        "--port",
        "0",
        "--unixsocket",
        "socket",
        "--dir",
        str(run.dir),
        "--save",
        "",
        "--appendonly",
        "yes",
    ]
    words += ["--appendfsync", run.text("appendfsync"), "--logfile", "server.log"]
    path = run.dir / "socket"
    commands, size = run.number("commands"), run.number("size")
    with subprocess.Popen(words, cwd=run.dir) as process:
        try:
            for _ in range(600):
                if path.exists() or process.poll() is not None:
                    break
                time.sleep(0.1)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                answers = client.makefile("rb")
                with run.timed():
                    for n in range(commands):
                        key, value = f"key:{n % 16}", "v" * size
                        client.sendall(
                            f"*3\r\n$3\r\nSET\r\n${len(key)}\r\n{key}\r\n${size}\r\n{value}\r\n".encode()
                        )
                        if answers.readline() != b"+OK\r\n":
                            raise SystemExit("valkey: the server rejected a command")
                        run.wrote(size)
        finally:
            process.terminate()
    run.files, run.exact = 1, False
    if run.text("appendfsync") == "always":
        run.count("fdatasync", commands)


main(body, __doc__, commands=50, size=100, appendfsync=("always", "everysec", "no"))
