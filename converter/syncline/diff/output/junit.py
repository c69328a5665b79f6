"""For a CI server: JUnit XML, a test case a row."""

from __future__ import annotations

from xml.etree import ElementTree

from syncline.render import human

from ..compare import CANT_TELL, Comparison, Row
from . import words

__all__ = ["render"]


def render(comparison: Comparison, *, everything: bool = True) -> str:
    """A regression is a failure, what cannot be told is skipped; too much lost is an error.

    What is notable passes, and says why.
    """
    rows = [row for row in comparison.rows if row.verdict != "-"]
    failures = sum(row.verdict == "regression" for row in rows)
    skipped = sum(row.verdict == CANT_TELL for row in rows)
    suite = ElementTree.Element(
        "testsuite",
        name="syncline diff",
        tests=str(len(rows) + 1),
        failures=str(failures),
        errors=str(int(comparison.lost)),
        skipped=str(skipped + (comparison.verdict == CANT_TELL and not comparison.lost)),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("base", words.side(comparison.base)),
        ("new", words.side(comparison.new)),
        ("verdict", comparison.verdict),
        ("method", words.method(comparison)),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=_clean(value))
    whole = ElementTree.SubElement(suite, "testcase", classname="syncline.diff", name="verdict")
    if comparison.lost:
        ElementTree.SubElement(whole, "error", message=_clean(words.headline(comparison)))
    elif comparison.verdict == CANT_TELL:
        ElementTree.SubElement(whole, "skipped", message=_clean(words.headline(comparison)))
    # Of a test case, as many a CI server shows nothing that is of the suite alone.
    said = [words.headline(comparison), *(f"warning: {one}" for one in comparison.warnings)]
    ElementTree.SubElement(whole, "system-out").text = _clean("\n".join([*said, *comparison.notes]))
    for row in rows:
        _case(suite, row)
    ElementTree.indent(suite)
    suites = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{suites}\n'


def _case(suite: ElementTree.Element, row: Row) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"syncline.diff.{row.kind or 'whole'}",
        name=_clean(row.metric if row.name in ("all", "") else f"{row.metric} of {row.name}"),
    )
    if row.verdict in ("no change", "improvement"):
        return
    figures = (
        f"{human.text(row.base, row.unit)} -> {human.text(row.new, row.unit)},"
        f" {words.change(row)} ({words.interval(row)})"
    )
    if row.verdict == "regression":
        ElementTree.SubElement(case, "failure", message=_clean(figures), type="regression")
    elif row.verdict == "notable":
        ElementTree.SubElement(case, "system-out").text = _clean(f"notable: {figures}")
    else:
        ElementTree.SubElement(case, "skipped", message=_clean(f"{row.why}: {figures}"))


def _clean(text: str) -> str:
    """Without what XML cannot hold: names come from a log, and may hold anything."""
    return "".join(
        char if char in "\n\t" or char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )
