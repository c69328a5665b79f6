"""The notices of the Rust crates that are linked into the wheel: converter/NOTICES.md.

python -m tests.lint.notices             fails if the file is out of date
python -m tests.lint.notices --write     writes it again

Crates are those of the platforms for which wheels are released. If a crate offers a choice of licences, the first in CHOICE is taken.

cargo-about would do the same, but no package has it: everybody who runs `make lint` would have to compile it, for minutes and with
hundreds of crates, while `cargo metadata` and the files in cargo's own cache are here already.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOTICES = ROOT / "converter" / "NOTICES.md"
PLATFORMS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin"]
CHOICE = ["Apache-2.0", "MIT", "BSD-3-Clause", "Zlib", "CDDL-1.0"]
# C sources that a crate compiles, and their licence.
BUNDLED = {
    "libdeflate-sys": ("libdeflate, the C library", "libdeflate/COPYING", "MIT"),
    "zstd-sys": ("zstd, the C library", "zstd/LICENSE", "BSD-3-Clause"),
}

HEAD = """\
# Third-party notices

The wheel's extension module, `syncline/_core.abi3.so`, contains these crates, the C libraries libdeflate and zstd, and
parts of the Rust standard library (MIT OR Apache-2.0, https://github.com/rust-lang/rust). Each licence is followed by
the crates that are used under it. The sources of each crate, those under the CDDL among them, are at the address next to its
name; none is changed. The page of HTML reports contains JavaScript packages, and their licences are in the page.

`python -m tests.lint.notices --write` writes this file.
"""

Package = dict[str, Any]


def linked(platform: str) -> dict[str, Package]:
    """The packages whose code is in the extension module: no build scripts, no procedural macros, no tests."""
    command = [
        "cargo",
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        platform,
    ]
    done = subprocess.run(
        command, cwd=ROOT / "converter", capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr}")
    metadata = json.loads(done.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found: dict[str, Package] = {}
    todo = [id for id in packages if packages[id]["name"] == "syncline-binding"]
    while todo:
        id = todo.pop()
        package = packages[id]
        if id in found or any("proc-macro" in target["kind"] for target in package["targets"]):
            continue
        found[id] = package
        normal = (
            d for d in nodes[id]["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"])
        )
        todo += [dependency["pkg"] for dependency in normal]
    return {id: package for id, package in found.items() if package["source"]}


def chosen(package: Package) -> list[str]:
    """The licences that apply: one of each choice."""
    expression = (package["license"] or "").replace("/", " OR ")
    licences = []
    for part in expression.split(" AND "):
        offered = [name.strip(" ()") for name in part.split(" OR ")]
        found = next((name for name in CHOICE if name in offered), None)
        if found is None:
            raise SystemExit(
                f"{package['name']} {package['version']} is under {expression!r}, none of {', '.join(CHOICE)}: "
                f"decide whether it may be linked, then add the licence to CHOICE in tests/lint/notices.py"
            )
        licences.append(found)
    return licences


def text_of(package: Package, licence: str) -> str:
    """The text of a licence as the crate has it."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(
        path for path in folder.iterdir() if re.match(r"licen[cs]e|copying", path.name, re.I)
    )
    named = [path for path in files if licence.split("-")[0].lower() in path.name.lower()]
    if not files:
        raise SystemExit(
            f"{package['name']} {package['version']} has no text of its licence, {licence}"
        )
    return (named or files)[0].read_text()


def split(text: str) -> tuple[list[str], str]:
    """The lines that name owners, and the rest: the text that crates share."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    is_owner = [
        bool(re.match(r"\s*(copyright \(c\)|copyright ©|copyright \d)", line, re.I))
        for line in lines
    ]
    owners = [line.strip() for line, owner in zip(lines, is_owner, strict=True) if owner]
    rest = "\n".join(line for line, owner in zip(lines, is_owner, strict=True) if not owner)
    return owners, re.sub(r"\n{3,}", "\n\n", rest).strip()


def shared(text: str) -> str:
    """What is equal in texts that differ in their line breaks and headings."""
    text = re.sub(r"^\W*(the )?(mit|zlib|bsd|apache)[^\n]*licen[cs]e[^\n]*\n", "", text, flags=re.I)
    return re.sub(r"[^a-z]+", " ", text.lower()).strip()


def notices() -> str:
    """The text of converter/NOTICES.md."""
    packages: dict[str, Package] = {}
    for platform in PLATFORMS:
        packages |= linked(platform)
    apache = (ROOT / "LICENSE").read_text()
    # Licence, its text without line breaks -> the text, and who uses it.
    groups: dict[tuple[str, str], tuple[str, list[str]]] = {}
    own: list[str] = []

    def add(licence: str, text: str, name: str) -> None:
        owners, rest = split(text) if licence != "Apache-2.0" else ([], apache.strip())
        users = groups.setdefault((licence, shared(rest)), (rest, []))[1]
        users.append(f"- {name}" + "".join(f"\n  {owner}" for owner in owners))

    for package in sorted(
        packages.values(), key=lambda package: (package["name"], package["version"])
    ):
        folder = Path(package["manifest_path"]).parent
        name = f"{package['name']} {package['version']}, {package['repository'] or package['homepage']}"
        for licence in chosen(package):
            text = apache if licence == "Apache-2.0" else text_of(package, licence)
            add(licence, text, name)
        if package["name"] in BUNDLED:
            title, file, licence = BUNDLED[package["name"]]
            add(licence, (folder / file).read_text(), f"{title}, in {name}")
        for file in sorted(folder.glob("NOTICE*")):
            text = file.read_text().strip()
            if text not in own:
                own.append(text)
    out = [HEAD]
    for (licence, _), (text, users) in sorted(
        groups.items(), key=lambda group: (CHOICE.index(group[0][0]), group[0][1])
    ):
        out += [f"## {licence}\n", "\n".join(users) + "\n", f"```text\n{text}\n```\n"]
    out += ["## Notices that crates carry\n", *(f"```text\n{text}\n```\n" for text in own)]
    return "\n".join(out)


def main() -> int:
    """Writes the file, or compares it."""
    text = notices()
    if "--write" in sys.argv[1:]:
        NOTICES.write_text(text)
    elif not NOTICES.exists() or NOTICES.read_text() != text:
        print(
            f"{NOTICES.relative_to(ROOT)} is out of date; run `python -m tests.lint.notices --write`"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
