"""`syncline whatif`: what another queue depth of the device would do to the latency of syncs."""

from __future__ import annotations

import click
from click.core import ParameterSource

from syncline import interruptible
from syncline.cli import options
from syncline.cli.errors import CANNOT_TELL, OK, Failure, say_prepared
from syncline.cli.options import example, reading_with
from syncline.cli.output import refuse_inputs, refuse_outputs, show
from syncline.cli.progress import bar
from syncline.cli.types import FILE, PLACE
from syncline.model.controller.paper import PATTERNS
from syncline.model.device import DISCIPLINES
from syncline.reading import Reading

# A year: the longest --hold and --lead.
_LONGEST_S = 31_536_000


class _Depths(click.ParamType):
    """A list of queue depths, such as 1,4,31."""

    name = "list"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        words = [word.strip() for word in value.split(",")]
        if not all(word.isdecimal() and 0 < int(word) <= 65536 for word in words):
            self.fail(f"'{value}' is no list of queue depths from 1 to 65536, such as 1,4,31", param, ctx)  # fmt: skip
        return [int(word) for word in words]


class _Leads(click.ParamType):
    """A list of times in seconds, such as 0.01,0.1,1."""

    name = "list"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float]:
        try:
            times = [float(word) for word in value.split(",")]
        except ValueError:
            times = [-1.0]
        if not all(0 <= time <= _LONGEST_S for time in times):
            self.fail(f"'{value}' is no list of seconds from 0 to {_LONGEST_S:,}, such as 0.01,0.1,1", param, ctx)  # fmt: skip
        # A replay counts in ns.
        return [ns / 1e9 for ns in sorted({round(time * 1e9) for time in times})]


@click.command(
    "whatif",
    epilog=example(
        "syncline whatif depth-4 --also depth-31 --queue-depth 4,31",
        "syncline whatif depth-4 --queue-depth 1,2,4 --controller paper --lead 0,0.01,0.1 --html whatif.html",
        "syncline whatif depth-31 --queue-depth 31 -o latencies.svg",
    ),
)
@click.argument("input_", required=True, metavar="INPUT")
@click.option(
    "--queue-depth", "depths", type=_Depths(), default="1,2,4,8,16,32", show_default=True,
    metavar="N,...", help="Queue depths to replay.",
)  # fmt: skip
@click.option(
    "--controller",
    type=click.Choice(["paper"]),
    help="Also replay a controller. paper: a low depth from the opening of a file that is synced often,"
    " until no sync has started for a while.",
)
@click.option("--pattern", "patterns", multiple=True, metavar="GLOB", help=f"Paths of files that are synced often, for --controller. By default {', '.join(PATTERNS)}.")  # fmt: skip
@click.option("--low-depth", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Low depth of --controller.")  # fmt: skip
@click.option("--hold", type=click.FloatRange(0), default=5.0, show_default=True, metavar="SECONDS", help="Time without a sync after which --controller restores the depth.")  # fmt: skip
@click.option("--lead", "leads", type=_Leads(), default="0.1", show_default=True, metavar="SECONDS,...", help="Times from the opening of a file to its sync, for --controller: each is replayed. Recordings have no openings.")  # fmt: skip
@click.option("--block-device", "dev", metavar="MAJOR,MINOR", help="Device to model. By default that with most requests of syncs.")  # fmt: skip
@click.option("--parallelism", type=click.IntRange(1), metavar="N", help="Number of requests that the device serves at once. By default estimated from the recording.")  # fmt: skip
@click.option(
    "--dispatch",
    type=click.Choice(DISCIPLINES),
    help="Which request is issued next. tags: as the scheduler `none`; fifo: in order; sync-first: syncs"
    " before all others. By default as recorded, or else figures only where all three agree.",
)
@click.option("--also", type=PLACE, multiple=True, metavar="INPUT", help="Another recording of the same device, at another depth: the device is fitted to both. May be repeated.")  # fmt: skip
@options.table_format("json has the latency of each sync.")
@click.option("-o", "--output", type=FILE, metavar="FILE.svg", help="Also draw latency and background writes by queue depth, and the distributions of the latency.")  # fmt: skip
@click.option("--html", type=FILE, metavar="OUT", help="Also write one HTML page with the table, what is assumed, and the charts.")  # fmt: skip
@options.engine
@reading_with(
    max_loss="Also replay a recording that lost events, if no more are lost: a number of losses (100), or a percentage of"
    " events and losses together (0.1%). Without it, such a recording is refused."
)
def command(
    input_: str,
    depths: list[int],
    controller: str | None,
    patterns: tuple[str, ...],
    low_depth: int,
    hold: float,
    leads: list[float],
    dev: str | None,
    parallelism: int | None,
    dispatch: str | None,
    also: tuple[str, ...],
    form: str,
    output: str | None,
    html: str | None,
    engine: str,
    reading: Reading,
) -> int:
    """Replays the requests of INPUT at other queue depths, and compares the latency of syncs.

    INPUT is one recording with the issues of requests (route dynamic-events, or ring-buffer). Threads and the journal do what they did,
    but wait for the device as long as it takes there. A model of the device is used only if it predicts requests that it was
    not fitted to within 15 %, and a depth has figures only if the recording has requests at that depth. If none has figures,
    the exit code is 5.
    """
    from syncline import render
    from syncline.model import recording
    from syncline.model.controller import Controller, Fixed, Paper
    from syncline.model.recording import Recording
    from syncline.model.replay import prepare
    from syncline.model.whatif import whatif
    from syncline.render import whatif as rendered
    from syncline.render.chart import as_svg
    from syncline.render.figure_page import as_page
    from syncline.render.whatif_figure import charts
    from syncline.report.run import caveats

    _check_options(controller, output, html, hold)
    warnings: list[str] = []

    def read(path: str, of: str | None) -> Recording:
        found = options.resolved(path, reading)
        for one in filter(None, (output, html)):
            refuse_inputs(one, [found, reading.marks])
        with bar("reading") as progress, found.open(reading, engine, progress) as open_engine:
            warnings.extend(caveats(open_engine))
            return recording.read(
                open_engine,
                of,
                lost_is_ok=reading.max_loss is not None,
                hardware_queues=found.recording.hardware_queues,
                schedulers=found.recording.schedulers,
            )

    first = read(input_, dev)
    others = [read(path, first.dev) for path in also]
    model = prepare(first, parallelism, also=others)
    controllers: list[Controller] = [Fixed(depth) for depth in depths]
    if controller is not None:
        if low_depth > model.depth:
            raise Failure(
                f"--low-depth {low_depth} is above the depth of the recording, {model.depth}",
                "the controller of the paper lowers the depth: name a smaller one",
            )
        controllers += [
            Paper(
                model.depth,
                low_depth,
                patterns=patterns or PATTERNS,
                hold_ns=round(hold * 1e9),
                lead_ns=round(lead * 1e9),
                is_one_of_several=len(leads) > 1,
            )
            for lead in leads
        ]
    outcome = whatif(model, controllers, dispatch, is_known=parallelism is not None)
    code = OK if outcome.answers else CANNOT_TELL
    if output is not None:
        interruptible.write(output, as_svg(charts(outcome)).encode())
    if html is not None:
        title = f"What another queue depth would do: {input_}"
        said = [*warnings, *rendered.remarks(outcome)]
        page = as_page(title, rendered.as_table(outcome), rendered.REPORT, said, charts(outcome))
        interruptible.write(html, page.encode())
    if form == "json":
        show(rendered.as_json(outcome))
        return code
    stdout_preface, stderr_preface = render.preface(form, warnings)
    say_prepared(stderr_preface)
    if form == "table":
        show(stdout_preface + rendered.render(outcome))
    else:
        say_prepared("".join(f"{line}\n" for line in rendered.unknown(outcome)))
        show(stdout_preface + render.exporter(form)(rendered.as_table(outcome), rendered.REPORT))
    return code


def _check_options(
    controller: str | None, output: str | None, html: str | None, hold: float
) -> None:
    """Refuses options of a controller without one, a time that is not a number, and an output that is no SVG.

    Raises:
        Failure.
    """
    context = click.get_current_context()
    for name in ("patterns", "low_depth", "hold", "leads"):
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and controller is None:
            option = {"patterns": "pattern", "leads": "lead"}.get(name, name.replace("_", "-"))
            raise Failure(f"--{option} has no effect without a controller", "add --controller paper, or leave it out")  # fmt: skip
    if not 0 <= hold <= _LONGEST_S:
        raise Failure(f"--hold {hold:g} is no time", f"give seconds from 0 to {_LONGEST_S:,}")
    if output is not None:
        options.check_svg(output)
    refuse_outputs(output, html)
