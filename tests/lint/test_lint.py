"""The checks of tests/lint find what they are made to find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint import imports, words


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def arrows(graph: imports.Graph) -> set[tuple[str, str]]:
    return {
        ("/".join(importer), "/".join(imported))
        for importer, found in graph.arrows.items()
        for imported in found
    }


RUST = {
    "lib.rs": "pub mod a;\npub mod b;\npub mod c;\n",
    "a.rs": "use crate::{\n    b::{One, two::Two},\n    c::*,\n};\n",
    "b/mod.rs": "mod two;\nmod three;\npub use three::Three;\npub fn list() { two::list() }\npub struct One;\n",
    "b/two.rs": "use super::One;\n// use crate::a::A;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
    "b/three.rs": 'pub struct Three;\nfn f() { super::super::c::g("use crate::a::A;") }\n',
    "c.rs": "pub fn g(_: &str) {}\n",
}


def test_uses_of_rust(tmp_path: Path) -> None:
    graph = imports.rust_graph(tree(tmp_path, RUST))
    expected = {
        ("a", "b"),
        ("a", "b/two"),
        ("a", "c"),
        ("b", "b/two"),
        ("b/two", "b"),
        ("b/three", "c"),
    }
    assert arrows(graph) == expected
    assert imports.check(graph, [["c"], ["b"], ["a"], ["lib"]]) == []


def test_a_re_export_leads_to_the_file_of_the_item(tmp_path: Path) -> None:
    files = RUST | {"c.rs": "use crate::b::Three;\n"}
    graph = imports.rust_graph(tree(tmp_path, files))
    assert ("c", "b/three") in arrows(graph)
    findings = imports.check(graph, [["a", "b", "c", "lib"]])
    assert findings == [
        "these files import each other in a circle:",
        "  b/three.rs:2: imports c",
        "  c.rs:1: imports b/three",
    ]


def test_an_import_from_a_higher_layer(tmp_path: Path) -> None:
    graph = imports.rust_graph(tree(tmp_path, RUST))
    findings = imports.check(graph, [["b"], ["b/two", "c"], ["a"]])
    assert findings == [
        "lib.rs:1: this file is in no layer; add it to the table in tests/lint/imports.py",
        "b/mod.rs:4: b imports b/two, but layer b/two is above b",
        "b/three.rs:2: b/three imports c, but layer c is above b",
    ]


PYTHON = {
    "p/__init__.py": "",
    "p/a.py": "import os\nfrom p import _core\nfrom p.b import two\nfrom .c import thing\n",
    "p/b/__init__.py": "from p.b.two import f\n",
    "p/b/two.py": "from p import b\n\ndef f():\n    from ..c import thing\n",
    "p/c.py": "",
}


def test_imports_of_python(tmp_path: Path) -> None:
    graph = imports.python_graph(tree(tmp_path, PYTHON) / "p")
    expected = {
        ("a", ""),
        ("a", "b/two"),
        ("a", "c"),
        ("b", "b/two"),
        ("b/two", "b"),
        ("b/two", "c"),
    }
    assert arrows(graph) <= expected
    assert imports.check(graph, [["c", "__init__"], ["b"], ["a"]]) == []


def test_a_circle_through_an_import_in_a_function(tmp_path: Path) -> None:
    files = PYTHON | {"p/b/two.py": "", "p/c.py": "def g():\n    import p.a\n"}
    graph = imports.python_graph(tree(tmp_path, files) / "p")
    assert imports.check(graph, [["a", "b", "c", "__init__"]]) == [
        "these files import each other in a circle:",
        "  a.py:4: imports c",
        "  c.py:2: imports a",
    ]


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        ("a.md", "It is told.\n```\ntold\n```\n[x](told.md) `told`\nbeside\n", [1, 6]),
        (
            "a.rs",
            '/// Tells.\n//! lone\nlet a = "which of these is told";\nlet b = b"this is not told";\n',
            [1, 2, 3],
        ),
        (
            "a.rs",
            'let c = \'"\';\n// told\n#[cfg(test)]\nmod tests {\n    let a = "this was told";\n    // told\n}\n',
            [2, 6],
        ),
        ("a.rs", 'fail("first line of it \\\n    that is told");\nlet told = "told";\n', [2]),
        (
            "a.py",
            '"""Told."""\n# told\ntold = "told"\nx = f"the {told} was told here"\n',
            [1, 2, 4],
        ),
        ("tests/a.py", 'x = "which of these is told"\n', []),
        ("a.sql", "-- told\nSELECT 'told'\n", [1]),
        ("a.sh", "#!/bin/told\necho '#told' # told\n", [2]),
        ("bpf/a.bt", '// told\nprintf("told");\n', [1]),
    ],
)
def test_words_are_found_where_people_read_them(path: str, text: str, lines: list[int]) -> None:
    assert [int(finding.split(":")[1]) for finding in words.check(path, text)] == lines


@pytest.mark.parametrize(
    "text",
    [
        "A word stands for another.",
        "There is none.",
        "It can be None.",
        "Leave it alone.",
        "A lone surrogate.",
        "Besides, nothing.",
        "Requests go on the queue.",
    ],
)
def test_plain_english_is_no_finding(text: str) -> None:
    assert words.check("a.md", text) == []


def test_a_finding_says_what_to_write() -> None:
    assert words.check("a.md", "Logs are told apart.\n") == [
        "a.md:1: told apart -> distinguishes, separates, parses"
    ]
