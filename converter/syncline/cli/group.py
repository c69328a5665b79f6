"""The group of all commands."""

from __future__ import annotations

import importlib
from typing import Any

import click

from syncline import terminal
from syncline.printable import printable

# Commands, each with what it does, and with a module of the same name (`_` for `-`). A module is imported only when it is used, so
# that `--help` is fast: the texts are those of the modules.
COMMANDS = {
    "record": "Records the syncs of this machine into a run directory.",
    "convert": "Converts logs to a trace, tables, requests, events or samples.",
    "inspect": "Reports for each INPUT the format, clock, span, events, losses, and which reports it can feed.",
    "report": "Prints reports on a log, a trace, or Parquet.",
    "advise": "Names syncs of each INPUT that are not needed, could be cheaper, or do not suffice.",
    "check": "Checks RULES about durability: which file was synced, and before what.",
    "query": "Runs SQL on a log, a trace, or Parquet.",
    "sql": "Prints the SQL of a report with its macros expanded, to run it by hand.",
    "flamegraph": "Draws a flame graph of a log, a trace, or Parquet.",
    "diff": "Compares two sides, BASE and NEW, and reports what got worse.",
    "baseline": "Stores runs for a later diff.",
    "whatif": "Replays the requests of INPUT at other queue depths, and compares the latency of syncs.",
    "model": "Predicts what writes should cost, by the rules of the page cache.",
    "ingest": "Adds runs to a dataset: the tables of each run, in a partition of its host and day.",
    "dataset": "Lists, verifies and removes the runs of a dataset.",
    "trend": "Finds the runs at which a metric changed: steps, episodes after which the level returned, and drifts.",
    "open": "Shows a trace, or a log as a trace, in the Perfetto UI.",
    "extension-server": "Writes the files of an extension server for the Perfetto UI.",
    "summary-spec": "Writes a specification of metrics for Perfetto's trace summaries.",
    "doctor": "Checks this machine: engines, DuckDB, recorders, kernel features, UI.",
    "schema": "Lists the tables that SQL can ask, or describes the columns of one TABLE.",
    "help": "Explains a command (`help diff`, `help model fit`) or a report with its columns (`help bystanders`).",
    "completion": "Prints the completion of a shell: of commands, options, their values, names of reports and files.",
}


# Arguments that name no file.
_TEXTS = ("sql", "names")
# Arguments that name files, which a shell completes by itself.
_FILES = ("INPUT", "INPUT...", "LOG...", "RUN...", "BASE", "NEW")


class Escaped(BaseException):
    """Carries the exception that is its cause through click, which would end the process with a code of its own."""


def _check_values(command: click.Command) -> None:
    """Makes a command refuse empty names of inputs, and texts that are not UTF-8."""
    for param in command.params:
        if param.callback is None and param.name != "command":
            param.callback = _checked
        names_file = param.metavar in _FILES or isinstance(param.type, click.Path)
        if names_file and not isinstance(param.type, click.Choice):
            param._custom_shell_complete = param._custom_shell_complete or _complete_file
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            _check_values(command.commands[name])
        return
    if not any(param.name == "color" for param in command.params):
        command.params += [_color(), _json()]


def _complete_file(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(begun, type="file")]


def _color() -> click.Option:
    def choose(_ctx: click.Context, _param: click.Parameter, mode: str | None) -> None:
        if mode is not None:
            terminal.use_colour(mode)

    return click.Option(
        ["--color"],
        type=click.Choice(terminal.MODES),
        is_eager=True,
        expose_value=False,
        callback=choose,
        help="Colours: auto (the default) is on a terminal, unless NO_COLOR is set.",
    )


def _json() -> click.Option:
    def choose(ctx: click.Context, _param: click.Parameter, is_given: bool) -> None:
        forms = [one for one in ctx.command.params if one.name == "form"]
        if is_given and forms and "json" in getattr(forms[0].type, "choices", ()):
            ctx.default_map = {**(ctx.default_map or {}), "form": "json"}

    return click.Option(
        ["--json"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=choose,
        help="For programs: print errors and warnings as JSON, and results too if --format has json.",
    )


def _checked(_ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    is_text = param.name in _TEXTS or (
        isinstance(param, click.Option) and isinstance(param.type, click.types.StringParamType)
    )
    for one in value if isinstance(value, tuple) else (value,):
        if not isinstance(one, str):
            continue
        if isinstance(param, click.Argument) and not one:
            raise click.UsageError(f"{param.make_metavar(_ctx)} is empty: name a file or a folder")
        if is_text and (bad := _first_bad_byte(one)) is not None:
            name = param.opts[0] if isinstance(param, click.Option) else param.name.upper()
            raise click.UsageError(f"{name} is not UTF-8: byte {bad + 1} of it")
    return value


def _first_bad_byte(text: str) -> int | None:
    """Returns the place of the first byte that is not UTF-8. Python keeps such bytes of arguments as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return len(text[: error.start].encode())
    return None


class Commands(click.Group):
    """A group that imports the module of a command when the command is requested."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, click.Command(name, help=text).get_short_help_str(limit))
                    for name, text in COMMANDS.items()
                ]
            )

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = name.replace("-", "_")
        command = importlib.import_module(f"syncline.cli.{module}").command
        _check_values(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not ctx.resilient_parsing:
            # Only a wrong name needs it.
            import difflib

            if close := difflib.get_close_matches(name, COMMANDS, 1):
                ctx.fail(f"No such command {printable(name)!r}. Did you mean {close[0]}?")
        if name in COMMANDS and not {"-h", "--help"} & {*args}:
            from syncline.cli.limits import check_address_space

            check_address_space(name)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, EOFError, OSError) as error:
            raise Escaped from error


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example:  syncline report tests/data/thesis/small4.log",
)
@click.version_option(package_name="syncline", message="syncline %(version)s")
def cli() -> None:
    """Shows what fsync waits for: converts writeback logs to Perfetto traces and reports."""
