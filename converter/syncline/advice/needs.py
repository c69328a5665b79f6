"""Names what an input lacks, so that "not checked" does not name what it has."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["NAMED", "named"]

# What a need is called. Those of one table are joined: the path and the bytes of each sync.
_SYNC = {
    "path": "path",
    "bytes": "bytes",
    "bios": "bios",
    "ino": "inode",
    "start_ns": "start",
}
_BIO = {
    "dev": "devices",
    "pid": "processes",
    "queue_ns": "issue",
    "folios": "folios",
    "tid": "threads",
    "rwbs": "flags",
}
_WAITS = "the waits for commits"
_OTHERS = {
    "sync.journal_ns": _WAITS,
    "wait.commit_id": _WAITS,
    "phase:commit wait": _WAITS,
    "phase:earlier commit": _WAITS,
    "phase:cpu wait": "the switches of threads",
    "sync.cpu_wait_ns": "the switches of threads",
    "fact:page_reads": "the reads of the thread before its write",
    "journal.tid": "the commits of the journal",
    "journal.transaction_id": "the commits of the journal",
}
NAMED = {f"sync.{name}" for name in _SYNC} | {f"bio.{name}" for name in _BIO} | {*_OTHERS}


def named(needs: Iterable[str]) -> str:
    """Returns what these needs are: `the path of each sync and the folios of all bios`."""
    parts: list[str] = []
    lacking = [*needs]
    for table, words, of in (("sync", _SYNC, "each sync"), ("bio", _BIO, "all bios")):
        of_table = [words[name] for name in words if f"{table}.{name}" in lacking]
        if of_table:
            parts.append(f"{_listed([f'the {word}' for word in of_table])} of {of}")
    parts += dict.fromkeys(_OTHERS[need] for need in lacking if need in _OTHERS)
    return _listed(parts)


def _listed(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
