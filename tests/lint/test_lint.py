"""The checks of tests/lint find what they are made to find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint import imports, prose, words


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
        ("a.md", "It is whereby.\n```\nwhereby\n```\n[x](whereby.md) `whereby`\nlone\n", [1, 6]),
        (
            "a.rs",
            '/// Whereby.\n//! lone\nlet a = "which of these is whereby";\nlet b = b"this is not whereby";\n',
            [1, 2, 3],
        ),
        (
            "a.rs",
            'let c = \'"\';\n// whereby\n#[cfg(test)]\nmod tests {\n    let a = "this was whereby";\n    // whereby\n}\n',
            [2, 6],
        ),
        (
            "a.rs",
            'fail("first line of it \\\n    that is whereby");\nlet whereby = "whereby";\n',
            [2],
        ),
        (
            "a.py",
            '"""Whereby."""\n# whereby\nwhereby = "whereby"\nx = f"the {whereby} was whereby here"\n',
            [1, 2, 4],
        ),
        ("tests/a.py", 'x = "which of these is whereby"\n', []),
        ("a.sql", "-- whereby\nSELECT 'whereby'\n", [1]),
        ("a.sh", "#!/bin/whereby\necho '#whereby' # whereby\n", [2]),
        ("bpf/a.bt", '// whereby\nprintf("whereby");\n', [1]),
    ],
)
def test_words_are_found_where_people_read_them(path: str, text: str, lines: list[int]) -> None:
    assert [int(finding.split(":")[1]) for finding in words.check(path, text)] == lines


@pytest.mark.parametrize(
    "text",
    [
        "A word stands for another.",
        "Tell the reader what lies beside it.",
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


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("One is `a of b`, because it is. [x](of/of/of/of/of/of.md) helps.", []),
        ("```\nOf this is code.\n```", []),
        ("Of this we have two.", ["begins with `Of`"]),
        ("What is lost counts.", ["begins with `What`"]),
        ("What is lost? What was:", []),
        ("- An item is here.\n- Of this we have two.", ["begins with `Of`"]),
        ("The size is that of the bio and those of its folios.", ["several `that of`"]),
        ("The a of the b of the c of the d of the e of the f of it is long.", ["a pile of `of`"]),
        (f"It is {'very ' * 50} long.", ["53 words in a sentence"]),
        ("It has one. It has two. It has three. It has four.", ["4 short sentences in a row"]),
        ("It has one, so. It has two. It has three. It has four.", []),
        ("The log has a very long list of lines. " * 5, ["5 sentences and no reason"]),
        ("The log has a very long list of lines. " * 4 + "That is because of us.", []),
        (f"| {'a ' * 30} b. And more. |", ["a paragraph in a cell"]),
        (f"| {'a ' * 30} b. |", []),
    ],
)
def test_sentences_that_are_hard_to_read(text: str, findings: list[str]) -> None:
    found = [line.split(": ", 1)[1] for line in prose.check("a.md", text)]
    assert [one.partition(" -> ")[0] for one in found] == findings


def test_figures_of_a_page() -> None:
    text = "It is short. It is a longer sentence, because it has a reason to be.\n"
    assert prose.figures("a.md", text) == (
        "a.md: 7.5 words a sentence, 50% short, 50% with a reason"
    )
