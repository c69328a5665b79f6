"""`syncline model`: what a write should cost."""

from __future__ import annotations

import click

from syncline import interruptible
from syncline.cli.errors import OK, say
from syncline.cli.options import example
from syncline.cli.output import show
from syncline.cli.types import SIZE


@click.group(
    "model",
    epilog=example("syncline model measure --dir /tmp -o machine.toml --max-size 64M"),
)
def command() -> None:
    """Predicts what writes should cost, by the rules of the page cache."""


@command.command(
    "measure", epilog=example("syncline model measure --dir /tmp -o machine.toml --max-size 64M")
)
@click.option("--dir", "folder", required=True, metavar="DIR", help="Folder on the device to measure. Its files are removed afterwards.")  # fmt: skip
@click.option("-o", "--output", default="-", metavar="FILE", show_default=True, help="File of the parameters; `-` is standard output.")  # fmt: skip
@click.option("--max-size", "max_kb", type=SIZE, default="1G", show_default=True, help="The most that one file may have.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Do not name the steps.")
def measure(folder: str, output: str, max_kb: int, quiet: bool) -> int:
    """Measures memory, page cache and the device below DIR, and writes the parameters of the model.

    Each measured value has a confidence interval of 95 %. Run it on an idle machine.
    """
    from syncline.write_model.measure import measure as measured
    from syncline.write_model.parameters import as_toml

    text = as_toml(measured(folder, max_kb * 1024, (lambda _: None) if quiet else lambda step: say(f"measuring: {step}")))  # fmt: skip
    if output == "-":
        show(text)
    else:
        interruptible.write(output, text.encode())
    return OK
