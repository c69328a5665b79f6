"""Skips tests that need a browser if there is none, and reports it at the end."""

from __future__ import annotations

import pytest

from tests.ui import browser

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
