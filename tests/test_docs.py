"""Links between Markdown files resolve, and the commands that they show work.

`python -m tests.test_docs` writes the outputs that README.md and docs/guides/ show again, after a change in a report.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import known_truth, reports_page

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
).stdout.split()
PAGES = sorted(ROOT / name for name in TRACKED if (ROOT / name).exists())
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


def prose(text: str) -> str:
    """The text without its code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page, and explicit ones."""
    text = prose(page.read_text())
    found: dict[str, int] = {}
    names = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        count = found.get(name, 0)
        found[name] = count + 1
        names.add(f"{name}-{count}" if count else name)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text())):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


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
            made.update(re.findall(r"(?:-o|--into) (\S+)", command))
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


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_work_and_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    folder = a_checkout(tmp_path)
    for command, output in steps(page):
        done = run(command, folder)
        assert done.returncode == 0, (command, done.stdout)
        if output is not None and page in WITH_OUTPUT:
            assert trimmed(done.stdout) == trimmed(output), (
                f"{command}: `python -m tests.test_docs` writes the outputs again"
            )


def test_every_loss_reason_is_documented() -> None:
    core = (ROOT / "converter" / "core" / "src" / "losses" / "mod.rs").read_text()
    reasons = re.findall(r'^    \w+ "(\w+)" (Loss|Info)$', core, flags=re.M)
    page = (ROOT / "docs" / "reference" / "loss-reasons.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", page, flags=re.M)
    assert len(reasons) > 20
    assert [(name, severity.lower()) for name, severity in reasons] == rows


def test_the_page_of_reports_is_up_to_date() -> None:
    assert reports_page.PAGE.read_text() == reports_page.text(), "python -m tests.reports_page"
    assert {
        name
        for name in reports_page.MORE
        if not (reports_page.PAGE.parent / f"{name}.md").is_file()
    } == set()


def test_every_command_is_documented() -> None:
    listed = run("syncline --help", ROOT).stdout.partition("Commands:")[2]
    names = set(re.findall(r"^  (\w+) ", listed, flags=re.M))
    assert "record" in names
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    for text in (page, (ROOT / "README.md").read_text()):
        rows = re.findall(r"^\| `(?:syncline )?(\w+)", text, flags=re.M)
        assert names <= set(rows)


def test_the_index_has_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        name = str(page.relative_to(ROOT / "docs"))
        assert name == "README.md" or f"({name})" in index, name


def test_the_readme_has_commands() -> None:
    assert len(list(steps(ROOT / "README.md"))) >= 5


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
