"""The core against the reference on logs that no workload produces: any order of events, any damage."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syncline import _core
from syncline.inputs import Reading, opened
from syncline.report.run import run_report

from tests.coretools import DATA, RECORDINGS, SMALL, assert_same, convert, core, recording
from tests.reference import badinputs, loggen, thesis

Folders = pytest.TempPathFactory

# Few threads, ids and addresses, so that they collide, and one step longer than the core waits for a request.
TASKS, IDS, ADDRESSES = st.integers(1, 3), st.integers(0, 3), st.integers(1, 3)
STEPS = st.sampled_from([0, 1, 1, 10, 1000, 61 * 10**9])
WORDS = st.one_of(
    st.sampled_from(["fsync", "msync", "fsync_exit ret 0", "msync_exit"]),
    st.builds("start id {} start 0 end 9 datasync 0 path /p".format, IDS),
    st.builds(
        "bio_add_folio id {} bio 0x{} start {} len 512".format,
        IDS,
        ADDRESSES,
        st.integers(0, 8).map((512).__mul__),
    ),
    st.builds("bio_submit id {} bio 0x{}".format, IDS, ADDRESSES),
    st.builds(
        "bio_submit id {} bio 0x{} dev 254,16 sector {}".format, IDS, ADDRESSES, st.integers(-1, 1)
    ),
    st.builds("bio_complete bio 0x{}".format, ADDRESSES),
    st.builds("bio_complete dev 254,16 sector {}".format, st.integers(0, 1)),
    st.builds("exit id {} ret 0".format, IDS),
)


def assert_agree(log: bytes, folder: Path, **options: str) -> None:
    """Checks that the core and the reference give the same tables, and that the core refuses a log without events."""
    expected = thesis.read(log, **options)
    if expected.events:
        assert_same(expected, core(folder, log, source="bpftrace", **options))
    else:
        with pytest.raises(_core.CoreError):
            convert(folder, log, source="bpftrace", **options)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(events=st.lists(st.tuples(STEPS, TASKS, WORDS), min_size=1, max_size=30))
def test_any_order_of_events_gives_the_tables_of_the_reference(
    events: list[tuple[int, int, str]], tmp_path_factory: Folders
) -> None:
    now, lines = 10**12, []
    for step, task, words in events:
        now += step
        lines.append(f"{now} {task} wl {words}\n")
    log = "".join(lines).encode()
    assert_agree(log, tmp_path_factory.mktemp("log"))
    # With process ids, the core looks for calls that are too old only every few seconds.
    if all(step <= 1000 for step, *_ in events):
        assert_agree(log, tmp_path_factory.mktemp("log"), pid_is="process")


def damaged(rng: random.Random) -> tuple[bytes, dict[str, str]]:
    """Part of a log with lines lost, doubled, moved, torn and changed, and the options to read it."""
    options: dict[str, str] = {}
    if rng.random() < 0.5:
        log = recording(rng.choice(SMALL))
    else:
        params = loggen.random_params(rng)
        if rng.random() < 0.3:
            params.pid_is, params.processes = "process", 2
        options = {"time_unit": params.time_unit, "pid_is": params.pid_is}
        log = loggen.generate(params, rng).log
    lines = log.split(b"\n")
    first = rng.randrange(max(1, len(lines) - 300))
    lines = lines[first : first + 300]
    for _ in range(rng.choice((1, 5, 30))):
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        line = lines[at]
        match rng.randrange(9):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines.insert(other, line)
            case 2:
                lines[at], lines[other] = lines[other], line
            case 3:
                lines[at] = line[: rng.randrange(len(line) + 1)]
            case 4:
                lines[at] = line[: rng.randrange(len(line) + 1)] + lines[other]
            case 5 if line:
                place = rng.randrange(len(line))
                lines[at] = (
                    line[:place]
                    + bytes([rng.choice(b"0123456789xaf- ;@[(\t\x00\xff")])
                    + line[place + 1 :]
                )
            case 6:
                words = line.split(b" ")
                words[rng.randrange(len(words))] = rng.choice(lines[other].split(b" "))
                lines[at] = b" ".join(words)
            case 7:
                digit = b"%d" % rng.randrange(10)
                change = rng.choice((rb" id \1", rb" id \g<1>\g<2>" + digit, rb" id \g<1>" + digit))
                lines[at] = re.sub(rb" id (\d*)(\d)\b", change, line)
            case _:
                words, others = line.split(b" "), lines[other].split(b" ")
                if len(words) > 2 and len(others) > 2:
                    words[1] = others[1]
                    lines[at] = b" ".join(words)
    return b"\n".join(lines), options


@pytest.mark.parametrize("seed", range(250))
def test_a_damaged_log_gives_the_tables_of_the_reference(seed: int, tmp_path: Path) -> None:
    log, options = damaged(random.Random(seed))
    assert_agree(log, tmp_path, **options)


def comparable(name: str) -> bool:
    """Whether the reference supports an input: it must be readable and not too long, and have no late events.

    The reference sorts all events, so none is late.
    """
    bad = badinputs.INPUTS[name]()
    return not (bad.unreadable or bad.big or "late_event" in bad.losses)


@pytest.mark.parametrize("name", [name for name in badinputs.INPUTS if comparable(name)])
def test_a_bad_input_gives_the_tables_of_the_reference(name: str, tmp_path: Path) -> None:
    data = badinputs.INPUTS[name]().data
    if data:
        assert_agree(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, tmp_path)


@pytest.mark.parametrize("name", RECORDINGS)
def test_wall_time_in_sync_is_at_most_the_sum_of_sync_times(name: str) -> None:
    with opened(str(DATA / name), Reading()) as engine:
        values = {(row[0], row[1]): row[2] for row in run_report(engine, "summary").rows}
    walls = {
        scope: value for (metric, scope), value in values.items() if metric == "sync_wall_time"
    }
    assert walls or not any(metric == "syncs" and value for (metric, _), value in values.items())
    for scope, wall in walls.items():
        total = values["sync_time_sum", scope]
        # Both are null where no request of the scope is known from start to end.
        assert total is None if wall is None else 0 <= wall <= total


def test_a_low_level_log_records_whether_its_ids_are_processes(tmp_path: Path) -> None:
    log = recording("parallel4.log")
    for written in ("thread", "process"):
        events = convert(tmp_path, log, "out.events.jsonl", pid_is=written).read_bytes()
        expected = core(tmp_path, log, pid_is=written)["sync"]
        assert core(tmp_path, events, name="events", pid_is="thread")["sync"] == expected
        if written == "process":
            assert core(tmp_path, events, name="events", pid_is="process")["sync"] == expected
        else:
            with pytest.raises(_core.CoreError, match="its events name their threads"):
                core(tmp_path, events, name="events", pid_is="process")


@pytest.mark.parametrize("source", ["bpftrace", "events-jsonl"])
def test_a_line_far_into_a_file_is_shown_with_its_number(source: str, tmp_path: Path) -> None:
    # After the first chunk.
    lines = [f"{1000 + i} 5 wl fsync\n" for i in range(100_000)]
    if source == "events-jsonl":
        lines = [
            f'{{"ts_ns":{1000 + i},"tid":5,"event":"fsync","source":"bpftrace"}}\n'
            for i in range(30_000)
        ]
    (tmp_path / "in.log").write_text("".join(lines) + "no event\n")
    summary = _core.convert([f"{tmp_path}/in.log"], f"{tmp_path}/out.csv")
    assert summary["unparsed"][0].startswith(f"{tmp_path}/in.log:{len(lines) + 1}: no event")
