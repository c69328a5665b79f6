"""The outcome of rules as text: a table for people, Markdown, JSON, and JUnit for CI servers."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from syncline import terminal
from syncline.printable import json_text, printable
from syncline.render import human
from syncline.render.junit import document, xml_text
from syncline.render.markdown import escaped

from .run import Checked, Outcome
from .wording import mend, problem

__all__ = ["FORMATS", "headline", "render", "verdict"]

# Increases whenever a key of the JSON is removed or changes its meaning.
SCHEMA_VERSION = 1
# Files that the table and Markdown show for each rule.
_SHOWN = 20
_ORDER = ("violated", "not checked", "cannot tell", "ok")


def verdict(outcomes: Sequence[Outcome]) -> str:
    """Returns the verdict on all rules: the most serious one."""
    return min((one.verdict for one in outcomes), key=_ORDER.index)


def headline(outcomes: Sequence[Outcome]) -> str:
    """Returns the verdict on all rules, in a sentence."""
    worst = verdict(outcomes)
    number = sum(one.verdict == worst for one in outcomes)
    of = f"{number} of {human.count(len(outcomes), 'rule')}"
    says = "says" if number == 1 else "say"
    return {
        "violated": f"Violated: {of}.",
        "not checked": f"Not checked: {of} {says} nothing about this recording.",
        "cannot tell": f"Cannot tell: {of}, because the recording does not show enough.",
        "ok": f"OK: {human.count(len(outcomes), 'rule')}.",
    }[worst]


def render(form: str, path: str, outcomes: Sequence[Outcome], warnings: Sequence[str]) -> str:
    """Renders the outcome of the rules for one input in a format of `FORMATS`."""
    return FORMATS[form](path, outcomes, warnings)


def _numbers(one: Outcome) -> str:
    if one.unanswered:
        return one.unanswered
    counts = [f"{one.files[name]:,} {name}" for name in _ORDER if one.files.get(name)]
    return f"{human.count(sum(one.files.values()), 'file')}: {', '.join(counts)}"


def _who(one: Checked) -> str:
    row = one.row
    names = [row["comm"]] if row["comm"] else []
    names += [f"thread {row['tid']}"] if row["tid"] is not None else []
    names += [f"process {row['pid']}"] if row["pid"] not in (None, row["tid"]) else []
    run = [f"run {row['run']}"] if row["run"] else []
    return ", ".join([*names, *run]) or "[unknown thread]"


def _what(one: Checked) -> str:
    row = one.row
    to = f" -> {row['to_path']}" if row["to_path"] else ""
    return f"{row['op']} {row['op_path'] or ''}{to}".strip()


def _table(path: str, outcomes: Sequence[Outcome], warnings: Sequence[str]) -> str:
    lines = [f"Check of {printable(path)}", *(f"warning: {printable(one)}" for one in warnings)]
    lines += ["", headline(outcomes)]
    for one in sorted(outcomes, key=lambda outcome: _ORDER.index(outcome.verdict)):
        lines += ["", f"{one.verdict}: {printable(one.rule.name)} ({printable(one.rule.place)}), {_numbers(one)}"]  # fmt: skip
        for found in one.shown[:_SHOWN]:
            row = found.row
            lines.append(f"  {found.verdict}: {printable(row['path'])}")
            lines.append(f"    seen   {problem(found)}")
            lines.append(f"    mend   {mend(found)}")
            if row["op"]:
                lines.append(f"    step   {printable(_what(found))}, {human.text(row['ts_ns'], 'time')}, {printable(_who(found))}")  # fmt: skip
            for name in ("stack", "other_stack"):
                if row[name]:
                    lines.append(f"    {'stack ' if name == 'stack' else 'before'} {printable(row[name])}")  # fmt: skip
        if len(one.shown) > _SHOWN:
            lines.append(f"  {len(one.shown) - _SHOWN:,} more: --format json prints all")
    width = terminal.width()
    # Below the text, beside what it is of.
    return "".join(
        f"{part}\n"
        for line in lines
        for part in terminal.wrapped(line, width, hang=11 if line.startswith("    ") else None)
    )


def _markdown(path: str, outcomes: Sequence[Outcome], warnings: Sequence[str]) -> str:
    lines = [
        f"## Durability: {verdict(outcomes)}",
        "",
        f"{escaped(path)}: {headline(outcomes)}",
        "",
    ]
    lines += [f"> **Warning:** {escaped(one)}\n" for one in warnings]
    lines += ["| rule | verdict | files |", "|---|---|---|"]
    lines += [f"| {escaped(one.rule.name)} | {one.verdict} | {escaped(_numbers(one))} |" for one in outcomes]  # fmt: skip
    shown = [(one, found) for one in outcomes for found in one.shown[:_SHOWN]]
    if shown:
        lines += ["", "| file | rule | seen | mend | step | thread |", "|---|---|---|---|---|---|"]
    for one, found in shown:
        step = (
            f"{_what(found)}, {human.text(found.row['ts_ns'], 'time')}" if found.row["op"] else "-"
        )
        cells = (found.row["path"], f"{one.rule.name}: {found.verdict}", problem(found), mend(found), step, _who(found))  # fmt: skip
        lines.append("| " + " | ".join(escaped(str(cell)) for cell in cells) + " |")
    more = sum(max(len(one.shown) - _SHOWN, 0) for one in outcomes)
    if more:
        lines += ["", f"{more:,} more: `--format json` prints all"]
    return "\n".join(lines) + "\n"


def _json(path: str, outcomes: Sequence[Outcome], warnings: Sequence[str]) -> str:
    rules = [
        {
            "rule": one.rule.name,
            "kind": one.rule.kind.name,
            "place": one.rule.place,
            "verdict": one.verdict,
            "reason": one.unanswered,
            "files": {name: one.files.get(name, 0) for name in _ORDER if name != "not checked"},
            "found": [
                {"verdict": found.verdict, "seen": problem(found), "mend": mend(found)}
                | {name: value for name, value in found.row.items() if name != "verdict"}
                for found in one.shown
            ],
        }
        for one in outcomes
    ]
    document_ = {
        "schema_version": SCHEMA_VERSION,
        "input": path,
        "verdict": verdict(outcomes),
        "warnings": [*warnings],
        "rules": rules,
    }
    return json_text(document_, indent=1) + "\n"


def _junit(path: str, outcomes: Sequence[Outcome], warnings: Sequence[str]) -> str:
    """A test case for each rule, which passes if all its files are ok, and one for each file that is not."""
    suite = ElementTree.Element("testsuite", name="syncline check")
    tests = {"failure": 0, "skipped": 0, "error": 0}

    def add(one: Outcome, name: str, result: str, message: str, output: str) -> None:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"syncline.check.{one.rule.kind.name}", name=xml_text(name)
        )
        element = {"violated": "failure", "cannot tell": "skipped", "not checked": "error"}.get(
            result
        )
        if element:
            tests[element] += 1
            ElementTree.SubElement(case, element, message=xml_text(message)).text = xml_text(output)
        elif output:
            ElementTree.SubElement(case, "system-out").text = xml_text(output)

    for one in outcomes:
        add(
            one,
            one.rule.name,
            one.verdict,
            _numbers(one),
            "\n".join([path, _numbers(one), *warnings]),
        )
        for found in one.shown:
            stacks = [str(found.row[name]) for name in ("stack", "other_stack") if found.row[name]]
            step = [f"{_what(found)}, {human.text(found.row['ts_ns'], 'time')}, {_who(found)}"] if found.row["op"] else []  # fmt: skip
            add(one, f"{one.rule.name}: {found.row['path']}", found.verdict, mend(found), "\n".join([problem(found), *step, *stacks]))  # fmt: skip
    for attribute, name in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(tests[name]))
    suite.set("tests", str(len(suite)))
    return document(suite)


FORMATS = {"table": _table, "json": _json, "md": _markdown, "junit": _junit}
