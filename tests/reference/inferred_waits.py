"""A plain reference implementation of "Waits that are not recorded" in docs/reference/pairing.md.

It takes the rows of the tables and the events of the recording, as objects of the low-level log, and asks of each request which commit it
waited for last. It searches lists for each answer: slow on purpose, so that it is easy to check by eye.
"""

from __future__ import annotations

from typing import Any

from tests.reference.phases import Events

Row = dict[str, Any]
MS = 1_000_000


def of_tables(tables: dict[str, list[Row]], log: list[Row]) -> dict[int, tuple[int, int, int]]:
    """Start, end and transaction of the inferred wait of each request without an id, by its sync_id."""
    requests = [
        row for row in tables["sync"] if row["start_ns"] is not None and row["dur_ns"] is not None
    ]
    spans: dict[int, list[tuple[int, int]]] = {}
    first: dict[int, int] = {}
    for row in requests:
        spans.setdefault(row["tid"], []).append((row["start_ns"], row["ts_ns"] + row["dur_ns"]))
        first[row["tid"]] = min(row["ts_ns"], first.get(row["tid"], row["ts_ns"]))
    threads = Events(log, spans, first).threads
    found = {}
    for row in requests:
        end = row["ts_ns"] + row["dur_ns"]
        done = row["start_ns"]
        if row["id"] is not None or row["dev"] is None or row["incomplete"] is not None:
            continue
        if row["bios"]:
            done = max(done, end - row["after_complete_ns"])
        # The commit of its file system that had ended last when the request ended.
        ended = [
            (commit["ts_ns"] + commit["dur_ns"], commit["ts_ns"], commit["transaction_id"])
            for commit in tables["journal"]
            if commit["dev"] == row["dev"] and commit["dur_ns"] is not None
        ]
        ended = [commit for commit in ended if commit[0] <= end]
        if not ended:
            continue
        committed, began, transaction = max(ended)
        start = max(began, done)
        if committed <= start:
            continue
        thread = threads[row["tid"]]
        if thread.watched_from is not None and thread.watched_from <= end:
            waited = any(
                since < committed <= until <= committed + MS for since, until in thread.blocked
            )
        else:
            waited = end - committed <= min(committed - start, 10 * MS)
        if waited:
            found[row["sync_id"]] = (start, committed, transaction)
    return found
