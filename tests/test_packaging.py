"""The wheel in a fresh environment, away from the checkout; and what the README says, run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.coretools import DATA, ROOT

BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        str(folder),
        str(ROOT),
    ]
    # The target folder of the checkout has what is compiled already.
    env = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "converter" / "target")}
    subprocess.run(command, check=True, env=env)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_program_and_its_sql_and_nothing_else(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert [
        name for name in names if name.startswith("syncline/sql/reports/") and name.endswith(".sql")
    ]
    assert {
        f"syncline/sql/{file.relative_to(ROOT / 'sql')}"
        for ending in ("sql", "textproto")
        for file in (ROOT / "sql").rglob(f"*.{ending}")
    } <= set(names)
    assert all(name.startswith(("syncline/", "syncline-")) for name in names)
    assert "syncline/report/page/page.html" in names
    assert [name for name in names if name.endswith(".so")] == ["syncline/_core.abi3.so"]


def test_the_wheel_works_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)],
        check=True,
    )
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    work = tmp_path / "elsewhere"
    work.mkdir()
    (work / "small1.log").write_bytes((DATA / "small1.log").read_bytes())

    def syncline(*arguments: str) -> str:
        command = [str(python.with_name("syncline")), *arguments]
        return subprocess.run(
            command, cwd=work, env=env, capture_output=True, text=True, check=True
        ).stdout

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
    where = "import syncline.report.catalogue as c; print(c.sql_root())"
    root = subprocess.run(
        [python, "-c", where], cwd=work, env=env, capture_output=True, text=True, check=True
    ).stdout
    assert root.startswith(str(tmp_path / "venv"))


def readme_lines() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line.startswith("syncline ")]


def test_what_the_readme_says_runs(tmp_path: Path) -> None:
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


def test_the_demo_runs(tmp_path: Path) -> None:
    done = subprocess.run(["make", "demo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "syncs" in done.stdout
    assert "syncline open demo/small4-slowdisk.pftrace" in done.stdout


def test_pages_point_at_pages_that_are_there() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), (page.name, target)
