"""How often each finding of `syncline advise` is true in the recordings of tests/data: the table in docs/reference/advice.md.

`python -m tools.alarms` writes it again. Whether a finding is true is in alarms.tsv, with the reason.
"""

from __future__ import annotations

import fnmatch
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pyarrow import parquet
from syncline import _core
from syncline.advice import load, names
from syncline.advice.run import _EVIDENCE, _OF_FILES, _is_checkable, _keep_shared, _select
from syncline.engine.attach import _FEW_FILES, _FEW_ROWS
from syncline.engine.run_files import RunFiles, of_folder
from syncline.errors import InputError
from syncline.formats import MANIFEST
from syncline.inputs import Reading, resolve
from syncline.report import catalogue, run_query
from syncline.report.opening import open_tables
from syncline.report.run import keep
from syncline.report.tables import SqlEngine

from tests import known_truth

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
PAGE = ROOT / "docs" / "reference" / "advice.md"
# Descriptions, programs, and what is read with another file.
_NO_RECORDING = {".md", ".py", ".sh", ".bt", ".xz", ".json", ".jsonl", ".csv", ".toml"}


def truths() -> list[tuple[str, str, str, str]]:
    """Returns the lines of alarms.tsv: pattern, finding, truth, reason."""
    lines = (ROOT / "tests" / "alarms.tsv").read_text().splitlines()
    found = []
    for line in lines:
        if not line.startswith("#"):
            pattern, finding, truth, why = line.split("\t")
            found.append((pattern, finding, truth, why))
    return found


def truth_of(recording: str, finding: str) -> str | None:
    """Returns `true`, `false` or `unknown` for a finding in a recording. None if alarms.tsv does not have it."""
    for pattern, name, truth, _ in truths():
        if name == finding and truth != "missed" and fnmatch.fnmatchcase(recording, pattern):
            return truth
    return None


def recordings(scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yields all recordings by name, those of known-truth/ unpacked into `scratch`.

    The recordings in missing/ repeat events of the others, so they would count twice.
    """
    for case in known_truth.names():
        yield f"known-truth/{case}", known_truth.unpacked(case, scratch)
    for path in sorted(DATA.rglob("*")):
        if DATA / "missing" in path.parents:
            continue
        if (path / MANIFEST).is_file() or (
            path.is_file()
            and path.suffix not in _NO_RECORDING
            and not any((parent / MANIFEST).is_file() for parent in path.parents)
        ):
            yield str(path.relative_to(DATA)), path


def statuses(runs: dict[str, Path]) -> dict[str, dict[str, str]]:
    """Returns what `advise` says of each finding in each run: `found`, `none` or `not checked`.

    An engine on one run takes longer to open, and to plan the SQL of the findings, than to run it. So each engine opens as many runs as
    it keeps in memory, and `run` says whose a row is.

    Args:
        runs: folders of tables, which this process has just written.
    """
    found: dict[str, dict[str, str]] = {}
    for group in _groups(runs):
        with open_tables(next(iter(runs.values())), runs=group, is_fresh=True) as engine:
            found |= _statuses_of_group(engine)
    return found


def _groups(runs: dict[str, Path]) -> Iterator[list[RunFiles]]:
    """Yields runs of so few rows and files together that the engine copies them into memory. Tables without rows are left out."""
    group: list[RunFiles] = []
    rows = files = 0
    for name, folder in runs.items():
        of_run = of_folder(folder, name)
        counts = {
            table: parquet.read_metadata(file).num_rows for table, file in of_run.tables.items()
        }
        kept = {
            table: file
            for table, file in of_run.tables.items()
            # The columns of the requests say what a run lacks.
            if table == "sync" or counts[table]
        }
        of_rows = sum(counts.values())
        if group and (rows + of_rows > _FEW_ROWS or files + len(kept) > _FEW_FILES):
            yield group
            group, rows, files = [], 0, 0
        group.append(RunFiles(name, kept))
        rows, files = rows + of_rows, files + len(kept)
    if group:
        yield group


def _statuses_of_group(engine: SqlEngine) -> dict[str, dict[str, str]]:
    """Does what `advise` does, for each run that an engine holds."""
    findings = [load(name) for name in names()]
    held = _held_by_run(engine, {need for finding in findings for need in finding.needs})
    # Runs with a sync whose length is known.
    timed = _runs(engine, "SELECT DISTINCT run FROM syncline_sync WHERE dur_ns IS NOT NULL")
    _keep_shared(engine, findings)
    found: dict[str, dict[str, str]] = {run: {} for run in held}
    for finding in findings:
        keep(engine, _EVIDENCE, _select(finding))
        evident = _runs(engine, f"SELECT DISTINCT run FROM {_EVIDENCE}")
        for run, has in held.items():
            status = "none" if run in timed else "not checked"
            if not _is_checkable(finding, has):
                status = "not checked"
            elif run in evident:
                status = "none" if _cost_of_run(engine, run) == 0 else "found"
            found[run][finding.name] = status
    return found


def _held_by_run(engine: SqlEngine, needs: Iterable[str]) -> dict[str, set[str]]:
    """Returns those needs that each run meets."""
    held: dict[str, set[str]] = defaultdict(set)
    for run, key, value in run_query(engine, "SELECT run, key, value FROM syncline_meta").rows:
        held[run].add(f"fact:{key}")
        if key == "phases_seen":
            held[run] |= {f"phase:{phase}" for phase in str(value).split(", ")}
    columns = sorted(need for need in needs if "." in need)
    for need in columns:
        table, _, column = need.partition(".")
        sql = f"SELECT DISTINCT run FROM syncline_{table} WHERE {column} IS NOT NULL"
        for run in _runs(engine, sql):
            held[run].add(need)
    of_files = _runs(engine, _OF_FILES.replace("SELECT 1", "SELECT DISTINCT run").replace("LIMIT 1", ""))  # fmt: skip
    for run in held.keys() - of_files:
        held[run] |= {"sync.path", "sync.ino"}
    return held


def _cost_of_run(engine: SqlEngine, run: str) -> int | None:
    evidence = f"SELECT * FROM {_EVIDENCE} WHERE run = '{run}'"
    sql = catalogue.read_sql("findings/evidence", "totals").replace("SELECT :evidence", evidence)
    (total,) = run_query(engine, sql).as_dicts()
    cost: int | None = total["cost_ns"]
    return cost


def _runs(engine: SqlEngine, sql: str) -> set[str]:
    return {run for (run,) in run_query(engine, sql).rows}


def table(scratch: Path, converted: Callable[[str], Path | None] = lambda name: None) -> str:
    """Counts the findings of all recordings. `converted` returns the tables of one that has been converted already."""
    runs: dict[str, Path] = {}
    (scratch / "runs").mkdir()
    for name, path in recordings(scratch):
        if there := converted(name):
            runs[name] = there
            continue
        folder = scratch / "runs" / str(len(runs))
        try:
            resolve(str(path)).write_tables(f"{folder}/", Reading())
        except (_core.CoreError, InputError):
            # Some hold no sync, which is an error.
            continue
        runs[name] = folder
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for name, of_run in statuses(runs).items():
        for finding, status in of_run.items():
            counts[finding]["checked"] += status != "not checked"
            if status == "found":
                truth = truth_of(name, finding)
                if truth is None:
                    raise SystemExit(f"{name}: {finding} is not in tests/alarms.tsv")
                counts[finding].update(["found", truth])
    for _, finding, truth, _ in truths():
        counts[finding]["missed"] += truth == "missed"
    columns = ("checked", "found", "true", "false", "unknown", "missed")
    lines = [f"| finding | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    for name in names():
        lines.append(
            f"| [{name}](#{name}) | {' | '.join(str(counts[name][key]) for key in columns)} |"
        )
    return "\n".join(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        made = table(Path(scratch))
    begin, end = "<!-- alarms -->", "<!-- end -->"
    text = PAGE.read_text()
    pattern = re.compile(rf"{begin}\n.*?{end}", re.S)
    assert pattern.search(text), f"{PAGE} has no {begin}"
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n{made}\n{end}", text))
    print(made)


if __name__ == "__main__":
    main()
