"""The guest of tests/kernel, as far as it needs no kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernel import guest


def apt_names(monkeypatch: pytest.MonkeyPatch, *sites: str) -> None:
    """Replaces the answer of `apt-get indextargets`."""
    monkeypatch.delenv("SYNCLINE_MIRROR", raising=False)
    monkeypatch.setattr(guest, "find", lambda tool: f"/usr/bin/{tool}")
    monkeypatch.setattr(guest, "run", lambda command, **more: "".join(f"{s}\n" for s in sites))


def test_the_mirror_is_the_one_of_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    apt_names(monkeypatch, "http://first.example/debian", "http://second.example/debian")
    assert guest.mirror() == "http://first.example/debian"
    monkeypatch.setenv("SYNCLINE_MIRROR", "http://mine.example/debian")
    assert guest.mirror() == "http://mine.example/debian"


def test_without_a_mirror_the_message_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    apt_names(monkeypatch)
    with pytest.raises(guest.Missing, match="set SYNCLINE_MIRROR to the URL of one"):
        guest.download_kernel("sid", tmp_path)
    assert list(tmp_path.iterdir()) == []
