"""Serves a trace to the Perfetto UI, and the UI itself where there is no network."""

from __future__ import annotations

import errno
import json
import shutil
import threading
from collections.abc import Iterable
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit

__all__ = ["ONLINE_PORT", "ONLINE_UI", "OfflineServer", "OnlineServer", "PortTaken", "ui_address"]

HOST = "127.0.0.1"
ONLINE_UI = "https://ui.perfetto.dev"
# The one port that the UI's content security policy lets it fetch from.
ONLINE_PORT = 9001

# Groups that are open when the page appears (docs/trace-layout.md); a process is called NAME PID.
_EXPANDED = r"^(Syncs and writeback|Threads|Block I/O .*|.* \d+)$"
_STARTUP = [{"id": "dev.perfetto.ExpandTracksByRegex", "args": [_EXPANDED]}]


class PortTaken(Exception):
    """Somebody listens on the port; its number is the argument."""


def ui_address(ui: str, trace: str) -> str:
    """The page of the UI at `ui` that loads the trace at `trace` and unfolds its tracks."""
    unfold = quote(json.dumps(_STARTUP, separators=(",", ":")), safe="")
    return f"{ui}/#!/?url={quote(trace, safe=':/')}&startupCommands={unfold}"


class _Server(ThreadingHTTPServer):
    """Serves while its context lasts."""

    # A browser holds connections open that it may never use.
    daemon_threads = True
    # What the path of the trace begins with.
    folder = "/"
    page: str

    def __init__(self, trace: Path, name: str, port: int, handler: type[_Handler]) -> None:
        self.trace = trace
        self.trace_path = self.folder + name
        self._fetched = threading.Event()
        try:
            super().__init__((HOST, port), handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortTaken(port) from None
            raise
        self.origin = f"http://{HOST}:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True)

    @property
    def trace_url(self) -> str:
        """Where the trace is."""
        return self.origin + quote(self.trace_path)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def trace_is_fetched(self) -> None:
        """All of the trace is on its way to the browser."""
        self._fetched.set()

    def wait(self) -> None:
        """Returns when the trace was fetched as a whole."""
        # With a time limit, so that Ctrl-C is heard on every platform.
        while not self._fetched.wait(0.5):
            pass

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a browser that goes away is no error."""


class _Handler(SimpleHTTPRequestHandler):
    server: _Server  # type: ignore[assignment]

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: `syncline open` says what is served."""

    def meant_for_this_server(self) -> bool:
        """False for a foreign name that points at this machine, which is a known attack."""
        port = self.server.server_port
        return self.headers.get("Host") in (f"{HOST}:{port}", f"localhost:{port}")

    def asks_for_trace(self) -> bool:
        """Exactly the path that was announced, with no query."""
        return unquote(self.path) == self.server.trace_path

    def answer(self, status: HTTPStatus, headers: Iterable[tuple[str, str]] = ()) -> None:
        """An answer without a body."""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def send_trace(self, headers: Iterable[tuple[str, str]] = ()) -> None:
        """The trace, or to HEAD what would come with it."""
        with self.server.trace.open("rb") as file:
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
                shutil.copyfileobj(file, self.wfile, 1 << 20)
                self.wfile.flush()
                self.server.trace_is_fetched()


class OnlineServer(_Server):
    """One trace for ui.perfetto.dev, and nothing for anybody else."""

    def __init__(self, trace: Path, name: str, port: int = ONLINE_PORT) -> None:
        super().__init__(trace, name, port, _OnlineHandler)
        self.page = ui_address(ONLINE_UI, self.trace_url)


class _OnlineHandler(_Handler):
    _CORS = (("Access-Control-Allow-Origin", ONLINE_UI), ("Vary", "Origin"))
    _PREFLIGHT = (
        *_CORS,
        ("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
        ("Access-Control-Allow-Headers", "*"),
        # Chromium asks before it lets a public page fetch from this machine.
        ("Access-Control-Allow-Private-Network", "true"),
    )

    def _refused(self) -> bool:
        if not self.meant_for_this_server() or self.headers.get("Origin") != ONLINE_UI:
            self.answer(HTTPStatus.FORBIDDEN)
        elif not self.asks_for_trace():
            self.answer(HTTPStatus.NOT_FOUND, self._CORS)
        else:
            return False
        return True

    def do_GET(self) -> None:
        if not self._refused():
            self.send_trace(self._CORS)

    do_HEAD = do_GET

    def do_OPTIONS(self) -> None:
        if not self._refused():
            self.answer(HTTPStatus.NO_CONTENT, self._PREFLIGHT)

    def do_POST(self) -> None:
        # The UI looks on this port for a trace_processor before it fetches the trace.
        self.answer(HTTPStatus.NOT_FOUND)


class OfflineServer(_Server):
    """The UI in `web_dist` and one trace, on one port; the page talks to nobody else."""

    folder = "/trace/"

    def __init__(self, trace: Path, name: str, web_dist: Path, port: int = 0) -> None:
        self.web_dist = web_dist
        super().__init__(trace, name, port, _OfflineHandler)
        self.page = ui_address(self.origin, self.trace_url)


class _OfflineHandler(_Handler):
    server: OfflineServer  # type: ignore[assignment]
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".wasm": "application/wasm"}
    # Else the UI asks its maker's servers who its user is, and port 9001 for a trace_processor.
    _POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"

    def __init__(self, request: Any, client_address: Any, server: OfflineServer) -> None:
        super().__init__(request, client_address, server, directory=str(server.web_dist))

    def do_GET(self) -> None:
        if not self._answered():
            super().do_GET()

    def do_HEAD(self) -> None:
        if not self._answered():
            super().do_HEAD()

    def _answered(self) -> bool:
        if not self.meant_for_this_server():
            self.answer(HTTPStatus.FORBIDDEN)
        elif self.asks_for_trace():
            self.send_trace()
        elif urlsplit(self.path).path == "/live_reload":
            # Served from this machine, the UI takes itself for one that is being developed.
            self.answer(HTTPStatus.NO_CONTENT)
        else:
            return False
        return True

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", self._POLICY)
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        """No folder is listed."""
        self.answer(HTTPStatus.NOT_FOUND)
