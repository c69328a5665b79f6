"""Frames of two runs in comparable form."""

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
        # The name of a library is the same in all processes. Offsets are removed.
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
def test_process_specific_parts_of_a_frame_are_removed(frame: str, want: str) -> None:
    assert comparable(frame) == want
    # A second pass changes nothing: a baseline holds frames in comparable form.
    assert comparable(want) == want


def test_a_function_of_two_builds_has_one_name() -> None:
    builds = [f"main;core::ptr::drop_in_place::h{hash_ * 16};fsync" for hash_ in "0f"]
    assert set(comparable_stacks(builds).values()) == {"main;core::ptr::drop_in_place;fsync"}


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        ("main;fsync", "main;[address]", True),
        ("main;fsync", "main;[libc.so.6]", True),
        ("main;[address]", "main;[libc.so.6]", True),
        ("[address];fsync", "main;[address]", True),
        # Different libraries, names or depths.
        ("main;[libc.so.6]", "main;[libx.so]", False),
        ("main;fsync", "main;fdatasync", False),
        ("main;fsync", "[address]", False),
        ("a;fsync", "b;[address]", False),
        # A request without a stack has no missing name.
        ("[no stack]", "[address]", False),
    ],
)
def test_stacks_with_missing_names_may_be_the_same_call_path(a: str, b: str, want: bool) -> None:
    both = PossibleMatches([a, b])
    assert both.of(a) == ([b] if want else [])
    assert both.of(b) == ([a] if want else [])
    assert has_nameless(b) or not want or has_nameless(a)
