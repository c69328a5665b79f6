"""HTTP servers for the Perfetto UI: one for the trace only, one for the UI too (`--offline`)."""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit

from syncline.ui.peer import user_of
from syncline.users import is_trusted

from . import view

__all__ = ["ONLINE_PORT", "ONLINE_UI", "OfflineServer", "OnlineServer", "PortTaken"]

HOST = "127.0.0.1"
ONLINE_UI = "https://ui.perfetto.dev"
# The only local port from which the UI's content security policy allows a fetch.
ONLINE_PORT = 9001

# The plugin, which perfetto-ui-plugin/ builds. Without it, the UI works as usual.
_PLUGIN = Path(__file__).parent / "plugin" / "plugin.js"
_PLUGIN_PATH = "/syncline/plugin.js"

# One browser needs fewer: it opens at most six to one host, and some in advance.
_MAX_CONNECTIONS = 16
# For the whole header: one byte every few seconds would otherwise hold a connection for ever. A browser that has opened one in advance
# may never use it.
_REQUEST_WITHIN_S = 10
# The UI may be busy with the first part of a large trace while the next one waits.
_SENT_WITHIN_S = 600
# If no connection is free, the slowest one that is older and slower than this is closed for a new one. A browser is faster by far, unless its
# page is busy, and with that nobody is in its way as long as there are free ones.
_SLOW_AFTER_S = 2.0
_SLOW_BYTES_PER_S = 1 << 20
_CLOSED_WITHIN_S = 1.0
_BLOCK_BYTES = 1 << 18


@dataclass
class _Progress:
    """A connection: when it was opened, and the bytes of files that were sent."""

    request: Any
    since: float = field(default_factory=time.monotonic)
    sent: int = 0

    def rate(self) -> float | None:
        """Returns the bytes a second; None in its first seconds."""
        age = time.monotonic() - self.since
        return self.sent / age if age >= _SLOW_AFTER_S else None


class PortTaken(Exception):
    """Another program listens on the port. The argument is its number."""


class _Server(ThreadingHTTPServer):
    """Serves one trace inside a `with` block, and a redirection to the page of the UI that loads it.

    The address of that page holds the commands that the UI runs first, so it is too long to copy or to be an argument.

    Every user of this machine can connect to the port. The path of the trace has a random part, so
    that only those who know it get the trace. The arguments of a process are public, and with them
    the address that a browser was started with. So, on Linux, connections of other users are closed.
    """

    # A browser may keep connections open without using them.
    daemon_threads = True
    # The prefix of the path of the trace.
    folder = "/"
    # The address of the UI's page that loads the trace.
    ui_page: str

    def __init__(self, trace: Path, name: str, port: int, handler: type[_Handler]) -> None:
        self.trace = trace
        # Kept open: its name may lead to another file by the time a browser asks for it.
        self.file = os.open(trace, os.O_RDONLY | os.O_CLOEXEC)
        self._at_start = os.fstat(self.file)
        self.start_path = f"{self.folder}{secrets.token_urlsafe(16)}/"
        self.trace_path = f"{self.start_path}{name}"
        self._fetched = threading.Event()
        # Called once if the trace is not what it was at the start.
        self.on_change: Callable[[], None] = lambda: None
        self._has_changed = False
        # Called once with the id of each user whose connections are closed.
        self.on_refusal: Callable[[int], None] = lambda uid: None
        self._refused: set[int] = set()
        self._free = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        # By the id of the socket.
        self.connections: dict[int, _Progress] = {}
        try:
            super().__init__((HOST, port), handler)
        except OSError as error:
            os.close(self.file)
            if error.errno == errno.EADDRINUSE:
                raise PortTaken(port) from None
            raise
        self.origin = f"http://{HOST}:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True)

    @property
    def trace_url(self) -> str:
        """The address of the trace."""
        return self.origin + quote(self.trace_path)

    @property
    def page(self) -> str:
        """The address to open in a browser."""
        return self.origin + self.start_path

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
        os.close(self.file)

    def is_unchanged(self) -> bool:
        """Returns whether the trace is what it was at the start. A file that was only removed still is."""
        now = [os.fstat(self.file)]
        with contextlib.suppress(FileNotFoundError):
            now.append(self.trace.stat())
        if all(map(_facts(self._at_start).__eq__, map(_facts, now))):
            return True
        if not self._has_changed:
            self._has_changed = True
            self.on_change()
        return False

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Returns whether the connection is of a user who may have the trace, as far as it is known."""
        uid = user_of(client_address, (HOST, self.server_port))
        if uid is None or is_trusted(uid):
            return True
        if uid not in self._refused:
            self._refused.add(uid)
            self.on_refusal(uid)
        return False

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False) or (
            self._close_slowest() and self._free.acquire(timeout=_CLOSED_WITHIN_S)
        ):
            self.connections[id(request)] = _Progress(request)
            try:
                super().process_request(request, client_address)
            except BaseException:
                # No thread could be started.
                self._release(request)
                raise
            return
        with contextlib.suppress(OSError):
            request.setblocking(False)
            request.send(b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._release(request)

    def _release(self, request: Any) -> None:
        self.connections.pop(id(request), None)
        self._free.release()

    def _close_slowest(self) -> bool:
        """Closes the slowest connection if it is too slow. Returns whether there was one."""
        rates = [(one.rate(), one) for one in list(self.connections.values())]
        slow = [(rate, one) for rate, one in rates if rate is not None and rate < _SLOW_BYTES_PER_S]
        if not slow:
            return False
        _, slowest = min(slow, key=lambda found: found[0])
        with contextlib.suppress(OSError):
            slowest.request.shutdown(socket.SHUT_RDWR)
        return True

    def trace_is_fetched(self) -> None:
        """Records that the whole trace has been sent."""
        self._fetched.set()

    def wait(self) -> None:
        """Waits until the browser has fetched the whole trace."""
        # With a timeout, so that Ctrl-C works on every platform.
        while not self._fetched.wait(0.5):
            pass

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores errors, because a browser may close a connection at any time."""


def _facts(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class _Handler(SimpleHTTPRequestHandler):
    server: _Server  # type: ignore[assignment]
    timeout = _REQUEST_WITHIN_S

    def handle(self) -> None:
        self._deadline = threading.Timer(_REQUEST_WITHIN_S, self._expire)
        self._deadline.daemon = True
        self._deadline.start()
        try:
            super().handle()
        finally:
            self._deadline.cancel()

    def parse_request(self) -> bool:
        is_whole = super().parse_request()
        self._deadline.cancel()
        return is_whole

    def _expire(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Sends a file, and notes how far it is."""
        progress = self.server.connections.get(id(self.request))
        while block := source.read(_BLOCK_BYTES):
            outputfile.write(block)
            if progress is not None:
                progress.sent += len(block)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing, because `syncline open` prints what is served."""

    def is_for_this_server(self) -> bool:
        """Returns whether `Host` is this server. Another name is an attack (DNS rebinding)."""
        port = self.server.server_port
        return self.headers.get("Host") in (f"{HOST}:{port}", f"localhost:{port}")

    def asks_for_trace(self) -> bool:
        """Returns whether the request is for exactly the path of the trace, without a query."""
        return self._asks_for(self.server.trace_path)

    def _asks_for(self, path: str) -> bool:
        # In a time that does not depend on how much of it is right.
        return hmac.compare_digest(unquote(self.path).encode(), path.encode())

    def is_redirected(self) -> bool:
        """Redirects a request for the address that `syncline open` prints. Returns whether it was one."""
        if not self.is_for_this_server() or not self._asks_for(self.server.start_path):
            return False
        # Without a referrer: the UI need not know where it was opened from.
        headers = (("Location", self.server.ui_page), ("Referrer-Policy", "no-referrer"))
        self.reply(HTTPStatus.FOUND, headers)
        return True

    def reply(self, status: HTTPStatus, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Sends a reply without a body."""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def send_trace(self, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Sends the trace; for HEAD only the headers."""
        self.connection.settimeout(_SENT_WITHIN_S)
        if not self.server.is_unchanged():
            line = b"the trace was replaced since `syncline open` began: type the command again\n"
            self.send_response(HTTPStatus.GONE)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(line)))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(line)
            return
        # Opened again, so that each request has a position of its own.
        with Path(f"/proc/self/fd/{self.server.file}").open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(size))
            self.send_header("Cache-Control", "no-store")
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.copyfile(file, self.wfile)
                self.wfile.flush()
                self.server.trace_is_fetched()


class OnlineServer(_Server):
    """Serves one trace, and only to the pages of ui.perfetto.dev."""

    def __init__(
        self,
        trace: Path,
        name: str,
        port: int = ONLINE_PORT,
        shown: view.Slowest | None = None,
    ) -> None:
        super().__init__(trace, name, port, _OnlineHandler)
        self.ui_page = view.address(ONLINE_UI, self.trace_url, shown)


class _OnlineHandler(_Handler):
    _CORS = (("Access-Control-Allow-Origin", ONLINE_UI), ("Vary", "Origin"))
    _PREFLIGHT = (
        *_CORS,
        ("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
        ("Access-Control-Allow-Headers", "*"),
        # Chromium requires this before a public page may fetch from this machine.
        ("Access-Control-Allow-Private-Network", "true"),
    )

    def _refuse(self) -> bool:
        if not self.is_for_this_server() or self.headers.get("Origin") != ONLINE_UI:
            self.reply(HTTPStatus.FORBIDDEN)
        elif not self.asks_for_trace():
            self.reply(HTTPStatus.NOT_FOUND, self._CORS)
        else:
            return False
        return True

    def do_GET(self) -> None:
        if not self.is_redirected() and not self._refuse():
            self.send_trace(self._CORS)

    do_HEAD = do_GET

    def do_OPTIONS(self) -> None:
        if not self._refuse():
            self.reply(HTTPStatus.NO_CONTENT, self._PREFLIGHT)

    def do_POST(self) -> None:
        # Before it fetches the trace, the UI looks for a trace_processor on this port.
        self.reply(HTTPStatus.NOT_FOUND)


class OfflineServer(_Server):
    """Serves the UI in `web_dist`, with Syncline's plugin, and one trace. The page connects to no other server."""

    folder = "/trace/"

    def __init__(
        self,
        trace: Path,
        name: str,
        web_dist: Path,
        port: int = 0,
        shown: view.Slowest | None = None,
        why_empty: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        """`why_empty`: says why a report has no rows; None if there is no such report."""
        self.web_dist = web_dist
        self.why_empty = why_empty
        super().__init__(trace, name, port, _OfflineHandler)
        self.ui_page = view.address(self.origin, self.trace_url, shown, plugin=_PLUGIN.is_file())


class _OfflineHandler(_Handler):
    server: OfflineServer  # type: ignore[assignment]
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".wasm": "application/wasm"}
    # Without it, the UI connects to servers of its vendor, and to port 9001 for a trace_processor.
    _POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"

    def __init__(self, request: Any, client_address: Any, server: OfflineServer) -> None:
        super().__init__(request, client_address, server, directory=str(server.web_dist))

    def do_GET(self) -> None:
        if not self._handle():
            super().do_GET()

    def do_HEAD(self) -> None:
        if not self._handle():
            super().do_HEAD()

    def _handle(self) -> bool:
        if not self.is_for_this_server():
            self.reply(HTTPStatus.FORBIDDEN)
        elif "\0" in unquote(self.path):
            # No file has such a name, and the system refuses to look for it.
            self.reply(HTTPStatus.NOT_FOUND)
        elif self.is_redirected():
            pass
        elif self.asks_for_trace():
            self.send_trace()
        elif (report := self._report_without_rows()) is not None:
            why = self.server.why_empty(report)
            if why is None:
                return False
            self._send(why.encode(), "text/plain")
        elif urlsplit(self.path).path in ("/", "/index.html") and _PLUGIN.is_file():
            # The script of the plugin must run before that of the UI.
            page = (self.server.web_dist / "index.html").read_bytes()
            script = f'<script src="{_PLUGIN_PATH}"></script>'.encode()
            self._send(page.replace(b"<head>", b"<head>" + script, 1), "text/html")
        elif urlsplit(self.path).path == _PLUGIN_PATH and _PLUGIN.is_file():
            self._send(_PLUGIN.read_bytes(), "text/javascript")
        elif urlsplit(self.path).path == "/live_reload":
            # A UI that is served from localhost assumes that it runs on a development server.
            self.reply(HTTPStatus.NO_CONTENT)
        else:
            return False
        return True

    def _report_without_rows(self) -> str | None:
        """Returns the report of which the plugin asks why it has no rows. The request has the random part of the trace's path."""
        folder, _, report = unquote(self.path).rpartition("/")
        is_of_trace = hmac.compare_digest(folder.encode(), f"{self.server.start_path}why".encode())
        return report if is_of_trace else None

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", self._POLICY)
        super().end_headers()

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def list_directory(self, path: Any) -> None:
        """Replies 404 instead of listing a folder."""
        self.reply(HTTPStatus.NOT_FOUND)
