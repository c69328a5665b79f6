"""Builds the page of HTML reports as part of every wheel, sdist and editable install.

Everything else is declared in pyproject.toml. The page is JavaScript that esbuild bundles into one file. An sdist
contains the built page, so that building from it needs no Node.js.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import ExecError

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "converter" / "page"
PAGE = ROOT / "converter" / "syncline" / "report" / "page" / "page.html"
NODE_MAJOR = 20


def is_current() -> bool:
    """Returns whether the page is built from the sources as they are now."""
    if not PAGE.exists():
        return False
    if (ROOT / "PKG-INFO").exists():  # An unpacked sdist. The times of its files say nothing.
        return True
    built = PAGE.stat().st_mtime
    return all(
        file.stat().st_mtime <= built
        for file in SOURCES.rglob("*")
        if file.is_file() and "node_modules" not in file.parts
    )


def fail(problem: str) -> ExecError:
    """The error of a build that cannot build the page."""
    return ExecError(
        f"cannot build the page of HTML reports ({PAGE.relative_to(ROOT)}, from {SOURCES.relative_to(ROOT)}/): {problem}\n"
        f"Install Node.js {NODE_MAJOR} or later with npm (https://nodejs.org, or apt-get install nodejs npm), then repeat "
        "the build. An sdist or a wheel of Syncline needs neither."
    )


def build_page() -> None:
    """Builds the page, unless it is current."""
    if is_current():
        return
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise fail(f"{program} was not found in PATH")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.", version.stdout)
    if not found or int(found[1]) < NODE_MAJOR:
        raise fail(f"node is too old: {(version.stdout or version.stderr).strip()}")
    for command in (
        ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"],
        ["npm", "run", "--silent", "build"],
    ):
        print(f"page: {' '.join(command)}", flush=True)
        done = subprocess.run(command, cwd=SOURCES, check=False)
        if done.returncode != 0:
            raise fail(
                f"`{' '.join(command)}` exited with {done.returncode}; its messages are above"
            )


class BuildPy(build_py):
    """Copies the package, after the page has been built."""

    def run(self) -> None:
        build_page()
        # setuptools lists the package's data files once. It may have done so before the page existed.
        self.__dict__.pop("data_files", None)
        super().run()


class Sdist(sdist):
    """Packs the sources, together with the built page."""

    def run(self) -> None:
        build_page()
        super().run()


setup(cmdclass={"build_py": BuildPy, "sdist": Sdist})
