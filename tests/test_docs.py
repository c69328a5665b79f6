"""Links between Markdown files resolve, and the commands that they show work."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.test_commands import run_line
from tools import reports_page
from tools.examples import WITH_COMMANDS, WITH_OUTPUT, a_checkout, run, steps, trimmed

ROOT = Path(__file__).parents[1]
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
).stdout.split()
PAGES = sorted(ROOT / name for name in TRACKED if (ROOT / name).exists())


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


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_work_and_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    folder = a_checkout(tmp_path)
    for command, output in steps(page):
        # What is compared is written as by a shell.
        done = (run if page in WITH_OUTPUT else run_line)(command, folder)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        if output is not None and page in WITH_OUTPUT:
            assert trimmed(done.stdout) == trimmed(output), (
                f"{command}: `python -m tools.examples` writes the outputs again"
            )


def test_every_loss_reason_is_documented() -> None:
    core = (ROOT / "converter" / "core" / "src" / "losses" / "mod.rs").read_text()
    reasons = re.findall(r'^    \w+ "(\w+)" (Loss|Info)$', core, flags=re.M)
    page = (ROOT / "docs" / "reference" / "loss-reasons.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", page, flags=re.M)
    assert len(reasons) > 20
    assert [(name, severity.lower()) for name, severity in reasons] == rows


def test_the_page_of_reports_is_up_to_date() -> None:
    assert reports_page.PAGE.read_text() == reports_page.text(), "python -m tools.reports_page"
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
