"""JUnit XML for CI servers: one test case for each row."""

from __future__ import annotations

from xml.etree import ElementTree

from syncline.render import human
from syncline.render.junit import document
from syncline.render.junit import xml_text as _xml_text

from ..comparison import CANT_TELL, Comparison, Row
from . import wording

__all__ = ["render"]


def render(comparison: Comparison, *, everything: bool = True) -> str:
    """Renders a test suite.

    A regression is a failure, "can't tell" is skipped, and too many losses are an error. A notable row
    passes, with its figures as output.
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
        ("base", wording.side(comparison.base)),
        ("new", wording.side(comparison.new)),
        ("verdict", comparison.verdict),
        ("method", wording.method(comparison)),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=_xml_text(value))
    overall = ElementTree.SubElement(
        suite, "testcase", classname="syncline.comparison", name="verdict"
    )
    if comparison.lost:
        ElementTree.SubElement(overall, "error", message=_xml_text(wording.headline(comparison)))
    elif comparison.verdict == CANT_TELL:
        ElementTree.SubElement(overall, "skipped", message=_xml_text(wording.headline(comparison)))
    # The output belongs to a test case: many CI servers do not show that of the suite.
    power = wording.power(comparison)
    lines = [
        wording.headline(comparison),
        *([power] if power else []),
        *(f"warning: {one}" for one in comparison.warnings),
    ]
    ElementTree.SubElement(overall, "system-out").text = _xml_text(
        "\n".join([*lines, *comparison.notes])
    )
    for row in rows:
        _add_case(suite, row)
    return document(suite)


def _add_case(suite: ElementTree.Element, row: Row) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"syncline.comparison.{row.kind or 'summary'}",
        name=_xml_text(row.metric if row.name in ("all", "") else f"{row.metric} of {row.name}"),
    )
    if row.verdict in ("no change", "improvement"):
        return
    figures = (
        f"{human.text(row.base, row.unit)} -> {human.text(row.new, row.unit)},"
        f" {wording.change(row)} ({wording.interval(row)})"
        + (f"; {wording.visible(row)} would have been seen" if row.visible is not None and row.verdict == CANT_TELL else "")
    )  # fmt: skip
    if row.verdict == "regression":
        ElementTree.SubElement(case, "failure", message=_xml_text(figures), type="regression")
    elif row.verdict == "notable":
        ElementTree.SubElement(case, "system-out").text = _xml_text(f"notable: {figures}")
    else:
        ElementTree.SubElement(case, "skipped", message=_xml_text(f"{row.reason}: {figures}"))
