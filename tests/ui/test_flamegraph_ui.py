"""Flame graphs in a real browser, opened from disk: zoom, search, and no text overflows.

SYNCLINE_UI_SHOTS=FOLDER keeps the screenshots.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.coretools import DATA
from tests.test_commands import ok
from tests.ui import browser

pytestmark = pytest.mark.ui

HERE = Path(__file__).parent
SIZES = [(1600, 900), (900, 500)]
# The space left and right of the frames, in pixels.
MARGIN = 20

# Long names of C++ functions, outermost first.
LONG = [
    ["base::ThreadPoolForeg", "std::map<std::string, std::vector<std::pair<int, long>>>::find()"],
    ["sqlite3_step", "sqlite3VdbeExec", "sqlite3BtreeCommitPhaseOne", "unixSync", "full_fsync"],
]


def drive(
    svg: Path,
    steps: list[dict[str, str | None]],
    size: tuple[int, int] = SIZES[0],
    *,
    dark: bool = False,
) -> list[dict[str, Any]]:
    """Returns the results of the steps (see flamegraph.mjs). No step may print an error or overflow."""
    job = {"page": svg.as_uri(), "steps": steps, "dark": dark}
    found = browser.run("flamegraph", job, size)
    assert found["console"] == []
    for step in found["steps"]:
        assert step["overflow"] == [], step["name"]
    return found["steps"]


def frames(step: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the frames that are shown, by name."""
    return {re.sub(r" \([^(]*\)$", "", frame["title"]): frame for frame in step["frames"]}


@pytest.fixture
def stacks(tmp_path: Path) -> Path:
    ok("flamegraph", DATA / "small4.log", "--weight", "syscall", "-o", tmp_path / "stacks.svg")
    return tmp_path / "stacks.svg"


@pytest.mark.parametrize("size", SIZES)
def test_a_click_zooms_in_and_reset_zooms_out(stacks: Path, size: tuple[int, int]) -> None:
    steps = [
        {"name": "all", "shot": browser.shot(f"flame-{size[0]}")},
        {
            "name": "zoomed",
            "click": "start_thread",
            "shot": browser.shot(f"flame-zoom-{size[0]}"),
        },
        {"name": "back", "unzoom": "yes"},
    ]
    first, zoomed, back = drive(stacks, steps, size)
    assert "644 ms in 100 requests" in first["subtitle"]
    assert frames(first).keys() > {"0x7ffff7e6272e", "save_small", "all"}
    assert frames(first)["save_small"]["width"] < 0.3 * size[0]
    assert frames(zoomed).keys() == {
        *("all", "wl", "start_thread", "small_thr", "save_small", "__syscall_cancel_arch")
    }
    for name in frames(zoomed):
        assert frames(zoomed)[name]["width"] == pytest.approx(size[0] - MARGIN, abs=2)
    assert frames(back) == frames(first)


def test_search_highlights_matches(stacks: Path) -> None:
    steps = [
        {"name": "all"},
        {"name": "found", "search": "^save_", "shot": browser.shot("flame-search")},
    ]
    first, found = drive(stacks, steps)
    changed = {
        name
        for name, frame in frames(found).items()
        if frame["fill"] != frames(first)[name]["fill"]
    }
    assert changed == {"save_small"}
    # 152,777 of 644,362 µs in total.
    assert found["matched"] == "Matched: 23.7%"


def test_the_figures_of_a_frame_have_a_unit(stacks: Path) -> None:
    (step,) = drive(stacks, [{"name": "hover", "hover": "save_small"}])
    assert step["details"] == "Function: save_small (152,777 µs, 23.71%)"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_growth_is_red_and_shrinkage_is_blue(
    size: tuple[int, int], dark: bool, tmp_path: Path
) -> None:
    svg = tmp_path / "diff.svg"
    logs = [DATA / "sqlite_wal_full.log", "--diff", DATA / "sqlite_rj_full.log"]
    ok("flamegraph", *logs, "--weight", "syscall", "--by", "file", "-o", svg)
    name = f"flame-diff-{size[0]}{'-dark' if dark else ''}"
    (step,) = drive(svg, [{"name": "all", "shot": browser.shot(name)}], size, dark=dark)
    for name, frame in frames(step).items():
        red, green, blue = map(int, re.findall(r"\d+", frame["fill"]))
        if name.startswith("+"):
            assert red > blue >= green
        elif name.startswith("-"):
            assert blue > green >= red
    assert any(name.startswith("+new ") for name in frames(step))
    assert any(name.startswith("-") for name in frames(step))


def test_long_names_are_cut_to_their_frames(tmp_path: Path) -> None:
    """A label that is cut shows the start of the name."""
    lines, clock = [], 1_000_000
    for number in range(1, 61):
        stack = [*LONG[number % 2], f"Caller{number % 7}<std::allocator<char>>::Write(int)"]
        lines.append(f"{clock} 7 db fsync")
        lines += [f"        {frame}+1" for frame in reversed(stack)]
        lines.append(f"{clock + 10} 7 db start id {number} start 0 end 9 datasync 0 path /f")
        clock += 100 * number**2
        lines.append(f"{clock} 7 db exit id {number} ret 0")
    log = tmp_path / ("a-log-with-quite-a-long-name-" * 3 + ".log")
    log.write_text("\n".join(lines) + "\n")
    svg = tmp_path / "x.svg"
    ok("flamegraph", log, "--weight", "syscall", "-o", svg)
    for size in SIZES:
        shot = browser.shot(f"flame-long-{size[0]}")
        (step,) = drive(svg, [{"name": "all", "shot": shot}], size)
        shown = [(name, frame["text"].strip()) for name, frame in frames(step).items()]
        assert any(text.endswith("..") for _, text in shown)
        for name, text in shown:
            assert name.startswith(text.removesuffix(".."))
