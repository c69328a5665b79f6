"""What of a stack is alike in two runs."""

from __future__ import annotations

import pytest
from syncline.frames import PossibleMatches, comparable, comparable_stacks, has_nameless


@pytest.mark.parametrize(
    ("frame", "want"),
    [
        ("0x7ffff7e5a8bb", "[address]"),
        ("0x7FFF", "[address]"),
        ("0x7fff+0x12", "[address]"),
        ("[unknown]", "[address]"),
        # A library is the same in all processes, wherever in it.
        ("[libc.so.6]", "[libc.so.6]"),
        ("[libc.so.6]+0x1234", "[libc.so.6]"),
        ("libc.so.6+0x1234", "[libc.so.6]"),
        ("[libx.so (deleted)]", "[libx.so]"),
        ("[vdso]", "[vdso]"),
        ("[perf-4711.map]", "[perf.map]"),
        ("fsync", "fsync"),
        ("fsync+11", "fsync"),
        ("operator+", "operator+"),
        ("jit 0x7f12", "jit [address]"),
        ("[no stack]", "[no stack]"),
    ],
)
def test_what_differs_from_process_to_process_goes(frame: str, want: str) -> None:
    assert comparable(frame) == want
    # Once is enough: what a baseline keeps is folded already.
    assert comparable(want) == want


def test_names_of_two_builds_are_one() -> None:
    builds = [f"main;core::ptr::drop_in_place::h{hash_ * 16};fsync" for hash_ in "0f"]
    assert set(comparable_stacks(builds).values()) == {"main;core::ptr::drop_in_place;fsync"}


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        ("main;fsync", "main;[address]", True),
        ("main;fsync", "main;[libc.so.6]", True),
        ("main;[address]", "main;[libc.so.6]", True),
        ("[address];fsync", "main;[address]", True),
        # Two libraries, two names, two depths.
        ("main;[libc.so.6]", "main;[libx.so]", False),
        ("main;fsync", "main;fdatasync", False),
        ("main;fsync", "[address]", False),
        ("a;fsync", "b;[address]", False),
        # What has no stack lacks no name.
        ("[no stack]", "[address]", False),
    ],
)
def test_what_may_be_one_call_path(a: str, b: str, want: bool) -> None:
    both = PossibleMatches([a, b])
    assert both.of(a) == ([b] if want else [])
    assert both.of(b) == ([a] if want else [])
    assert has_nameless(b) or not want or has_nameless(a)
