"""Charts: where a value is drawn, what is left out, and that a picture is small, whatever is drawn."""

from __future__ import annotations

import random
import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from syncline.render import chart
from syncline.render.chart import Axis, Chart, Line, as_svg

X, Y = Axis("x", "ns"), Axis("y", "ns")
SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines: Line, x: Axis = X, y: Axis = Y) -> ElementTree.Element:  # fmt: skip
    return ElementTree.fromstring(as_svg([Chart("a chart", x, y, lines)]))


def texts(root: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text")]


def paths(root: ElementTree.Element, *, wide: bool = True) -> list[str]:
    return [one.get("d", "") for one in root.iter(f"{SVG}path") if (one.get("stroke-width") == "2") == wide]  # fmt: skip


def test_a_value_is_where_its_label_is() -> None:
    root = drawn(Line("a", [(0, 0), (100, 50), (200, 100)]))
    # Labels of x: the middle of the text is at the tick.
    across = {one.text: float(one.get("x", "")) for one in root.iter(f"{SVG}text") if one.get("text-anchor") == "middle"}  # fmt: skip
    up = {one.text: float(one.get("y", "")) - 4 for one in root.iter(f"{SVG}text") if one.get("text-anchor") == "end"}  # fmt: skip
    dots = {(float(one.get("cx", "")), float(one.get("cy", ""))) for one in root.iter(f"{SVG}circle")}  # fmt: skip
    assert dots == {(across["0 ns"], up["0 ns"]), (across["100 ns"], up["50 ns"] if "50 ns" in up else (up["40 ns"] + up["60 ns"]) / 2), (across["200 ns"], up["100 ns"])}  # fmt: skip


def test_equal_ratios_are_equally_far_apart_on_a_logarithmic_axis() -> None:
    root = drawn(
        Line("a", [(1, 10), (2, 100), (4, 1000), (8, 0)]),
        x=Axis("depth", "count", "log", (1, 2, 4)), y=Axis("y", "ns", "log"),
    )  # fmt: skip
    # 0 has no place there.
    (line, _legend) = paths(root)
    points = [(float(a), float(b)) for a, b in re.findall(r"[ML]([\d.]+) ([\d.]+)", line)]
    assert len(points) == 3
    (x1, y1), (x2, y2), (x3, y3) = points
    assert abs((x2 - x1) - (x3 - x2)) < 0.2
    assert abs((y1 - y2) - (y2 - y3)) < 0.2
    assert y1 > y2 > y3
    assert {"1", "2", "4"} <= {*texts(root)}


def test_steps_hold_a_value_until_the_next_point() -> None:
    (line, _legend) = paths(drawn(Line("a", [(0, 1), (10, 3)], "steps")))
    assert re.fullmatch(r"M[\d.]+ [\d.]+H[\d.]+V[\d.]+", line)


def test_a_level_crosses_the_chart_and_needs_no_x() -> None:
    root = drawn(Line("limit", [(0, 5)], "level"), Line("a", [(0, 1), (10, 3)]))
    assert any(re.fullmatch(r"M80 [\d.]+H650", one) for one in paths(root))


def test_nothing_to_draw_is_said() -> None:
    assert "There is nothing to draw." in texts(drawn(Line("a", [])))
    assert "There is nothing to draw." in texts(drawn(Line("a", [(1, 0)]), y=Axis("y", "ns", "log")))  # fmt: skip


def test_names_are_text_and_not_markup() -> None:
    root = drawn(Line("<b>&\x1b[31m" + "long" * 20, [(1, 1)]))
    (name,) = [one for one in texts(root) if one.startswith("<b>&")]
    assert name.endswith("…")
    assert len(name) <= 32
    titles = [one.text or "" for one in root.iter(f"{SVG}title")]
    assert any(one.endswith("longlong") and "\x1b" not in one for one in titles)


finite = st.floats(-1e15, 1e15, allow_nan=False)


@given(st.lists(st.tuples(finite, finite), max_size=30), st.sampled_from(["linear", "log"]), st.sampled_from(["linear", "log"]), st.sampled_from(["ns", "bytes", "count"]))  # fmt: skip
def test_any_points_make_a_picture(points: list[tuple[float, float]], x: str, y: str, unit: str) -> None:  # fmt: skip
    root = drawn(
        Line("a", sorted(points)), Line("b", points, "dots"), Line("c", points[:1], "level"),
        x=Axis("x", unit, x), y=Axis("y", unit, y),  # type: ignore[arg-type]
    )  # fmt: skip
    assert not re.search(r"nan|inf", ElementTree.tostring(root, encoding="unicode"))


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20), st.integers(2000, 9000))
def test_thinned_points_keep_the_ends_and_the_extremes(own: list[float], number: int) -> None:
    spikes = random.Random(number)
    points = [(float(n), spikes.random()) for n in range(number)]
    for value in own:
        at = spikes.randrange(number)
        points[at] = (float(at), value)
    kept = chart._thinned(points)
    assert len(kept) <= chart._MOST_POINTS + 4
    assert kept == sorted(kept)
    assert {*kept} <= {*points}
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert max(b for _, b in kept) == max(b for _, b in points)
    assert min(b for _, b in kept) == min(b for _, b in points)


def test_a_line_is_broken_where_a_value_is_not_known() -> None:
    parts = paths(drawn(Line("a", [(0, 1), (1, 2), (1, None), (5, 2), (6, 1)])))
    assert len([one for one in parts if "L" in one]) == 2


def test_a_logarithmic_axis_within_a_decade_has_labels() -> None:
    root = drawn(Line("a", [(1, 3.1e9), (2, 4.6e9)]), y=Axis("y", "ns", "log"))
    labels = [one.text for one in root.iter(f"{SVG}text") if one.get("text-anchor") == "end"]
    assert len(labels) >= 3
