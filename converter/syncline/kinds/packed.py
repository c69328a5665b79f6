"""A tar or zip of one run directory, or of one log, as people send them. It is unpacked into a temporary folder, and read there."""

from __future__ import annotations

import contextlib
import lzma
import shlex
import shutil
import tarfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any

from syncline import _core, scratch
from syncline.errors import InputError
from syncline.formats import MANIFEST
from syncline.input import Input
from syncline.reading import Progress, Reading
from syncline.recordings import Recording

from .kind import Kind
from .log import Log
from .place import Place
from .run_directory import RunDirectory

__all__ = ["Packed"]

# How a tar that xz, bzip2 or gzip compressed begins, and a zip.
_COMPRESSED = (b"\xfd7zXZ\x00", b"BZh", b"\x1f\x8b")
_ZIP = b"PK\x03\x04"
_DAMAGED = (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, NotImplementedError, RuntimeError)  # fmt: skip


@dataclass(frozen=True)
class _Member:
    """A file in an archive: its name there, and its size."""

    name: PurePosixPath
    size_bytes: int
    handle: tarfile.TarInfo | zipfile.ZipInfo

    @property
    def folder(self) -> PurePosixPath:
        return self.name.parent


class Packed(Log):
    """A tar or zip of one run directory, or of one log."""

    @classmethod
    def recognized(cls, place: Place) -> Kind | None:
        if not _is_archive(place):
            return None
        found = cls(place.path)
        members = found._members
        folders = [member.folder for member in members if member.name.name == MANIFEST]
        if len(folders) > 1:
            names = ", ".join(str(folder) for folder in sorted(folders)[:5])
            raise InputError(
                f"{place.path} holds {len(folders)} run directories ({names}{', ...' if len(folders) > 5 else ''}), and an INPUT is one",
                f"unpack it, and name one of them, or their folder: {found._unpack_command}",
            )
        if not folders and (len(members) != 1 or not found._inner.is_log):
            # The Perfetto UI shows an archive of traces.
            return None
        return found

    @property
    def _unpack_command(self) -> str:
        return f"{'unzip' if self._is_zip else 'tar xf'} {shlex.quote(self.path)}"

    @cached_property
    def _is_zip(self) -> bool:
        return Place(self.path).start.startswith(_ZIP)

    @cached_property
    def _members(self) -> list[_Member]:
        """Its files, without links and devices, which are not unpacked."""
        with self._opened_archive() as archive:
            if isinstance(archive, zipfile.ZipFile):
                return [
                    _Member(PurePosixPath(one.filename), one.file_size, one)
                    for one in archive.infolist()
                    if not one.is_dir()
                ]
            return [
                _Member(PurePosixPath(one.name), one.size, one) for one in archive if one.isfile()
            ]

    @contextmanager
    def _opened_archive(self) -> Iterator[tarfile.TarFile | zipfile.ZipFile]:
        try:
            with zipfile.ZipFile(self.path) if self._is_zip else tarfile.open(self.path) as archive:
                yield archive
        except _DAMAGED as error:
            raise InputError(
                f"cannot read {self.path}: {error}",
                "if it was downloaded or copied, do so again, or unpack it by hand",
            ) from None

    @cached_property
    def _unpacked(self) -> Path:
        """The folder of the run, unpacked. It is removed with this value, or when the process ends."""
        manifest = next((one for one in self._members if one.name.name == MANIFEST), None)
        members = (
            self._members
            if manifest is None
            else [one for one in self._members if one.name.is_relative_to(manifest.folder)]
        )
        folder = scratch.create()
        weakref.finalize(self, scratch.remove, folder)
        needed, free = sum(one.size_bytes for one in members), shutil.disk_usage(folder).free
        if needed > free:
            raise InputError(
                f"{self.path} holds {needed:,} bytes, and {folder.parent} has room for {free:,}",
                "name a folder with more room in TMPDIR, or unpack it by hand",
            )
        with self._opened_archive() as archive:
            for member in members:
                name = member.name if manifest is None else member.name.relative_to(manifest.folder)
                # No recording has a name that leads out of its folder.
                if name.is_absolute() or ".." in name.parts:
                    continue
                target = folder / "run" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with _stream(archive, member) as packed, target.open("xb") as file:
                    shutil.copyfileobj(packed, file)
        return folder / "run"

    @cached_property
    def _inner(self) -> Input:
        from . import resolve

        if (self._unpacked / MANIFEST).is_file():
            return RunDirectory(str(self._unpacked))
        return resolve(str(next(file for file in self._unpacked.rglob("*") if file.is_file())))

    @cached_property
    def recording(self) -> Recording:
        with self._named():
            return replace(self._inner.recording, path=self.path)

    @cached_property
    def facts(self) -> dict[str, Any]:
        return self._inner.facts

    def files(self) -> list[Path]:
        return [Path(self.path)]

    def content(self) -> list[Path]:
        return self._inner.content()

    def convert(
        self, output: str, reading: Reading, progress: Progress | None = None, **choices: Any
    ) -> dict[str, Any]:
        with self._named():
            return super().convert(output, reading, progress, **choices)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Words errors about unpacked files with the name of the archive."""

        def own(text: str) -> str:
            folder = str(self._unpacked)
            return text.replace(f"{folder}/", f"{self.path}:").replace(folder, self.path)

        try:
            yield
        except _core.CoreError as error:
            message, hint, kind = error.args
            raise _core.CoreError(own(message), own(hint or "") or None, kind) from None
        except InputError as error:
            raise InputError(own(error.message), own(error.hint)) from None


def _is_archive(place: Place) -> bool:
    if place.source:
        return False
    if place.start.startswith(_ZIP):
        return True
    # gzip is looked into already, since most logs are compressed by it.
    if place.start.startswith(_COMPRESSED[2]) or not place.start.startswith(_COMPRESSED):
        return place.head[257:262] == b"ustar"
    with contextlib.suppress(*_DAMAGED):
        return tarfile.is_tarfile(place.path)
    return False


def _stream(archive: tarfile.TarFile | zipfile.ZipFile, member: _Member) -> IO[bytes]:
    if isinstance(archive, zipfile.ZipFile):
        assert isinstance(member.handle, zipfile.ZipInfo)
        return archive.open(member.handle)
    assert isinstance(member.handle, tarfile.TarInfo)
    found = archive.extractfile(member.handle)
    assert found is not None
    return found
