"""Skips tests that need a browser if there is none, and reports it at the end. Makes the pages that several tests open once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ui import browser
from tests.ui.pages import Inputs, Phased, Waiting

_SKIPPED: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ui: opens a page in a headless browser")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("ui") and (reason := browser.missing()):
        _SKIPPED.append(item.name)
        pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _SKIPPED:
        names = f"{len(_SKIPPED)} tests in a browser (tests/ui)"
        terminalreporter.write_line(f"SKIPPED: {names}: {browser.missing()}")


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inputs]:
    made = Inputs(tmp_path_factory.mktemp("pages"))
    yield made
    made.engine.close()


@pytest.fixture(scope="session")
def phased(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phased]:
    made = Phased(tmp_path_factory.mktemp("phased"))
    yield made
    made.engine.close()


@pytest.fixture(scope="session")
def waits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waiting]:
    made = Waiting(tmp_path_factory.mktemp("waits"))
    yield made
    made.engine.close()
