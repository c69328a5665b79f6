"""`syncline check`: whether a program synced what it must, in the order in which it must."""

from __future__ import annotations

import dataclasses

import click

from syncline import interruptible
from syncline.cli import options
from syncline.cli.errors import BAD_INPUT, CANNOT_TELL, FOUND, OK, Failure, say
from syncline.cli.options import example, reading
from syncline.cli.output import refuse_inputs, show
from syncline.cli.progress import bar
from syncline.cli.types import FILE
from syncline.reading import Reading

_ENDINGS = {".json": "json", ".md": "md", ".xml": "junit", ".txt": "table"}
_CODES = {"violated": FOUND, "not checked": BAD_INPUT, "cannot tell": CANNOT_TELL, "ok": OK}


def _sets() -> list[str]:
    from syncline.check import sets
    from syncline.check.rules import kinds, load_kind

    lines = [f"{name:16} {about}" for name, about in sets().items()]
    lines += ["", "Kinds of rules, for a file of your own:"]
    return lines + [f"{name:24} {load_kind(name).title}" for name in kinds()]


@click.command(
    "check",
    epilog=example(
        "syncline check tests/data/check/replace-right.strace.gz --rules atomic-replace",
        "syncline check tests/data/check/alice-no-folder-sync.strace.gz --rules atomic-replace || test $? = 1   (violated)",
        "syncline check tests/data/check/sqlite-off.strace.gz --rules sqlite-rollback --format md || test $? = 1",
    ),
)
@click.argument("input", metavar="INPUT")
@click.option(
    "--rules",
    "names",
    type=FILE,
    metavar="RULES",
    required=True,
    multiple=True,
    help="A file of rules, or the name of a set. May be given several times.",
)
@click.option(
    "--files",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Only files whose path matches this pattern, such as '/var/lib/app/*'; instead of those that a rule"
    " names. May be given several times.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "md", "junit"]),
    default="table",
    show_default=True,
    help="Format of standard output.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="Also write the result to a file. The ending chooses the format: .json .md .xml (JUnit) .txt."
    " May be given several times.",
)
@options.engine
@options.listing("sets of rules, and the kinds", _sets)
@reading
def command(
    input: str,
    names: tuple[str, ...],
    patterns: tuple[str, ...],
    form: str,
    outputs: tuple[str, ...],
    engine: str,
    reading: Reading,
) -> int:
    """Checks RULES about durability: which file was synced, and before what.

    INPUT is a recording of operations on files, by strace. A rule says, for example, that a file that is replaced by a
    rename was synced before, and its folder after. Each violation has the operation, its time and thread, and what to
    mend.

    Exit codes: 0 all rules hold, 1 a rule is violated, 5 it cannot be told, because the recording does not show enough,
    3 a rule says nothing about this recording or the recording has no writes, and those of all commands (2 wrong use,
    4 more losses than --max-loss allows).
    """
    from syncline.check import RuleError, Unanswerable, check, load_rules, output, statements
    from syncline.check.run import warnings
    from syncline.report.run import check_trace

    try:
        rules = [rule for name in names for rule in load_rules(name)]
    except RuleError as error:
        raise Failure(error.message, error.hint) from None
    if patterns:
        rules = [
            dataclasses.replace(rule, values=rule.values | {"files": patterns}) for rule in rules
        ]
    targets = [(path, _format_of(path)) for path in outputs]
    found = options.resolved(input, reading)
    for path in outputs:
        refuse_inputs(path, [found, *names])
    with (
        bar("reading") as progress,
        found.open(reading, engine, progress, statements=statements()) as open_engine,
    ):
        check_trace(open_engine)
        try:
            outcomes = check(open_engine, rules)
        except Unanswerable as error:
            raise Failure(f"{input}: {error.message}", error.hint, code=BAD_INPUT) from None
        said = warnings(open_engine)
    for path, kind in targets:
        interruptible.write(path, output.render(kind, input, outcomes, said).encode())
    show(output.render(form, input, outcomes, said))
    if form != "table":
        # Programs read the other formats from stdout, so stderr has the verdict for the user.
        for warning in said:
            say(f"warning: {warning}")
        say(output.headline(outcomes))
    return _CODES[output.verdict(outcomes)]


def _format_of(path: str) -> str:
    for ending, form in _ENDINGS.items():
        if path.endswith(ending):
            return form
    raise Failure(
        f"{path} has no ending that chooses a format", f"use one of: {' '.join(_ENDINGS)}"
    )
