"""The settings of one run: options, then variables, then the context, then defaults."""

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rwq_cli import __version__
from rwq_cli.cli.manual import Manual
from rwq_cli.contexts import config_path
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.server.timeouts import CONNECT_TIMEOUT_S, PATIENCE_S, REPLY_TIMEOUT_S
from rwq_cli.environment import ColourMode, Environment
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.options import OutputFormat, OutputOptions

if TYPE_CHECKING:
    from rwq_cli.contexts.file import Contexts
    from rwq_cli.contexts.model import Context
    from rwq_cli.output.progress import TerminalProgress
    from rwq_cli.output.records import Output

E = TypeVar("E", bound=StrEnum)

# Fields that are null unless the data is read.
_DATA_FIELDS = frozenset({"data", "data_b64", "data_json"})
# Fields that are null unless sizes and previews are read.
_SIZE_FIELDS = frozenset({"bytes", "preview"})
DEFAULT_URL = "redis://localhost:6379/0"
LOCAL = "local:"
_VARIABLES = ("RWQ_URL", "RWQ_CONTEXT", "REDIS_URL")


class ServerSetting(NamedTuple):
    """Which server, and which setting names it.

    Attributes:
        url: Its URL.
        origin: Where it comes from, such as `RWQ_URL`.
        context: The context that it is; None if it was named by its URL.
    """

    url: str
    origin: str
    context: "Context | None" = None


class ReadOnlyContext(InvalidArgument):
    """The context is read-only, and the command changes something."""

    code = "read-only-context"


class Settings:
    """The settings of one run. They do not change once a command runs.

    Not a dataclass; see `Environment`.

    Args:
        environment: The streams and environment variables.
        given: The global options of the command line, by name.
        arguments: The words after `rwq`.

    Attributes:
        manual: What the command says of itself.
        describes: See `Manual`; with `--watch`, every record is one of a list.
        changes: Whether the command may change something on the server.
        progress: Shows progress on the terminal; None for no progress.
    """

    manual = Manual()
    describes: bool = False
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

        Args:
            options: The options that are the command's own.

        Raises:
            InvalidArgument: A value can never work.
        """
        self.describes = self.manual.describes and options.get("watch") is None
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
        is_described = self.describes and self.fields is None
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
        """Whether a person reads the results: a table, or no format was requested."""
        return self.chosen_output is None or self.output.is_for_people

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
    def needs_data(self) -> bool:
        """Whether the output has the data of items, without `--data`."""
        return self.output is OutputFormat.DATA or not _DATA_FIELDS.isdisjoint(self._fields_used)

    @property
    def shows_sizes(self) -> bool:
        """Whether the output shows the sizes or previews of items."""
        return self.fields is None or not _SIZE_FIELDS.isdisjoint(self._fields_used)

    @property
    def needs_ids_only(self) -> bool:
        """Whether the output needs no more than the IDs of items."""
        return self.output is OutputFormat.IDS and self.given.get("sort") in (None, "id")

    @property
    def _fields_used(self) -> Sequence[str]:
        return [*(self.fields or ()), *filter(None, [self.given.get("sort")])]

    @property
    def colour(self) -> bool:
        """Whether results have colour.

        Raises:
            InvalidArgument: `--color` has an unknown value.
        """
        return self.wants_colour(is_terminal=self.environment.stdout_is_terminal)

    @property
    def stderr_colour(self) -> bool:
        """Whether what is written to stderr has colour; see `colour`."""
        return self.wants_colour(is_terminal=self.environment.stderr_is_terminal)

    def wants_colour(self, *, is_terminal: bool) -> bool:
        """Whether what is written there has colour; see `colour`."""
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
        """Whether to leave out notes, summaries and progress."""
        return bool(self.given.get("quiet"))

    @property
    def null_separated(self) -> bool:
        """Whether `-0` was given."""
        return bool(self.given.get("null"))

    @property
    def debug(self) -> bool:
        """Whether to show the traceback of an error."""
        return bool(self.given.get("debug"))

    @property
    def verbose(self) -> bool:
        """Whether to print the server and the queue on stderr."""
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

    @cached_property
    def contexts(self) -> "Contexts":
        """The contexts of the configuration file.

        Raises:
            ContextError: The file cannot be used.
        """
        from rwq_cli.contexts.file import read_contexts

        return read_contexts(self.contexts_path)

    @property
    def contexts_path(self) -> Path:
        """The configuration file, which may not exist."""
        return config_path(self.environment.variables)

    @cached_property
    def _has_contexts(self) -> bool:
        """Whether there may be contexts: most runs have none, and do not load that module."""
        return os.path.lexists(self.contexts_path)

    @cached_property
    def server(self) -> ServerSetting:
        """The server: `-u`, `-c`, RWQ_URL, RWQ_CONTEXT, current context, REDIS_URL, localhost.

        Raises:
            ContextError: There is no such context, or the file cannot be used.
        """
        variables = self.environment.variables
        if (url := self.given.get("url")) is not None:
            return ServerSetting(str(url), "-u")
        if (name := self.given.get("context")) is not None:
            return self._of_context(name, "-c")
        if url := variables.get("RWQ_URL"):
            return ServerSetting(url, "RWQ_URL")
        if name := variables.get("RWQ_CONTEXT"):
            return self._of_context(name, "RWQ_CONTEXT")
        if self._has_contexts and self.contexts.current is not None:
            return self._of_context(self.contexts.current, "the current context")
        if url := variables.get("REDIS_URL"):
            return ServerSetting(url, "REDIS_URL")
        return ServerSetting(DEFAULT_URL, "default")

    def _of_context(self, name: str, origin: str) -> ServerSetting:
        context = self.contexts.get(name)
        return ServerSetting(context.url, origin, context)

    @cached_property
    def protecting_context(self) -> "Context | None":
        """The context whose protection applies: the one that was named, else that of the address.

        Of several contexts with this address, it is the most protected one. None if there is none.
        """
        url, _, context = self.server
        if context is not None or not self._has_contexts:
            return context
        from rwq_cli.contexts.model import most_protected
        from rwq_cli.core.server.same_server import is_same_server

        place = self._without_local(url)
        return most_protected(
            each
            for each in self.contexts.by_name.values()
            if is_same_server(self._without_local(each.url), place)
        )

    def is_server(self, url: str) -> bool:
        """Whether a URL is that of the server."""
        from rwq_cli.core.server.same_server import is_same_server

        return is_same_server(url, self._without_local(self.server.url))

    def _without_local(self, url: str) -> str:
        """The URL of the server, also of an embedded one."""
        if not url.startswith(LOCAL):
            return url
        from rwq_cli.core.errors import LocalServerError
        from rwq_cli.local import LocalServer

        try:
            return LocalServer(self.local_directory(url), self.environment.variables).url
        except LocalServerError:
            return url

    def local_directory(self, url: str) -> Path:
        """The data directory that a `local:` URL names."""
        from rwq_cli.local import default_directory

        named = url[len(LOCAL) :]
        if named:
            return Path(os.path.abspath(os.path.expanduser(named)))
        return default_directory(self.environment.variables)

    @property
    def is_read_only(self) -> bool:
        """Whether the context is read-only and `--write` was not given."""
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

    @property
    def server_label(self) -> str:
        """The name of the server in questions and summaries: its context, else its masked URL."""
        url, _, context = self.server
        if context is not None:
            return escaped_text(context.name)
        from rwq_cli.core.server.masking import mask_url

        shown = url if url.startswith(LOCAL) else mask_url(url)
        return escaped_text(shown)

    @property
    def is_implied(self) -> bool:
        """Whether the environment names both server and queue, so that messages need not."""
        return self.server.origin in _VARIABLES and self.queue_origin == "RWQ_QUEUE"

    @property
    def url(self) -> str:
        """The server's URL."""
        return self.server.url

    @property
    def queues(self) -> Sequence[bytes]:
        """The names of the queues: every `-q`, else RWQ_QUEUE, else the context's; may be empty."""
        return [os.fsencode(name) for name in self._queue_setting[0]]

    @property
    def queue_origin(self) -> str:
        """Where the queues come from."""
        return self._queue_setting[1]

    @property
    def _queue_setting(self) -> tuple[Sequence[str], str]:
        if names := self.given.get("queue"):
            return names, "-q"
        if name := self.environment.variables.get("RWQ_QUEUE"):
            return [name], "RWQ_QUEUE"
        context = self.server.context
        if context is not None and context.queue is not None:
            return [context.queue], f"context {context.name}"
        return [], "none"

    @property
    def queue(self) -> bytes:
        """The name of the queue.

        Raises:
            InvalidArgument: None is named, or several are.
        """
        names = self.queues
        if not names:
            raise InvalidArgument("no queue named", "give one with -q NAME or in RWQ_QUEUE")
        if len(names) > 1:
            raise InvalidArgument("this command takes one queue", "give -q once")
        return names[0]

    def path(self, name: str) -> Path | None:
        """The file that a global option names."""
        value = self.given.get(name)
        return Path(value) if value is not None else None

    @property
    def holder(self) -> bytes:
        """The holder that is written into this run's leases: `rwq:<user>@<host>:<session>`.

        The session is RWQ_SESSION, else the ID of the process's session, so that the commands of
        one shell or script recognize their own leases.
        """
        return self.holder_of(self.environment.variables.get("RWQ_SESSION") or str(os.getsid(0)))

    def holder_of(self, session: str) -> bytes:
        """The holder for leases of one of this user's sessions on this host."""
        variables = self.environment.variables
        user = variables.get("USER") or variables.get("LOGNAME") or _account()
        return os.fsencode(f"rwq:{user}@{os.uname().nodename}:{session}")


def _one_of(kind: type[E], name: str, source: str) -> E:
    """The member of an enumeration that an option or a variable names."""
    try:
        return kind(name)
    except ValueError:
        raise InvalidArgument(
            f"{source} cannot be {name!r}", f"it must be one of {', '.join(kind)}"
        )


def _account() -> str:
    """The name of the current user, or the user ID if there is no name."""
    from pwd import getpwuid

    try:
        return getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
