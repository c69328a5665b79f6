"""Runs the cells of docs/guides/python.md: `python -m tools.notebook` writes their outputs, and the notebook with the same cells.

A cell is a block of Python, and the block of text below it is its output: what it prints, then the value of its last expression.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.examples import a_checkout

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guides" / "python.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")
CELL = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```\n", re.M | re.S)


def outputs(page: str, folder: Path) -> Iterator[tuple[str, str, str | None]]:
    """Runs the cells of a page in a folder. Yields the code of each, its output, and the HTML of its value if it has one."""
    names: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(folder)
    try:
        for code, _ in CELL.findall(page):
            *body, last = ast.parse(code).body
            text = io.StringIO()
            value = None
            with contextlib.redirect_stdout(text):
                if not isinstance(last, ast.Expr):
                    body.append(last)
                exec(compile(ast.Module(body, []), str(PAGE), "exec"), names)
                if isinstance(last, ast.Expr):
                    value = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names)
            shown = "" if value is None else f"{value!r}\n"
            html = value._repr_html_() if hasattr(value, "_repr_html_") else None
            yield code, trimmed(text.getvalue()) + shown, html
    finally:
        os.chdir(before)


def trimmed(text: str) -> str:
    """The text without blanks at the ends of lines, and without empty lines at its ends."""
    lines = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
    return f"{lines}\n" if lines else ""


def page_with(page: str, found: list[tuple[str, str, str | None]]) -> str:
    """The page with new outputs."""
    made = iter(found)
    return CELL.sub(
        lambda match: f"```python\n{match[1]}```\n\n```text\n{next(made)[1]}```\n", page
    )


def notebook_of(page: str, found: list[tuple[str, str, str | None]]) -> str:
    """The page as a notebook."""
    cells: list[dict[str, Any]] = []
    parts = CELL.split(page)
    for number, part in enumerate(parts[::3]):
        cells.append({"cell_type": "markdown", "metadata": {}, "source": lines(part.strip())})
        if number < len(found):
            code, text, html = found[number]
            data = {"text/plain": lines(text)} | ({"text/html": lines(html)} if html else {})
            shown = {"data": data, "metadata": {}, "output_type": "display_data"}
            cells.append(
                {
                    "cell_type": "code",
                    "execution_count": None,
                    "metadata": {},
                    "outputs": [shown] if text else [],
                    "source": lines(code.strip()),
                }
            )
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def lines(text: str) -> list[str]:
    """The lines of a text with their ends, as notebooks keep them."""
    return text.splitlines(keepends=True)


def made(folder: Path) -> tuple[str, str]:
    """The page and the notebook as they should be."""
    page = PAGE.read_text(encoding="utf-8")
    found = list(outputs(page, a_checkout(folder)))
    # Paths of the page are relative to its folder, as those of the notebook beside it.
    return page_with(page, found), notebook_of(page_with(page, found), found)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        page, notebook = made(Path(folder))
    PAGE.write_text(page, encoding="utf-8")
    NOTEBOOK.write_text(notebook, encoding="utf-8")


if __name__ == "__main__":
    main()
