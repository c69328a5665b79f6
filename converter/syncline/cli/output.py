"""Output files: never an input, and written as a whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from syncline.cli.errors import Failure
from syncline.recordings import is_recording, read_recording


def refuse_inputs(output: str | Path, inputs: Iterable[str | None]) -> None:
    """Refuses an output that is an input, which would be lost.

    Args:
        output: the output of the command.
        inputs: what the command reads: files, run directories, folders of tables. None is ignored.

    Raises:
        Failure: the output is one of the files.
    """
    target = Path(output)
    if str(output) == "-" or not target.exists():
        return
    for path in inputs:
        if path is None or path == "-":
            continue
        files = [Path(path)]
        if is_recording(path):
            files = [Path(file) for file in read_recording(path).files]
        elif Path(path).is_dir():
            files = list(Path(path).glob("*.parquet"))
        if any(file.exists() and file.samefile(target) for file in files):
            raise Failure(
                f"cannot write {output}: it is an input of the same command",
                "give the output another name",
            )


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Yields a temporary file that is renamed to `path` on success and removed on failure.

    `-` is standard output. The file is created at once, so that a path that cannot be written is
    reported before the work.

    Raises:
        Failure: it cannot be written.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        return
    # A device or a pipe is written directly.
    if path.exists() and not path.is_file():
        with path.open("wb") as out:
            yield out
        return
    part = None
    try:
        descriptor, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=".part"
        )
        part = Path(name)
        with os.fdopen(descriptor, "wb") as out:
            yield out
        # mkstemp creates a file that only its owner can read. Apply the usual permissions.
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        os.replace(part, path)
    except OSError as error:
        raise Failure(
            f"cannot write {path}: {(error.strerror or str(error)).lower()}",
            f"try: ls -ld {path.parent}",
        ) from None
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
