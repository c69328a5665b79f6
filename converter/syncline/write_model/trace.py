"""The trace of a recording of writes, with what the model predicts of them."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.errors import InputError
from syncline.reading import Progress, Reading
from syncline.recordings import Recording

from .predict import Outcome, Predicted

__all__ = ["write_trace"]


def write_trace(
    path: str,
    recording: Recording | None,
    output: str,
    outcome: Outcome,
    reading: Reading,
    progress: Progress | None = None,
) -> None:
    """Writes the trace of the recording, with tracks of what is dirty, of the state of page cache, and of the writes.

    Args:
        path: the INPUT, for messages.
        recording: None for a table in CSV, which has nothing else that a trace shows.

    Raises:
        InputError: scenarios overlap, so no track can show what is dirty.
        CoreError: the input cannot be converted.
    """
    _check_scenarios(path, outcome.predicted)
    recordings = [] if recording is None else [recording]
    rows = [_row(one) for one in outcome.predicted]
    reading.convert(recordings, output, progress=progress, predicted_writes=(outcome.rules, rows))


def _row(one: Predicted) -> dict[str, int | str | None]:
    write = one.write
    return {
        "ts_ns": write.start_ns,
        "dur_ns": write.duration_ns,
        "kind": write.kind,
        "path": write.path,
        "offset": write.offset,
        "bytes": write.size,
        "predicted_ns": round(one.ns),
        "predicted_commit_ns": one.commit_ns,
        "naive_ns": round(one.naive_ns),
        "state": one.state,
        "predicted_dirty_bytes": round(one.dirty_bytes),
        "dirty_bytes": write.dirty_bytes,
        "scenario": write.scenario,
    }


def _check_scenarios(path: str, predicted: Sequence[Predicted]) -> None:
    """Checks that each scenario ends before the next one begins."""
    begun: list[str | None] = []
    end_ns = 0
    for write in (one.write for one in predicted):
        if not begun or write.scenario != begun[-1]:
            if write.scenario in begun or write.start_ns < end_ns:
                raise InputError(
                    f"{path}: the scenario '{write.scenario or ''}' overlaps another one, and a trace shows one page cache",
                    "write a table for each scenario, or give each scenario its own times",
                )
            begun.append(write.scenario)
        end_ns = max(end_ns, write.end_ns)
