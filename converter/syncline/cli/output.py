"""Outputs: never an input, and written as a whole or not at all."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from syncline import _core
from syncline.cli.errors import Failure


class Files(Protocol):
    """What a command reads, such as an INPUT."""

    def files(self) -> list[Path]: ...


# Formats that are not text.
_BINARY = ("pftrace", "pftrace.gz", "parquet", "pprof")


def refuse_outputs(*outputs: str | None) -> None:
    """Refuses outputs of which one would overwrite another, or what the command prints. None is one that was not asked for.

    Raises:
        Failure: two are one file, or one has no name or is standard output.
    """
    seen: set[Path] = set()
    for one in outputs:
        if one is None:
            continue
        if not one or one in ("-", "/dev/stdout"):
            raise Failure(f"cannot write {one or 'an output without a name'}: the table is on standard output", "name a file")  # fmt: skip
        if (file := Path(one).resolve()) in seen:
            raise Failure(f"{one} is written twice", "name two files")
        seen.add(file)


def refuse_inputs(output: str | Path, inputs: Iterable[Files | str | None]) -> None:
    """Refuses an output that is an input, which would be lost.

    Args:
        output: the output of the command.
        inputs: what the command reads: each INPUT, and the names of other files. None is ignored.

    Raises:
        Failure: the output is one of the files.
    """
    target = Path(output)
    if str(output) == "-" or not target.exists():
        return
    for one in inputs:
        if one is None or one == "-":
            continue
        files = [Path(one)] if isinstance(one, str) else one.files()
        if any(file.exists() and file.samefile(target) for file in files):
            raise Failure(
                f"cannot write {output}: it is an input of the same command",
                "give the output another name",
            )


def show(text: str) -> None:
    """Prints a result to standard output, unchanged. (`click.echo` removes escape sequences, which are data in a file.)

    Raises:
        Failure: it cannot be written.
    """
    sys.stdout.write(text)
    sys.stdout.flush()


def refuse_terminal(output: str, form: str) -> None:
    """Refuses to write a binary format to a terminal.

    Raises:
        Failure: the format is binary, and standard output is a terminal.
    """
    if output == "-" and form in _BINARY and sys.stdout.isatty():
        raise Failure(
            f"{form} is binary, and standard output is a terminal",
            "name a file with -o, or connect a program that reads it: ... -o - | PROGRAM",
        )


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Yields a buffer whose content becomes the file `path` on success.

    `-` is standard output. The file is created at once under a temporary name, so that a path that
    cannot be written is reported before the work.

    Raises:
        CoreError: it cannot be written.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    file = _core.OutputFile(path)
    content = io.BytesIO()
    try:
        yield content
        file.commit(content.getvalue())
    finally:
        file.close()
