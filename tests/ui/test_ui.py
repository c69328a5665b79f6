"""Traces in the Perfetto UI in a real browser, and the servers of `syncline open`.

SYNCLINE_UI_SHOTS=FOLDER keeps the screenshots.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from syncline.ui import peer, serve
from syncline.ui.serve import OfflineServer, OnlineServer, PortTaken

from tests.ui import browser

DATA = Path(__file__).parents[1] / "data/thesis"
LOGS = {"small4": "small4.log", "parallel4": "parallel4.log", "bg": "bg.log.gz"}

# A sync with a bio, from the middle of the run.
ONE = """
  SELECT slice.* FROM slice
  WHERE category = 'syncline.phase' AND name = 'before submit'
  ORDER BY ts LIMIT 1
  OFFSET (SELECT COUNT(*) / 2 FROM slice WHERE name = 'before submit')
"""
SYNC_ID = "extract_arg(arg_set_id, 'debug.sync_id')"
VIEWS = {
    "run": {"span": "SELECT start_ts, end_ts FROM trace_bounds", "paint": True},
    "20ms": {"span": f"SELECT ts - 5000000, ts + 15000000 FROM ({ONE})", "paint": True},
    "sync": {
        "span": f"SELECT up.ts - up.dur / 20, up.ts + up.dur * 21 / 20 FROM ({ONE}) AS one"
        " JOIN slice AS up ON up.id = one.parent_id",
        "select": f"SELECT id FROM ({ONE})",
        "paint": True,
    },
    "file": {
        "span": "SELECT start_ts, end_ts FROM trace_bounds",
        "select": f"SELECT parent_id FROM ({ONE})",
    },
}
QUERIES = {
    "syncs": "SELECT COUNT(*) FROM slice WHERE category = 'syncline.sync'",
    "syncs_by_thread": "SELECT track.name, COUNT(*) FROM slice JOIN track ON track_id = track.id"
    " WHERE category = 'syncline.sync' GROUP BY 1",
    "threads": "SELECT COUNT(*) FROM thread WHERE tid != 0",
    "bios_of_one": f"SELECT COUNT(*) FROM slice WHERE category = 'syncline.bio' AND {SYNC_ID} ="
    f" (SELECT {SYNC_ID} FROM slice WHERE id = (SELECT parent_id FROM ({ONE})))",
    "stack_of_one": "SELECT extract_arg(arg_set_id, 'debug.stack') FROM slice"
    f" WHERE id = (SELECT parent_id FROM ({ONE}))",
    # Only what failed has a colour that its name does not give, and some phases; nothing failed here.
    "odd_colours": "SELECT COUNT(*) FROM slice WHERE category != 'syncline.phase'"
    " AND extract_arg(arg_set_id, 'correlation_id') IS NOT NULL",
    "waited": "SELECT DISTINCT name FROM track WHERE name GLOB '[0-9]*. *' ORDER BY name",
    "stats": "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0",
}

# Console messages that are expected without a network: the policy of `--offline`, and the UI's own.
HARMLESS = re.compile(r"Content.Security.Policy|LiveReload SSE|is_internal_user")


def lines(log: str) -> list[str]:
    path = DATA / LOGS[log]
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode().splitlines()


def starts(log: str) -> Counter[str]:
    """Counts the requests of each thread in the log: `TIME PID COMM start id ...`."""
    found = (re.match(r"\d+ (\d+) (\S+) start id ", line) for line in lines(log))
    return Counter(f"{match[2]} {match[1]}" for match in found if match)


def thread_of(track: str) -> str:
    """Returns the thread of a track: `1. wl 637 waited 1.94 s`."""
    return track.partition(". ")[2].partition(" waited ")[0]


@pytest.fixture(scope="module", params=LOGS)
def seen(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Opens a log in the UI and looks at it at several zoom levels."""
    log = request.param
    views = [
        {"name": name, "shot": browser.shot(f"{log}-{name}")} | view for name, view in VIEWS.items()
    ]
    with browser.opened("--offline", DATA / LOGS[log]) as page:
        found = browser.drive(browser.tracks_only(page), views, QUERIES)
    found["views"] = {view["name"]: view for view in found["views"]}
    return log, found


@pytest.mark.ui
class TestTimeline:
    def test_the_ui_shows_no_error(self, seen: tuple[str, dict[str, Any]]) -> None:
        _, found = seen
        assert found["dialogs"] == []
        assert found["modals"] == []
        assert found["failed"] == 0
        assert [text for text in found["console"] if not HARMLESS.search(text)] == []
        assert found["queries"]["stats"] == []

    def test_tracks_are_in_order(self, seen: tuple[str, dict[str, Any]]) -> None:
        log, found = seen
        # Those that waited longest come first.
        threads = [name for (name,) in found["queries"]["waited"]]
        assert sorted(map(thread_of, threads)) == sorted(starts(log))
        disk = "Disk (device unknown): "
        expected = [*threads, "All threads: syncs in flight", f"{disk}all in flight"]
        expected += ["bytes in flight", "bios not fully recorded"]
        expected += ["bios with no recorded completion", f"{disk}bios of syncs"]
        expected += ["Recording", "Losses", "Run"]
        names = [name for name in found["tracks"] if not name.endswith("more than 4 at once")]
        assert sorted(expected) == sorted(set(names) - {"System", "Clock Snapshots"})
        shown = [path.rsplit("/", 1)[-1] for path in found["views"]["run"]["painted"]]
        # Tracks below the visible area are not on the page.
        assert len(shown) > 5
        assert [n for n in expected if n in shown] == [n for n in shown if n in expected]

    def test_there_is_no_extra_thread(self, seen: tuple[str, dict[str, Any]]) -> None:
        _, found = seen
        assert found["queries"]["threads"] == [["0"]]

    def test_every_sync_is_shown(self, seen: tuple[str, dict[str, Any]]) -> None:
        log, found = seen
        expected = starts(log)
        assert found["queries"]["syncs"] == [[str(expected.total())]]
        syncs = found["queries"]["syncs_by_thread"]
        assert {thread_of(name): int(n) for name, n in syncs} == expected

    @pytest.mark.parametrize("view", ["run", "20ms", "sync"])
    def test_slices_are_drawn(self, seen: tuple[str, dict[str, Any]], view: str) -> None:
        log, found = seen
        painted = found["views"][view]["painted"]
        threads = {path: n for path, n in painted.items() if " waited " in path}
        assert len(threads) == len(starts(log))
        # In the view of the whole run, every thread has slices. In the others, at least the thread of the sync has.
        least = min(threads.values()) if view == "run" else max(threads.values())
        assert least > 1000, painted
        assert sum(n for path, n in painted.items() if path.endswith("bios of syncs")) > 20, painted

    def test_a_click_shows_the_details(self, seen: tuple[str, dict[str, Any]]) -> None:
        log, found = seen
        (text,) = found["views"]["file"]["details"]
        names = ("amount", "path", "syscall_ns", "bytes", "bios", "stack", "sync_id")
        # A lost completion hides where the time of its sync went.
        if log != "bg":
            names = ("amount", "time", *names[1:])
        at = [re.search(rf"^\s*{name}(arrow|\s|$)", text, re.MULTILINE) for name in names]
        assert all(at), text
        # What is for people comes first.
        places = [match.start() for match in at if match]
        assert places[:2] == sorted(places)[:2]
        # The innermost frame is last. The page may cut a long value in the middle.
        ((stack,),) = found["queries"]["stack_of_one"]
        assert stack.split(";")[-1] in text

    def test_arrows_point_to_the_bios(self, seen: tuple[str, dict[str, Any]]) -> None:
        _, found = seen
        bios = int(found["queries"]["bios_of_one"][0][0])
        assert bios > 0
        # One more leads from the request to the phase.
        assert found["views"]["sync"]["flows"] == min(bios, 3 if bios > 8 else 8) + 1
        assert found["views"]["file"]["flows"] == found["views"]["sync"]["flows"]
        assert found["queries"]["odd_colours"] == [["0"]]


class Visitor:
    """Sends requests like a browser."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self, method: str, path: str, origin: str | None = "https://ui.perfetto.dev", **headers: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=sent | ({"Origin": origin} if origin else {}))
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.headers, body


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "a trace.pftrace"
    # More than the socket buffers hold.
    path.write_bytes(b"\n" + os.urandom(16 << 20))
    return path


class TestOnline:
    """The requests of https://ui.perfetto.dev, sent by the test."""

    @pytest.fixture
    def server(self, trace: Path) -> Any:
        with OnlineServer(trace, trace.name, port=0) as server:
            yield server

    def test_the_page_names_the_trace(self, server: OnlineServer) -> None:
        assert re.fullmatch(rf"http://127\.0\.0\.1:{server.server_port}/[\w-]{{22}}/", server.page)
        assert Visitor(server.server_port).ask("GET", server.start_path, origin=None)[0] == 302
        page = urlsplit(browser.target(server.page))
        assert (page.scheme, page.netloc, page.path) == ("https", "ui.perfetto.dev", "/")
        arguments = parse_qs(page.fragment.removeprefix("!/?"), strict_parsing=True)
        assert re.fullmatch(re.escape(server.page) + r"a%20trace\.pftrace", arguments["url"][0])
        commands = json.loads(arguments["startupCommands"][0])
        assert commands[0]["id"] == "dev.perfetto.ExpandTracksByRegex"
        (pattern,) = commands[0]["args"]
        for group in ("More threads", "Page cache", "wl 637"):
            assert re.match(pattern, group)
        assert not re.match(pattern, "System")

    def test_only_the_ui_gets_the_trace(self, server: OnlineServer, trace: Path) -> None:
        ask = Visitor(server.server_port).ask
        path = quote(server.trace_path)
        assert ask("GET", path, origin=None)[0] == 403
        assert ask("GET", path, origin="https://evil.example")[0] == 403
        assert ask("GET", path, Host="evil.example:9001")[0] == 403
        # Any user of this machine can send the Origin of the UI.
        name = "/a%20trace.pftrace"
        guesses = ("/", name, f"/{'A' * 22}{name}", path.partition(name)[0], path[:-1])
        start = server.start_path
        for other in ("/", f"/{'A' * 22}/", start[:-1], start + "?", start + "x"):
            assert ask("GET", other, origin=None)[0] == 403
        assert ask("GET", start, origin=None, Host="evil.example:9001")[0] == 403
        for other in (*guesses, path + "?", path + "/", f"/..{name}", "/%e4"):
            assert ask("GET", other)[0] == 404
        assert ask("POST", "/status")[0] == 404
        # None of these requests ends the server.
        assert not server._fetched.is_set()
        status, headers, body = ask("GET", path)
        assert (status, body) == (200, trace.read_bytes())
        assert headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
        assert headers["Content-Length"] == str(len(body))
        assert server._fetched.wait(5)

    def test_preflight_and_head_do_not_end_the_server(
        self, server: OnlineServer, trace: Path
    ) -> None:
        ask = Visitor(server.server_port).ask
        status, headers, _ = ask(
            "OPTIONS", quote(server.trace_path), Access_Control_Request_Private_Network="true"
        )
        assert status == 204
        assert headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
        assert "GET" in headers["Access-Control-Allow-Methods"]
        assert headers["Access-Control-Allow-Private-Network"] == "true"
        status, headers, body = ask("HEAD", quote(server.trace_path))
        assert (status, body) == (200, b"")
        assert headers["Content-Length"] == str(trace.stat().st_size)
        assert not server._fetched.is_set()

    def test_a_partial_fetch_does_not_count(self, server: OnlineServer) -> None:
        with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
            host = f"127.0.0.1:{server.server_port}"
            connection.sendall(
                f"GET {quote(server.trace_path)} HTTP/1.1\r\nHost: {host}\r\n"
                "Origin: https://ui.perfetto.dev\r\n\r\n".encode()
            )
            connection.recv(100)
        assert not server._fetched.wait(0.5)
        assert Visitor(server.server_port).ask("GET", quote(server.trace_path))[0] == 200

    def test_a_port_in_use_is_refused(self, server: OnlineServer, trace: Path) -> None:
        with pytest.raises(PortTaken):
            OnlineServer(trace, trace.name, server.server_port)

    def test_each_server_has_a_path_of_its_own(self, server: OnlineServer, trace: Path) -> None:
        with OnlineServer(trace, trace.name, port=0) as other:
            assert other.trace_path != server.trace_path
            assert Visitor(other.server_port).ask("GET", quote(server.trace_path))[0] == 404

    def test_slow_readers_do_not_shut_out_a_browser(self, tmp_path: Path) -> None:
        trace = tmp_path / "large.pftrace"
        with trace.open("wb") as file:
            file.truncate(64 << 20)
        with (
            OnlineServer(trace, trace.name, port=0) as server,
            contextlib.ExitStack() as stack,
        ):
            visitor = Visitor(server.server_port)
            request = (
                f"GET {quote(server.trace_path)} HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n"
                "Origin: https://ui.perfetto.dev\r\n\r\n"
            ).encode()
            slow = []
            for _ in range(16):
                one = stack.enter_context(socket.socket())
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.connect(("127.0.0.1", server.server_port))
                one.sendall(request)
                # It has got a byte, and will take one more a second.
                assert one.recv(1) == b"H"
                slow.append(one)
            assert len(server.connections) == 16
            for _ in range(5):
                time.sleep(1)
                for one in slow:
                    one.recv(1)
            status, _, body = visitor.ask("GET", quote(server.trace_path))
            assert (status, len(body)) == (200, 64 << 20)
            # Only one of them has been closed for it. The visitor's own takes a moment to end.
            for _ in range(200):
                if len(server.connections) == 15:
                    break
                time.sleep(0.05)
            assert len(server.connections) == 15

    def test_connections_are_limited(
        self, server: OnlineServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # None of them is slow yet, on a busy machine either.
        monkeypatch.setattr(serve, "_SLOW_AFTER_S", 60)
        address = ("127.0.0.1", server.server_port)
        with contextlib.ExitStack() as stack:
            for _ in range(16):
                stack.enter_context(socket.create_connection(address))
            with socket.create_connection(address) as one_more:
                assert one_more.makefile("rb").readline().split()[1] == b"503"
        # The others have been closed.
        for _ in range(200):
            if Visitor(server.server_port).ask("HEAD", quote(server.trace_path))[0] == 200:
                return
            time.sleep(0.01)
        pytest.fail("connections that were closed still count")

    @pytest.mark.parametrize("how", ["replaced", "changed", "linked"])
    def test_a_trace_that_is_replaced_is_gone(
        self, how: str, server: OnlineServer, trace: Path, tmp_path: Path
    ) -> None:
        said: list[bool] = []
        server.on_change = lambda: said.append(True)
        other = tmp_path / "other"
        other.write_bytes(b"secret")
        if how == "replaced":
            other.replace(trace)
        elif how == "linked":
            trace.unlink()
            trace.symlink_to(other)
        else:
            trace.write_bytes(b"secret")
        for _ in range(2):
            status, _, body = Visitor(server.server_port).ask("GET", quote(server.trace_path))
            assert status == 410
            assert body.startswith(b"the trace was replaced")
        assert said == [True]
        assert not server._fetched.is_set()

    def test_a_trace_that_was_removed_is_served(self, server: OnlineServer, trace: Path) -> None:
        content = trace.read_bytes()
        trace.unlink()
        got = Visitor(server.server_port).ask("GET", quote(server.trace_path))
        assert (got[0], got[2]) == (200, content)

    def test_slow_requests_do_not_hold_connections(
        self, server: OnlineServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each sends a byte again and again, so that no single wait takes long."""
        monkeypatch.setattr("syncline.ui.serve._REQUEST_WITHIN_S", 1.0)
        address = ("127.0.0.1", server.server_port)
        with contextlib.ExitStack() as stack:
            slow = [stack.enter_context(socket.create_connection(address)) for _ in range(16)]
            began = time.monotonic()
            while time.monotonic() - began < 1.5:
                for one in slow:
                    with contextlib.suppress(OSError):
                        one.sendall(b"G")
                time.sleep(0.1)
            assert Visitor(server.server_port).ask("HEAD", quote(server.trace_path))[0] == 200

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")
    @pytest.mark.skipif(
        sys.platform != "linux", reason="only Linux reports the user of a connection"
    )
    @pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
    def test_another_user_gets_nothing(self, server: OnlineServer, family: str) -> None:
        """The arguments of a browser are public, and with them the address of the trace."""
        refused: list[int] = []
        server.on_refusal = refused.append
        host = {"AF_INET": "127.0.0.1", "AF_INET6": "::ffff:127.0.0.1"}[family]
        request = f"HEAD {quote(server.trace_path)} HTTP/1.0\\r\\nHost: 127.0.0.1:{server.server_port}\\r\\n"
        program = f"""if True:
            import os, socket
            for uid in (65534, 0):
                # The kernel records the user who creates a socket.
                os.seteuid(uid)
                with socket.socket(socket.{family}) as connection:
                    os.seteuid(0)
                    connection.connect(("{host}", {server.server_port}))
                    try:
                        connection.sendall(b"{request}Origin: https://ui.perfetto.dev\\r\\n\\r\\n")
                        print(connection.recv(12))
                    except ConnectionError:
                        print(b"")
        """
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.stdout.split("\n")[:2] == ["b''", "b'HTTP/1.0 200'"], done.stderr
        assert refused == [65534]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the user of a connection")
def test_the_user_of_a_connection_is_known() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        ends = client.getsockname(), server.getsockname()
        assert peer.user_of(*ends) == os.geteuid()
        # From another network namespace, and without /proc.
        assert peer.user_of(("127.0.0.1", 1), server.getsockname()) is None
        assert peer.user_of(*ends, Path("/nowhere")) is None


class TestOffline:
    def test_the_ui_and_the_trace(self, trace: Path, tmp_path: Path) -> None:
        ui = tmp_path / "ui"
        (ui / "assets").mkdir(parents=True)
        (ui / "index.html").write_text("<p>")
        (ui / "engine.wasm").write_bytes(b"\0asm")
        with OfflineServer(trace, trace.name, ui) as server:
            # The system refuses to look for such a name.
            assert Visitor(server.server_port).ask("GET", "/%00", origin=None)[0] == 404
            ask = Visitor(server.server_port).ask
            assert ask("GET", "/", origin=None)[2] == b"<p>"
            status, headers, _ = ask("GET", "/engine.wasm", origin=None)
            assert (status, headers["Content-Type"]) == (200, "application/wasm")
            assert headers["Content-Security-Policy"].startswith("default-src 'self' ")
            for _ in range(2):
                assert ask("GET", quote(server.trace_path))[2] == trace.read_bytes()
            name = "/a%20trace.pftrace"
            for other in ("/assets/", f"/..{name}", f"/%2e%2e{name}", "/x", name, f"/trace{name}"):
                assert ask("GET", other)[0] == 404
            assert ask("GET", "/", Host="evil.example")[0] == 403

    def test_it_says_why_a_report_has_no_rows(self, trace: Path, tmp_path: Path) -> None:
        reasons = {"failures": "none of 3 syncs is recorded as failed."}
        with OfflineServer(trace, trace.name, tmp_path, why_empty=reasons.get) as server:
            ask = Visitor(server.server_port).ask
            folder = quote(server.trace_path.rpartition("/")[0])
            status, _, body = ask("GET", f"{folder}/why/failures")
            assert (status, body.decode()) == (200, reasons["failures"])
            for other in (f"{folder}/why/other", "/why/failures", "/trace/x/why/failures"):
                assert ask("GET", other)[0] == 404
            assert ask("GET", f"{folder}/why/failures", Host="evil.example")[0] == 403


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*browser.SYNCLINE, "open", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


class TestCommand:
    LOG = DATA / "parallel4.log"

    def test_the_online_server_exits_after_the_fetch(self) -> None:
        """The command converts the log, prints the address, and exits after one fetch."""
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", 9001)) == 0:
                pytest.skip("port 9001 is taken: stop the program that uses it")
        with browser.opened(self.LOG) as page:
            (address,) = parse_qs(urlsplit(browser.target(page)).fragment.removeprefix("!/?"))[
                "url"
            ]
            assert re.fullmatch(r"http://127\.0\.0\.1:9001/[\w-]+/parallel4\.pftrace", address)
            path = urlsplit(address).path
            status, _, body = Visitor(9001).ask("GET", path)
            assert status == 200
            assert body[:1] == b"\n"
            for _ in range(100):
                try:
                    Visitor(9001).ask("HEAD", path)
                except OSError:
                    break
            else:
                pytest.fail("it still serves")

    def test_a_port_in_use_is_named(self) -> None:
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                holder.bind(("127.0.0.1", 9001))
                holder.listen()
            except OSError:
                pass  # Another program uses the port, which has the same effect.
            done = run("--no-browser", self.LOG)
        assert done.returncode == 2
        assert "port 9001 is taken" in done.stderr
        assert "trace_processor" in done.stderr
        assert done.stdout == ""

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["--port", "9002", LOG], 2, "9001"),
            (["no-such-file"], 3, "no such file"),
            ([DATA], 3, "folder"),
            ([DATA.parent / "README.md"], 3, "README.md"),
        ],
    )
    def test_wrong_use_is_refused(self, arguments: list[str | Path], code: int, words: str) -> None:
        done = run("--no-browser", *arguments)
        assert done.returncode == code
        assert words in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        ("192.0.2.7 50000 198.51.100.9 22", r"ssh -N -L (\d+):127\.0\.0\.1:\1 \S+@198\.51\.100\.9"),
        ("::1 50000 2001:db8::9 2222", r"ssh -N -L (\d+):127\.0\.0\.1:\1 -p 2222 \S+@2001:db8::9"),
        ("", r"\A(?!.*ssh)"),
    ],
)
def test_over_ssh_it_prints_the_tunnel(connection: str, expected: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "SSH_CONNECTION"}
    env |= {"SSH_CONNECTION": connection} if connection else {}
    command = [*browser.SYNCLINE, "open", "--offline", "--no-browser", str(DATA / "empty.log")]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline()
        process.terminate()
        _, said = process.communicate(timeout=30)
    found = re.search(expected, said, re.S)
    assert found, said
    if connection:
        assert f":{found[1]}/" in address


def test_a_forwarded_display_without_a_browser_needs_the_tunnel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from syncline.cli import open as command

    monkeypatch.setenv("DISPLAY", "localhost:10.0")
    monkeypatch.setattr(command.webbrowser, "open", lambda _: False)
    for connection, words in (("::1 1 ::2 22", "ssh -N -L 9001:"), ("", "no browser found")):
        monkeypatch.setenv("SSH_CONNECTION", connection)
        command._show("http://127.0.0.1:9001/x", False)
        said = capsys.readouterr()
        assert words in said.err
        assert ("no browser found" in said.err) == (not connection)
        assert said.out == "http://127.0.0.1:9001/x\n"


@pytest.mark.parametrize(
    ("kept", "words"),
    [(None, "--since 10s --until 20s, --min-latency 10ms"), (1_000_000, "a larger --min-latency")],
)
def test_a_large_trace_is_named_with_what_shows_less(
    kept: int | None,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from syncline.cli import open as command
    from syncline.reading import Reading
    from syncline.recordings import Filter

    monkeypatch.setattr(command, "_LARGE_BYTES", 1000)
    trace = tmp_path / "small4.pftrace"
    reading = Reading(filter=Filter(min_latency_ns=kept))
    reading.convert([str(DATA / "small4.log")], str(trace))
    command._say_if_large(trace, reading)
    said = capsys.readouterr().err
    number, unit = re.search(r"has ([\d.,]+) (\w+):", said).groups()
    factor = {"KiB": 1024, "kB": 1000}[unit]
    assert float(number.replace(",", "")) * factor == pytest.approx(trace.stat().st_size, rel=0.05)
    assert words in said
    monkeypatch.undo()
    command._say_if_large(trace, reading)
    assert capsys.readouterr().err == ""
