#!/usr/bin/env python3
"""Runs pgbench on a new PostgreSQL cluster in DIR, over a Unix socket. Root runs it as the user postgres.

The statistics of the server count the syncs of its WAL: a lower bound for the recording.
"""

from postgres_cluster import Cluster
from workload import Run, main


def body(run: Run) -> None:
    cluster = Cluster(run.dir)
    cluster.create(wal_sync_method=run.text("method"), synchronous_commit=run.text("commit"))
    cluster.start()
    try:
        cluster.call("pgbench", "-i", "-q", "-s", "1")
        before = cluster.wal_syncs()
        clients, each = run.number("clients"), run.number("transactions")
        with run.timed():
            cluster.call("pgbench", "-n", "-c", str(clients), "-j", "1", "-t", str(each))
        # A backend reports its statistics when it exits, at the latest.
        syncs = cluster.wal_syncs() - before
    finally:
        cluster.stop()
    run.exact = False
    if run.text("method") in ("fsync", "fdatasync"):
        run.count(run.text("method"), syncs)
    run.more |= {"transactions": clients * each, "wal_syncs": syncs}


main(
    body,
    __doc__,
    clients=4,
    transactions=25,
    commit=("on", "off"),
    method=("fdatasync", "fsync", "open_datasync", "open_sync"),
)
