"""The recorder as one file: a zip archive of the modules that record, which any Python from 3.9 on runs."""

from __future__ import annotations

import ast
import io
import shlex
import zipfile
from importlib import metadata
from pathlib import Path

from syncline.record import probes

# Python runs this file of the archive, or a server's Python calls `serve.main`.
_MAIN = """import sys

if sys.version_info < (3, 9):
    sys.exit("syncline: the recorder needs Python 3.9 or later, and this is " + sys.version.split()[0])
from syncline.record.program import main

main()
"""
_SHEBANG = b"#!/usr/bin/python3 -IS\n"
_ROOT = Path(__file__).parents[1]
_BEGIN = ("syncline.record.program", "syncline.record.serve", "syncline.record.guard")
# The compiled part, and what only an installed Syncline needs.
_STAY = {"syncline._core", "syncline.structured"}
# The same bytes for the same modules.
_DATE = (1980, 1, 1, 0, 0, 0)
NO_PYTHON = "syncline: no python"
_PYTHONS = [f"python3{suffix}" for suffix in ("", *(f".{n}" for n in range(14, 8, -1)))]
# Runs the archive that standard input begins with, from memory. In one line, because some shells take no more.
_BOOT = (
    'import os,sys;f=open(os.dup(0),"rb");n=int(f.readline()or sys.exit(1));m=os.memfd_create("syncline");'
    'w=open(m,"wb",closefd=False);w.write(f.read(n));w.close();'
    'sys.path.insert(0,"/proc/self/fd/%d"%m);from syncline.record.serve import main;main(f)'
)


def modules() -> dict[str, Path]:
    """Returns the files of the modules that travel, by their names in the archive."""
    found: dict[str, Path] = {}
    todo = [*_BEGIN]
    while todo:
        name = todo.pop()
        file = _file(name)
        if name in _STAY or file is None or str(file.relative_to(_ROOT.parent)) in found:
            continue
        found[str(file.relative_to(_ROOT.parent))] = file
        # The package itself offers all of Syncline, to those who ask for it.
        if name != "syncline":
            todo += _imported(file)
    return dict(sorted(found.items()))


def _file(name: str) -> Path | None:
    path = _ROOT.parent.joinpath(*name.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _imported(file: Path) -> list[str]:
    """Returns the modules of Syncline that a file may import."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("syncline"):
            parts = node.module.split(".")
            found += [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def archive() -> bytes:
    """Returns the archive."""
    version = metadata.version("syncline")
    files = {name: file.read_bytes() for name, file in modules().items()}
    files["__main__.py"] = _MAIN.encode()
    files[f"syncline/record/{probes.JSON}"] = probes.as_json()
    facts = f"Metadata-Version: 2.1\nName: syncline\nVersion: {version}\n"
    files[f"syncline-{version}.dist-info/METADATA"] = facts.encode()
    out = io.BytesIO(_SHEBANG)
    out.seek(0, io.SEEK_END)
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, data in files.items():
            packed.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def script() -> str:
    """Returns the shell script that finds a Python on a server and lets it run what standard input begins with."""
    boot, is_old = shlex.quote(_BOOT), shlex.quote("import sys;sys.exit(sys.version_info<(3,9))")
    pythons = " ".join([*_PYTHONS, "/usr/libexec/platform-python"])
    return (
        f'for p in {pythons}; do if "$p" -I -S -c {is_old} </dev/null >/dev/null 2>&1; then'
        f' exec "$p" -I -S -c {boot}; fi; done; echo "{NO_PYTHON}: $(python3 --version 2>&1)"; exit 77'
    )
