"""The settings of one run: options, then variables, then the context, then defaults."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from rwq_cli.cli.manual import Manual
from rwq_cli.cli.target import Target
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.server.patience import CONNECT_TIMEOUT_S, PATIENCE_S, REPLY_TIMEOUT_S
from rwq_cli.environment import ColourMode, Environment
from rwq_cli.output.options import OutputFormat, OutputOptions

if TYPE_CHECKING:
    from rwq_cli.contexts.file import Context
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
    """The settings of one run, which nothing changes: a plain class, as `Environment` is."""

    # `beside` are those of another server that the run writes to, too; None for none.
    beside: "Settings | None" = None

    def __init__(
        self,
        environment: Environment,
        given: Mapping[str, Any] | None = None,
        manual: Manual = Manual(reads_only=True),  # noqa: B008
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        # `manual` and `options` are those of the command, and `given` the options of every command.
        self.environment, self._manual, self._options = environment, manual, options
        self.given: Mapping[str, Any] = given or {}
        self.null_separated = bool(options.get("null"))
        self.quiet = bool(self.given.get("quiet"))
        self.verbose = bool(self.given.get("verbose"))
        # The fields that `--fields` chooses, each once; None for all. The field of `--by`.
        chosen = (name.strip() for name in self.given.get("fields", "").split(","))
        self.fields = list(dict.fromkeys(filter(None, chosen))) if "fields" in self.given else None
        self.by: str | None = self.given.get("by")
        self.output = self._output()
        self.colour = self.wants_colour(is_terminal=environment.stdout_is_terminal)
        self.connect_timeout_s = self._duration_s("connect_timeout", CONNECT_TIMEOUT_S)
        self.reply_timeout_s = self._duration_s("reply_timeout", REPLY_TIMEOUT_S)
        # How long to wait for a failover or a moving queue; 0 for not at all.
        self.patience_s = self._duration_s("patience", PATIENCE_S, may_be_0=True)

    def replaced(self, **given: Any) -> "Settings":
        return Settings(self.environment, {**self.given, **given}, self._manual, self._options)

    def check_yes_for(self) -> None:
        """Raise `InvalidArgument` if `--yes=NAME` names the context of no server of the run."""
        if (named := self.given.get("yes_for")) is None:
            return
        names = list(dict.fromkeys(each.name for each in self._protecting_contexts))
        if named not in names:
            found = "this server does not belong to a context"
            if names:
                found = f"this is context {' and '.join(names)}"
            raise InvalidArgument(
                f"--yes={named} is for another server: {found}", "check -c, -u and rwq context show"
            )

    @property
    def asking_context(self) -> "Context | None":
        """Of the contexts of all servers that the run writes to, the most protected one."""
        contexts = self._protecting_contexts
        if len(contexts) < 2:
            return next(iter(contexts), None)
        from rwq_cli.contexts.file import Protection

        levels = list(Protection)
        return max(contexts, key=lambda each: levels.index(each.protect))

    @property
    def _protecting_contexts(self) -> "Sequence[Context]":
        servers: list[Settings] = [self, *([self.beside] if self.beside else [])]
        return [each for server in servers if (each := server.protecting_context) is not None]

    @property
    def is_read_only(self) -> bool:
        context = None if self.given.get("write") else self.protecting_context
        return context is not None and context.read_only

    def check_read_only(self) -> None:
        if self._manual.may_change(self._options) and self.is_read_only:
            assert self.protecting_context is not None
            raise ReadOnlyContext(
                f"context {self.protecting_context.name} is read-only",
                "--write allows this one command; --dry-run shows what it would do",
            )

    def _output(self) -> OutputFormat:
        """The format: `-o`, else RWQ_OUTPUT, else a table on a terminal and plain elsewhere."""
        # A command that describes something writes a table elsewhere, too, unless fields are
        # chosen.
        if (given := self.given.get("output")) is not None:
            return _one_of(OutputFormat, given, "-o")
        if self._manual.output is not None:
            return OutputFormat(self._manual.output)
        if variable := self.environment.variables.get("RWQ_OUTPUT"):
            return _one_of(OutputFormat, variable, "RWQ_OUTPUT")
        is_described = self._manual.always_table and self._options.get("watch") is None
        is_table = self.environment.stdout_is_terminal or (is_described and self.fields is None)
        return OutputFormat.TABLE if is_table else OutputFormat.PLAIN

    @property
    def output_origin(self) -> str:
        if self.given.get("output") is not None:
            return "-o"
        is_set = self._manual.output or self.environment.variables.get("RWQ_OUTPUT")
        return "RWQ_OUTPUT" if is_set else "default"

    @property
    def is_for_people(self) -> bool:
        """True if a person reads the results: a table, or no format was requested."""
        return self.output_origin == "default" or self.output.is_table

    @property
    def output_options(self) -> OutputOptions:
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
        from rwq_cli.output.records import Output

        return Output(self.output_options)

    @cached_property
    def progress(self) -> "TerminalProgress | None":
        environment = self.environment
        if self.quiet or environment.stdout_is_pipe or not environment.stderr_is_terminal:
            return None
        from rwq_cli.output.progress import TerminalProgress

        return TerminalProgress(environment, colour=self.wants_colour(is_terminal=True))

    def end_progress(self) -> None:
        if (progress := vars(self).get("progress")) is not None:
            progress.end()

    def read_limit(self, limit: int) -> int | None:
        """How many records a listing with this `-n` reads; None for all."""
        # What is sorted or counted is limited afterwards.
        return None if self.output_options.reads_all else limit or None

    @property
    def needs_data(self) -> bool:
        reads = any(name in _DATA_FIELDS or name.startswith(".") for name in self._fields_used)
        return reads or self.output is OutputFormat.DATA

    @property
    def shows_sizes(self) -> bool:
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

    def wants_colour(self, *, is_terminal: bool) -> bool:
        when = _one_of(ColourMode, self.given.get("color", "auto"), "--color")
        return self.environment.wants_colour(when, is_terminal=is_terminal)

    def check_endless(self, option: str) -> None:
        if self.output is OutputFormat.JSON:
            raise InvalidArgument(f"-o json cannot be combined with {option}", "use -o jsonl")

    def _duration_s(self, name: str, default_s: float, *, may_be_0: bool = False) -> float:
        given = self.given.get(name)
        if given is None:
            return default_s
        from rwq_cli.input.values import parse_duration

        seconds = parse_duration(given)
        if not (seconds or may_be_0):
            option = f"--{name.replace('_', '-')}"
            raise InvalidArgument(f"{option} must be more than 0", "give a duration such as 5s")
        return seconds


def _one_of(kind: type[E], name: str, source: str) -> E:
    try:
        return kind(name)
    except ValueError:
        raise InvalidArgument(
            f"{source} cannot be {name!r}", f"it must be one of {', '.join(kind)}"
        )
