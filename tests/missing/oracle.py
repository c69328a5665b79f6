"""Compares what is left of a recording with the whole."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from syncline import _core

Row = dict[str, Any]
Tables = dict[str, list[Row]]

TABLES = ("sync", "bio", "call", "wait", "phase", "journal", "loss")
# Keys, which count rows, and what the others are compared through.
KEYS = {"sync_id", "call_sync_id", "bio_id", "call_id", "commit_id", "number", "run", "_sync"}
# What a row says of itself. A lower confidence, and a reason for what is missing, are right where something is.
OF_ITSELF = {"confidence", "incomplete", "unmatched"}


# Phases that say less than others, and are right where what distinguishes those is missing.
STATES = ("cpu wait", "lock wait")
STEPS = ("earlier commit", "commit start", "commit locking", "commit flushing", "commit logging")
COARSE = {
    "writeback": ("queue", "device"),
    "commit wait": (*STATES, *STEPS),
    **dict.fromkeys(("flush", "fast commit", "fast commit wait", "commit"), STATES),
}


@dataclass(frozen=True)
class Violation:
    """A figure that is marked exact and complete and is not that of the complete recording."""

    column: str
    """`table.column`, or `table.new`, `table.lost` for a row, or the name of a rule of conservation."""
    expected: Any
    actual: Any
    where: str
    silent: bool
    """No loss was counted that the complete recording does not have."""


def convert(folder: Path, data: bytes, source: str, name: str = "in", **options: str) -> Tables:
    """The tables of a log. Raises CoreError if the core refuses it."""
    path = folder / name
    path.write_bytes(data)
    out = f"{folder}/out/"
    _core.convert([str(path)], out, source=source, is_temporary=True, **options)
    return {
        table: pq.ParquetFile(f"{out}syncline_{table}.parquet").read(use_threads=False).to_pylist()
        for table in TABLES
    }


def empty() -> Tables:
    """What a log without any event says."""
    return {table: [] for table in TABLES}


def end(row: Row) -> int | None:
    """When the row ends, if its duration is known."""
    return None if row["dur_ns"] is None else row["ts_ns"] + row["dur_ns"]


def claims(row: Row) -> bool:
    """Whether the row is marked exact and complete. Rows of calls, and of background writeback, have no confidence: they say what was recorded."""
    return row.get("incomplete") is None and row.get("confidence") != "inferred"


def is_other(row: Row, expected: Row) -> bool:
    """Whether the row is marked as something else than what it is in the complete recording: as a request of the block layer, whose bios are
    not known, or as one that only its call shows.
    """
    is_call = row.get("confidence") == "unknown" != expected.get("confidence")
    return is_call or (row.get("is_request", False) and not expected["is_request"])


def _match(
    whole: list[Row], part: list[Row], score: Any, same: Any
) -> tuple[dict[int, Row], list[Row], list[Row]]:
    """Pairs rows, the best pairs first. `same` gives values of a row; rows that share none of them are no pair."""
    by_key: dict[Any, list[int]] = defaultdict(list)
    for at, row in enumerate(whole):
        for key in same(row):
            by_key[key].append(at)
    pairs = []
    for at, row in enumerate(part):
        for other in {other for key in same(row) for other in by_key[key]}:
            points = score(whole[other], row)
            if points > 0:
                pairs.append((points, -abs(whole[other]["ts_ns"] - row["ts_ns"]), other, at))
    pairs.sort(key=lambda pair: (-pair[0], -pair[1], pair[2], pair[3]))
    of_whole: set[int] = set()
    of_part: dict[int, Row] = {}
    for _, _, other, at in pairs:
        if other not in of_whole and at not in of_part:
            of_whole.add(other)
            of_part[at] = whole[other]
    lost = [row for at, row in enumerate(whole) if at not in of_whole]
    new = [row for at, row in enumerate(part) if at not in of_part]
    return of_part, lost, new


def _equal(a: Any, b: Any) -> bool:
    return a is not None and a == b


def _within(inner: Row, outer: Row) -> bool:
    last = end(outer)
    return outer["ts_ns"] <= inner["ts_ns"] and (last is None or inner["ts_ns"] <= last)


def _score_sync(whole: Row, part: Row) -> int:
    points = 0
    if _equal(whole["start_ns"], part["start_ns"]):
        points += 8
    if _equal(end(whole), end(part)):
        points += 6
    if whole["ts_ns"] == part["ts_ns"]:
        points += 6
    if _within(part, whole):
        points += 2
    # Ids of threads that come again are those of other requests: an id by itself is no match.
    if points and _equal(whole["id"], part["id"]):
        points += 8
    return points


def _score_bio(whole: Row, part: Row) -> int:
    points = 0
    if whole["ts_ns"] == part["ts_ns"]:
        points += 8
    if _equal(end(whole), end(part)):
        points += 6
    if _within(part, whole) or (part["dur_ns"] is not None and _within(whole, part)):
        points += 1
    if not points:
        return 0
    for column, value in (("bio", 4), ("sector", 4), ("tid", 1), ("bytes", 1), ("id", 2)):
        if _equal(whole[column], part[column]):
            points += value
        elif whole[column] is not None and part[column] is not None and column in ("bio", "sector"):
            points -= 3
    if _equal(whole.get("_sync"), part.get("_sync")):
        points += 2
    return points


def _score_times(whole: Row, part: Row) -> int:
    return (
        8 * (whole["ts_ns"] == part["ts_ns"])
        + 6 * _equal(end(whole), end(part))
        + (1 if _within(part, whole) else 0)
    )


class Comparison:
    """Compares the tables of a complete recording with those of a part of it."""

    def __init__(self, whole: Tables, part: Tables, span: tuple[int, int] | None = None) -> None:
        """`span`: the times of the first and the last event that is left, if the others are before and after it."""
        self.whole, self.part, self.span = whole, part, span
        self.violations: list[Violation] = []
        before = {row["reason"]: row["count"] for row in whole["loss"]}
        self.new_losses = {
            row["reason"]: row["count"] - before.get(row["reason"], 0)
            for row in part["loss"]
            if row["count"] > before.get(row["reason"], 0)
        }
        severity = {row["reason"]: row["severity"] for row in part["loss"]}
        self.silent = not any(severity[reason] == "loss" for reason in self.new_losses)
        self.run()

    def add(self, column: str, expected: Any, actual: Any, where: str) -> None:
        self.violations.append(Violation(column, expected, actual, where, self.silent))

    def run(self) -> None:
        whole, part = self.whole, self.part
        syncs, lost, new = _match(
            whole["sync"], part["sync"], _score_sync, lambda row: [row["tid"]]
        )
        self.syncs = {part["sync"][at]["sync_id"]: row for at, row in syncs.items()}
        self._rows("sync", part["sync"], syncs, lost, new)
        claimed = {row["sync_id"]: row for row in part["sync"] if claims(row)}
        self._groups(claimed)

        commits, lost, new = _match(
            whole["journal"],
            part["journal"],
            _score_times,
            lambda row: [(row["kind"], row["transaction_id"])],
        )
        self.commits = {
            part["journal"][at]["commit_id"]: row["commit_id"] for at, row in commits.items()
        }
        self._rows("journal", part["journal"], commits, lost, new, self._requests_of_commit)

        calls, lost, new = _match(
            whole["call"], part["call"], _score_times, lambda row: [(row["tid"], row["op"])]
        )
        self._rows("call", part["call"], calls, lost, new)

        whole_bios = [{**row, "_sync": row["sync_id"]} for row in whole["bio"]]
        part_bios = [{**row, "_sync": self._sync(row["sync_id"])} for row in part["bio"]]
        bios, lost, new = _match(
            whole_bios,
            part_bios,
            _score_bio,
            lambda row: (
                [("bio", row["bio"])] * (row["bio"] is not None)
                + [("sector", row["dev"], row["sector"])] * (row["sector"] is not None)
                + [("ts", row["ts_ns"])]
            ),
        )
        self._rows("bio", part_bios, bios, lost, new, self._request_of_bio)

        self._waits(claimed)
        self._phases(claimed)
        self._cpu_users(claimed)
        self._conservation()

    def _sync(self, sync_id: int | None) -> int | None:
        """The request of the complete recording."""
        return self.syncs[sync_id]["sync_id"] if sync_id in self.syncs else None

    def _rows(
        self,
        table: str,
        rows: list[Row],
        pairs: dict[int, Row],
        lost: list[Row],
        new: list[Row],
        further: Any = None,
    ) -> None:
        for at, expected in pairs.items():
            row = rows[at]
            if not claims(row) or is_other(row, expected):
                continue
            for column, value in row.items():
                if column in KEYS or column in OF_ITSELF or value is None:
                    continue
                if value != expected[column]:
                    self.add(f"{table}.{column}", expected[column], value, self._place(row))
            if further:
                further(row, expected)
        for row in new:
            if claims(row) and not row.get("is_request"):
                self.add(f"{table}.new", None, self._place(row), self._place(row))
        if not self.new_losses:
            for row in lost:
                if self._is_in_span(row):
                    self.add(f"{table}.lost", self._place(row), None, self._place(row))

    def _is_in_span(self, row: Row) -> bool:
        if self.span is None:
            return True
        first, last = self.span
        return row["ts_ns"] <= last and (end(row) or row["ts_ns"]) >= first

    @staticmethod
    def _place(row: Row) -> str:
        parts = [f"{row['ts_ns']}"]
        for column in ("tid", "comm", "op", "id", "bio", "dev", "sector", "transaction_id"):
            if row.get(column) is not None:
                parts.append(f"{column} {row[column]}")
        return " ".join(parts)

    def _groups(self, claimed: dict[int, Row]) -> None:
        """Requests are of one call if they are in the complete recording, and only then: a call is counted once."""
        known = [
            (sync["call_sync_id"], self.syncs[sync_id]["call_sync_id"], sync)
            for sync_id, sync in claimed.items()
            if sync["call_sync_id"] is not None and sync_id in self.syncs
        ]
        of_part: dict[int, int | None] = {}
        of_whole: dict[int | None, int] = {}
        for call, expected, sync in known:
            if of_part.setdefault(call, expected) != expected:
                self.add("sync.call_sync_id", expected, of_part[call], self._place(sync))
            elif of_whole.setdefault(expected, call) != call:
                self.add("sync.call_sync_id", of_whole[expected], call, self._place(sync))

    def _request_of_bio(self, row: Row, expected: Row) -> None:
        """A bio says whose it is by `sync_id`, and that it is nobody's by `origin`."""
        if row["sync_id"] is not None and row["_sync"] != expected["sync_id"]:
            self.add("bio.sync_id", expected["sync_id"], row["_sync"], self._place(row))
        if (
            row["commit_id"] is not None
            and self.commits.get(row["commit_id"]) != expected["commit_id"]
        ):
            self.add("bio.commit_id", expected["commit_id"], row["commit_id"], self._place(row))

    def _requests_of_commit(self, row: Row, expected: Row) -> None:
        """A sync whose start is lost may be in several rows, which are marked, and are of one call."""
        call = next(
            (
                sync["call_sync_id"]
                for sync in self.part["sync"]
                if sync["sync_id"] == row["sync_id"]
            ),
            None,
        )
        of_call = [
            self._sync(sync["sync_id"])
            for sync in self.part["sync"]
            if sync["call_sync_id"] == call is not None
            and (sync["sync_id"] == row["sync_id"] or not claims(sync))
        ]
        if row["sync_id"] is not None and expected["sync_id"] not in of_call:
            self.add("journal.sync_id", expected["sync_id"], row["sync_id"], self._place(row))

    def _waits(self, claimed: dict[int, Row]) -> None:
        """Waits of requests whose sums are known, and of those only."""
        of: dict[int, list[Row]] = defaultdict(list)
        for row in self.whole["wait"]:
            of[row["sync_id"]].append(row)
        left: dict[int, list[Row]] = defaultdict(list)
        for row in self.part["wait"]:
            left[row["sync_id"]].append(row)
        for sync_id, sync in claimed.items():
            expected = self.syncs.get(sync_id)
            if expected is None:
                continue
            key = lambda row: (row["wait"], row["ts_ns"], row["dur_ns"], row["transaction_id"])  # noqa: E731
            before, after = (
                Counter(map(key, rows)) for rows in (of[expected["sync_id"]], left[sync_id])
            )
            for wait in after - before:
                self.add("wait.new", None, wait, self._place(sync))
            # A sum that is null says that a wait may be missing.
            if None not in (sync["journal_ns"], sync["flush_ns"]):
                for wait in before - after:
                    self.add("wait.lost", wait, None, self._place(sync))

    def _phases(self, claimed: dict[int, Row]) -> None:
        """Time that nothing explains is residue. No other phase takes its place."""
        sums: dict[int, Counter[str]] = defaultdict(Counter)
        for row in self.whole["phase"]:
            sums[row["sync_id"]][row["phase"]] += row["dur_ns"]
        left: dict[int, Counter[str]] = defaultdict(Counter)
        for row in self.part["phase"]:
            left[row["sync_id"]][row["phase"]] += row["dur_ns"]
        for sync_id, sync in claimed.items():
            expected = self.syncs.get(sync_id)
            if expected is None or not sums[expected["sync_id"]]:
                continue
            before = sums[expected["sync_id"]]
            for phase, length in left[sync_id].items():
                finer = [
                    part for part in COARSE.get(phase, ()) if before[part] > left[sync_id][part]
                ]
                most = before[phase] + sum(before[part] - left[sync_id][part] for part in finer)
                if phase != "residue" and length > most:
                    self.add(f"phase.{phase}", most, length, self._place(sync))

    def _cpu_users(self, claimed: dict[int, Row]) -> None:
        """Nobody is certain to have had the CPU of a sync for longer than it had that."""
        had: dict[int, Counter[int]] = defaultdict(Counter)
        for row in self.whole["phase"]:
            if row["cpu_tid"] is not None:
                had[row["sync_id"]][row["cpu_tid"]] += row["dur_ns"]
        left: dict[int, Counter[int]] = defaultdict(Counter)
        for row in self.part["phase"]:
            if row["cpu_confidence"] == "exact":
                left[row["sync_id"]][row["cpu_tid"]] += row["dur_ns"]
        for sync_id, sync in claimed.items():
            expected = self.syncs.get(sync_id)
            for tid, length in left[sync_id].items() if expected is not None else ():
                most = had[expected["sync_id"]][tid]
                if length > most:
                    self.add("phase.cpu_tid", most, length, self._place(sync))

    def _conservation(self) -> None:
        part = self.part
        for table in ("sync", "bio", "call", "wait", "phase", "journal"):
            for row in part[table]:
                for column, value in row.items():
                    # Negative if a bio completed after its request.
                    if (
                        column.endswith("_ns")
                        and column != "after_complete_ns"
                        and value is not None
                        and value < 0
                    ):
                        self.add(f"negative {table}.{column}", 0, value, str(row["ts_ns"]))
        bios: dict[int, list[Row]] = defaultdict(list)
        for row in part["bio"]:
            # A flush is in no count of bios.
            if row["sync_id"] is not None and row["direction"] not in ("flush", "read"):
                bios[row["sync_id"]].append(row)
        lengths: Counter[int] = Counter()
        for row in part["phase"]:
            lengths[row["sync_id"]] += row["dur_ns"]
        by_thread: dict[int, list[Row]] = defaultdict(list)
        for sync in part["sync"]:
            own = bios[sync["sync_id"]]
            place = self._place(sync)
            if sync["bios"] is not None and sync["bios"] != len(own):
                self.add("sum of bios", len(own), sync["bios"], place)
            sizes = [row["bytes"] for row in own]
            if sync["bytes"] is not None and None not in sizes and sync["bytes"] != sum(sizes):
                self.add("sum of bytes", sum(sizes), sync["bytes"], place)
            if (
                lengths[sync["sync_id"]]
                and sync["start_ns"] is not None
                and sync["dur_ns"] is not None
            ):
                length = sync["ts_ns"] + sync["dur_ns"] - sync["start_ns"]
                if lengths[sync["sync_id"]] != length:
                    self.add("sum of phases", length, lengths[sync["sync_id"]], place)
            if sync["tid"] is not None:
                by_thread[sync["tid"]].append(sync)
        for rows in by_thread.values():
            rows.sort(key=lambda row: row["ts_ns"])
            for first, second in itertools.pairwise(rows):
                if (end(first) or first["ts_ns"]) > second["ts_ns"]:
                    self.add("overlap", end(first), second["ts_ns"], self._place(second))


def compare(whole: Tables, part: Tables, span: tuple[int, int] | None = None) -> list[Violation]:
    """The violations in the rows of a part of a recording."""
    return Comparison(whole, part, span).violations


def is_complete(tables: Tables, ignoring: Iterable[str] = ()) -> list[str]:
    """What is incomplete in a recording that should be complete."""
    return [
        f"{table} {row['ts_ns']} {row['incomplete']}"
        for table in ("sync", "bio", "journal")
        for row in tables[table]
        if row["incomplete"] is not None
    ] + [
        row["reason"]
        for row in tables["loss"]
        if row["severity"] == "loss" and row["reason"] not in ignoring
    ]
