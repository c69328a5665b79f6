"""Builds the page of HTML reports and the plugin for the Perfetto UI as part of every wheel, sdist and editable install.

Everything else is declared in pyproject.toml. Both are JavaScript that esbuild bundles into one file each. An sdist
contains the built files, so that building from it needs no Node.js.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import ExecError

ROOT = Path(__file__).resolve().parent
NODE_MAJOR = 20


@dataclass(frozen=True)
class Bundle:
    """A file that `npm run build` makes.

    `sources`: the folder of its package.json; `others`: folders that it reads too.
    """

    name: str
    sources: Path
    output: Path
    others: tuple[Path, ...] = ()

    def is_current(self) -> bool:
        """Returns whether the file is built from the sources as they are now."""
        if not self.output.exists():
            return False
        if (ROOT / "PKG-INFO").exists():  # An unpacked sdist. The times of its files say nothing.
            return True
        built = self.output.stat().st_mtime
        return all(
            file.stat().st_mtime <= built
            for folder in (self.sources, *self.others)
            for file in folder.rglob("*")
            if file.is_file() and not {"node_modules", "generated"} & {*file.parts}
        )

    def build(self) -> None:
        """Builds the file, unless it is current."""
        if self.is_current():
            return
        for program in ("node", "npm"):
            if shutil.which(program) is None:
                raise self.failed(f"{program} was not found in PATH")
        version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
        found = re.match(r"v(\d+)\.", version.stdout)
        if not found or int(found[1]) < NODE_MAJOR:
            raise self.failed(f"node is too old: {(version.stdout or version.stderr).strip()}")
        for command in (
            ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"],
            ["npm", "run", "--silent", "build"],
        ):
            print(f"{self.name}: {' '.join(command)}", flush=True)
            done = subprocess.run(command, cwd=self.sources, check=False)
            if done.returncode != 0:
                raise self.failed(
                    f"`{' '.join(command)}` exited with {done.returncode}; its messages are above"
                )

    def failed(self, problem: str) -> ExecError:
        """The error of a build that cannot make the file."""
        return ExecError(
            f"cannot build the {self.name} ({self.output.relative_to(ROOT)}, from"
            f" {self.sources.relative_to(ROOT)}/): {problem}\n"
            f"Install Node.js {NODE_MAJOR} or later with npm (https://nodejs.org, or apt-get install nodejs npm), then"
            " repeat the build. An sdist or a wheel of Syncline needs neither."
        )


BUNDLES = (
    Bundle(
        "page of HTML reports",
        ROOT / "converter" / "page",
        ROOT / "converter" / "syncline" / "report" / "page" / "page.html",
    ),
    Bundle(
        "plugin for the Perfetto UI",
        ROOT / "perfetto-ui-plugin",
        ROOT / "converter" / "syncline" / "ui" / "plugin" / "plugin.js",
        tuple(
            ROOT / "sql" / name for name in ("macros", "reports", "tables/perfetto", "views/plugin")
        ),
    ),
)


def build_bundles() -> None:
    """Builds what is not current."""
    for bundle in BUNDLES:
        bundle.build()


class BuildPy(build_py):
    """Copies the package, after the page and the plugin have been built."""

    def run(self) -> None:
        build_bundles()
        # setuptools lists the package's data files once. It may have done so before these files existed.
        self.__dict__.pop("data_files", None)
        super().run()


class Sdist(sdist):
    """Packs the sources, together with the built page and plugin."""

    def run(self) -> None:
        build_bundles()
        super().run()


setup(cmdclass={"build_py": BuildPy, "sdist": Sdist})
