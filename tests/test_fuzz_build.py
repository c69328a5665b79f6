"""The fuzzers and the extension share the builds of their dependencies, which take more CPU time than the core."""

from __future__ import annotations

import tomllib
from typing import Any

from tests.coretools import ROOT

CONVERTER = ROOT / "converter"


def read(file: str) -> dict[str, Any]:
    return tomllib.loads((CONVERTER / file).read_text())


def test_dependencies_are_compiled_with_the_same_settings() -> None:
    """Cargo compiles each of them once more if the profiles of the two workspaces differ in a single setting."""
    ours, fuzz = (read(file)["profile"]["release"] for file in ("Cargo.toml", "fuzz/Cargo.toml"))
    # The settings of the core differ, because the fuzzers check overflows and count branches.
    assert {name: value for name, value in fuzz.items() if name != "package"} == {
        name: value for name, value in ours.items() if name != "package"
    }
    assert set(ours["package"]) == {"syncline-core"}
    assert set(fuzz["package"]) == {"syncline-core", "syncline-fuzz"}


def test_dependencies_have_the_same_versions() -> None:
    ours, fuzz = (
        {(package["name"], package["version"]) for package in read(file)["package"]}
        for file in ("Cargo.lock", "fuzz/Cargo.lock")
    )
    assert {name for name, _ in fuzz - ours} == {"arbitrary", "libfuzzer-sys", "syncline-fuzz"}
