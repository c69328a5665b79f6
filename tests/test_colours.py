"""No two phases have colours in the Perfetto UI that look alike, also to the colour-blind."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict

import pytest
from syncline.engine import open_trace
from syncline.inputs import Reading, opened

from tests.coretools import DATA, ROOT
from tests.reference import uicolours

# Recordings that have each phase of docs/reference/phases.md between them.
LOGS = (DATA / "parallel4.log", *sorted((ROOT / "tests/data/dynamic-events").glob("*.gz")))
# What most of the time of most recordings goes to. A difference of 2.3 can just be noticed.
FREQUENT = {"before submit", "writeback", "after completion", "queue", "device", "flush"}
FREQUENT |= {"commit wait", "commit logging", "cpu wait", "lock wait", "earlier writeback"}
LEAST_FREQUENT, LEAST = 10, 8
# Of phases that follow each other in a sync, by CIEDE2000. Who looks once distinguishes two colours of one hue that differ by 15.
LEAST_NEXT = 17
# Pairs that may follow each other, and do not in a small recording.
NEXT = {
    ("commit locking", "earlier commit"),
    ("commit logging", "flush"),
    ("lock wait", "cpu wait"),
}
NEXT |= {("lock wait", "queue"), ("lock wait", "before submit"), ("earlier writeback", "queue")}
# No small recording has these: the colour of each, if it is not that of its name.
UNSEEN = {"lock wait": "lock wait ij", "earlier writeback": "earlier writeback ce"}


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, uicolours.Colour]:
    """The colour of each phase and wait, as the UI makes it of the trace."""
    found: dict[str, set[str | None]] = defaultdict(set)
    for log in LOGS:
        trace = tmp_path_factory.mktemp("colours") / "log.pftrace"
        Reading().convert([str(log)], str(trace))
        with open_trace(trace, engine="embedded") as engine:
            for name, hint in engine.query(
                "SELECT DISTINCT name, extract_arg(arg_set_id, 'correlation_id') FROM slice"
                " WHERE category IN ('syncline.phase', 'syncline.wait')"
            ).rows:
                found[name].add(hint)
    for name, hint in UNSEEN.items():
        found[name].add(hint)
    # A phase has the same colour everywhere.
    assert all(len(hints) == 1 for hints in found.values()), found
    return {
        name: uicolours.of_slice(hint or name, keeps_digits=hint is not None)
        for name, (hint,) in found.items()
    }


def test_every_frequent_phase_was_seen(colours: dict[str, uicolours.Colour]) -> None:
    assert colours.keys() >= FREQUENT


@pytest.mark.parametrize("sight", [None, *uicolours.BLINDNESS])
def test_no_two_phases_look_alike(sight: str | None, colours: dict[str, uicolours.Colour]) -> None:
    seen = {
        name: uicolours.seen_with(sight, colour) if sight else colour
        for name, colour in colours.items()
    }
    for one, other in itertools.combinations(seen, 2):
        least = LEAST_FREQUENT if {one, other} <= FREQUENT else LEAST
        assert uicolours.distance(seen[one], seen[other]) >= least, (one, other)


@pytest.fixture(scope="module")
def following() -> set[tuple[str, str]]:
    """Pairs of phases that follow each other in a sync of a recording, or may."""
    found = set(NEXT)
    for log in LOGS:
        with opened(str(log), Reading(), "duckdb", statements=["syncline_phase"]) as engine:
            found |= set(
                engine.query(
                    "SELECT DISTINCT phase, next FROM (SELECT phase, LEAD(phase) OVER"
                    " (PARTITION BY sync_id ORDER BY ts_ns, number) AS next FROM syncline_phase"
                    " WHERE ts_ns IS NOT NULL AND dur_ns > 0) AS pair"
                    " WHERE phase <> next AND 'residue' NOT IN (phase, next)"
                ).rows
            )
    assert len(found) > 30
    return found


@pytest.mark.parametrize("sight", [None, "protanopia", "deuteranopia"])
def test_phases_that_follow_each_other_differ_most(
    sight: str | None, colours: dict[str, uicolours.Colour], following: set[tuple[str, str]]
) -> None:
    seen = {
        name: uicolours.seen_with(sight, colour) if sight else colour
        for name, colour in colours.items()
    }
    for one, other in following:
        assert uicolours.difference(seen[one], seen[other]) >= LEAST_NEXT, (one, other)


def test_differences_are_those_of_the_paper() -> None:
    """Pairs of the test data of Sharma, Wu and Dalal (2005), which cover hues across 0 degrees and greys."""
    for one, other, expected in (
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.5, 0.0), (56.0, -27.0, -3.0), 31.9030),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ):
        assert uicolours.difference_of_lab(one, other) == pytest.approx(expected, abs=5e-5)


def test_the_plugin_and_the_page_have_the_same_colours(
    colours: dict[str, uicolours.Colour],
) -> None:
    written = json.loads((ROOT / "sql/phase_colours.json").read_text())
    # Parts of a wait are on the tracks only.
    shown = {name for name in colours if name in written}
    assert shown >= FREQUENT
    for name in shown:
        assert written[name] == "#{:02x}{:02x}{:02x}".format(*uicolours.rgb(colours[name])), name


def test_the_colours_of_the_reference_are_those_of_the_ui() -> None:
    """Measured in screenshots of the UI of v52."""
    measured = {
        uicolours.of_slice("fsync"): (240, 145, 208),
        uicolours.of_slice("after completion"): (48, 128, 73),
        uicolours.of_slice("after completion nz", keeps_digits=True): (226, 130, 68),
    }
    for colour, pixel in measured.items():
        pairs = zip(uicolours.rgb(colour), pixel, strict=True)
        assert all(abs(one - other) <= 1 for one, other in pairs)


def test_a_simulation_confuses_what_the_colour_blind_confuse() -> None:
    """Red and green of one lightness differ less for who lacks the red or the green cones, blue and yellow do not."""
    red, green = uicolours.of_hsluv(12, 80, 55), uicolours.of_hsluv(110, 80, 55)
    for sight in ("protanopia", "deuteranopia"):
        pair = (uicolours.seen_with(sight, red), uicolours.seen_with(sight, green))
        assert uicolours.distance(*pair) < uicolours.distance(red, green) / 2
