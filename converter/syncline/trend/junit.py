"""The history of metrics as JUnit XML: a test case for each series, which fails if it got worse lately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.etree import ElementTree

from syncline.render.junit import document, xml_text

from .findings import Finding
from .history import Series
from .text import finding_text, last_text, title

__all__ = ["render"]


def render(
    found: Sequence[Series],
    left_out: Sequence[str],
    dataset: str,
    worse: Callable[[Series], Finding | None],
) -> str:
    """Returns the file.

    Args:
        left_out: why runs are left out, in sentences.
        worse: why a series fails the job, if it does.
    """
    suite = ElementTree.Element("testsuite", name="syncline trend")
    failures = skipped = 0
    for series in found:
        case = ElementTree.SubElement(suite, "testcase", classname=f"syncline.trend.{series.metric}", name=xml_text(title(series)))  # fmt: skip
        said = [*(finding_text(series, one) for one in series.findings), last_text(series)]
        said += [] if series.findings or series.too_few else ["no change found"]
        output = xml_text("\n".join([dataset, *filter(None, said), *left_out]))
        if reason := worse(series):
            failures += 1
            message = finding_text(series, reason)
            ElementTree.SubElement(case, "failure", message=xml_text(message)).text = output
        elif unknown := series.too_few or series.last_unknown:
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=xml_text(unknown)).text = output
        else:
            ElementTree.SubElement(case, "system-out").text = output
    suite.set("failures", str(failures))
    suite.set("skipped", str(skipped))
    suite.set("tests", str(len(suite)))
    return document(suite)
