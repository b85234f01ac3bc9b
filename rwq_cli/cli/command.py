"""Declaring a command: its function, its help, its examples and its exit codes.

    @command(help="...", examples=("rwq kick -q jobs 4f2a9c",))
    @selects(_BURIED)
    def kick(settings: Settings, choice: Choice, ...) -> ExitStatus: ...

A command takes the run's settings first, and else what Typer makes of its options.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from rwq_cli.cli.interrupts import raise_on_interrupt
from rwq_cli.cli.manual import Manual
from rwq_cli.cli.options import GLOBAL_NAMES, option
from rwq_cli.cli.settings import Call, Settings
from rwq_cli.exit_codes import ExitCode, ExitStatus, UsageError

Function = Callable[..., Any]

HELP_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
# The heading of the columns that scripts rely on.
PLAIN_HEADING = "-o plain columns"
COMMON_OPTIONS = ("Common options:", "-q, -u, -c, -o and others: rwq help options")
# The help of a command has as many of its examples as fit; the reference has all.
_LINES_MAX = 40
_YES_FOR = "--yes="


def _split_yes_for(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words with `--yes` in place of `--yes=NAME`, and the name."""
    # A flag takes no value, and an option with a value would take the ID after `--yes` as its
    # value.
    end = words.index("--") if "--" in words else len(words)
    names = [word.removeprefix(_YES_FOR) for word in words[:end] if word.startswith(_YES_FOR)]
    kept = ["--yes" if word.startswith(_YES_FOR) else word for word in words[:end]]
    return [*kept, *words[end:]], names[-1] if names else None


class RwqCommand(TyperCommand):
    manual = Manual()

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        if parent is not None and parent.obj is not None:
            # Before parsing, which may fail.
            parent.obj.manual = self.manual
            if self.context_settings["allow_interspersed_args"]:
                args, name = _split_yes_for(args)
                parent.obj.give("yes_for", name)
        return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        # Our own error message says more.
        ctx.allow_extra_args = True
        try:
            extra = super().parse_args(ctx, args)
        except typer.TyperException as error:
            from rwq_cli.cli.unknown_words import bad_word

            raise bad_word(self, ctx, given, error) from error
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
        if not self.manual.writes_elsewhere:
            settings.check_yes_for()
        call.environment.quiet = settings.quiet
        options = settings.output_options
        # What only reads checks them before it writes: `--watch` adds fields.
        fields = None if self.manual.reads_only else self.manual.fields(ctx.params)
        if options.is_special and fields is not None:
            from rwq_cli.output.records import check

            check(fields, options)
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        own = (each for each in self.params if each.name not in GLOBAL_NAMES)
        rows = [record for each in own if (record := each.get_help_record(ctx)) is not None]
        if rows:
            with formatter.section("Options"):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        rows = [("Exit codes:", listed(self.manual.all_exits))]
        if self.manual.plain:
            names = "; ".join(f"{what}: {names}" for what, names in self.manual.plain.items())
            rows.append((f"{PLAIN_HEADING}:", names))
        end = ctx.make_formatter()
        end.write_dl([*rows, COMMON_OPTIONS])
        # Two empty lines and a heading are around the examples.
        others = f"{formatter.getvalue()}{end.getvalue()}".count("\n") + 3
        with formatter.section("Examples"):
            for example in self.manual.examples[: max(2, _LINES_MAX - others)]:
                formatter.write(f"  {example}\n")
        formatter.write_paragraph()
        formatter.write(end.getvalue())


def listed(exits: Mapping[ExitCode, str]) -> str:
    """Exit codes with their meanings, as a sentence of the help."""
    return "; ".join(f"{int(status)} {text}" for status, text in exits.items())


class RwqGroup(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        left: list[str] = super().parse_args(ctx, args)
        if not (ctx._protected_args or ctx.resilient_parsing):
            names = f": {' or '.join(self.list_commands(ctx))}" if ctx.parent else ""
            raise UsageError(
                f"{ctx.info_name} needs a command{names}", f"see {ctx.command_path} --help"
            )
        return left

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            from rwq_cli.cli.unknown_words import unknown_command

            raise unknown_command(ctx, args[0])
        return super().resolve_command(ctx, args)

    def summaries(self) -> dict[str, str]:
        return {
            name: command.get_short_help_str(limit=200) for name, command in self.commands.items()
        }

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer._click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=text)
            for name, text in self.summaries().items()
            if name.startswith(incomplete)
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries().items()))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        formatter.write_paragraph()
        exits = listed({status: status.summary for status in ExitStatus})
        formatter.write_dl([("Exit codes:", exits), COMMON_OPTIONS])


def command(
    name: str | None = None,
    *,
    help: str,
    null: str | None = None,
    options_first: bool = False,
    **manual: Any,
) -> Callable[[Function], Function]:
    """Declare a command; `null` is the help of its `-0`, and the others are of `Manual`."""
    # With `options_first`, all words after the first argument are arguments. An exit code that
    # means something special here is given by its name, such as `partial`.

    def declare(function: Function) -> Function:
        @wraps(function)
        def run(ctx: typer.Context, **options: Any) -> ExitCode:
            options.pop("null", None)
            # A command that says nothing else has done what it was asked for.
            status: ExitCode | None = function(ctx.obj.settings, **options)
            return ExitStatus.OK if status is None else status

        _, *own = signature(function).parameters.values()
        if null is not None:
            flag = Annotated[bool, option("-0, --null", null)]
            own.append(keyword("null", flag, default=False))
        exits = {
            each: manual.pop(key) for each in ExitStatus if (key := each.name.lower()) in manual
        }
        run.manual = Manual(**{"exits": exits, **manual})  # type: ignore[attr-defined]
        context = {**HELP_SETTINGS, "allow_interspersed_args": not options_first}
        declared = _with_parameters(run, [keyword("ctx", typer.Context), *own])
        function.add_to = lambda commands: commands.command(  # type: ignore[attr-defined]
            name, cls=RwqCommand, help=help, context_settings=context
        )(declared)
        return function

    return declare


def commands_of(module: Any) -> Any:
    """The parser of a module of `rwq_cli.commands`: its command, or its group with `GROUP_HELP`."""
    group_help = getattr(module, "GROUP_HELP", None)
    commands = typer.Typer(
        cls=None if group_help is None else RwqGroup,
        help=group_help,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=HELP_SETTINGS,
    )
    for each in vars(module).values():
        if hasattr(each, "add_to"):
            each.add_to(commands)
    return typer.main.get_command(commands)


def provided(
    name: str,
    provider: Callable[..., object],
    left_out: Sequence[str] = (),
    last: Sequence[str] = (),
    options: Sequence[Parameter] = (),
) -> Callable[[Function], Function]:
    """Give a command the options of `provider`, whose result is its parameter `name`."""
    # `options` are those of its signature unless they are given; `left_out` those that this command
    # does not have; `last` come after all others.
    options = options or tuple(signature(provider).parameters.values())[1:]
    members = [each for each in options if each.name not in left_out]

    def decorate(function: Function) -> Function:
        @wraps(function)
        def run(settings: Settings, **given: Any) -> Any:
            own = {each.name: given.pop(each.name) for each in members if each.name in given}
            return function(settings, **{name: provider(settings, **own)}, **given)

        parameters = signature(function).parameters.values()
        own = [new for each in parameters for new in (members if each.name == name else [each])]
        return _with_parameters(run, sorted(own, key=lambda each: each.name in last))

    return decorate


def keyword(name: str, annotation: Any, **more: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, **more)


def _with_parameters(function: Function, parameters: Sequence[Parameter]) -> Function:
    """Set what Typer takes for the parameters of a function: it does not follow `__wrapped__`."""
    keywords = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
    function.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in keywords}
    return function
