"""Declares a command: its function, its help, its examples and its exit codes.

A command takes the run's settings first, then its options as Typer has parsed them; see
`rwq_cli.commands.kick` for a short one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, cleandoc, signature
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from rwq_cli.cli.interrupts import raise_on_interrupt
from rwq_cli.cli.manual import Manual
from rwq_cli.cli.options import COMMON_NAMES, check_not_empty, make_common_options, option
from rwq_cli.cli.settings import Call, Settings
from rwq_cli.environment import Environment
from rwq_cli.exit_codes import ExitCode, ExitStatus
from rwq_cli.output.options import OutputFormat

Function = Callable[..., Any]
P = ParamSpec("P")
S = TypeVar("S", bound=ExitCode | None)
HELP_SETTINGS = {"help_option_names": ["-h", "--help"]}
_HELP_WIDTHS = 30, 98
# How wide the terms of a help may be, and how wide at least the texts beside them.
_TERM_MAX, _TEXT_MIN = 30, 24
# The heading of the columns that scripts rely on.
PLAIN_HEADING = "-o plain columns"
COMMON_OPTIONS = ("Common options:", "-q, -u, -c, -o and others: rwq help options")
# The help of a command shows as many of its examples as fit; the reference shows all.
_LINES_MAX = 40
_YES_FOR = "--yes="
# These options come after all others.
_LAST = ("yes", "dry_run")


class RwqCommand(TyperCommand):
    manual = Manual()

    def __init__(self, *args: Any, params: Any, callback: Any, **more: Any) -> None:
        super().__init__(*args, params=[*params, *make_common_options()], callback=callback, **more)
        self.manual = callback.manual

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        all_words = list(args)
        # Before parsing, which may fail.
        ctx.obj.manual = self.manual
        # `--yes` is a flag: an option that takes a value would take the ID after it.
        for at, word in enumerate(args) if ctx.allow_interspersed_args else ():
            if word == "--":
                break
            if word.startswith(_YES_FOR):
                ctx.obj.set_common_option("yes_for", word.removeprefix(_YES_FOR))
                args[at] = "--yes"
        # Our own error message says more.
        ctx.allow_extra_args = True
        words: dict[str, Any] = {}
        try:
            words, _, _ = self.make_parser(ctx).parse_args(list(args))
            ctx.obj.words = words
            if not ctx.resilient_parsing:
                set_names = {
                    name for name, value in {**ctx.obj.common_options, **words}.items() if value
                }
                used = [option for option in self.params if option.name in set_names]
                for parameter in self.params:
                    if parameter.param_type_name == "option":
                        check_not_empty(parameter, words.get(parameter.name or ""))
                self.manual.check_combined({flag for option in used for flag in option.opts})
            extra = super().parse_args(ctx, args)
        except typer.TyperException as error:
            from rwq_cli.cli.unknown_words import bad_word

            raise bad_word(self, ctx, all_words, words, error) from error
        if extra and not ctx.resilient_parsing:
            from rwq_cli.cli.unknown_words import unexpected_words

            raise unexpected_words(self, ctx, extra)
        return extra

    def invoke(self, ctx: Any) -> Any:
        # All modules are loaded by now.
        raise_on_interrupt()
        call: Call = ctx.obj
        call.options = dict(ctx.params)
        settings = call.settings
        ctx.call_on_close(settings.end_progress)
        if not self.manual.writes_elsewhere:
            settings.check_yes_for()
        call.environment.quiet = settings.quiet
        # A command that only reads checks them before it writes: `--watch` adds fields.
        fields = None if self.manual.reads_only else self.manual.fields(ctx.params)
        if settings.reshapes_records and fields is not None:
            from rwq_cli.output.order import check

            check(fields, settings)
            if fields.has_summary and settings.fields and settings.output is OutputFormat.JSON:
                from rwq_cli.output.tally import check_summary_fields

                check_summary_fields(settings.fields)
        return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        words = [word for word in self.params if word.param_type_name == "argument"]
        # All words after the first argument are arguments.
        end = [] if ctx.allow_interspersed_args else ["--"]
        return ["[OPTIONS]", *end, *(word.metavar or "" for word in words)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        parameters = (parameter for parameter in self.params if parameter.name not in COMMON_NAMES)
        rows = [
            record
            for parameter in parameters
            if (record := parameter.get_help_record(ctx)) is not None
        ]
        if rows:
            with formatter.section("Options"):
                write_rows(formatter, rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        rows = [("Exit codes:", describe_exits(self.manual.all_exits))]
        if self.manual.plain:
            names = "; ".join(f"{what}: {names}" for what, names in self.manual.plain.items())
            rows.append((f"{PLAIN_HEADING}:", names))
        end = ctx.make_formatter()
        write_rows(end, [*rows, COMMON_OPTIONS])
        # The examples add a heading and two empty lines.
        others = f"{formatter.getvalue()}{end.getvalue()}".count("\n") + 3
        with formatter.section("Examples"):
            for example in self.manual.examples[: max(2, _LINES_MAX - others)]:
                formatter.write(f"  {example}\n")
        formatter.write_paragraph()
        formatter.write(end.getvalue())


def help_width(environment: Environment) -> int:
    """Return how many columns of the terminal help takes: Click takes fifty at least."""
    least, most = _HELP_WIDTHS
    return max(least, min(environment.width - 2, most))


def is_narrow(formatter: Any, rows: Sequence[tuple[str, str]]) -> bool:
    """Return True if there is no room for texts beside their terms."""
    widest = max(len(term) for term, _ in rows)
    return bool(formatter.width - min(_TERM_MAX, widest) < _TEXT_MIN)


def write_rows(formatter: Any, rows: Sequence[tuple[str, str]]) -> None:
    """Write terms with their texts beside them, or below them on a narrow terminal."""
    formatter.write_dl(rows, col_max=2 if is_narrow(formatter, rows) else _TERM_MAX)


def describe_exits(exits: Mapping[ExitCode, str]) -> str:
    """Format exit codes and their meanings as a sentence of the help."""
    return "; ".join(f"{int(status)} {text}" for status, text in exits.items())


class RwqGroup(TyperGroup):
    def __init__(self, *, params: Iterable[Any] = (), **more: Any) -> None:
        super().__init__(params=[*make_common_options(), *params], **more)
        self.subcommand_metavar = "COMMAND [ARG...]"

    def summaries(self) -> dict[str, str]:
        return {name: command.get_short_help_str(200) for name, command in self.commands.items()}

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer.completion import shell_completion  # type: ignore[attr-defined]

        # Typer would load all commands, and truncate a summary after 45 characters.
        rows = self.summaries().items()
        items = [shell_completion.CompletionItem(name, help=help) for name, help in rows]
        items = [item for item in items if item.value.startswith(incomplete)]
        return items or super().shell_complete(ctx, incomplete)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            from rwq_cli.cli.unknown_words import unknown_command

            raise unknown_command(ctx, args[0])
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            write_rows(formatter, [*self.summaries().items()])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        formatter.write_paragraph()
        exits = describe_exits({status: status.summary for status in ExitStatus})
        write_rows(formatter, [("Exit codes:", exits), COMMON_OPTIONS])


def _docstring(function: Callable[..., object]) -> str:
    """The docstring of a function, also if Python was told to drop docstrings (-OO)."""
    if function.__doc__ is not None:
        return cleandoc(function.__doc__)
    import ast
    from inspect import getsource

    definition = ast.parse(getsource(function)).body[0]
    assert isinstance(definition, ast.FunctionDef)
    return ast.get_docstring(definition) or ""


# What adds the commands of a module to its Typer, in their order, by the module's name.
_DECLARED: defaultdict[str, list[Callable[[typer.Typer], object]]] = defaultdict(list)


def add_declared(module: str, commands: typer.Typer) -> None:
    """Add the commands that a module declares."""
    for add in _DECLARED[module]:
        add(commands)


def command(
    *, null: str | None = None, options_first: bool = False, **manual: Any
) -> Callable[[Callable[Concatenate[Settings, P], S]], Callable[Concatenate[Settings, P], S]]:
    """Declare a command: its docstring is its help, followed by its examples, one a line.

    A parameter whose type is a named tuple stands for the options that its fields declare; the
    first field is the settings.

    Args:
        null: The help of its `-0`; None if it has none.
        options_first: Whether all words after the first argument are arguments.
        **manual: Fields of `Manual`; an exit code with a meaning of the command's own is given by
            its name, such as `partial`.
    """

    def declare(
        function: Callable[Concatenate[Settings, P], S],
    ) -> Callable[Concatenate[Settings, P], S]:
        takes_options: Function = function
        for name, parameter in signature(function).parameters.items():
            if hasattr(parameter.annotation, "_fields"):
                takes_options = with_options(name, parameter.annotation)(takes_options)

        @wraps(function)
        def run(ctx: typer.Context, **options: Any) -> ExitCode:
            if null is not None:
                options.pop("null")
            # A command that returns no status has succeeded.
            status: ExitCode | None = takes_options(ctx.obj.settings, **options)
            return ExitStatus.OK if status is None else status

        _, *parameters = signature(takes_options).parameters.values()
        if null is not None:
            flag = Annotated[bool, option("-0, --null", null)]
            parameters.append(keyword("null", flag, default=False))
        parameters.sort(key=lambda parameter: parameter.name in _LAST)
        _set_parameters(run, [keyword("ctx", typer.Context), *parameters])
        help, _, examples = _docstring(function).partition("\n\n")
        exits = {
            status: manual.pop(key)
            for status in ExitStatus
            if (key := status.name.lower()) in manual
        }
        declared = {"exits": exits, "examples": examples.splitlines(), **manual}
        run.manual = Manual(**declared)  # type: ignore[attr-defined]
        _DECLARED[function.__module__].append(
            lambda commands: commands.command(
                function.__name__.removesuffix("_"),
                cls=RwqCommand,
                help=" ".join(help.split()),
                context_settings={**HELP_SETTINGS, "allow_interspersed_args": not options_first},
            )(run)
        )
        return function

    return declare


def with_options(
    name: str, make: Callable[..., object], parameters: Iterable[Parameter] | None = None
) -> Callable[[Function], Function]:
    """Add the options of `make` to a command, and pass its result as the parameter `name`."""
    # The options are those of its signature unless `parameters` has them.
    options = parameters or tuple(signature(make).parameters.values())[1:]

    def decorate(function: Function) -> Function:
        @wraps(function)
        def with_object(settings: Settings, **arguments: Any) -> Any:
            values = {parameter.name: arguments.pop(parameter.name) for parameter in options}
            return function(settings, **arguments, **{name: make(settings, **values)})

        parameters = signature(function).parameters.values()
        _set_parameters(
            with_object,
            [
                new
                for parameter in parameters
                for new in (options if parameter.name == name else [parameter])
            ],
        )
        return with_object

    return decorate


def _set_parameters(function: Function, parameters: Iterable[Parameter]) -> None:
    keywords = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    function.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
    # Typer does not follow `__wrapped__`.
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}


def keyword(name: str, annotation: Any, **more: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, **more)
