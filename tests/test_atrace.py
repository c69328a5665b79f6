"""The output of Android's atrace, compressed or not, and the web pages of systrace: the text of the ring buffer, wrapped."""

from __future__ import annotations

import gzip
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from syncline import _core

from tests.coretools import ROOT, Rows, core

TEXT = gzip.decompress((ROOT / "tests/data/ftrace/small4.trace.txt.gz").read_bytes())
HEADER = b"capturing trace... done\nTRACE:\n"
VIEWER = "".join(f"var line{n} = 'fsync() < {n} && \"# tracer: nop\"';\n" for n in range(40_000))


def page(*traces: str, viewer: str = VIEWER) -> bytes:
    """A page as systrace writes it: the viewer, then each agent's trace in a script."""
    scripts = "".join(
        f'  <script class="trace-data" type="application/text">\n{trace}  </script>\n'
        for trace in traces
    )
    return (
        f"<!DOCTYPE html>\n<html>\n<head><script>\n{viewer}</script></head>\n<body>\n"
        f"<!-- BEGIN TRACE -->\n{scripts}<!-- END TRACE -->\n</body>\n</html>\n"
    ).encode()


class Scripts(HTMLParser):
    """The second reader: the text of each script of a trace, by Python's parser of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.traces: list[str] = []
        self.is_trace = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_trace = tag == "script" and ("class", "trace-data") in attrs

    def handle_endtag(self, tag: str) -> None:
        self.is_trace = False

    def handle_data(self, data: str) -> None:
        if self.is_trace:
            self.traces.append(data)


def rows(tables: dict[str, Rows]) -> dict[str, list[str]]:
    return {
        name: sorted(str(row) for row in tables[name])
        for name in ("sync", "bio", "call", "phase", "journal", "wait")
    }


def losses(tables: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in tables["loss"] if row["severity"] == "loss"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    return core(tmp_path_factory.mktemp("plain"), TEXT)


@pytest.mark.parametrize("header", [b"TRACE:\n", HEADER, b"capturing trace... done\r\nTRACE:\r\n"])
@pytest.mark.parametrize("level", [None, 1, 9])
def test_atrace_gives_the_rows_of_its_text(
    header: bytes, level: int | None, plain: dict[str, Rows], tmp_path: Path
) -> None:
    trace = TEXT if level is None else zlib.compress(TEXT, level)
    tables = core(tmp_path, header + trace)
    assert rows(tables) == rows(plain)
    assert plain["sync"]
    assert losses(tables) == {**losses(plain), "unparsed_line": header.count(b"\n")}


def test_a_page_of_systrace_gives_the_rows_of_its_trace(
    plain: dict[str, Rows], tmp_path: Path
) -> None:
    others = (
        '{"traceEvents": [], "name": "fsync"}\n',
        "PROCESS DUMP\nUSER PID PPID VSZ RSS WCHAN PC S NAME COMM\nroot 1 0 1 1 0 0 S init init\n",
    )
    text = page(others[0], TEXT.decode(), others[1])
    reader = Scripts()
    reader.feed(text.decode())
    assert TEXT.decode().strip() in [trace.strip() for trace in reader.traces]
    for name, data in {"x.html": text, "x.html.gz": gzip.compress(text, 1)}.items():
        tables = core(tmp_path, data, name=name)
        assert rows(tables) == rows(plain)
        assert losses(tables) == losses(plain)


def test_messages_name_the_lines_of_the_page(tmp_path: Path) -> None:
    lines = TEXT.decode().splitlines(keepends=True)
    lines.insert(40, "a line of nobody\n")
    text = page("".join(lines))
    number = text.decode().splitlines().index("a line of nobody") + 1
    [example] = [
        row["example"] for row in core(tmp_path, text)["loss"] if row["reason"] == "unparsed_line"
    ]
    assert re.match(rf".*:{number}: a line of nobody", example)


@pytest.mark.parametrize("end", [60, 200, -1, -200])
def test_a_compressed_trace_that_is_cut_off_is_refused(end: int, tmp_path: Path) -> None:
    with pytest.raises(_core.CoreError) as caught:
        core(tmp_path, (HEADER + zlib.compress(TEXT))[:end])
    assert "`atrace -z` has compressed is cut off or damaged" in str(caught.value)


def test_a_page_without_a_trace_is_another_text(tmp_path: Path) -> None:
    for text in (page(), page(""), page("{}\n"), b"<!DOCTYPE html>\n", b"<html></html>"):
        with pytest.raises(_core.CoreError) as caught:
            core(tmp_path, text)
        assert caught.value.args[2] == "input"
