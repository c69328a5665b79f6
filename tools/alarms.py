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

from syncline import _core
from syncline.advice import Advice, advise, names
from syncline.errors import InputError
from syncline.formats import MANIFEST
from syncline.inputs import Reading, opened

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


def advice_of(name: str, path: Path) -> Iterable[Advice]:
    """Runs all findings on a recording."""
    with opened(str(path), Reading()) as engine:
        return advise(engine, explains=False)


def table(scratch: Path, advice_of: Callable[[str, Path], Iterable[Advice]] = advice_of) -> str:
    """Counts the findings of all recordings."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for name, path in recordings(scratch):
        try:
            found = advice_of(name, path)
        except (_core.CoreError, InputError):
            # Some hold no sync, which is an error.
            continue
        for one in found:
            counts[one.finding.name]["checked"] += one.status != "not checked"
            if one.syncs:
                truth = truth_of(name, one.finding.name)
                if truth is None:
                    raise SystemExit(f"{name}: {one.finding.name} is not in tests/alarms.tsv")
                counts[one.finding.name].update(["found", truth])
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
