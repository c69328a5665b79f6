"""Checks the direction of imports: no circles between files, and no file imports from a layer above its own.

python -m tests.lint.imports        checks the core and the package; prints `file:line: ...` for each finding

RUST and PYTHON list the layers, lowest first. A file may import from its own layer and from those below it.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Lowest first. A name covers the file and the folder of that name; of two names that fit, the longer one counts.
RUST_ROOT = ROOT / "converter" / "core" / "src"
RUST = [
    [
        "names",
        "event",
        "recorder_tables",
        "collections",
        "error",
        "location",
        "losses",
        "output",
        "trace_layout",
        "stacks",
    ],
    # lib.rs lists the modules, which is no import, and defines constants.
    ["lib"],
    ["rows", "block"],
    ["input_file"],
    ["source"],
    # A sink is given rows, and events as the source read them. Pairing writes to the `Sink` trait.
    ["sink"],
    ["input"],
    # It reads what a sink wrote, and writes it to another one.
    ["own_trace"],
    ["merge"],
    ["dedup"],
    ["pair"],
    ["options", "summary"],
    ["pipeline"],
    ["run"],
]

PYTHON_ROOT = ROOT / "converter" / "syncline"
PYTHON = [
    ["_core", "errors"],
    [
        "health",
        "folders",
        "formats",
        "frames",
        "input",
        "losses",
        "marks",
        "reading",
        "recordings",
        "run_directory",
        "scratch",
        "users",
        "interruptible",
        "printable",
        "structured",
        "terminal",
        "student",
        "unread",
    ],
    ["engine"],
    ["problems"],
    ["report"],
    ["advice", "model"],
    # What a write should cost.
    ["write_model"],
    ["dataset"],
    # What an INPUT is, asked once by the command. Nothing below knows the kinds: it is given an `input.Input`.
    ["kinds"],
    ["inputs"],
    ["render"],
    ["check"],
    ["flamegraph"],
    ["comparison"],
    ["trend"],
    ["record"],
    ["ui"],
    ["doctor"],
    # What `import syncline` offers.
    ["api"],
    ["__init__"],
    ["cli"],
]

# A module is the names from the root to it: ("source", "strace", "line"). The root itself is ().
Module = tuple[str, ...]


@dataclass
class Graph:
    """Files and what they import."""

    root: Path
    files: dict[Module, Path]
    # Importer -> imported -> line of the first import.
    arrows: dict[Module, dict[Module, int]] = field(default_factory=dict)

    def add(self, importer: Module, imported: Module, line: int) -> None:
        if importer != imported:
            self.arrows.setdefault(importer, {}).setdefault(imported, line)

    def shown(self, module: Module) -> str:
        """The path of a file, from the top of the repository or else from the root."""
        path = self.files[module]
        return str(path.relative_to(ROOT if path.is_relative_to(ROOT) else self.root))

    def place(self, importer: Module, imported: Module) -> str:
        """`file:line` of an import."""
        return f"{self.shown(importer)}:{self.arrows[importer][imported]}"


# Rust


def blank(text: str, pattern: str) -> str:
    """The text with each match replaced by as many line ends, so that lines keep their numbers."""
    return re.sub(pattern, lambda match: "\n" * match[0].count("\n"), text, flags=re.S)


def rust_code(text: str) -> str:
    """The text of a file without strings, comments and modules of tests."""
    text = blank(text, r'b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/')
    while found := re.search(
        r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?(?:mod|fn|use)\b[^{;]*([{;])", text
    ):
        end = found.end()
        depth = 1 if found[1] == "{" else 0
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + "\n" * text.count("\n", found.start(), end) + text[end:]
    return text


def use_paths(tree: str) -> Iterator[list[str]]:
    """The paths of a `use` tree: `a::{b, c::d}` has a::b and a::c::d."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        yield [part.strip() for part in re.sub(r"\s+as\s+\w+$", "", tree).split("::")]
        return
    head = [part.strip() for part in tree[:brace].split("::") if part.strip()]
    depth, start, inside = 0, brace + 1, tree[: tree.rindex("}")]
    for i in range(brace + 1, len(inside) + 1):
        if i == len(inside) or (inside[i] == "," and depth == 0):
            if inside[start:i].strip():
                for path in use_paths(inside[start:i]):
                    yield [*head, *path]
            start = i + 1
        else:
            depth += {"{": 1, "}": -1}.get(inside[i], 0)


def rust_graph(root: Path) -> Graph:
    """What the files of a crate use of each other. A re-export leads to the file that defines the item."""
    files: dict[Module, Path] = {}
    for path in sorted(root.rglob("*.rs")):
        parts = path.relative_to(root).with_suffix("").parts
        files[() if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts] = path
    graph = Graph(root, files)
    code = {module: rust_code(path.read_text()) for module, path in files.items()}
    uses: dict[Module, list[tuple[list[str], int]]] = {module: [] for module in files}
    exports: dict[Module, dict[str, Module]] = {module: {} for module in files}

    def absolute(module: Module, path: list[str]) -> Module | None:
        if path[0] == "crate":
            return tuple(path[1:])
        base, rest = module, path
        if path[0] in ("self", "super"):
            while rest and rest[0] in ("self", "super"):
                if rest[0] == "super":
                    base = base[:-1]
                rest = rest[1:]
            return (*base, *rest)
        return (*module, *path) if (*module, path[0]) in files else None

    for module, text in code.items():
        statements = r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);"
        for found in re.finditer(statements, text):
            line = text.count("\n", 0, found.start()) + 1
            for path in use_paths(found[2]):
                target = absolute(module, path)
                if target is None:
                    continue
                if found[1] and path[-1] not in ("*", "self"):
                    exports[module][path[-1]] = target
                uses[module].append((list(target), line))
        rest = blank(text, statements)
        inline = r"(?<![\w:])((?:crate|super|self|[a-z_]\w*)(?:::\w+)+)"
        for found in re.finditer(inline, rest):
            target = absolute(module, found[1].split("::"))
            if target is not None:
                uses[module].append((list(target), rest.count("\n", 0, found.start()) + 1))

    def owner(path: Module, depth: int = 0) -> Module:
        module = path
        while module not in files:
            module = module[:-1]
        item = path[len(module)] if len(path) > len(module) else None
        exported = exports[module].get(item) if item else None
        if exported is not None and depth < 10 and exported != path:
            return owner((*exported, *path[len(module) + 1 :]), depth + 1)
        return module

    for module, paths in uses.items():
        for path, line in paths:
            target = owner(tuple(path))
            # `pub use child::Item` in a mod.rs names the child's item; it needs nothing of the child.
            if tuple(path) in exports[module].values() and target[: len(module)] == module:
                continue
            graph.add(module, target, line)
    return graph


# Python


def python_graph(root: Path) -> Graph:
    """What the modules of a package import of each other, also inside functions."""
    files: dict[Module, Path] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        files[parts[:-1] if parts[-1] == "__init__" else parts] = path
    graph = Graph(root, files)
    for module, path in files.items():
        package = module if path.name == "__init__.py" else module[:-1]
        for node in ast.walk(ast.parse(path.read_text())):
            found: list[Module] = []
            if isinstance(node, ast.Import):
                found = [tuple(alias.name.split(".")) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = (root.name, *package[: len(package) - node.level + 1]) if node.level else ()
                base = (*base, *(node.module or "").split(".")) if node.module else base
                found = [(*base, alias.name) for alias in node.names]
            for name in found:
                if name[0] != root.name:
                    continue
                target = name[1:]
                if target and target[0] not in {file[0] for file in files if file}:
                    continue  # The extension module, and names that the package itself defines.
                while target not in files:
                    target = target[:-1]
                graph.add(module, target, node.lineno)
    return graph


# Findings


def is_member(module: Module, folder: Module) -> bool:
    """Returns whether a file is in the folder, at any depth."""
    return len(module) > len(folder) and module[: len(folder)] == folder


def circles(graph: Graph) -> list[list[Module]]:
    """For each set of files that import each other in a circle, one of its shortest circles.

    The file of a folder (mod.rs, __init__.py) may import the folder's members, to list them, while they import the
    contract that it defines. Its imports of members are therefore left out.
    """
    found, seen = [], set()
    for start in sorted(graph.files):
        if start in seen:
            continue
        # Breadth first, from a file back to itself.
        before: dict[Module, Module] = {}
        queue = [start]
        while queue and start not in before:
            module = queue.pop(0)
            for imported in sorted(graph.arrows.get(module, {})):
                if imported not in before and not is_member(imported, module):
                    before[imported] = module
                    queue.append(imported)
        if start in before:
            circle, module = [start], before[start]
            while module != start:
                circle.append(module)
                module = before[module]
            circle.append(start)
            found.append(circle[::-1])
            seen.update(circle)
    return found


def check(graph: Graph, layers: list[list[str]]) -> list[str]:
    """The findings, one a line."""
    level = {
        tuple(name.split("/")): number for number, names in enumerate(layers) for name in names
    }

    def layer(module: Module) -> Module | None:
        name = module or (graph.files[module].stem,)
        return next((name[:n] for n in range(len(name), 0, -1) if name[:n] in level), None)

    findings = []
    for module in sorted(graph.files):
        if layer(module) is None:
            findings.append(
                f"{graph.shown(module)}:1: this file is in no layer; add it to the table in tests/lint/imports.py"
            )
    for importer, arrows in sorted(graph.arrows.items()):
        for imported in sorted(arrows):
            here, there = layer(importer), layer(imported)
            if here and there and level[there] > level[here]:
                findings.append(
                    f"{graph.place(importer, imported)}: {'/'.join(importer)} imports {'/'.join(imported)}, but layer "
                    f"{'/'.join(there)} is above {'/'.join(here)}"
                )
    for circle in circles(graph):
        findings.append("these files import each other in a circle:")
        findings += [
            f"  {graph.place(importer, imported)}: imports {'/'.join(imported) or 'the root'}"
            for importer, imported in itertools.pairwise(circle)
        ]
    return findings


def main() -> int:
    """Prints the findings in the core and in the package."""
    findings = check(rust_graph(RUST_ROOT), RUST) + check(python_graph(PYTHON_ROOT), PYTHON)
    print("\n".join(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
