#!/usr/bin/env python3
"""Runs pgbench on a new PostgreSQL cluster in DIR, over a Unix socket. Root runs it as the user postgres.

The statistics of the server count the syncs of its WAL: a lower bound for the recording.
"""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from workload import Run, main


def programs() -> Path:
    """Returns the folder of the newest installed server."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name)
    )
    if found:
        return found[-1]
    postgres = shutil.which("postgres")
    if not postgres:
        raise SystemExit("postgres: no PostgreSQL server; get it with: apt-get install postgresql")
    return Path(postgres).parent


def body(run: Run) -> None:
    bin_dir, data = programs(), run.dir / "cluster"
    user = None
    if os.geteuid() == 0:
        user = "postgres"
        account = pwd.getpwnam(user)
        os.chown(run.dir, account.pw_uid, account.pw_gid)
    env = os.environ | {"PGHOST": str(run.dir), "PGDATABASE": "postgres"}

    def call(program: str, *words: str) -> str:
        done = subprocess.run(
            [str(bin_dir / program), *words],
            user=user,
            env=env,
            cwd=run.dir,
            text=True,
            stdout=subprocess.PIPE,
            check=True,
        )
        return done.stdout

    def wal_syncs() -> int:
        return int(call("psql", "-XAtc", "SELECT wal_sync FROM pg_stat_wal"))

    call("initdb", "-D", str(data), "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    settings = {
        "listen_addresses": "''",
        "unix_socket_directories": f"'{run.dir}'",
        "wal_sync_method": run.text("method"),
        "synchronous_commit": run.text("commit"),
        "autovacuum": "off",
        "max_wal_senders": "0",
        "wal_level": "minimal",
        "shared_buffers": "'16MB'",
    }
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{key} = {value}\n" for key, value in settings.items())
    call("pg_ctl", "-D", str(data), "-w", "-t", "300", "-l", str(data / "server.log"), "start")
    try:
        call("pgbench", "-i", "-q", "-s", "1")
        before = wal_syncs()
        clients, each = run.number("clients"), run.number("transactions")
        with run.timed():
            call("pgbench", "-n", "-c", str(clients), "-j", "1", "-t", str(each))
        # A backend reports its statistics when it exits, at the latest.
        syncs = wal_syncs() - before
    finally:
        call("pg_ctl", "-D", str(data), "-w", "-t", "300", "-m", "fast", "stop")
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
