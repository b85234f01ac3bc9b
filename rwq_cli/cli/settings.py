"""The settings of one run: options, then variables, then the context, then defaults."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from rwq_cli import __version__
from rwq_cli.cli.manual import Manual
from rwq_cli.cli.target import Target
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.server.timeouts import CONNECT_TIMEOUT_S, PATIENCE_S, REPLY_TIMEOUT_S
from rwq_cli.environment import ColourMode, Environment
from rwq_cli.output.options import OutputFormat, OutputOptions

if TYPE_CHECKING:
    from rwq_cli.output.progress import TerminalProgress
    from rwq_cli.output.records import Output

E = TypeVar("E", bound=StrEnum)

# Fields that are null unless the data is read.
_DATA_FIELDS = frozenset({"data", "data_b64", "data_json"})
# Fields that are null unless sizes and previews are read.
_SIZE_FIELDS = frozenset({"bytes", "preview"})


class ReadOnlyContext(InvalidArgument):
    """The context is read-only, and the command changes something."""

    code = "read-only-context"


class Settings(Target):
    """The settings of one run. They do not change once a command runs.

    Not a dataclass; see `Environment`.

    Args:
        environment: The streams and environment variables.
        given: The global options of the command line, by name.
        arguments: The words after `rwq`.

    Attributes:
        manual: What the command says of itself.
        always_table: See `Manual`; with `--watch`, every record is one of a list.
        changes: True if the command may change something on the server.
        progress: Shows progress on the terminal; None for no progress.
    """

    manual = Manual()
    always_table: bool = False
    changes: bool = False
    progress: "TerminalProgress | None" = None

    def __init__(
        self,
        environment: Environment,
        given: Mapping[str, Any] | None = None,
        *,
        arguments: Sequence[str] = (),
    ) -> None:
        self.environment = environment
        self.given: Mapping[str, Any] = MappingProxyType({})
        self.arguments = arguments
        self.give(**(given or {}))

    def give(self, **values: Any) -> None:
        """Add options of the command line; one after the command's name overrides one before it."""
        given = {name: value for name, value in values.items() if value not in (None, False, [])}
        self.given = MappingProxyType({**self.given, **given})

    def write_version(self) -> None:
        """Write the version of rwq."""
        self.environment.stdout.write(f"rwq {__version__}\n".encode())

    def freeze(self, options: Mapping[str, object]) -> None:
        """End the reading of settings; called before a command runs.

        Raises:
            InvalidArgument: A value can never work.
        """
        self.always_table = self.manual.always_table and options.get("watch") is None
        self.changes = self.manual.may_change(options)
        _ = self.output, self.colour
        _ = self.connect_timeout_s, self.reply_timeout_s, self.patience_s
        self._check_yes_for()
        self.environment.quiet = self.quiet

    def _check_yes_for(self) -> None:
        """Raise `InvalidArgument` if `--yes=NAME` names another context than the server's."""
        named = self.given.get("yes_for")
        if named is None:
            return
        context = self.protecting_context
        if context is None or context.name != named:
            found = (
                f"this is context {context.name}"
                if context
                else "this server does not belong to a context"
            )
            raise InvalidArgument(
                f"--yes={named} is for another server: {found}",
                "check -c, -u and rwq context show",
            )

    def check_endless(self, option: str) -> None:
        """Raise `InvalidArgument` if the output format needs an end; `option` prevents that."""
        if self.output is OutputFormat.JSON:
            raise InvalidArgument(
                f"-o json is one document, and {option} has no end", "use -o jsonl"
            )

    def end_progress(self) -> None:
        """Remove the progress line, before results are written."""
        if self.progress is not None:
            self.progress.end()

    @property
    def output(self) -> OutputFormat:
        """The output format: `-o`, else RWQ_OUTPUT, else a table on a terminal and plain elsewhere.

        A command that describes something writes a table elsewhere, too, unless fields are chosen.

        Raises:
            InvalidArgument: There is no such format.
        """
        if (chosen := self.chosen_output) is not None:
            return chosen
        is_described = self.always_table and self.fields is None
        is_table = self.environment.stdout_is_terminal or is_described
        return OutputFormat.TABLE if is_table else OutputFormat.PLAIN

    @property
    def chosen_output(self) -> OutputFormat | None:
        """The format of `-o` or RWQ_OUTPUT; None if neither is given.

        Raises:
            InvalidArgument: There is no such format.
        """
        if (given := self.given.get("output")) is not None:
            return _one_of(OutputFormat, given, "-o")
        if self.manual.output is not None:
            return OutputFormat(self.manual.output)
        variable = self.environment.variables.get("RWQ_OUTPUT")
        return _one_of(OutputFormat, variable, "RWQ_OUTPUT") if variable else None

    @property
    def is_for_people(self) -> bool:
        """True if a person reads the results: a table, or no format was requested."""
        return self.chosen_output is None or self.output.is_table

    @property
    def output_origin(self) -> str:
        """Where the output format comes from."""
        if self.given.get("output") is not None:
            return "-o"
        return "default" if self.chosen_output is None else "RWQ_OUTPUT"

    @property
    def output_options(self) -> OutputOptions:
        """Where and how to write the results."""
        return OutputOptions(
            self.environment,
            self.output,
            self.colour,
            self.null_separated,
            self.progress,
            fields=self.fields,
            sort=self.given.get("sort"),
            reverse=bool(self.given.get("reverse")),
            by=self.by,
        )

    @cached_property
    def out(self) -> "Output":
        """Writes the results of this run: records; see `rwq_cli.output.records`."""
        from rwq_cli.output.records import Output

        return Output(self.output_options)

    @property
    def fields(self) -> Sequence[str] | None:
        """The fields that `--fields` chooses, each once; None for all."""
        given = self.given.get("fields")
        if given is None:
            return None
        return list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))

    @property
    def by(self) -> str | None:
        """The field by whose values `--by` counts the records; None to list them."""
        given: str | None = self.given.get("by")
        return given

    def read_limit(self, limit: int) -> int | None:
        """How many records a listing with this `-n` reads; None for all.

        What is sorted or counted is limited afterwards.
        """
        return None if self.output_options.reads_all else limit or None

    @property
    def needs_data(self) -> bool:
        """True if the output has the data of items, without `--data`."""
        reads = any(name in _DATA_FIELDS or name.startswith(".") for name in self._fields_used)
        return reads or self.output is OutputFormat.DATA

    @property
    def shows_sizes(self) -> bool:
        """True if the output shows the sizes or previews of items."""
        if self.fields is None and self.by is None:
            return True
        return not _SIZE_FIELDS.isdisjoint(self._fields_used)

    @property
    def needs_ids_only(self) -> bool:
        """True if the output needs no more than the IDs of items."""
        sort, is_ids = self.given.get("sort"), self.output is OutputFormat.IDS
        return is_ids and self.by is None and sort in (None, "id")

    @property
    def _fields_used(self) -> Sequence[str]:
        return [*(self.fields or ()), *filter(None, [self.given.get("sort"), self.by])]

    @property
    def colour(self) -> bool:
        """True if results have colour.

        Raises:
            InvalidArgument: `--color` has an unknown value.
        """
        return self.wants_colour(is_terminal=self.environment.stdout_is_terminal)

    @property
    def stderr_colour(self) -> bool:
        """True if what is written to stderr has colour; see `colour`."""
        return self.wants_colour(is_terminal=self.environment.stderr_is_terminal)

    def wants_colour(self, *, is_terminal: bool) -> bool:
        """True if what is written there has colour; see `colour`."""
        given = self.given.get("color", "auto")
        try:
            when = _one_of(ColourMode, given, "--color")
        except InvalidArgument as error:
            from rwq_cli.contexts.model import COLOURS

            if given in COLOURS:
                error.hint = f"{error.hint}; rwq context set --name-color {given} colours a context"
            raise
        return self.environment.wants_colour(when, is_terminal=is_terminal)

    @property
    def quiet(self) -> bool:
        """Leave out notes, summaries and progress."""
        return bool(self.given.get("quiet"))

    @property
    def null_separated(self) -> bool:
        """True if `-0` was given."""
        return bool(self.given.get("null"))

    @property
    def debug(self) -> bool:
        """Show the traceback of an error."""
        return bool(self.given.get("debug"))

    @property
    def verbose(self) -> bool:
        """Print the server and the queue on stderr."""
        return bool(self.given.get("verbose"))

    @property
    def connect_timeout_s(self) -> float:
        """How long connecting may take, seconds.

        Raises:
            InvalidArgument: It is not a duration, or 0.
        """
        return self._timeout_s("connect_timeout", CONNECT_TIMEOUT_S)

    @property
    def reply_timeout_s(self) -> float:
        """How long to wait for one reply, seconds; see `connect_timeout_s`."""
        return self._timeout_s("reply_timeout", REPLY_TIMEOUT_S)

    @property
    def patience_s(self) -> float:
        """How long to wait for a failover or a moving queue, seconds; 0 for not at all.

        Raises:
            InvalidArgument: It is not a duration.
        """
        given = self.given.get("patience")
        if given is None:
            return PATIENCE_S
        from rwq_cli.input.durations import parse_duration

        return parse_duration(given)

    def _timeout_s(self, name: str, default_s: float) -> float:
        given = self.given.get(name)
        if given is None:
            return default_s
        from rwq_cli.input.durations import parse_duration

        seconds = parse_duration(given)
        if not seconds:
            option = f"--{name.replace('_', '-')}"
            raise InvalidArgument(f"{option} must be more than 0", "give a duration such as 5s")
        return seconds

    @property
    def is_read_only(self) -> bool:
        """True if the context is read-only and `--write` was not given."""
        context = None if self.given.get("write") else self.protecting_context
        return context is not None and context.read_only

    def check_read_only(self) -> None:
        """Raise `ReadOnlyContext` if the command changes a server that must not be changed."""
        if self.changes and self.is_read_only:
            assert self.protecting_context is not None
            raise ReadOnlyContext(
                f"context {self.protecting_context.name} is read-only",
                "--write allows this one command; --dry-run shows what it would do",
            )


def _one_of(kind: type[E], name: str, source: str) -> E:
    """The member of an enumeration that an option or a variable names."""
    try:
        return kind(name)
    except ValueError:
        raise InvalidArgument(
            f"{source} cannot be {name!r}", f"it must be one of {', '.join(kind)}"
        )
