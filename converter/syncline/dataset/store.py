"""Where the files of a dataset are: a folder, or an object store that speaks S3.

Several processes ingest into one dataset at once, and any of them may be killed. In a folder, a lock of the kernel lets one
of them write at a time. S3 has no locks, and Arrow has no conditional write, by which a store would refuse the second of two
entries, so `ObjectStore.locked` writes claims that expire: 100 lines, because a lock that a killed command left behind
would block a run for ever. When Arrow can write an object only if it does not exist, that replaces the claims.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import importlib
import os
import random
import re
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from syncline import _core, interruptible
from syncline.errors import InputError

from . import layout

__all__ = ["FolderStore", "ObjectStore", "Store", "is_url", "open_store"]

_Result = TypeVar("_Result")

_SCHEME = "s3://"
# How long a store may take for one answer, in seconds. It is asked up to three times.
TIMEOUT_VARIABLE = "SYNCLINE_STORE_TIMEOUT"
_TIMEOUT_S = 20.0
_ATTEMPTS = 3
_CHUNK = 1 << 22
_THREADS = 16
# A command writes its claims again and again. One that is older than this, in seconds by the store's clock, is of a
# killed command.
_CLAIM_LIFE_S = 120.0
_RENEWAL_S = 15.0
# The key of a run ends with the identity of its rows.
_PARTITION = re.compile(r"host=[^/]+/day=[^/]+/run=[^/]+-[0-9a-f]{12}")
_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class Store(Protocol):
    """The files of one dataset. Paths are relative to it, and separated by `/`."""

    # As the user names it.
    url: str
    # As DuckDB and Spark name it.
    root: str

    def sizes(self, folder: str) -> dict[str, int]:
        """Returns the files of a folder with their sizes in bytes; none if the folder does not exist."""

    def partitions(self) -> list[str]:
        """Returns the folders of runs, also of those without an entry."""

    def read(self, path: str) -> bytes: ...

    def stream(self, path: str) -> Iterator[bytes]: ...

    def write(self, path: str, data: bytes) -> None:
        """Writes a file, whole or not at all."""

    def publish(self, folder: Path, partition: str) -> None:
        """Makes the files of a local folder those of a partition."""

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with its files."""

    def check_removable(self, folder: str) -> None:
        """Raises InputError if a folder cannot be removed, as far as that is known before."""

    def link(self, folder: str) -> str | None:
        """Returns the part of the path of a folder, or the file in it, that is a symbolic link; None without one."""

    def locked(self, names: Iterable[str]) -> AbstractContextManager[Callable[[], None]]:
        """Lets one command at a time change the runs that have one of the names.

        Yields a function that fails if this command no longer has them for itself.
        """


def is_url(path: str) -> bool:
    """Returns whether a path names an object store."""
    return path.startswith(_SCHEME)


def open_store(path: str) -> Store:
    """Returns the store of a dataset.

    Raises:
        InputError: the package for object stores is missing, or the URL has no bucket.
    """
    return ObjectStore(path) if is_url(path) else FolderStore(path)


class FolderStore:
    """A folder. A partition appears as a whole, by a rename."""

    def __init__(self, path: str) -> None:
        self.url = path.rstrip("/") or "/"
        self.root = str(Path(path).absolute())
        self._folder = Path(path).absolute()

    def sizes(self, folder: str) -> dict[str, int]:
        try:
            with os.scandir(self._folder / folder) as found:
                return {one.name: one.stat().st_size for one in found if one.is_file()}
        except (FileNotFoundError, NotADirectoryError):
            return {}

    def partitions(self) -> list[str]:
        found = (one for one in self._folder.glob("host=*/day=*/run=*") if one.is_dir())
        names = (str(one.relative_to(self._folder)) for one in found)
        return [one for one in names if _PARTITION.fullmatch(one)]

    def read(self, path: str) -> bytes:
        return (self._folder / path).read_bytes()

    def stream(self, path: str) -> Iterator[bytes]:
        with (self._folder / path).open("rb") as file:
            while data := file.read(_CHUNK):
                yield data

    def owned(self, path: str) -> Path:
        """Returns the path of a part of the dataset, to write or to remove it.

        Raises:
            InputError: a part of it is a symbolic link, which may lead out of the dataset.
        """
        at = self._folder
        for part in Path(path).parts:
            at /= part
            if at.is_symlink():
                raise InputError(
                    f"{at} is a symbolic link, and a dataset holds none",
                    "replace it by what it leads to; a link may lead to the whole dataset",
                )
        return at

    def check_removable(self, folder: str) -> None:
        target = self.owned(folder)
        if link := self.link(folder):
            raise InputError(f"{self.url}/{link} is a symbolic link, and a dataset holds none", "replace it by what it leads to")  # fmt: skip
        with contextlib.suppress(OSError), os.scandir(target) as found:
            if other := next((one.name for one in found if one.is_dir()), None):
                raise InputError(f"{self.url}/{folder} holds the folder {other}, which is not of a run", "move it elsewhere")  # fmt: skip
        # A rename of a folder changes the folder itself, too.
        for path in (target.parent, target):
            if path.exists() and not os.access(path, os.W_OK | os.X_OK):
                raise InputError(f"{path} cannot be changed: permission denied", "run it as the user who owns the dataset")  # fmt: skip

    def link(self, folder: str) -> str | None:
        at = Path()
        for part in Path(folder).parts:
            at /= part
            if (self._folder / at).is_symlink():
                return str(at)
        with contextlib.suppress(OSError), os.scandir(self._folder / folder) as found:
            return min((f"{folder}/{one.name}" for one in found if one.is_symlink()), default=None)
        return None

    @contextmanager
    def locked(self, names: Iterable[str]) -> Iterator[Callable[[], None]]:
        # One lock for all names.
        # The kernel frees the lock of a command that is killed.
        # The marker is there from the start and never changes. NFS locks only files that are open for writing.
        file = self.owned(layout.MARKER)
        lock = os.open(
            file, (os.O_RDWR if os.access(file, os.W_OK) else os.O_RDONLY) | os.O_CLOEXEC
        )
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError as error:
                # A file system without locks still takes runs.
                if error.errno not in _NO_LOCKS:
                    raise
            yield lambda: None
        finally:
            os.close(lock)

    def write(self, path: str, data: bytes) -> None:
        file = self.owned(path)
        _core.create_folder(str(file.parent))
        interruptible.write(str(file), data)
        _flush(file)
        _flush(file.parent)

    def publish(self, folder: Path, partition: str) -> None:
        target = self.owned(partition)
        _core.create_folder(str(target.parent))
        # After a loss of power the partition must not have files without content.
        # All at once, so that they share the commits of a journal.
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(_flush, [*folder.iterdir(), folder]))
        try:
            folder.rename(target)
        except OSError:
            if not target.is_dir():
                raise
            # A partition without an entry, which a killed command has left.
            target.rename(folder.with_name("old"))
            folder.rename(target)
        _flush(target.parent)

    def remove(self, path: str) -> None:
        target = self.owned(path)
        if target.is_dir():
            # Renamed first, so that a kill leaves no half partition.
            dead = self.owned(layout.STAGING) / f"removed-{target.name}-{os.getpid()}"
            _core.create_folder(str(dead.parent))
            target.rename(dead)
            shutil.rmtree(dead, ignore_errors=True)
            for parent in target.relative_to(self._folder).parents:
                try:
                    (self._folder / parent).rmdir()
                except OSError:
                    break
        else:
            target.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Waits until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _now_s() -> float:
    """Returns the time of a clock that also runs while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class _Renewing:
    """The claims of a command, as it knows them."""

    # Before they were last written.
    written_s: float
    ended: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def is_late(self) -> bool:
        """Returns whether another command may have removed the claims. It stays so, since late ones are not renewed."""
        return _now_s() - self.written_s > _CLAIM_LIFE_S


class ObjectStore:
    """A bucket that speaks S3. Each object appears as a whole, and the entry of a run comes last."""

    def __init__(self, url: str) -> None:
        self.url = self.root = url.rstrip("/")
        parts = urlsplit(self.url)
        if not parts.netloc:
            raise InputError(f"{url} names no bucket", "write s3://BUCKET/FOLDER")
        self._prefix = f"{parts.netloc}{parts.path}"
        self.filesystem = _connect()

    def sizes(self, folder: str) -> dict[str, int]:
        def listed() -> dict[str, int]:
            selector = _arrow().FileSelector(f"{self._prefix}/{folder}", allow_not_found=True)
            found = self.filesystem.get_file_info(selector)
            return {one.base_name: one.size for one in found if one.is_file}

        return self._asked(listed, folder)

    def partitions(self) -> list[str]:
        def listed() -> list[str]:
            selector = _arrow().FileSelector(self._prefix, allow_not_found=True, recursive=True)
            found = self.filesystem.get_file_info(selector)
            folders = {one.path[len(self._prefix) + 1 :].rpartition("/")[0] for one in found if one.is_file}  # fmt: skip
            return [one for one in folders if _PARTITION.fullmatch(one)]

        return self._asked(listed, "")

    def read(self, path: str) -> bytes:
        return b"".join(self.stream(path))

    def stream(self, path: str) -> Iterator[bytes]:
        with self._named(path), self.filesystem.open_input_file(f"{self._prefix}/{path}") as file:
            while data := file.read(_CHUNK):
                yield data

    def write(self, path: str, data: bytes) -> None:
        def put() -> None:
            with self.filesystem.open_output_stream(f"{self._prefix}/{path}") as file:
                file.write(data)

        self._asked(put, path)

    def publish(self, folder: Path, partition: str) -> None:
        # The table of requests last: without it the tables are not those of a run.
        files = sorted(folder.iterdir(), key=lambda file: file.name == layout.table_name("sync"))
        for file in files:
            self._asked(lambda file=file: self._upload(file, partition), partition)

    def _upload(self, file: Path, partition: str) -> None:
        target = f"{self._prefix}/{partition}/{file.name}"
        with file.open("rb") as source, self.filesystem.open_output_stream(target) as out:
            shutil.copyfileobj(source, out, _CHUNK)

    def remove(self, path: str) -> None:
        for name in self.sizes(path):
            self._asked(lambda name=name: self._delete(f"{path}/{name}"), path)
        self._asked(lambda: self._delete(path), path)

    def check_removable(self, folder: str) -> None:
        pass

    def link(self, folder: str) -> str | None:
        return None

    @contextmanager
    def locked(self, names: Iterable[str]) -> Iterator[Callable[[], None]]:
        # S3 has no locks. So a command writes a claim for each name, and then lists the claims. At least
        # the later of two commands finds the claim of the other, removes its own, and tries again.
        token = secrets.token_hex(8)
        claims = {f"{name}.{token}" for name in names}
        deadline = time.monotonic() + timeout_s()
        renewing: _Renewing | None = None
        try:
            while True:
                renewing = _Renewing(written_s=_now_s())
                self._write_claims(claims)
                other_claim = self._other_claim(claims)
                if other_claim is None:
                    break
                self._remove_claims(claims)
                if time.monotonic() > deadline:
                    raise InputError(
                        f"another command is changing the same run: {self.url}/{layout.CLAIMS}/{other_claim}",
                        "repeat the command when the other one has ended; a claim of a killed command ends after"
                        f" {_CLAIM_LIFE_S:.0f} s",
                    )
                time.sleep(random.uniform(0.1, 1))
            thread = threading.Thread(target=self._renew, args=(claims, renewing), daemon=True)
            renewing.thread = thread
            thread.start()
            yield lambda: self._check(claims, renewing)
        finally:
            # It could otherwise write a claim that is already removed.
            if renewing is not None and renewing.thread is not None:
                renewing.ended.set()
                interruptible.call(renewing.thread.join)
            self._remove_claims(claims)

    def _write_claims(self, claims: set[str]) -> None:
        holder = f"{socket.gethostname()}, process {os.getpid()}\n".encode()
        for claim in sorted(claims):
            self.write(f"{layout.CLAIMS}/{claim}", holder)

    def _remove_claims(self, claims: set[str]) -> None:
        for claim in sorted(claims):
            self._asked(lambda claim=claim: self._delete(f"{layout.CLAIMS}/{claim}"), layout.CLAIMS)

    def _claims(self) -> dict[str, float]:
        """Returns the claims, and when each was written, by the store's clock."""
        selector = _arrow().FileSelector(f"{self._prefix}/{layout.CLAIMS}", allow_not_found=True)
        found = self.filesystem.get_file_info(selector)
        return {one.base_name: one.mtime.timestamp() for one in found if one.is_file}

    def _other_claim(self, claims: set[str]) -> str | None:
        """Returns the claim of another command for one of the same names, and removes those of killed commands."""
        found = self._asked(self._claims, layout.CLAIMS)
        now = max((found[claim] for claim in claims & found.keys()), default=0.0)
        names = {claim.partition(".")[0] for claim in claims}
        for claim in sorted(found.keys() - claims):
            if claim.partition(".")[0] not in names:
                continue
            if now - found[claim] <= _CLAIM_LIFE_S:
                return claim
            self._remove_claims({claim})
        return None

    def _renew(self, claims: set[str], renewing: _Renewing) -> None:
        """Writes the claims again and again. One that another command has removed stays so."""
        while not renewing.ended.wait(_RENEWAL_S):
            begun_s = _now_s()
            # A store that does not answer is noticed by `_check`.
            with contextlib.suppress(OSError):
                for claim in claims & self._claims().keys():
                    # Between the listing and here, the process may have been stopped, and the claim removed.
                    if renewing.ended.is_set() or renewing.is_late():
                        return
                    path = f"{self._prefix}/{layout.CLAIMS}/{claim}"
                    with self.filesystem.open_output_stream(path) as file:
                        file.write(b"renewed\n")
                if renewing.is_late():
                    return
                renewing.written_s = begun_s

    def _check(self, claims: set[str], renewing: _Renewing) -> None:
        lost = sorted(claims - self._asked(self._claims, layout.CLAIMS).keys())
        if lost or renewing.is_late():
            raise InputError(
                f"{self.url}/{layout.CLAIMS}/{lost[0]} was removed, so another command may be changing the same run"
                if lost
                else f"this command did not run for {_CLAIM_LIFE_S:.0f} s, so another one may be changing the same run",
                "repeat the command with --replace when no other one is running",
            )

    def _delete(self, path: str) -> None:
        info = self.filesystem.get_file_info(f"{self._prefix}/{path}")
        if info.is_file:
            self.filesystem.delete_file(f"{self._prefix}/{path}")

    def _asked(self, work: Callable[[], _Result], path: str) -> _Result:
        with self._named(path):
            return interruptible.call(work)

    @contextmanager
    def _named(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InputError(
                f"{self.url}/{path}: the object store does not answer: {store_reason(error)}",
                "check the network and the variables AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID,"
                " AWS_SECRET_ACCESS_KEY and AWS_REGION; then repeat the command, which may be done at any time",
            ) from None


def store_reason(error: object) -> str:
    """Returns what a client of a store says went wrong, in one line, without a traceback."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if line.startswith(("OSError:", "PermissionError:"))]
    return (named or lines or [""])[-1].partition(": ")[2] if named else " ".join(lines)


def timeout_s() -> float:
    """Returns how long a store may take for an answer."""
    given = os.environ.get(TIMEOUT_VARIABLE, "")
    try:
        return float(given) if given else _TIMEOUT_S
    except ValueError:
        raise InputError(
            f"{TIMEOUT_VARIABLE}={given} is not a number of seconds", f"{TIMEOUT_VARIABLE}=20"
        ) from None


def _arrow() -> Any:
    try:
        return importlib.import_module("pyarrow.fs")
    except ImportError:
        raise InputError(
            "an object store needs the Python packages pyarrow and fsspec",
            "pip install 'syncline[s3]'",
        ) from None


def _connect() -> Any:
    fs = _arrow()
    # Arrow asks a machine of EC2 for credentials otherwise, which takes seconds elsewhere.
    if "AWS_ACCESS_KEY_ID" in os.environ:
        os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    options: dict[str, Any] = {}
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        options = {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return fs.S3FileSystem(
        **options,
        region=region or "us-east-1",
        connect_timeout=min(5.0, timeout_s()),
        request_timeout=timeout_s(),
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        background_writes=False,
    )
