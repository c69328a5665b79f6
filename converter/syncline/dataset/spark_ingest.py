"""Adds runs to a dataset as tasks of Spark: each task converts one run, and publishes its partition and entry.

A task that Spark repeats, because its worker died, finds the run in the dataset or adds it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncline import _core
from syncline.engine import EngineError
from syncline.errors import InputError
from syncline.input import Input
from syncline.reading import Reading

from .ingest import Described, Outcome, ingest
from .spark import session
from .store import is_url, open_store

__all__ = ["Done", "ingest_all"]


@dataclass
class Done:
    """What became of a run."""

    path: str
    outcome: Outcome | None = None
    # The class of an error and its arguments: not every error can be sent from a worker.
    failure: tuple[str, tuple[Any, ...]] | None = None
    # (message, hint)
    warnings: list[tuple[str, str]] = field(default_factory=list)

    def error(self) -> Exception:
        """Returns the error that the task had."""
        assert self.failure is not None
        name, arguments = self.failure
        kinds = {"CoreError": _core.CoreError, "EngineError": EngineError, "OSError": OSError}
        return kinds.get(name, InputError)(*arguments)


@dataclass(frozen=True)
class _Task:
    dataset: str
    reading: Reading
    described: Described

    def __call__(self, run: Input) -> Done:
        done = Done(run.path)
        reading = dataclasses.replace(
            self.reading, warn=lambda message, hint: done.warnings.append((message, hint))
        )
        try:
            done.outcome = ingest(run, open_store(self.dataset), reading, self.described)
        except _core.CoreError as error:
            done.failure = ("CoreError", error.args)
        except EngineError as error:
            done.failure = ("EngineError", (error.message, error.hint))
        except InputError as error:
            done.failure = ("InputError", (error.message, error.hint))
        except OSError as error:
            done.failure = ("OSError", (error.errno, error.strerror, error.filename))
        return done


def _ignore(message: str, hint: str) -> None:
    """Drops a warning. It stands in for `Reading.warn` on the way to a worker, to which a lambda could not be sent."""


def ingest_all(
    runs: Sequence[Input], dataset: str, reading: Reading, described: Described, master: str
) -> Iterator[Done]:
    """Adds runs to a dataset. The workers must reach the runs and the dataset under the same names.

    Raises:
        EngineError: Spark cannot be used, or a task failed several times.
    """
    if not runs:
        return
    # A worker may have another working folder, so it gets absolute paths; `named` has for each the path that the caller gave.
    given = {run.absolute(): run.path for run in runs}
    named = {run.path: path for run, path in given.items()}
    target = dataset if is_url(dataset) else str(Path(dataset).absolute())
    reading = dataclasses.replace(reading, warn=_ignore)
    if reading.marks is not None:
        reading = dataclasses.replace(reading, marks=str(Path(reading.marks).absolute()))
    with session(master) as engine:
        done = engine.map(_Task(target, reading, described), list(given))
    for one in done:
        one.path = named[one.path]
        yield one
