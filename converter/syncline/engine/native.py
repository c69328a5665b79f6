"""The native engine: a `trace_processor_shell` of the user, faster and newer than the embedded one.

The package `perfetto` starts it and connects to the `/rpc` endpoint of its HTTP server. Only this
endpoint reports a truncated trace, and it registers SQL packages under the same names in every
version. Nothing is downloaded: Perfetto's wrapper script, which downloads, is rejected.
"""

from __future__ import annotations

import http.client
import logging
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfetto.trace_processor import TraceProcessorConfig, TraceProcessorException
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.shell import TraceProcessorHttpSubprocess

from .errors import EngineError
from .processor import Engine
from .rpc import RpcBackend, load
from .trace_file import TraceFile

log = logging.getLogger(__name__)

VARIABLE = "SYNCLINE_TRACE_PROCESSOR"
NAMES = ("trace_processor_shell", "trace_processor")
_EMBEDDED = "Or use the embedded engine, which needs no other program (--engine embedded)."


@dataclass(frozen=True)
class Shell:
    """A trace_processor_shell and its version."""

    path: str
    version: str


def find(named: str | None = None) -> Shell | None:
    """Returns the shell that the caller names, else SYNCLINE_TRACE_PROCESSOR, else one on PATH.

    A shell on PATH that does not run is skipped with a warning, because the user did not ask for it.

    Raises:
        EngineError: a shell that is named does not exist or does not run.
    """
    for name, origin in ((named, ""), (os.environ.get(VARIABLE), f" (named by {VARIABLE})")):
        if name:
            path = shutil.which(os.path.expanduser(name)) or name
            return Shell(path, _version(path, origin))
    for name in NAMES:
        path = shutil.which(name)
        if path:
            try:
                return Shell(path, _version(path, " (on PATH)"))
            except EngineError as error:
                log.warning("%s", error.message)
    return None


def _version(path: str, origin: str) -> str:
    where = f"{path}{origin}"
    if _downloads(path):
        raise EngineError(
            f"{where}: this is Perfetto's wrapper script, which downloads the program it runs",
            "Run the script once, then name the program that it has downloaded to"
            " ~/.local/share/perfetto/prebuilts/. " + _EMBEDDED,
        )
    try:
        answer = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it does not reply"
        raise EngineError(f"{where}: cannot run this trace processor: {reason}", _hint()) from error
    output = answer.stdout + answer.stderr
    if answer.returncode or "RPC API version" not in output:
        last = (output.strip().splitlines() or ["nothing"])[-1]
        raise EngineError(
            f"{where}: not a trace_processor_shell: --version exited with"
            f" {answer.returncode} and printed: {last}",
            _hint(),
        )
    version = re.search(r"\bv\d+\.\d+", output)
    return version.group() if version else "unknown"


def _hint() -> str:
    return f"Name a trace_processor_shell for this machine. {_EMBEDDED}"


def _downloads(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(2) == b"#!" and b"get_perfetto_prebuilt" in file.read()
    except OSError:
        return False


def open_native(
    source: TraceFile, shell: Shell, modules: Iterable[tuple[str, dict[str, str]]]
) -> Engine:
    """Starts the shell and loads the trace. Raises EngineError."""
    return load(
        source,
        modules,
        lambda protos: NativeBackend(shell, protos),
        name="native",
        version=shell.version,
    )


class NativeBackend(RpcBackend):
    """The RPC over HTTP to a process that ends when the backend is closed."""

    def __init__(self, shell: Shell, protos: ProtoFactory) -> None:
        try:
            self._server = TraceProcessorHttpSubprocess(
                TraceProcessorConfig(bin_path=shell.path), PlatformDelegate(), protos
            )
        except (TraceProcessorException, OSError) as error:
            hint = _hint()
            if any(os.environ.get(name) for name in ("http_proxy", "HTTP_PROXY")):
                hint = f"A proxy is set: type export no_proxy=localhost and retry. {hint}"
            raise EngineError(f"{shell.path}: did not start: {error}", hint) from error
        finally:
            # The package `perfetto` requests the status by urlretrieve, which leaves a temporary file.
            urllib.request.urlcleanup()
        super().__init__(HttpTransport(shell.path, self._server.conn), protos)

    @property
    def subprocess(self) -> Any:
        return self._server.subprocess

    def close(self) -> None:
        super().close()
        self._server.close()


class HttpTransport:
    """Sends each request as a POST. The reply is the body."""

    def __init__(self, path: str, connection: http.client.HTTPConnection) -> None:
        self._path = path
        self._connection = connection
        self._unread = memoryview(b"")
        self._stopped = ""

    def send(self, data: bytes) -> None:
        if self._stopped:
            raise EngineError(f"{self._path}: {self._stopped}", "Open the trace again.")
        try:
            self._connection.request("POST", "/rpc", body=data)
            with self._connection.getresponse() as response:
                if response.status != http.client.OK:
                    raise http.client.HTTPException(f"status {response.status}")
                self._unread = memoryview(response.read())
        except (OSError, http.client.HTTPException) as error:
            self._stopped = "the trace processor has stopped"
            raise EngineError(
                f"{self._path}: the trace processor has stopped: {error or type(error).__name__}",
                "It may have run out of memory: read the kernel log (dmesg | tail).",
            ) from error
        except BaseException:
            # The rest of this reply must not be read as the next reply.
            self._stopped = "the trace processor was interrupted"
            raise

    def read(self, size: int) -> bytes:
        part, self._unread = self._unread[:size], self._unread[size:]
        if len(part) < size:
            self._stopped = "the trace processor has stopped"
            raise EngineError(f"{self._path}: the reply of the trace processor is incomplete")
        return bytes(part)

    def close(self) -> None:
        self._stopped = self._stopped or "the engine is closed"
        self._unread = memoryview(b"")
