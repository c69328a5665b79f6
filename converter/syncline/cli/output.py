"""Output files: never an input, and written as a whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from syncline import _core
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
    """Yields a buffer whose content becomes the file `path` on success.

    `-` is standard output. The file is created at once under a temporary name, so that a path that
    cannot be written is reported before the work.

    Raises:
        CoreError: it cannot be written.
    """
    file = _core.OutputFile(path)
    content = io.BytesIO()
    try:
        yield content
        file.commit(content.getvalue())
    finally:
        file.close()
