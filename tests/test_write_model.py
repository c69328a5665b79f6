"""The model of what a write costs: against values computed by hand, an independent model of pages, and what the paper states."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from syncline.errors import InputError
from syncline.write_model import parameters as parameter_file
from syncline.write_model.cost import (
    Library,
    PageCache,
    direct_ns,
    naive_ns,
    pos_ratio,
    synchronized_ns,
)
from syncline.write_model.dirty_cache import DirtyCache
from syncline.write_model.parameters import Interval, Parameters

MS = 1_000_000
MB = 1_000_000
PAGE = 4096

# Round numbers, so that each expected value can be computed by hand.
HOST = Parameters(
    memory_bytes_per_s=10e9,
    page_cache_bytes_per_s=2e9,
    rewrite_bytes_per_s=4e9,
    reduced_bytes_per_s=1e9,
    device_write_bytes_per_s=100e6,
    device_read_bytes_per_s=200e6,
    write_call_ns=1000,
    sync_write_call_ns=50_000,
    seek_ns=4 * MS,
    block_size_bytes=4096,
    library_buffer_bytes=4096,
    background_limit_bytes=100 * MB,
    hard_limit_bytes=300 * MB,
    dirty_expire_ns=30_000 * MS,
)


def test_direct_writes_cost_a_call_a_seek_and_the_device() -> None:
    assert naive_ns(HOST, MB) == 10 * MS
    assert direct_ns(HOST, MB) == 10_050_000
    assert direct_ns(HOST, MB, is_random=True) == 14_050_000


def test_synchronized_writes_add_the_copy_and_the_rest_of_a_block() -> None:
    # 81,920 ns for two blocks, 4,096 ns for the copy, 50,000 ns for the call.
    assert synchronized_ns(HOST, 8192) == pytest.approx(136_016)
    # The rest of 1808 bytes: a block read in 20,480 ns and written in 40,960 ns. The copy is of all 10,000 bytes: 5,000 ns.
    assert synchronized_ns(HOST, 10_000) == pytest.approx(198_360)
    # Equation 4 is the sum of equation 3, with the rest of each write.
    sizes = (100, 4096, 10_000)
    rests = [size % 4096 for size in sizes]
    total = (
        3 * 50_000
        + sum(sizes) / 0.1
        + sum(sizes) / 2
        + 2 * (4096 / 0.2 + 4096 / 0.1)
        - sum(rests) / 0.1
    )
    assert sum(synchronized_ns(HOST, size) for size in sizes) == pytest.approx(total)


def test_the_paper_s_position_ratio() -> None:
    # Host 1: 10 % and 40 %, so the set point is at 25 %. There it is 1, and no write at the hard limit.
    assert pos_ratio(25, 40, 25) == 1
    assert pos_ratio(25, 40, 40) == 0
    assert pos_ratio(25, 40, 32.5) == 0.875


def test_the_paper_s_rules_in_all_states_by_hand() -> None:
    # A device that cleans next to nothing, and calls without a cost of their own.
    cache = PageCache(replace(HOST, device_write_bytes_per_s=1, write_call_ns=0), "paper")
    assert cache.throttled_from_bytes == 200 * MB
    found = [
        cache.write("f", at * MB, size * MB)
        for at, size in ((0, 110), (110, 140), (250, 40), (290, 30))
    ]
    assert found[0].ns == pytest.approx(55 * MS)  # free run
    assert found[1].ns == pytest.approx(140 * MS)  # async run
    # pos_ratio is 0.875 of 1.25 GB/s: the reduced bandwidth is less.
    assert found[2].ns == pytest.approx(40 * MS)
    # pos_ratio is 1 - 0.9 ** 3 = 0.271, the average rate 290 MB in 235 ms: 30 MB at 334.4 MB/s.
    assert found[3].ns == pytest.approx(30 / (0.271 * 290 / 235) * MS, rel=1e-6)
    # Above the hard limit there are no more writes: the device first makes room, here 20 MB at 1 B/s.
    assert cache.write("f", 320 * MB, 1).ns == pytest.approx(20 * MB * 1e9, rel=1e-3)
    assert [one.state for one in found] == [
        "async run",
        "throttle run",
        "throttle run",
        "throttle run",
    ]


def test_the_paper_s_background_flush_by_hand() -> None:
    cache = PageCache(HOST, "paper")
    dirty = [cache.write("f", 50 * MB * n, 50 * MB).dirty_bytes for n in range(4)]
    # 25.001 ms clean 2.5001 MB, once 100 MB are dirty; the third write begins below the limit, the fourth is at half the rate.
    assert dirty == pytest.approx([50e6, 97.4999e6, 144.9998e6, 189.9997e6])
    # A delay of 100 ms cleans 10 MB.
    cache.pass_time(100 * MS)
    assert cache.dirty_bytes == pytest.approx(179.9997e6)
    # No further than to the limit, but for the rest of the block that crosses it.
    cache.pass_time(60_000 * MS)
    assert cache.dirty_bytes == 0


@pytest.mark.parametrize("rules", ["paper", "kernel"])
def test_dirty_page_cache_expires(rules: str) -> None:
    cache = PageCache(HOST, rules)
    cache.write("f", 0, 10 * MB)
    cache.pass_time(29_000 * MS)
    assert cache.dirty_bytes == pytest.approx(10 * MB, abs=PAGE)
    assert cache.state == "free run"
    cache.pass_time(1_050 * MS)
    if rules == "kernel":
        # The write took 5 ms. Its first piece of 3.1 MB was dirty after 1.6 ms, so 53.4 ms passed since it expired.
        assert cache.dirty_bytes == pytest.approx(10 * MB - 5.34 * MB, rel=0.01)
        assert cache.state == "async run"
        cache.pass_time(100 * MS)
    assert cache.dirty_bytes == 0
    assert cache.state == "free run"


def test_the_kernel_writes_back_all_of_a_file_that_has_expired() -> None:
    known = replace(
        HOST,
        device_write_bytes_per_s=1e12,
        dirty_expire_ns=10_000 * MS,
        dirty_writeback_ns=4_000 * MS,
    )
    cache = PageCache(known)
    dirty = []
    for second in range(24):
        dirty.append(cache.write("f", second * 1_048_576, 1_048_576, 1000 * MS).dirty_bytes / 1_048_576)  # fmt: skip
    # It looks 4, 8 and 12 s after the first write. Then that is 10 s old, and the 12 later ones go with it.
    assert dirty == [*range(1, 13), *range(1, 13)]
    # Another file is younger.
    cache = PageCache(known)
    cache.write("old", 0, 8192)
    cache.write("young", 0, 4096, 5_000 * MS)
    cache.pass_time(8_000 * MS)
    assert cache.dirty_bytes == 4096
    # Without a period, nothing expires; without one in the file of parameters, it is 5 s.
    for period, left in ((0, 4096), (None, 0)):
        cache = PageCache(replace(known, dirty_writeback_ns=period))
        cache.write("f", 0, 4096)
        cache.pass_time(9_990 * MS)
        assert cache.dirty_bytes == 4096
        cache.pass_time(20 * MS)
        assert cache.dirty_bytes == left


def test_a_write_to_an_expired_file_does_not_stop_its_writeback() -> None:
    known = replace(HOST, device_write_bytes_per_s=1e6, dirty_expire_ns=10_000 * MS)
    left = []
    for where in (("g", 0), ("f", 15 * 2**20)):
        cache = PageCache(known)
        cache.write("f", 0, 16 * 2**20)
        # 2 s after the look, 2 MB are written. A byte of what is dirty, or of another file, changes nothing.
        cache.write(*where, 1, 12_000 * MS)
        cache.pass_time(2_000 * MS)
        assert cache.state == "async run"
        left.append(cache.dirty_bytes)
    cache.cut("f", 15 * 2**20)
    cache.pass_time(1_000 * MS)
    left.append(cache.dirty_bytes)
    assert left == pytest.approx([16 * 2**20 - 4e6, 16 * 2**20 - 4e6, 15 * 2**20 - 5e6], abs=20_000)


@pytest.mark.parametrize("start_ns", [0, 10**15, 2**61])
def test_looks_that_find_nothing_take_no_time(start_ns: int) -> None:
    """A kernel that looks each ns, or so often that its clock has no such number."""
    cache = PageCache(replace(HOST, dirty_expire_ns=10**15, dirty_writeback_ns=1))
    cache.pass_time(start_ns)
    cache.write("f", 0, 4096)
    cache.pass_time(10**15 - 10**13)
    assert cache.dirty_bytes == 4096
    cache.pass_time(2 * 10**13)
    assert cache.dirty_bytes == 0


SESSIONS = st.lists(
    st.tuples(st.sampled_from("fg"), st.integers(0, 60_000_000), st.integers(0, 9_000_000), st.integers(0, 400)),
    min_size=1, max_size=40,
)  # fmt: skip


@given(SESSIONS, st.sampled_from(["kernel", "paper"]), st.floats(1e3, 1e8))
@settings(max_examples=150, deadline=None)
def test_what_is_dirty_is_in_blocks(
    session: list[tuple[str, int, int, int]], rules: str, device: float
) -> None:
    """Rounding must neither lose nor find a byte."""
    known = replace(
        HOST,
        background_limit_bytes=20 * MB, hard_limit_bytes=60 * MB,
        device_write_bytes_per_s=device, dirty_expire_ns=500 * MS, dirty_writeback_ns=100 * MS,
    )  # fmt: skip
    cache = PageCache(known, rules)
    for file, offset, size, delay_ms in session:
        cache.write(file, offset, size, delay_ms * MS)
        files = cache._cache._files
        assert cache.dirty_bytes == pytest.approx(sum(one.size for blocks in files.values() for one in blocks), abs=1)  # fmt: skip
        for blocks in files.values():
            assert all(one.is_live and one.size > 0 for one in blocks)
            assert all(one.end <= two.offset for one, two in pairwise(blocks))


LOOKS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 9000)), max_size=30
)


@given(LOOKS, st.integers(1, 12), st.integers(1, 7))
@settings(max_examples=200, deadline=None)
def test_expired_files_against_pages(
    writes: list[tuple[str, int, int]], expire_s: int, period_s: int
) -> None:
    """A device and a memory that take no time, so that only the looks decide what is dirty."""
    known = replace(
        HOST,
        page_cache_bytes_per_s=1e15, rewrite_bytes_per_s=1e15, reduced_bytes_per_s=1e15, device_write_bytes_per_s=1e15,
        write_call_ns=0, dirty_expire_ns=expire_s * 1000 * MS, dirty_writeback_ns=period_s * 1000 * MS,
    )  # fmt: skip
    cache = PageCache(known)
    # The kernel's timer is late by up to a tick, so what expires within one of a look is written by it.
    tick_ms = 1
    pages: dict[tuple[str, int], int] = {}
    now, look = 0, None
    for file, page, delay_ms in writes:
        for _ in range(delay_ms):
            if look == now:
                expired = {
                    one
                    for (one, _), since in pages.items()
                    if now - since >= expire_s * 1000 - tick_ms
                }
                pages = {key: since for key, since in pages.items() if key[0] not in expired}
                look = now + period_s * 1000 if pages else None
            now += 1
        # Which of a write and a look of the same instant is first, nothing decides.
        assume(look != now)
        pages.setdefault((file, page), now)
        look = look or now + period_s * 1000
        cache.write(file, page * PAGE, PAGE, delay_ms * MS)
        assert cache.dirty_bytes == pytest.approx(len(pages) * PAGE)


def test_the_kernel_s_rules_settle_at_the_set_point_and_the_device() -> None:
    cache = PageCache(HOST)
    costs = [cache.write("f", 4 * MB * n, 4 * MB) for n in range(300)]
    assert {one.state for one in costs} == {"free run", "async run", "throttle run"}
    # A writer that is as fast as the device: pos_ratio is 1, at the kernel's set point.
    assert costs[-1].dirty_bytes == pytest.approx(250 * MB, rel=0.04)
    assert sum(one.ns for one in costs[-50:]) == pytest.approx(50 * 40 * MS, rel=0.02)
    # The rate falls from memory over reduced to throttled.
    assert costs[0].ns == pytest.approx(2 * MS + 1000)
    assert costs[40].ns == pytest.approx(4 * MS, rel=0.01)


def test_the_kernel_s_rules_throttle_only_what_becomes_dirty() -> None:
    known = replace(HOST, device_write_bytes_per_s=1e6)
    cache = PageCache(known)
    cache.write("f", 0, 204_800_000)
    assert cache.state == "throttle run"
    again = cache.write("f", 200 * MB, MB).ns
    assert again == pytest.approx(0.25 * MS + 1000, rel=0.01)
    # 45.2 MB below the set point: 1 MB/s times 1 + (45.2 / 50) ** 3, times 1 + 45.2 / 8 for the device, is 11.6 MB/s.
    assert cache.write("f", 210 * MB, MB).ns == pytest.approx(86.5 * MS, rel=0.03)


@pytest.mark.parametrize(("delay_ns", "is_slower"), [(0, True), (200 * MS, False)])
def test_a_delay_lets_the_device_catch_up(delay_ns: int, is_slower: bool) -> None:
    cache = PageCache(HOST)
    last = [cache.write("f", 10 * MB * n, 10 * MB, delay_ns).ns for n in range(60)][-1]
    assert (last > 50 * MS) is is_slower


def test_the_library_collects_small_writes() -> None:
    library = Library(PageCache(HOST), "f")
    # 512 bytes at 10 GB/s: 51.2 ns. The ninth finds the buffer full: a call of 4096 bytes at 2 GB/s, 3,048 ns.
    costs = [library.write(512 * n, 512).ns for n in range(17)]
    assert costs[:8] == pytest.approx([51.2] * 8)
    assert costs[8] == pytest.approx(51.2 + 3048)
    assert costs[9:16] == pytest.approx([51.2] * 7)
    assert costs[16] == pytest.approx(51.2 + 3048)
    assert library.flush().ns == pytest.approx(1000 + 512 / 2)
    assert library.flush().ns == 0


def test_the_library_passes_whole_buffers_on() -> None:
    library = Library(PageCache(HOST), "f")
    # 4096 bytes through the buffer, 8192 in one call, 100 stay.
    expected = 409.6 + 3048 + (1000 + 4096) + 10
    assert library.write(0, 12_388).ns == pytest.approx(expected)
    # A seek writes the 100 bytes first.
    assert library.write(0, 50).ns == pytest.approx(1000 + 50 + 5)


def test_a_sync_writes_one_file() -> None:
    cache = PageCache(HOST)
    cache.write("a", 0, 409_600)
    cache.write("b", 0, 819_200)
    assert cache.sync("a") == pytest.approx(50_000 + 4_096_000)
    assert cache.dirty_bytes == pytest.approx(819_200)


# Against pages


WRITES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.integers(1, 12)), max_size=30
)


@given(WRITES, st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_cache_of_blocks_is_one_of_pages(
    writes: list[tuple[str, int, int]], is_by_age: bool
) -> None:
    cache = DirtyCache()
    pages: dict[tuple[str, int], int] = {}
    for now, (file, offset, size) in enumerate(writes):
        touched = [(file, offset + n) for n in range(size)]
        assert cache.new_bytes(file, offset, size) == sum(page not in pages for page in touched)
        cache.put(file, offset, size, now)
        for page in touched:
            pages.setdefault(page, now)
        assert cache.dirty_bytes == len(pages)
        assert cache.oldest_ns() == min(pages.values())
        if now % 3 == 2:
            oldest = min(pages.values())
            cleaned = cache.clean(2, is_by_age=is_by_age)
            assert 0 < cleaned <= 2
            assert cache.dirty_bytes == len(pages) - cleaned
            if not is_by_age:
                return
            # The blocks that are left are those pages that are not cleaned: all of the oldest age come first.
            left = [page for page in pages if cache.new_bytes(page[0], page[1], 1) == 0]
            assert len(left) == len(pages) - cleaned
            assert all(pages[page] == oldest for page in pages if page not in left)
            pages = {page: pages[page] for page in left}


OPERATIONS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 50 * MB), st.integers(0, 2000)),
    min_size=1, max_size=25,
)  # fmt: skip


@given(OPERATIONS, st.floats(1e6, 2e9))
@settings(max_examples=100, deadline=None)
def test_no_dirty_page_is_lost_and_no_limit_exceeded(
    operations: list[tuple[int, int, int]], device: float
) -> None:
    cache = PageCache(replace(HOST, device_write_bytes_per_s=device))
    dirtied, time = 0.0, 0.0
    for place, size, delay_ms in operations:
        cache.pass_time(delay_ms * MS)
        before = cache.dirty_bytes + cache.written_back_bytes
        cost = cache.write("f", place * MB, size)
        new = cache.dirty_bytes + cache.written_back_bytes - before
        dirtied += new
        # A page that is cleaned while the write runs, and written again, becomes dirty twice.
        # The sums are floats of up to 1e9, whose rounding is below this.
        assert -1e-6 <= new <= size + 2 * PAGE + 1
        assert cache.dirty_bytes <= HOST.hard_limit_bytes + 1
        assert cost.ns >= size / HOST.rewrite_bytes_per_s * 1e9
        time += delay_ms * MS + cost.ns
        assert cache.time_ns == pytest.approx(time)
        assert cache.written_back_bytes <= device * time / 1e9 + 1
    assert dirtied == pytest.approx(cache.dirty_bytes + cache.written_back_bytes)


@given(st.integers(1, 10**9), st.integers(1, 10**9))
@settings(max_examples=100, deadline=None)
def test_a_larger_write_never_costs_less(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert direct_ns(HOST, small) <= direct_ns(HOST, large)
    assert naive_ns(HOST, small) <= naive_ns(HOST, large)
    # A synchronized write with a rest costs up to a block more, so whole blocks are compared.
    blocks = [size // 4096 * 4096 for size in (small, large)]
    assert synchronized_ns(HOST, blocks[0]) <= synchronized_ns(HOST, blocks[1])
    costs = [
        PageCache(HOST, rules).write("f", 0, size).ns
        for rules in ("paper", "kernel")
        for size in (small, large)
    ]
    assert costs[0] <= costs[1]
    assert costs[2] <= costs[3]


# The file of parameters


def test_parameters_survive_their_file(tmp_path) -> None:
    path = tmp_path / "machine.toml"
    known = replace(HOST, intervals={"seek_ns": Interval(1.5, 5e6)}, notes=("made by hand",))
    path.write_text(parameter_file.as_toml(known))
    assert parameter_file.read(str(path)) == replace(known, notes=())


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("seek_ns = 4000000", "seek_ns = -1", "seek_ns: -1 must not be below 0"),
        ("seek_ns = 4000000", "", "seek_ns is missing"),
        ("seek_ns", "seek", "unknown key 'seek'"),
        ("seek_ns = 4000000", "seek_ns = true", "seek_ns: True is not a number"),
        ("seek_ns = 4000000", "seek_ns = nan", "not a number"),
        ("seek_ns = 4000000", "seek_ns = { value = 1 }", "write a number"),
        ("seek_ns = 4000000", "seek_ns = { value = 9, low = 1, high = 2 }", "not between"),
        ("hard_limit_bytes = 300000000", "hard_limit_bytes = 5", "below hard_limit_bytes"),
        ("hard_limit_bytes = 300000000", "hard_limit_bytes = 300000000.5", "is not a whole number"),
        ("hard_limit_bytes = 300000000", "hard_limit_bytes = 1e300", "more than 2^62 bytes"),
        ("seek_ns = 4000000", "seek_ns = 1e300", "a year"),
        ("format = 1", "format = 2", "no `format = 1`"),
        ("format = 1", "format =", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_damaged_file_of_parameters_is_refused(tmp_path, old: str, new: str, wanted: str) -> None:
    path = tmp_path / "machine.toml"
    text = parameter_file.as_toml(HOST)
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as raised:
        parameter_file.read(str(path))
    assert wanted in f"{raised.value.message} {raised.value.hint}"
    assert str(path) in raised.value.message


@pytest.mark.parametrize("value", [1e-300, 0.5, 1e16, 1e300])
@pytest.mark.parametrize("name", [name for name in parameter_file.NAMES if name.endswith("_per_s")])
def test_a_bandwidth_that_no_machine_has_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}: .* is no bandwidth of a machine"):
        replace(HOST, **{name: value})
