"""Runs the commands that README.md and docs/ show: `python -m tools.examples` writes the outputs that README.md and docs/guides/ show again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests import known_truth

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
WITH_COMMANDS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("guides/*.md")),
    *sorted((ROOT / "docs").glob("reference/*.md")),
]
WITH_OUTPUT = [page for page in WITH_COMMANDS if page.parent.name != "reference"]

BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```", re.M | re.S)
# Recording needs root, `open` and `diff` on a folder of one's own need what a checkout does not have.
FIXTURE = re.compile(r"\btests/data/|\bkernel-patch/samples/|\bdemo/")
NEVER = re.compile(r"\bsudo\b|\brecord\b|\bopen\b|\bstrace -f\b|guest\.py|trace_processor")


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block with `$` prompts, each with the output that follows it."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            line, _, output = output.partition("\n")
            command = f"{command[:-1]}{line.strip()}"
        yield command, output


def steps(page: Path) -> Iterator[tuple[str, str | None]]:
    """Commands of a page that a checkout can run, and the outputs that it shows."""
    made: set[str] = set()
    for kind, block in BLOCK.findall(page.read_text()):
        pairs = (
            commands(block)
            if kind == "console"
            else ((line, "") for line in block.splitlines() if line.startswith("syncline "))
        )
        for command, output in pairs:
            known = FIXTURE.search(command) or any(name in command for name in made)
            if NEVER.search(command) or not (known or command == "syncline doctor"):
                continue
            made.update(re.findall(r"(?:-o|--into|-C) (\S+)", command))
            # What `doctor` prints depends on the machine.
            yield command, None if command == "syncline doctor" else output or None


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "200"}
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def trimmed(output: str) -> str:
    return "\n".join(line.rstrip() for line in output.strip("\n").splitlines())


def a_checkout(folder: Path) -> Path:
    for name in ("tests", "kernel-patch", "sql"):
        (folder / name).symlink_to(ROOT / name)
    # As `make demo` leaves it.
    (folder / "demo").mkdir()
    known_truth.unpacked("postgres-neighbour", folder / "demo")
    return folder


def write() -> None:
    for page in WITH_OUTPUT:
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder:
            a_checkout(Path(folder))
            for command, output in list(steps(page)):
                new = trimmed(run(command, Path(folder)).stdout)
                if output is not None:
                    text = text.replace(f"{command}\n{output}", f"{command}\n{new}\n", 1)
        page.write_text(text)


if __name__ == "__main__":
    write()
