"""A device-mapper device whose writes fail for a while. Needs root."""

import os
import subprocess
from pathlib import Path


def mapping(directory: Path) -> str:
    """Returns the device-mapper name of the device of a directory."""
    # The source of its mount, because btrfs has a device number of its own.
    found = subprocess.run(
        ["findmnt", "-n", "-o", "SOURCE", "-T", directory],
        check=True,
        capture_output=True,
        text=True,
    )
    number = Path(found.stdout.strip()).stat().st_rdev
    name = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/dm/name")
    if not name.exists():
        raise SystemExit(f"{directory} is not on a device-mapper device")
    return name.read_text().strip()


def dmsetup(*words: str) -> str:
    return subprocess.run(["dmsetup", *words], check=True, capture_output=True, text=True).stdout


def load(name: str, table: str) -> None:
    dmsetup("load", name, "--table", table)
    # --nolockfs: freezing the file system would sync it.
    dmsetup("suspend", "--nolockfs", "--noflush", name)
    dmsetup("resume", "--noudevsync", name)


def refusing(table: str) -> str:
    """Returns the table of a device that refuses writes, for that of a linear one. Reads still work."""
    start, length, kind, device, offset = table.split()[:5]
    if kind != "linear":
        raise SystemExit(f"the table is not linear but {kind}")
    # Never up, always down.
    return f"{start} {length} flakey {device} {offset} 0 3600 1 error_writes"
