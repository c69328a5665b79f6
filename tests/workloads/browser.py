#!/usr/bin/env python3
"""Imitates a browser while pages load: cookies, history and favicons in SQLite files, and a session file.

Three threads run in parallel: history and favicons in WAL mode with NORMAL, cookies with a rollback journal and FULL, the session as
JSON by temporary file, sync and rename. SQLite chooses its syncs itself, so the counts are lower bounds.
"""

import json
import os
import sqlite3

from workload import Run, main


def table(run: Run, name: str, wal: bool) -> sqlite3.Connection:
    base = sqlite3.connect(
        run.dir / f"{name}.sqlite", isolation_level=None, check_same_thread=False
    )
    base.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}")
    base.execute(f"PRAGMA synchronous = {'NORMAL' if wal else 'FULL'}")
    # So that a short run includes a checkpoint and its syncs.
    base.execute("PRAGMA wal_autocheckpoint = 20")
    base.execute("CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, url TEXT, data BLOB)")
    return base


def put(run: Run, base: sqlite3.Connection, page: int, rows: int, size: int) -> None:
    base.execute("BEGIN")
    for row in range(rows):
        url = f"https://example.org/{page}/{row}"
        base.execute("INSERT INTO entries (url, data) VALUES (?, ?)", (url, bytes(size)))
        run.wrote(len(url) + size)
    base.execute("COMMIT")


def body(run: Run) -> None:
    pages = run.number("pages")
    bases = {
        name: table(run, name, name != "cookies") for name in ("places", "favicons", "cookies")
    }
    run.files, run.exact = len(bases), False

    def history(_: int) -> None:
        for page in range(pages):
            put(run, bases["places"], page, 4, 300)
            put(run, bases["favicons"], page, 1, 4000)

    def cookies(_: int) -> None:
        for page in range(pages):
            put(run, bases["cookies"], page, 3, 100)
            # Each commit syncs the journal and the database.
            run.count("fdatasync", 2)

    def session(_: int) -> None:
        for page in range(pages):
            temporary = run.dir / "session.tmp"
            fd = run.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            tabs = [
                {"url": f"https://example.org/{n}", "scroll": n * 37} for n in range(page * 5 + 5)
            ]
            run.write(fd, json.dumps(tabs).encode())
            run.sync(fd)
            os.close(fd)
            temporary.rename(run.dir / "session.json")

    parts = [history, cookies, session]
    with run.timed():
        run.in_threads(len(parts), lambda index: parts[index](index))
        for base in bases.values():
            base.close()


main(body, __doc__, pages=5)
