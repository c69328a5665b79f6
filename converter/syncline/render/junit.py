"""JUnit XML for CI servers: what all suites of test cases share."""

from __future__ import annotations

from xml.etree import ElementTree

from syncline.printable import printable

__all__ = ["document", "xml_text"]


def document(suite: ElementTree.Element) -> str:
    """Returns the file of a test suite."""
    ElementTree.indent(suite)
    suites = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{suites}\n'


def xml_text(text: str) -> str:
    """Escapes characters that XML cannot hold: names come from a log, and may contain any character."""
    return printable(text, keep="\n\t")
