"""`syncline model`: what a write should cost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from syncline import interruptible
from syncline.cli import options
from syncline.cli.errors import OK, Failure, say
from syncline.cli.options import example, reading
from syncline.cli.output import refuse_inputs, refuse_outputs, show
from syncline.cli.progress import bar
from syncline.cli.types import FILE, PLACE, SIZE
from syncline.formats import format_of
from syncline.reading import Progress, Reading
from syncline.write_model.cost import RULES
from syncline.write_model.predict import GROUPS

if TYPE_CHECKING:
    from syncline.input import Input
    from syncline.write_model.writes import Writes

_EXAMPLES = (
    "sudo syncline model measure --dir /var/lib/db -o machine.toml",
    "syncline model predict tests/data/writes/mixed.log --parameters tests/data/writes/machine.toml",
    'syncline model predict --workload "write 4k x 10000, fsync every 100" --parameters tests/data/writes/machine.toml',
)


@click.group("model", epilog=example(*_EXAMPLES))
def command() -> None:
    """Predicts what writes should cost, by the rules of the page cache."""


@command.command("measure", epilog=example(_EXAMPLES[0]))
@click.option("--dir", "folder", required=True, type=PLACE, metavar="DIR", help="Folder on the device to measure. Syncline writes files in it, and removes those afterwards.")  # fmt: skip
@click.option("-o", "--output", default="-", type=PLACE, metavar="FILE", show_default=True, help="File of the parameters; `-` is standard output.")  # fmt: skip
@click.option("--max-size", "max_kb", type=SIZE, default="1G", show_default=True, help="The largest file that may be written.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Do not name the steps.")
def measure(folder: str, output: str, max_kb: int, quiet: bool) -> int:
    """Measures memory, page cache and the device below DIR, and writes the parameters of the model.

    Each measured value has a confidence interval of 95 %. Run it on an idle machine.
    """
    from syncline.write_model.measure import measure as measured
    from syncline.write_model.parameters import as_toml

    def step(name: str) -> None:
        if not quiet:
            say(f"measuring: {name}")

    _write(output, as_toml(measured(folder, max_kb * 1024, step)))
    return OK


def _write(output: str, text: str) -> None:
    if output == "-":
        show(text)
    else:
        interruptible.write(output, text.encode())


_parameters = click.option("--parameters", required=True, type=PLACE, metavar="FILE", help="Parameters of the machine, as `syncline model measure` writes them.")  # fmt: skip


@command.command(
    "predict",
    epilog=example(
        _EXAMPLES[1],
        _EXAMPLES[2],
        _EXAMPLES[1] + " --each --format csv",
        _EXAMPLES[1] + " --trace mixed.pftrace",
    ),
)
@click.argument("input_", required=False, metavar="INPUT")
@_parameters
@click.option("--workload", metavar="TEXT", help="Instead of INPUT: what a program will do, such as \"write 4k x 10000, fsync every 100\".")  # fmt: skip
@click.option("--rules", type=click.Choice(RULES), default=RULES[0], show_default=True, help="How the kernel throttles: as Linux does it, or as the paper of the model has it.")  # fmt: skip
@click.option("--by", type=click.Choice(GROUPS), default=GROUPS[0], show_default=True, help="A row for each scenario, or for each state of page cache, path, or kind of commit in a scenario.")  # fmt: skip
@click.option("--each", is_flag=True, help="A row for each write, with the state of page cache and what is dirty.")  # fmt: skip
@click.option("--trace", type=PLACE, metavar="OUT", help="Also write the trace of INPUT, with tracks of what is dirty and of the state of page cache, and with each write. OUT ends in .pftrace or .pftrace.gz.")  # fmt: skip
@click.option("-o", "--output", type=FILE, metavar="FILE.svg", help="Also draw what each call costs over the bytes written, and what is dirty over time.")  # fmt: skip
@click.option("--html", type=FILE, metavar="OUT", help="Also write one HTML page with the table, what is assumed, and the charts.")  # fmt: skip
@options.table_format("json has the scenarios and each write.")
@reading
def predict(
    input_: str | None,
    parameters: str,
    workload: str | None,
    rules: str,
    by: str,
    each: bool,
    trace: str | None,
    output: str | None,
    html: str | None,
    form: str,
    reading: Reading,
) -> int:
    """Predicts the cost of each write of INPUT, and compares it with what was measured.

    INPUT is a recording of writes (`syncline record --writes`), a log of strace with write calls and durations, or a table of writes in
    CSV. The naive model next to it divides the size by the bandwidth of the device.

    With --workload, nothing need be recorded: a phase is `write SIZE x TIMES`, with `to FILE`, and `direct`, `sync`, `dsync`, `library`
    (fwrite), `overwrite` or `random` as it applies; then, after commas, `fsync`, `fdatasync` or `sync`, and `pause TIME`, each `every N`
    writes or at the end. Phases are separated by semicolons. Each call begins when the one before has ended.
    """
    from syncline import render
    from syncline.kinds import resolve
    from syncline.render import write_model as rendered
    from syncline.render.chart import as_svg
    from syncline.render.figure_page import as_page
    from syncline.render.write_model_figure import charts
    from syncline.write_model import parameters as parameter_file
    from syncline.write_model import predict as model
    from syncline.write_model import recording
    from syncline.write_model.trace import write_trace
    from syncline.write_model.workload import planned

    if trace is not None:
        _check_ending(trace)
    if output is not None:
        options.check_svg(output)
    refuse_outputs(trace, output, html)
    if (input_ is None) == (workload is None):
        raise click.UsageError("give either INPUT or --workload")
    found = (
        None if input_ is None or recording.is_table(input_) else resolve(input_, reading.source)
    )
    for one in filter(None, (trace, output, html)):
        refuse_inputs(one, [found or input_, parameters, reading.marks])
    known = parameter_file.read(parameters)
    if workload is not None:
        options.refuse_reading(reading, "--workload")
        recorded = planned(workload)
    else:
        with bar("reading") as progress:
            recorded = _writes(str(input_), found, reading, progress)
    outcome = model.predict(known, recorded, rules, by=by)
    if trace is not None:
        with bar("writing the trace") as progress:
            recording_ = None if found is None else found.recording
            write_trace(input_ or "--workload", recording_, trace, outcome, reading, progress)
    drawn = charts(outcome, known) if output is not None or html is not None else []
    if output is not None:
        interruptible.write(output, as_svg(drawn).encode())
    if html is not None:
        title = f"What writes should cost: {workload or input_}"
        table, report = rendered.summary_for_people(outcome)
        page = as_page(title, table, report, rendered.remarks(outcome), drawn)
        interruptible.write(html, page.encode())
    if form == "json":
        show(rendered.as_json(outcome))
    elif form == "table":
        show(rendered.render(outcome, is_each=each))
    else:
        table, report = (rendered.each(outcome), rendered.EACH) if each else (rendered.summary(outcome), rendered.SUMMARY)  # fmt: skip
        for line in rendered.remarks(outcome):
            sys.stderr.write(f"{line}\n")
        show(render.exporter(form)(table, report))
    return OK


def _writes(path: str, found: Input | None, reading: Reading, progress: Progress | None) -> Writes:
    """Reads the writes of an INPUT, or of a table if there is none."""
    from syncline.write_model import recording

    if found is None:
        return recording.read_table(path, reading)
    return recording.read(found, reading, progress)


def _check_ending(trace: str) -> None:
    """Refuses an output that is no trace.

    Raises:
        Failure: its name ends in neither .pftrace nor .pftrace.gz.
    """
    if format_of(trace) not in ("pftrace", "pftrace.gz"):
        raise Failure(f"cannot write {trace}: its name does not end like that of a trace", "end it in .pftrace or .pftrace.gz")  # fmt: skip


@command.command("fit", epilog=example(_EXAMPLES[1].replace("predict", "fit") + " -o fitted.toml"))
@click.argument("input_", required=True, metavar="INPUT")
@_parameters
@click.option("-o", "--output", default="-", type=PLACE, metavar="FILE", show_default=True, help="File of the new parameters; `-` is standard output.")  # fmt: skip
@reading
def fit(input_: str, parameters: str, output: str, reading: Reading) -> int:
    """Replaces the parameters that the writes of INPUT show, and writes all parameters.

    Replaced are bandwidths of page cache and the device, the costs of calls and of a commit, and the limits if they are recorded. In a
    recording of strace, the cost of a call includes that of strace.
    """
    from syncline.kinds import resolve
    from syncline.write_model import parameters as parameter_file
    from syncline.write_model import recording
    from syncline.write_model.fit import fit as fitted

    found = None if recording.is_table(input_) else resolve(input_, reading.source)
    refuse_inputs(output, [found or input_])
    known = parameter_file.read(parameters)
    with bar("reading") as progress:
        recorded = _writes(input_, found, reading, progress)
    new, said = fitted(known, recorded)
    for one in said:
        say(one)
    _write(output, parameter_file.as_toml(new))
    return OK
