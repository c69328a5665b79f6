"""Runs `syncline` in forks of one process that has imported everything.

Most of the CPU time of a small command is the import of its packages, and the tests run thousands of commands. A fork is otherwise a
process of its own: it has its own file descriptors, working folder and exit code. Tests of signals, of imports and of the installed program
start real processes.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import itertools
import json
import os
import pkgutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOG = ROOT / "tests" / "data" / "dynamic-events" / "ext4-both.txt.gz"
# After so many commands there will be more, so that a second of preparation pays off.
COMMANDS_FIRST = 20


class WarmCli:
    """The process and its socket. Not for several threads at once."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.warm_cli", str(theirs.fileno())],
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stderr=self._errors,
        )
        theirs.close()
        atexit.register(self.close)

    def close(self) -> None:
        self._socket.close()
        self._server.wait()

    def run(self, arguments: list[str], stdin: bytes, cwd: Path | None) -> tuple[int, bytes, bytes]:
        """Returns the exit code, the output and the messages of a command. Its standard streams are pipes."""
        pipes = [os.pipe() for _ in range(3)]
        inner = [pipes[0][0], pipes[1][1], pipes[2][1]]
        request = json.dumps(
            {
                "arguments": arguments,
                "cwd": str(cwd or Path.cwd()),
                "environment": dict(os.environ),
            }
        )
        body = request.encode()
        try:
            socket.send_fds(self._socket, [len(body).to_bytes(4, "big")], inner)
            self._socket.sendall(body)
        except BrokenPipeError:
            raise self._ended() from None
        for fd in inner:
            os.close(fd)
        outputs: list[bytes] = [b"", b""]

        def feed() -> None:
            # A command may end before it has read everything.
            with contextlib.suppress(BrokenPipeError), os.fdopen(pipes[0][1], "wb") as file:
                file.write(stdin)

        def collect(number: int) -> None:
            with os.fdopen(pipes[number + 1][0], "rb") as file:
                outputs[number] = file.read()

        threads = [threading.Thread(target=feed)]
        threads += [threading.Thread(target=collect, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        try:
            code = _receive(self._socket, 4)
        except EOFError:
            raise self._ended() from None
        for thread in threads:
            thread.join()
        return int.from_bytes(code, "big", signed=True), outputs[0], outputs[1]

    def _ended(self) -> RuntimeError:
        self._errors.seek(0)
        return RuntimeError(
            f"the process of warm_cli ended with {self._server.wait()}: {self._errors.read()}"
        )


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _serve(connection: socket.socket) -> None:
    for served in itertools.count():
        if served == COMMANDS_FIRST:
            _fill_caches()
        head, fds, _, _ = socket.recv_fds(connection, 4, 3)
        if not head:
            return
        head += _receive(connection, 4 - len(head)) if len(head) < 4 else b""
        request = json.loads(_receive(connection, int.from_bytes(head, "big")))
        child = os.fork()
        if child == 0:
            connection.close()
            _command(request, fds)
        for fd in fds:
            os.close(fd)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(code.to_bytes(4, "big", signed=True))


def _command(request: dict[str, object], fds: list[int]) -> None:
    """Becomes the command. Does not return."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    for number, mode in enumerate("rww"):
        stream = os.fdopen(number, mode, closefd=False)
        setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    sys.argv = ["syncline", *request["arguments"]]  # type: ignore[misc]
    # As the interpreter ends: an exception that nothing has caught is printed, and threads are waited for.
    code = 1
    try:
        importlib.import_module("syncline.cli").main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _import() -> None:
    """Imports the package and what it imports only when it is used."""
    import syncline

    for module in pkgutil.walk_packages(syncline.__path__, "syncline."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("duckdb", "rich.console", "rich.table", "wasmtime"):
        importlib.import_module(name)


def _fill_caches() -> None:
    """Makes what a process keeps: parsed SQL, and the loaded trace processor. A command on a small input spends a quarter of its time on that."""
    from syncline.advice import advise
    from syncline.inputs import Reading, opened
    from syncline.report import names, run_report

    with tempfile.TemporaryDirectory() as folder:
        Reading().convert([str(LOG)], f"{folder}/out.pftrace")
        with opened(f"{folder}/out.pftrace", Reading()) as engine:
            for report in names():
                run_report(engine, report)
            advise(engine)
        with opened(f"{folder}/out.pftrace", Reading(), engine="embedded") as engine:
            run_report(engine, "latency")
    # The collector of a fork would otherwise write to each object, and so copy its page.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _import()
    _serve(socket.socket(fileno=int(sys.argv[1])))
