"""Compares the reports of workloads with the counts of strace and the trace events of the file system."""

from __future__ import annotations

import json
import sys
from pathlib import Path

CALLS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")


def strace_counts(path: Path) -> dict[str, int]:
    """Reads the table of `strace -c -U name,calls`."""
    counts = {}
    for line in path.read_text().splitlines():
        words = line.split()
        if len(words) == 2 and words[0] in CALLS and words[1].isdigit():
            counts[words[0]] = int(words[1])
    return counts


def check(results: Path, name: str) -> tuple[list[str], str]:
    """Returns the errors of a case and a line that describes it."""
    errors = results / f"{name}.err"
    output = (
        (results / f"{name}.out").read_text().splitlines()
        if (results / f"{name}.out").exists()
        else []
    )
    if not output or not output[-1].startswith("{"):
        return [f"no report: {errors.read_text().strip()[-2000:]}"], ""
    truth = json.loads(output[-1])
    exact = truth["exact"]
    wrong = []

    def compare(what: str, reported: int, recorded: int) -> None:
        if recorded < reported or (exact and recorded != reported):
            wrong.append(f"{what}: reported {reported}, recorded {recorded}")

    seen_calls = strace_counts(results / f"{name}.strace")
    for call in CALLS:
        compare(call, truth["syncs"].get(call, 0), seen_calls.get(call, 0))
    requests = results / f"{name}.requests"
    seen_requests = ""
    if requests.exists():
        seen_requests = f", {requests.read_text().strip()} requests"
        compare("requests", truth["requests"], int(requests.read_text()))
    if truth.get("refused") is not None and sum(truth["errors"].values()) != truth["refused"]:
        wrong.append(
            f"errors: {truth['refused']} writes were rejected, {truth['errors']} were reported"
        )
    least = "" if exact else ">="
    calls = " ".join(f"{kind}{least or '='}{count}" for kind, count in truth["syncs"].items())
    seen = " ".join(f"{kind}={count}" for kind, count in seen_calls.items())
    return (
        wrong,
        f"{calls or 'no syncs'}; strace {seen or 'none'}{seen_requests}; {truth['wall_ms']} ms",
    )


def main() -> int:
    results = Path(sys.argv[1])
    names = sorted({path.name.rsplit(".", 1)[0] for path in results.iterdir()})
    failed = 0
    for name in names:
        wrong, line = check(results, name)
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'ok':6} {name}: {line}")
        for each in wrong:
            print(f"       {each}")
    print(f"truth: {len(names) - failed} passed, {failed} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
