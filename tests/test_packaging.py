"""The wheel and the sdist, built and installed from a clean checkout, and the commands of the README."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.coretools import DATA, ROOT

BIN = Path(sys.executable).parent
PAGE = "syncline/report/page/page.html"
PLUGIN = "syncline/ui/plugin/plugin.js"

# Runs cargo in ROOT, whose target folder is up to date, instead of in the copy.
CARGO = """\
#!/usr/bin/env bash
tree=$PWD
cd "$ROOT" && exec "$REAL_CARGO" "${@//$tree/$ROOT}"
"""


def sources() -> list[str]:
    """Returns the files of the checkout. Tests are omitted because no build needs them."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {name for name in listed.split("\0") if name and not name.startswith("tests/")}
    return sorted(name for name in names if (ROOT / name).is_file())


def copy_checkout(folder: Path) -> Path:
    """Copies the files that `git clone` would give: no page, no compiled core."""
    for name in sources():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def build(kind: str, tree: Path, out: Path, path: str) -> subprocess.CompletedProcess[str]:
    """Builds a `wheel` or an `sdist` from a tree, in a separate environment with the given PATH."""
    cargo = out / "cargo"
    out.mkdir(exist_ok=True)
    cargo.write_text(CARGO)
    cargo.chmod(0o755)
    env = {
        **os.environ,
        "PATH": path,
        "CARGO": str(cargo),
        "REAL_CARGO": shutil.which("cargo") or "cargo",
        "CARGO_TARGET_DIR": str(ROOT / "converter" / "target"),
        # Cargo compiles pyo3 again for each path of Python, and each build has an environment of its own. So they name the Python of `make`.
        "PYO3_PYTHON": str(BIN / "python3"),
        "PYTHON_SYS_EXECUTABLE": str(BIN / "python3"),
        "ROOT": str(ROOT),
    }
    command = [sys.executable, "-m", "build", f"--{kind}", "--outdir", str(out), str(tree)]
    return subprocess.run(command, env=env, cwd=out, capture_output=True, text=True, check=False)


def path_without_node(folder: Path) -> str:
    """Returns a PATH with every program except Node.js and npm."""
    folder.mkdir()
    for directory in os.environ["PATH"].split(":"):
        for program in Path(directory).glob("*") if Path(directory).is_dir() else ():
            if (
                program.name not in ("node", "nodejs", "npm")
                and not (folder / program.name).exists()
            ):
                (folder / program.name).symlink_to(program)
    return str(folder)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_checkout(tmp_path_factory.mktemp("packaging") / "checkout")


@pytest.fixture(scope="module")
def wheel(checkout: Path) -> Path:
    """Returns the wheel, built from a clean checkout."""
    out = checkout.parent / "wheel"
    assert not (checkout / "converter" / PAGE).exists()
    done = build("wheel", checkout, out, os.environ["PATH"])
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def sdist(wheel: Path, checkout: Path) -> Path:
    """Returns the sdist, built from the same checkout."""
    out = checkout.parent / "sdist"
    done = build("sdist", checkout, out, os.environ["PATH"])
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.tar.gz"))


def test_the_wheel_contains_the_program_and_nothing_else(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert [
        name for name in names if name.startswith("syncline/sql/reports/") and name.endswith(".sql")
    ]
    assert {
        f"syncline/sql/{file.relative_to(ROOT / 'sql')}"
        for ending in ("sql", "tsv", "toml", "json")
        for file in (ROOT / "sql").rglob(f"*.{ending}")
        # The plugin contains these.
        if "plugin" not in file.parts
    } <= set(names)
    assert all(name.startswith(("syncline/", "syncline-")) for name in names)
    assert {PAGE, PLUGIN} <= set(names)
    assert {"syncline/record/probes.toml", "syncline/AGENTS.md"} <= set(names)
    man = {Path(name).name for name in names if "/share/man/man1/" in name}
    assert man == {page.name for page in (ROOT / "man").glob("*.1")}
    assert [name for name in names if name.endswith(".so")] == ["syncline/_core.abi3.so"]
    licences = {name.split("/licenses/")[1] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE", "converter/NOTICES.md"}


def test_the_sdist_contains_everything_that_a_build_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = (
        "converter/core/",
        "converter/binding/",
        "converter/page/",
        "converter/syncline/",
        "sql/",
        "bpf/",
    )
    files = {"pyproject.toml", "setup.py", "NOTICE", "LICENSE", "converter/Cargo.lock"}
    files |= {"converter/Cargo.toml", "converter/.cargo/config.toml"}
    assert files | {name for name in sources() if name.startswith(needed)} <= names
    assert {f"converter/{PAGE}", f"converter/{PLUGIN}"} <= names
    assert not [name for name in names if "node_modules" in name or name.startswith("tests/")]


def test_a_wheel_from_the_sdist_needs_no_node(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    tree = next(tmp_path.iterdir())
    done = build("wheel", tree, tmp_path / "out", path_without_node(tmp_path / "bin"))
    assert done.returncode == 0, done.stdout + done.stderr
    made = zipfile.ZipFile(next((tmp_path / "out").glob("*.whl")))
    assert sorted(made.namelist()) == sorted(zipfile.ZipFile(wheel).namelist())
    for built in (PAGE, PLUGIN):
        assert made.read(built) == zipfile.ZipFile(wheel).read(built)


def test_a_build_without_node_names_what_is_missing(tmp_path: Path) -> None:
    tree = copy_checkout(tmp_path / "checkout")
    done = build("sdist", tree, tmp_path / "out", path_without_node(tmp_path / "bin"))
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert (
        "cannot build the page of HTML reports (converter/syncline/report/page/page.html, from"
        in output
    )
    assert "node was not found in PATH" in output
    assert "Install Node.js 20 or later with npm" in output


def test_every_command_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*install, "-c", ROOT / "constraints.txt", wheel], check=True)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    work = tmp_path / "elsewhere"
    work.mkdir()
    for name in ("small1.log", "small4.log"):
        (work / name).write_bytes((DATA / name).read_bytes())

    def syncline(*arguments: str, code: int = 0) -> str:
        command = [str(python.with_name("syncline")), *arguments]
        done = subprocess.run(
            command, cwd=work, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, (arguments, done.stderr)
        return done.stdout

    syncline("convert", "small1.log", "-o", "small1.pftrace")
    of_log, of_trace = (
        syncline("report", name, "--format", "csv") for name in ("small1.log", "small1.pftrace")
    )
    # The engines' doubles differ in the last digits.
    values = [
        [float(row.split(",")[2] or "nan") for row in text.splitlines()[1:]]
        for text in (of_log, of_trace)
    ]
    assert len(values[0]) > 30
    assert values[0] == pytest.approx(values[1], nan_ok=True)
    assert "syncs,all,50.0,count" in of_log
    syncline("report", "small1.log", "--html", "small1.html", "--base", "small1.pftrace")
    assert (work / "small1.html").stat().st_size > 300_000
    assert "50" in syncline("query", "small1.log", "SELECT count(*) FROM syncline_sync")
    assert "bpftrace" in syncline("inspect", "small1.log")
    syncline("flamegraph", "small4.log", "-o", "small4.svg")
    assert (work / "small4.svg").read_text().startswith("<?xml")
    syncline("baseline", "save", "small1.log", "-o", "base.json")
    syncline("diff", "base.json", "small1.log")
    assert "Usage" in syncline("open", "--help")
    assert "Usage" in syncline("record", "--help")
    assert "duckdb" in syncline("doctor").lower()
    where = "import syncline.report.catalogue as c; print(c.sql_root())"
    root = subprocess.run(
        [python, "-c", where], cwd=work, env=env, capture_output=True, text=True, check=True
    ).stdout
    assert root.startswith(str(tmp_path / "venv"))


def readme_lines() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line.startswith("syncline ")]


def test_the_commands_of_the_readme_work(tmp_path: Path) -> None:
    lines = readme_lines()
    assert len(lines) >= 5
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    for line in lines:
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout or "convert" in line


def test_the_demo_works(tmp_path: Path) -> None:
    done = subprocess.run(["make", "demo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "neighbour" in done.stdout
    assert "syncline open demo/postgres-neighbour.pftrace" in done.stdout


def test_links_between_pages_have_existing_targets() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), (page.name, target)
