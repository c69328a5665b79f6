"""The history of metrics as JUnit XML: a test case for each series, which fails if it got worse lately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.etree import ElementTree

from syncline.render.junit import document, xml_text

from .history import Series
from .text import finding_text, last_text, title

__all__ = ["render"]


def render(
    found: Sequence[Series],
    left_out: Sequence[str],
    dataset: str,
    got_worse: Callable[[Series], bool],
) -> str:
    """Returns the file.

    Args:
        left_out: why runs are left out, in sentences.
        got_worse: whether a series fails the job.
    """
    suite = ElementTree.Element("testsuite", name="syncline trend")
    failures = skipped = 0
    for series in found:
        case = ElementTree.SubElement(suite, "testcase", classname=f"syncline.trend.{series.metric}", name=xml_text(title(series)))  # fmt: skip
        said = [*(finding_text(series, one) for one in series.findings), last_text(series)]
        output = xml_text("\n".join([dataset, *filter(None, said), *left_out]))
        if got_worse(series):
            failures += 1
            # The last sentence is the answer on the last runs, or the newest finding.
            message = [one for one in said if one][-1]
            ElementTree.SubElement(case, "failure", message=xml_text(message)).text = output
        elif reason := series.too_few or series.last_unknown:
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=xml_text(reason)).text = output
        else:
            ElementTree.SubElement(case, "system-out").text = output
    suite.set("failures", str(failures))
    suite.set("skipped", str(skipped))
    suite.set("tests", str(len(suite)))
    return document(suite)
