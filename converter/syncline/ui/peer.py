"""The user at the other end of a local connection."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

# Columns of /proc/net/tcp.
_LOCAL, _REMOTE, _UID = 1, 2, 7


def user_of(client: tuple[str, int], server: tuple[str, int], root: Path = Path("/")) -> int | None:
    """Returns the id of the user who has opened a connection; None if it is not known.

    It is known on Linux if the connection comes from this network namespace.

    Args:
        client: address and port of the client, on IPv4.
        server: address and port at which it has connected.
        root: the folder that holds proc.
    """
    for name, mapped in (("tcp", ""), ("tcp6", "0000000000000000FFFF0000")):
        ends = [f"{mapped}{_hex(*client)}", f"{mapped}{_hex(*server)}"]
        try:
            lines = (root / "proc/net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if [columns[_LOCAL], columns[_REMOTE]] == ends:
                return int(columns[_UID])
    return None


def _hex(address: str, port: int) -> str:
    """Returns an end as in /proc/net/tcp: the address in the byte order of the machine."""
    (number,) = struct.unpack("=I", socket.inet_aton(address))
    return f"{number:08X}:{port:04X}"
