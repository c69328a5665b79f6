#!/usr/bin/env python3
"""Small transactions on a SQLite database: rollback journal or WAL, synchronous NORMAL or FULL.

SQLite chooses its syncs itself. The counts are the lower bounds that its documentation guarantees.
"""

import sqlite3

from workload import Run, main


def body(run: Run) -> None:
    transactions = run.number("transactions")
    path = run.dir / "data.sqlite"
    with run.timed():
        # autocommit: otherwise Python begins transactions itself
        base = sqlite3.connect(path, isolation_level=None)
        base.execute(f"PRAGMA journal_mode = {'WAL' if run.text('mode') == 'wal' else 'DELETE'}")
        base.execute(f"PRAGMA synchronous = {run.text('sync')}")
        base.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)")
        for n in range(transactions):
            base.execute("BEGIN")
            for row in range(run.number("rows")):
                base.execute(
                    "INSERT INTO notes (text) VALUES (?)",
                    (f"note {n} {row} ".ljust(run.number("size"), "x"),),
                )
            base.execute("COMMIT")
        base.close()
    run.files, run.exact = 1, False
    run.bytes = transactions * run.number("rows") * run.number("size")
    # A commit syncs journal and database. In WAL mode it syncs only the WAL, and with NORMAL only a checkpoint syncs.
    per_commit = {("wal", "NORMAL"): 0, ("wal", "FULL"): 1}.get(
        (run.text("mode"), run.text("sync")), 2
    )
    run.count("fdatasync", per_commit * transactions)
    run.more["transactions"] = transactions


main(
    body,
    __doc__,
    transactions=20,
    rows=2,
    size=100,
    mode=("rollback", "wal"),
    sync=("FULL", "NORMAL"),
)
