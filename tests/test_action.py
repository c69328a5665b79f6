"""The action for GitHub: its steps, run as a runner runs them, with and without a baseline, and where something is missing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.coretools import ROOT

yaml = pytest.importorskip("yaml")
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
DIFF = ROOT / "tests" / "data" / "diff"
BIN = Path(sys.executable).parent
_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


@dataclass
class Runner:
    """What GitHub's runner does with the steps of a composite action, as far as action.yml uses it."""

    folder: Path
    context: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)

    def value(self, text: str) -> str:
        return _EXPRESSION.sub(lambda found: self.known(found[1]), text)

    def known(self, name: str) -> str:
        if name.startswith("steps.compare.outputs."):
            return self.outputs.get(name.rpartition(".")[2], "")
        return self.context[name]

    def applies(self, condition: str) -> bool:
        """Conditions are `a == ''` and `a != ''`, joined by `&&`, and always()."""
        for part in condition.split("&&"):
            if part.strip() == "always()":
                continue
            name, compared, empty = part.split()
            assert empty == "''"
            if (self.known(name) == "") != (compared == "=="):
                return False
        return True

    def run(self, skip: tuple[str, ...] = ("Install Syncline",), **inputs: str) -> int:
        """Runs the steps, and returns the exit code of the first that fails. The test has installed Syncline already."""
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert not {*given} - {*ACTION["inputs"]}
        for name, said in ACTION["inputs"].items():
            self.context[f"inputs.{name}"] = given.get(name, said["default"])
        for name in ("github.base_ref", "github.token"):
            self.context.setdefault(name, "")
        failed = 0
        for step in ACTION["runs"]["steps"]:
            condition = step.get("if", "")
            if step["name"] in skip or not self.applies(condition or "always()"):
                continue
            if failed and "always()" not in condition:
                continue
            if "uses" in step:
                self.used.append(self.value(step["with"]["path"]))
                continue
            assert step["shell"] == "bash"
            failed = self.step(step) or failed
        return failed

    def step(self, step: dict[str, Any]) -> int:
        files = {name: self.folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}  # fmt: skip
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "PATH": f"{BIN}:{os.environ['PATH']}",
                "GITHUB_ACTION_PATH": str(ROOT),
                "RUNNER_TEMP": str(self.folder),
                "GITHUB_BASE_REF": self.context["github.base_ref"],
                "GITHUB_WORKFLOW": "writeback",
                **{name: str(file) for name, file in files.items()},
                **{name: self.value(text) for name, text in step["env"].items()},
                **self.env,
            },
        )
        self.log += done.stdout + done.stderr
        if files["GITHUB_OUTPUT"].exists():
            lines = files["GITHUB_OUTPUT"].read_text().splitlines()
            self.outputs = dict(line.split("=", 1) for line in lines)
        return done.returncode

    @property
    def summary(self) -> str:
        return (self.folder / "GITHUB_STEP_SUMMARY").read_text()


def test_a_regression_fails_the_job_and_is_in_its_summary(tmp_path: Path) -> None:
    runner = Runner(tmp_path, {"github.base_ref": "main"})
    code = runner.run(recordings=str(DIFF / "slower"), baseline=str(DIFF / "base"), diff_options="--by none")  # fmt: skip
    # As in docs/guides/ci.md: three rows of the gate got worse.
    assert code == 1
    assert runner.outputs["verdict"] == "regression"
    assert runner.outputs["exit-code"] == "1"
    assert "Regression: 3 of the 12 rows" in runner.summary
    suite = ET.parse(tmp_path / runner.outputs["junit"]).getroot()
    assert len(list(suite.iter("failure"))) == 5
    assert (
        "::error title=Syncline::regression: syscall_latency_avg 108 ms -> 298 ms (+176.8 %);"
        " syscall_latency_p50 79.3 ms -> 284 ms (+258.7 %); writeback_latency_avg 17.4 ms -> 63.8 ms (+265.6 %)."
        " The job summary says where" in runner.log
    )
    # The baseline of this commit and the results are kept although the job fails.
    assert runner.used == ["syncline-results/baseline.json.gz", "syncline-results/diff.*"]


def test_too_much_noise_may_pass(tmp_path: Path) -> None:
    given = {"recordings": str(DIFF / "same"), "baseline": str(DIFF / "base"), "diff_options": "--by none"}  # fmt: skip
    runner = Runner(tmp_path)
    assert runner.run(**given) == 5
    assert "::error title=Syncline::no verdict on whether fsync got slower" in runner.log
    runner = Runner(tmp_path)
    assert runner.run(**given, cant_tell="pass") == 0
    assert runner.outputs["verdict"] == "can't tell"
    assert "::warning title=Syncline::no verdict on whether fsync got slower" in runner.log


def test_the_base_branch_saves_a_baseline_that_a_pull_request_uses(tmp_path: Path) -> None:
    base = Runner(tmp_path)
    assert base.run(recordings=str(DIFF / "base")) == 0
    assert base.outputs["verdict"] == "baseline saved"
    assert base.used == ["syncline-results/baseline.json.gz"]
    assert "why fsync takes its time" in base.summary
    # `gh` gives a pull request the artifact of the base branch.
    tools = tmp_path / "tools"
    tools.mkdir()
    kept = tmp_path / "kept.json.gz"
    shutil.copy(tmp_path / "syncline-results/baseline.json.gz", kept)
    gh = tools / "gh"
    gh.write_text(f"""#!/bin/bash
    case "$1 $2" in
      "run list") [ "$*" = "run list --workflow writeback --branch main --status success --limit 1 --json databaseId --jq .[0].databaseId // empty" ] && echo 42 ;;
      "run download") [ "$3 $4 $5" = "42 --name syncline-baseline" ] && cp {kept} "$7/baseline.json.gz" ;;
    esac
    """)
    gh.chmod(0o755)
    (tmp_path / "GITHUB_OUTPUT").unlink()
    change = Runner(tmp_path, {"github.base_ref": "main"}, {"PATH": f"{tools}:{BIN}:{os.environ['PATH']}"})  # fmt: skip
    assert change.run(recordings=str(DIFF / "slower"), diff_options="--by none") == 1
    assert json.loads((tmp_path / "syncline-results/diff.json").read_text())
    assert change.outputs["verdict"] == "regression"


def test_a_pull_request_without_a_baseline(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gh").write_text("#!/bin/bash\nexit 0\n")
    (tools / "gh").chmod(0o755)
    path = {"PATH": f"{tools}:{BIN}:{os.environ['PATH']}"}
    runner = Runner(tmp_path, {"github.base_ref": "main"}, path)
    assert runner.run(recordings=str(DIFF / "base")) == 5
    assert "::error title=Syncline::there is no baseline: run this workflow on main once" in runner.log  # fmt: skip
    assert "no run of writeback has succeeded on main yet" in runner.log
    runner = Runner(tmp_path, {"github.base_ref": "main"}, path)
    assert runner.run(recordings=str(DIFF / "base"), missing_baseline="pass") == 0
    assert runner.outputs["verdict"] == "no baseline"
    runner = Runner(tmp_path)
    assert runner.run(recordings=str(DIFF / "base"), baseline="gone.json.gz") == 5
    assert "there is no baseline at gone.json.gz: make it before this action" in runner.log


def test_no_recordings(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    assert runner.run(recordings="runs/*") == 2
    assert "::error title=Syncline::there are no recordings at runs/*" in runner.log
    (tmp_path / "x.log").write_text("nothing\n")
    runner = Runner(tmp_path)
    assert runner.run(recordings="x.log") == 3
    assert "::error title=Syncline::the recordings at x.log cannot be read" in runner.log


def test_a_wheel_of_another_architecture(tmp_path: Path) -> None:
    wheel = tmp_path / "dist" / "syncline-0.1.0-cp311-abi3-linux_s390x.whl"
    wheel.parent.mkdir()
    wheel.write_text("")
    runner = Runner(tmp_path)
    assert runner.run(skip=("Compare",), wheel="dist/*.whl") == 2
    machine = os.uname().machine
    assert f"no wheel for this runner, which is {machine}: dist/{wheel.name}" in runner.log
    runner = Runner(tmp_path)
    assert runner.run(skip=("Compare",), wheel="nothing/*.whl") == 2
    assert "there is no wheel nothing/*.whl" in runner.log


def test_a_command_is_recorded(tmp_path: Path) -> None:
    """With strace, which needs no root; what `record` does is tested elsewhere."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    venv = tmp_path / "syncline-venv" / "bin"
    venv.mkdir(parents=True)
    (venv / "syncline").symlink_to(BIN / "syncline")
    program = (
        "import os; f = os.open('x', os.O_CREAT | os.O_WRONLY); os.write(f, b'1'); os.fsync(f)"
    )
    runner = Runner(tmp_path)
    code = runner.run(command=f'{sys.executable} -c "{program}"', runs="2")
    assert code == 0, runner.log
    assert sorted(path.name for path in (tmp_path / "syncline-results/new").iterdir()) == ["1", "2"]
    assert runner.outputs["verdict"] == "baseline saved"
    assert Runner(tmp_path).run(command="true", runs="many") == 2
    # A benchmark that fails is not compared.
    runner = Runner(tmp_path)
    assert runner.run(command="exit 3", runs="2") == 3
    assert "the command failed in run 1 with exit code 3" in runner.log
    assert [path.name for path in (tmp_path / "syncline-results/new").iterdir()] == ["1"]
