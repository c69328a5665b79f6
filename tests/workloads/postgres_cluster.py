"""A PostgreSQL cluster in a folder, reached over a Unix socket. Root runs it as the user postgres."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path


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


class Cluster:
    """A cluster in `folder`/cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "cluster"
        self.programs = programs()
        self.user = "postgres" if os.geteuid() == 0 else None

    def call(self, program: str, *words: str) -> str:
        """Runs a program of the server and returns its output."""
        done = subprocess.run(
            [str(self.programs / program), *words],
            user=self.user,
            env=os.environ | {"PGHOST": str(self.folder), "PGDATABASE": "postgres"},
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            check=True,
        )
        return done.stdout

    def create(self, **settings: str) -> None:
        """Creates the cluster, with settings of postgresql.conf in addition to those of all workloads."""
        if self.user:
            account = pwd.getpwnam(self.user)
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        self.call(
            "initdb", "-D", str(self.data), "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
        )
        settings = {
            "listen_addresses": "''",
            "unix_socket_directories": f"'{self.folder}'",
            "autovacuum": "off",
            "max_wal_senders": "0",
            "wal_level": "minimal",
            "shared_buffers": "'16MB'",
        } | settings
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{key} = {value}\n" for key, value in settings.items())

    def start(self) -> None:
        self._control("-l", str(self.data / "server.log"), "start")

    def stop(self) -> None:
        self._control("-m", "fast", "stop")

    def _control(self, *words: str) -> None:
        self.call("pg_ctl", "-D", str(self.data), "-w", "-t", "300", *words)

    def wal_syncs(self) -> int:
        """Returns how many syncs of the WAL the server has counted."""
        return int(self.call("psql", "-XAtc", "SELECT wal_sync FROM pg_stat_wal"))
