"""`syncline whatif`: replays against arithmetic, against the device that made a recording, and against recordings at other depths."""

from __future__ import annotations

import json
import random
import shutil
import statistics
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syncline.model import device, service
from syncline.model.controller import Fixed, Paper
from syncline.model.recording import Commit, Recording, Request, Sync, Wait
from syncline.model.replay import Result, measured, prepare, replay
from syncline.model.whatif import Setting, whatif
from syncline.reading import Reading
from syncline.render.chart import as_svg
from syncline.render.whatif_figure import charts

from tests import known_truth
from tests.accuracy import devices
from tests.coretools import ROOT
from tests.test_commands import fails, ok, run

MS = 1_000_000
DATA = ROOT / "tests" / "data" / "queue-depth" / "depth.tar.xz"


def request(
    tid: int, submit_ns: int, end_ns: int, *, sync: int | None = None, waited: bool = True
) -> Request:
    return Request(tid, f"t{tid}", sync, submit_ns, submit_ns, end_ns, 4096, waited)


def alone(count: int, *, path: str | None = "/f") -> Recording:
    """One thread: a sync of 10 ms every 15 ms, and a request takes the middle 8 ms of it."""
    syncs, requests = [], []
    for number in range(count):
        start = 15 * number
        syncs.append(Sync(number + 1, 1, "app", path, start * MS, (start + 10) * MS, ()))
        requests.append(request(1, (start + 1) * MS, (start + 9) * MS, sync=number))
    return Recording("8,0", requests, syncs, [])


def crowd(
    writers: int, rounds: int, service: int, parallelism: int, seed: int = 0, spread: int = 0
) -> Recording:
    """Writers that submit again at once, at a device that serves `parallelism` requests at once, in order.

    Writer 0 calls a sync for each of its requests. `service` is in ms, and up to `spread` ms more. No two times are equal.
    """
    rng = random.Random(seed)
    requests, syncs = [], []
    servers = [0] * parallelism
    waiting = [(writer, writer) for writer in range(writers)]
    left = [rounds] * writers
    while waiting:
        waiting.sort()
        at, writer = waiting.pop(0)
        begin = max(at, min(servers))
        servers.remove(min(servers))
        end = begin + service * MS + rng.randint(0, spread * MS) + rng.randrange(1000)
        servers.append(end)
        number = len(syncs) if writer == 0 else None
        requests.append(request(writer + 1, at, end, sync=number, waited=writer == 0))
        if writer == 0:
            syncs.append(Sync(number + 1, 1, "app", "/a.db", at, end, ()))
        left[writer] -= 1
        if left[writer]:
            waiting.append((end, writer))
    return Recording("8,0", sorted(requests, key=lambda one: one.submit_ns), syncs, [])


@pytest.mark.parametrize("discipline", device.DISCIPLINES)
@pytest.mark.parametrize("depth", [1, 2, 32])
def test_a_thread_alone_takes_as_long_at_each_depth(discipline: str, depth: int) -> None:
    recording = alone(7)
    result = replay(prepare(recording), Fixed(depth), discipline)
    assert result.latencies_ns == [10 * MS] * 7
    assert result.end_ns == recording.end_ns
    assert (result.background_bytes, result.background_end_ns) == (0, None)


@pytest.mark.parametrize(("writers", "parallelism"), [(2, 1), (6, 1), (8, 4), (6, 6)])
def test_a_replay_at_the_recorded_depth_is_the_recording(writers: int, parallelism: int) -> None:
    model = prepare(crowd(writers, 20, 10, parallelism), parallelism)
    assert model.depth == writers
    again, real = replay(model, Fixed(writers), "fifo"), measured(model)
    assert again.latencies_ns == real.latencies_ns
    assert again.background_end_ns == real.background_end_ns


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_a_parallel_device_with_fewer_places_makes_the_others_wait(depth: int) -> None:
    # 6 writers keep the device busy, so each request takes 6 / depth times its service, as for any closed queue.
    model = prepare(crowd(6, 60, 10, 6))
    assert model.parallelism == 6
    assert all(0 <= service - 10 * MS < 1000 for service in model.service_ns)
    result = replay(model, Fixed(depth), "fifo")
    assert statistics.mean(result.latencies_ns) == pytest.approx(60 * MS / depth, rel=0.03)
    written = result.background_bytes / result.end_ns
    assert written == pytest.approx(4096 * depth / (10 * MS) * 5 / 6, rel=0.05)


def test_a_serial_device_gives_the_sync_the_wait_of_the_queue_depth() -> None:
    # Requests of the sync go first, so they wait for those at the device: the effect of the paper.
    model = prepare(crowd(12, 60, 10, 1))
    assert model.parallelism == 1
    averages = {
        depth: statistics.mean(replay(model, Fixed(depth), "sync-first").latencies_ns) / MS
        for depth in (1, 2, 4, 12)
    }
    for depth, average in averages.items():
        # Those at the device, without the one that just ended, and the request itself.
        assert average == pytest.approx(10 * min(depth + 1, 12), rel=0.1), averages
    bandwidths = [
        result.background_bytes / result.end_ns
        for result in (replay(model, Fixed(depth), "sync-first") for depth in (1, 12))
    ]
    assert bandwidths[0] == pytest.approx(bandwidths[1], rel=0.5)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 40))
def test_parallelism_is_found(parallelism: int, more: int, spread: int) -> None:
    recording = crowd(parallelism + more, 30, 40, parallelism, seed=more, spread=spread)
    of_kind = {one.kind: one for one in service.explain([recording.requests])}
    assert of_kind["servers"].parallelism == parallelism
    assert service.most_at_once(recording.requests) == parallelism + more


def with_commits(syncs: int) -> Recording:
    """Syncs of 4 threads that share a commit each time: data 5 ms, commit 20 ms with a request of 15 ms."""
    found, requests, commits = [], [], []
    for turn in range(syncs):
        at = 100 * turn
        for tid in range(1, 5):
            wait = Wait(turn, (at + 6) * MS, (at + 26) * MS)
            requests.append(request(tid, at * MS, (at + 5) * MS, sync=len(found)))
            found.append(Sync(len(found) + 1, tid, "app", "/f", at * MS, (at + 27) * MS, (wait,)))
        commits.append(Commit(9, (at + 6) * MS, (at + 26) * MS))
        requests.append(request(9, (at + 8) * MS, (at + 23) * MS))
    return Recording("8,0", requests, found, commits)


def test_threads_that_wait_for_one_commit_share_it_or_come_too_late() -> None:
    model = prepare(with_commits(5), 4)
    assert replay(model, Fixed(4), "fifo").latencies_ns == [27 * MS] * 20
    # One at a time: the data of the first takes 5 ms, of the last 20 ms. The first asks for a commit, whose request queues
    # behind the data of the third; the others ask after its start, and share the next one.
    first = sorted(replay(model, Fixed(1), "fifo").latencies_ns[:4])
    assert first[0] == 39 * MS
    assert len(set(first[1:])) == 1
    assert first[1] > first[0]


def test_the_controller_of_the_paper_lowers_and_restores_the_depth() -> None:
    changes: list[tuple[int, int]] = []

    class Control:
        def __init__(self) -> None:
            self.due: list = []

        def set_depth(self, depth: int, now: int) -> None:
            changes.append((now, depth))

        def schedule(self, at: int, action) -> None:
            self.due.append((at, action))

    control = Control()
    controller = Paper(31, 2, hold_ns=100)
    controller.begin(control)
    controller.opened("/home/notes.txt", 5)
    controller.opened("/home/mail.db", 10)
    controller.synced("/home/mail.db-wal", 60)
    for at, action in sorted(control.due, key=lambda one: one[0]):
        action(at)
    assert changes == [(0, 31), (10, 2), (160, 31)]


def test_the_controller_helps_where_the_paper_says() -> None:
    model = prepare(crowd(12, 60, 10, 1))
    normal = replay(model, Fixed(12), "sync-first")
    paper = replay(model, Paper(12, 1), "sync-first")
    assert statistics.mean(paper.latencies_ns) < 0.3 * statistics.mean(normal.latencies_ns)
    other = replay(model, Paper(12, 1, patterns=["*.doc"]), "sync-first")
    assert other == normal


def test_a_controller_or_a_dispatch_without_effect_is_told() -> None:
    def said(recording: Recording, controller: Paper, discipline: str) -> str:
        return "\n".join(
            whatif(prepare(recording), [controller], discipline, is_known=False).assumptions
        )

    mixed = crowd(3, 40, 10, 1)
    assert "no file that is synced has a path like *.doc" in said(mixed, Paper(3, 1, patterns=["*.doc"]), "fifo")  # fmt: skip
    assert "so the controller never lowers" not in said(mixed, Paper(3, 1), "fifo")
    # Syncs take 10 ms, so a hold of 4 ms ends in each of them.
    early = said(alone(45, path="/a.db"), Paper(2, 1, hold_ns=4 * MS, lead_ns=0), "fifo")
    assert "none had started for 0.004 s" in early
    # Always low, from the first sync on; with a hold of 4 ms, for 45 times 4 ms of 670.
    assert "held the low depth for 100 % of the time" in said(alone(45, path="/a.db"), Paper(2, 1), "fifo")  # fmt: skip
    assert "held the low depth for 27 % of the time" in early
    assert "while a sync" not in said(alone(45, path="/a.db"), Paper(2, 1, hold_ns=14 * MS), "fifo")
    assert "the order of fifo" in said(alone(45), Paper(2, 1), "sync-first")
    assert "the order of fifo" not in said(mixed, Paper(3, 1), "sync-first")
    assert "the order of fifo" not in said(alone(45), Paper(2, 1), "fifo")


@pytest.fixture(scope="module")
def depths(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("depths")
    with tarfile.open(DATA) as tar:
        tar.extractall(folder, filter="data")
    return {depth: folder / f"depth-{depth}" for depth in (4, 31)}


def of_run(path: Path, *more: object) -> dict[str, dict]:
    found = json.loads(ok("whatif", path, "--format", "json", *more))
    return {f"{one['kind']} {one['setting']}": one for one in found["settings"]}


def test_one_depth_tells_the_other(depths: dict[int, Path]) -> None:
    both = of_run(depths[4], "--queue-depth", "4,31", "--also", depths[31])
    many = of_run(depths[31], "--queue-depth", "4")
    real = {4: both["measured depth 4"], 31: many["measured depth 31"]}
    for depth, figures in real.items():
        truth = json.loads((depths[depth] / "truth.json").read_text())
        calls = [row for row in truth["calls"] if row["op"] == "fsync"]
        lengths = sorted(row["end_ns"] - row["start_ns"] for row in calls)
        assert figures["syncs"] == len(calls) == 40
        assert figures["p50_ns"] == pytest.approx(statistics.median(lengths), rel=0.02)
    # docs/reference/whatif.md has the errors, and why they are what they are.
    told = many["what if depth 4"]
    assert abs(told["avg_ns"] / real[4]["avg_ns"] - 1) < 0.2
    assert abs(told["p99_ns"] / real[4]["p99_ns"] - 1) < 0.25
    assert abs(many["check depth 31"]["avg_ns"] / real[31]["avg_ns"] - 1) < 0.15
    assert abs(both["check depth 4"]["avg_ns"] / real[4]["avg_ns"] - 1) < 0.2
    # The device is known to serve 31 at once, but nothing says what the threads would do with it.
    assert both["what if depth 31"]["avg_ns"] is not None
    assert real[4]["p50_ns"] > 5 * real[31]["p50_ns"]


def test_a_depth_that_is_not_recorded_has_no_figures(depths: dict[int, Path]) -> None:
    done = run("whatif", depths[4], "--queue-depth", "31", "--format", "csv")
    said = done.stderr
    assert done.returncode == 5
    assert done.stdout.splitlines()[-1] == "what if,depth 31,,,,,,,,,"
    assert "can't tell: depth 31: the recording does not cover it" in said
    assert "more than 4 at the device, themselves included: record at depth 31" in said


def test_several_hardware_queues_are_an_assumption(depths: dict[int, Path], tmp_path: Path) -> None:
    run = shutil.copytree(depths[31], tmp_path / "run")
    devices = json.loads((run / "devices.json").read_text())
    devices["253:0"]["hardware_queues"] = 8
    (run / "devices.json").write_text(json.dumps(devices))
    assumed = "assumed: the device has 8 hardware queues, each with tags of its own"
    assert assumed in ok("whatif", run, "--queue-depth", "31")
    devices["253:0"]["hardware_queues"] = "many"
    (run / "devices.json").write_text(json.dumps(devices))
    assert "devices.json is damaged" in fails(3, "whatif", run)


def test_both_engines_and_all_formats(depths: dict[int, Path], tmp_path: Path) -> None:
    ok("convert", depths[4], "-o", tmp_path / "run.pftrace")
    options = ("--queue-depth", "2,8", "--dispatch", "tags", "--format", "json")
    texts = [
        ok("whatif", tmp_path / "run.pftrace", "--engine", engine, *options)
        for engine in ("duckdb", "embedded")
    ]
    assert texts[0] == texts[1]
    chart = tmp_path / "chart.svg"
    table = ok("whatif", tmp_path / "run.pftrace", "--queue-depth", "1", "--dispatch", "tags", "-o", chart)  # fmt: skip
    assert "Check, out of sample: 4 equal servers predicts" in table
    assert "assumed: the device is 4 equal servers, which fits the recording best" in table
    assert "assumed: requests are dispatched by tags, because the device has the scheduler none" not in table  # fmt: skip
    assert ">depth 1<" in chart.read_text()
    page = tmp_path / "whatif.html"
    leads = ("--controller", "paper", "--pattern", "*", "--lead", "0,0.01")
    said = ok("whatif", tmp_path / "run.pftrace", "--queue-depth", "1,2", "--dispatch", "tags", *leads, "--html", page)  # fmt: skip
    shown = page.read_text()
    for one in ("Latency of a sync by queue depth", "Latency of a sync by how early its file is opened", "no slower than a latency"):  # fmt: skip
        assert one in shown
    for one in ("paper, 4 or 1, lead 0 s", "paper, 4 or 1, lead 0.01 s"):
        assert one in shown
        assert f"assumed: {one}: the controller held the low depth" in " ".join(said.split())
    assert "Check, out of sample: 4 equal servers predicts" in shown
    # Without a figure for any depth, the picture says so.
    done = run("whatif", tmp_path / "run.pftrace", "--queue-depth", "31", "--dispatch", "tags", "-o", chart)  # fmt: skip
    assert done.returncode == 5
    assert "No figures: depth 31." in chart.read_text()
    assert "is written twice" in fails(2, "whatif", tmp_path / "run.pftrace", "-o", chart, "--html", chart)  # fmt: skip
    assert "--low-depth 5 is above the depth of the recording, 4" in fails(2, "whatif", tmp_path / "run.pftrace", "--controller", "paper", "--low-depth", "5")  # fmt: skip
    of_folder = ok("whatif", depths[4], "--queue-depth", "1")
    assert "assumed: requests are dispatched by tags, because the device has the scheduler none" in of_folder  # fmt: skip
    csv = ok("whatif", tmp_path / "run.pftrace", "--queue-depth", "1", "--dispatch", "tags", "--format", "csv")  # fmt: skip
    assert [line.split(",")[:2] for line in csv.splitlines()] == [
        ["kind", "setting"],
        ["measured", "depth 4"],
        ["check", "depth 4"],
        ["what if", "depth 1"],
    ]


def test_what_cannot_be_modelled_is_refused(tmp_path: Path) -> None:
    stacked = known_truth.unpacked("delay-ext4", tmp_path)
    assert "stacked on another device" in fails(3, "whatif", stacked)
    # With remaps, the issues to the device below are recorded.
    with_remaps = known_truth.unpacked("stacked", tmp_path)
    Reading().convert([str(with_remaps)], f"{tmp_path}/out.pftrace")
    for source in (with_remaps, with_remaps / "trace.dat", tmp_path / "out.pftrace"):
        assert "is stacked on another device, which has the queue" in fails(3, "whatif", source)
    calls = ROOT / "tests" / "data" / "strace" / "small4.log"
    assert "no issue of a request" in fails(3, "whatif", calls)
    # It lost events too, but larger buffers would not help.
    assert "whose issues are not recorded" in fails(
        3, "whatif", ROOT / "tests/data/thesis/small4.log"
    )
    empty = ROOT / "tests" / "data" / "blktrace" / "small4.blkparse.txt.gz"
    assert "no sync in the recording" in fails(3, "whatif", empty)
    fails(2, "whatif", calls, "--queue-depth", "4,0")
    fails(2, "whatif", calls, "--parallelism", "0")
    for option in (("--pattern", "*"), ("--low-depth", "1"), ("--hold", "2"), ("--lead", "1")):
        assert f"{option[0]} has no effect without a controller" in fails(
            2, "whatif", calls, *option
        )
    for time in ("nan", "inf", "1e300", "-1"):
        for option in ("--hold", "--lead"):
            fails(2, "whatif", calls, "--controller", "paper", option, time)
    assert "end its name in .svg" in fails(2, "whatif", calls, "-o", tmp_path / "chart.png")


def test_latencies_of_zero_have_a_chart() -> None:
    recording = alone(3)
    outcome = whatif(prepare(recording), [Fixed(1)], "fifo", is_known=False)
    assert outcome.unknown is not None
    assert isinstance(outcome.settings[0].percentile_ns(50), float)
    assert as_svg(charts(outcome)).startswith("<svg")
    assert Result([5], 5, 0, None).latencies_ns == [5]


def simulated(folder: Path, load: devices.Load, depth: int) -> Path:
    log = folder / f"{depth}.txt"
    log.write_text(devices.simulate(load, depth, seed=5).text)
    return log


FEW = {"syncs": 30, "writers": 0, "burst": 16, "parallelism": 4}


def test_a_burst_enters_a_scheduler_at_once_and_waits_for_tags(tmp_path: Path) -> None:
    # 16 requests of 5 ms, one at a time. Times in whole microseconds give several of them one issue.
    for unit_ns in (1, 1000):
        log = simulated(tmp_path, devices.Load(unit_ns=unit_ns, **FEW), 32)
        told = of_run(log, "--queue-depth", "1", "--dispatch", "fifo")["what if depth 1"]
        assert told["p50_ns"] == pytest.approx(80 * MS, rel=0.01)
    # With writers, each request of a thread that waits for a tag comes after those of all others.
    log = simulated(tmp_path, devices.Load(**FEW | {"writers": 8, "pause_ns": 10 * MS}), 32)
    done = run("whatif", log, "--queue-depth", "1", "--format", "csv")
    assert done.returncode == 5
    assert "it depends on how requests are dispatched, which is not recorded" in done.stderr
    assert "name it with --dispatch" in done.stderr


def test_a_wrong_model_of_the_device_is_refused(tmp_path: Path) -> None:
    # While one server has 8 requests, it looks like 8 servers that take eight times as long; while it has 2, it does not.
    load = devices.Load(parallelism=1, service_ns=MS, writers=12, pause_ns=10 * MS, syncs=40)
    log = simulated(tmp_path, load, 8)
    done = run("whatif", log, "--parallelism", "8", "--dispatch", "fifo")
    assert done.returncode == 5
    assert "can't tell: no model of the device explains the recording within 15 %" in done.stdout
    assert "next: leave out --parallelism" in done.stdout
    assert "what if" not in done.stdout
    told = ok("whatif", log, "--queue-depth", "8", "--dispatch", "fifo")
    assert "assumed: the device is one server, which fits the recording best" in told


def test_a_device_that_is_always_full_says_nothing_of_other_depths(tmp_path: Path) -> None:
    load = devices.Load(parallelism=1, service_ns=MS, writers=12, pause_ns=2 * MS, syncs=40)
    # Both numbers explain it, as long as there are 8.
    for number in ("1", "8"):
        done = run("whatif", simulated(tmp_path, load, 8), "--parallelism", number, "--queue-depth", "1,7", "--dispatch", "fifo")  # fmt: skip
        assert done.returncode == 5
        assert "can't tell: depth 7: the recording does not cover it" in done.stdout
        assert "record at depth 1" in done.stdout


@pytest.mark.parametrize(
    ("name", "kind"),
    [("one server", "servers"), ("shared bandwidth", "shared"), ("nearest first", "nearest")],
)
def test_the_kind_of_a_device_is_found(tmp_path: Path, name: str, kind: str) -> None:
    log = simulated(tmp_path, replace(devices.DEVICES[name], syncs=40), 32)
    found = json.loads(run("whatif", log, "--queue-depth", "1", "--format", "json", "--dispatch", "fifo").stdout)  # fmt: skip
    first = found["device_models"][0]
    assert first["kind"] == kind
    assert first["error"] < 0.05
    assert first["contradicted"] is None


def test_a_flush_that_is_not_recorded_waits_for_what_is_at_the_device(tmp_path: Path) -> None:
    load = replace(devices.DEVICES["flush drains"], syncs=40)
    both = {depth: simulated(tmp_path, load, depth) for depth in (4, 32)}
    told = of_run(both[32], "--queue-depth", "4", "--also", both[4], "--dispatch", "fifo")
    real = of_run(both[4], "--queue-depth", "4", "--dispatch", "fifo")["measured depth 4"]
    assert told["what if depth 4"]["avg_ns"] == pytest.approx(real["avg_ns"], rel=0.15)
    # If the flush took as long as there, it would be far off.
    measured_at_32 = next(one for one in told.values() if one["kind"] == "measured")
    assert measured_at_32["avg_ns"] > 1.2 * real["avg_ns"]


def test_equal_latencies_have_equal_percentiles_in_all_draws() -> None:
    # 99 syncs take 10, one takes 20: the 99th percentile lies between them, wherever five draws together would have it.
    one = Setting("check", "depth 1", 1, [[10] * 99 + [20]] * 5, 1, None, None)
    assert one.percentile_ns(99) == pytest.approx(10.1)
    assert one.percentile_ns(99) == Setting("measured", "", 1, one.draws_ns[:1], 1, None, None).percentile_ns(99)  # fmt: skip
    assert one.max_ns == 20


def test_background_requests_without_an_issue_are_counted(tmp_path: Path) -> None:
    log = simulated(tmp_path, devices.Load(syncs=30, pause_ns=100 * MS), 32)
    lines = log.read_text().splitlines(keepends=True)
    issues = [n for n, line in enumerate(lines) if "block_rq_issue" in line and "[bg]" in line]
    gone = set(issues[:3])
    log.write_text("".join(line for n, line in enumerate(lines) if n not in gone))
    said = ok("whatif", log, "--queue-depth", "32", "--dispatch", "fifo")
    assert "assumed: 3 bios of threads without a sync lack their device, issue or completion: they are not replayed" in said  # fmt: skip
    gone = set(issues[::2])
    log.write_text("".join(line for n, line in enumerate(lines) if n not in gone))
    said = fails(3, "whatif", log, "--dispatch", "fifo")
    assert "so what competes with the syncs is not known" in said
    assert f"{len(gone):,} bios of threads without a sync" in said
