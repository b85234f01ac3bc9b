"""The settings of one run: options, then variables, then the context, then defaults."""

import os
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rwq_cli.cli.manual import Manual
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.keys import OWN_LEASE
from rwq_cli.core.server.patience import REPLY_TIMEOUT_S
from rwq_cli.environment import ColourMode, Environment, user_directory
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.options import OutputFormat, OutputOptions

if TYPE_CHECKING:
    from rwq_cli.contexts.config import Context, Contexts
    from rwq_cli.local.server import LocalServer
    from rwq_cli.output.progress import TerminalProgress
    from rwq_cli.output.records import Output

E = TypeVar("E", bound=StrEnum)

LOCAL = "local:"
# Fields that are null unless the data is read, or unless sizes and previews are.
_DATA_FIELDS = frozenset({"data", "data_b64", "data_json"})
_SIZE_FIELDS = frozenset({"bytes", "preview"})


class ReadOnlyContext(InvalidArgument, code="read-only-context"):
    """The context is read-only, and the command changes something."""


class ServerSetting(NamedTuple):
    """A server's URL, the setting that names it, and the context; None if the URL was given."""

    url: str
    origin: str
    context: "Context | None" = None


class Settings(OutputOptions):
    """The settings of one run, which are never changed."""

    # `second_server` are those of a second server that the run also writes to; None for none.
    second_server: "Settings | None" = None

    def __init__(
        self,
        environment: Environment,
        common_options: Mapping[str, Any] = MappingProxyType({}),
        manual: Manual = Manual(reads_only=True),  # noqa: B008
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        # `manual` and `options` are those of the command.
        self.environment = environment
        self.common_options = common = common_options
        self._manual, self._options = manual, options
        self.null_separated = bool(options.get("null"))
        self.quiet, self.verbose = bool(common.get("quiet")), bool(common.get("verbose"))
        folder = user_directory(environment.variables, "XDG_CONFIG_HOME", ".config")
        self.contexts_path = folder / "rwq" / "config.toml"
        field_names = (name.strip() for name in common.get("fields", "").split(","))
        self.fields = list(dict.fromkeys(filter(None, field_names))) if "fields" in common else None
        self.sort, self.by, self.reverse = common.get("sort"), common.get("by"), "reverse" in common
        # A description is a table in a pipe, too, unless fields are chosen.
        is_described = manual.always_table and options.get("watch") is None and self.fields is None
        is_table = environment.stdout_is_terminal or is_described
        formats: dict[str, Any] = {
            "-o": common.get("output"),
            "this command": manual.output,
            "RWQ_OUTPUT": environment.variables.get("RWQ_OUTPUT") or None,
            "default": OutputFormat.TABLE if is_table else OutputFormat.PLAIN,
        }
        if (usual := formats["RWQ_OUTPUT"]) in tuple(OutputFormat):
            # It was not set for this command, which may have nothing to write in it.
            formats["RWQ_OUTPUT"] = manual.usual_format(
                OutputFormat(usual), options, has_fields=self.fields is not None
            )
        self.output_origin = next(origin for origin, name in formats.items() if name is not None)
        self.output = _one_of(OutputFormat, formats[self.output_origin], self.output_origin)
        self.colour = self.wants_colour(is_terminal=environment.stdout_is_terminal)
        # A person reads the results: a table, or no format was requested.
        self.is_for_people = self.output_origin == "default" or self.output.is_table
        used = [*(self.fields or ()), *filter(None, [self.sort, self.by])]
        reads = any(name in _DATA_FIELDS or name.startswith(".") for name in used)
        self.needs_data = reads or self.output is OutputFormat.DATA
        is_all = self.fields is None and self.by is None
        self.shows_sizes = is_all or not _SIZE_FIELDS.isdisjoint(used)
        is_ids = self.output is OutputFormat.IDS
        self.needs_ids_only = is_ids and self.by is None and self.sort in (None, "id")
        self.reply_timeout_s: float = common.get("reply_timeout", REPLY_TIMEOUT_S)

    def replaced(self, **options: Any) -> "Settings":
        options = {
            name: value
            for name, value in {**self.common_options, **options}.items()
            if value is not None
        }
        return Settings(self.environment, options, self._manual, self._options)

    @cached_property
    def contexts(self) -> "Contexts":
        from rwq_cli.contexts.config import read_contexts

        return read_contexts(self.contexts_path)

    @cached_property
    def _has_contexts(self) -> bool:
        """True if there may be contexts: most runs have none, and do not load that module."""
        return os.path.lexists(self.contexts_path)

    @cached_property
    def server(self) -> ServerSetting:
        origin, url, name = next(setting for setting in self._servers() if setting[1] or setting[2])
        context = self.contexts.get(name) if name else None
        return ServerSetting(context.url if context else str(url), origin, context)

    def _servers(self) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield the settings that may name the server, by URL or context; the first set does."""
        options, variables = self.common_options, self.environment.variables
        yield "-u", options.get("url"), None
        yield "-c", None, options.get("context")
        yield "RWQ_URL", variables.get("RWQ_URL"), None
        yield "RWQ_CONTEXT", None, variables.get("RWQ_CONTEXT")
        yield "the current context", None, self.contexts.current if self._has_contexts else None
        yield "REDIS_URL", variables.get("REDIS_URL"), None
        yield "default", "redis://localhost:6379/0", None

    @cached_property
    def protecting_context(self) -> "Context | None":
        """The context whose protection applies: the one named, else that of the address."""
        # Of several contexts with this address, the most protected one applies.
        context = self.server.context
        if context is not None or not self._has_contexts:
            return context
        contexts_of_server = (
            context for context in self.contexts.by_name.values() if self.is_server(context.url)
        )
        return max(
            contexts_of_server,
            key=lambda context: (context.read_only, context.protection_level),
            default=None,
        )

    def is_server(self, url: str) -> bool:
        """Return True if a URL is that of the run's server."""
        from rwq_cli.core.server.urls import is_same_server

        return is_same_server(*map(self._without_local, (url, self.server.url)))

    @property
    def other_url(self) -> str:
        """The URL of the other server that this run names, with `--to-url`; "" for none."""
        return self._options.get("to_url") or ""

    def _without_local(self, url: str) -> str:
        return self.local_server(url).url if url.startswith(LOCAL) else url

    def local_server(self, url: str) -> "LocalServer":
        from rwq_cli.local.server import LocalServer, default_directory

        directory_name, variables = url.removeprefix(LOCAL), self.environment.variables
        directory = (
            Path(os.path.expanduser(directory_name))
            if directory_name
            else default_directory(variables)
        )
        return LocalServer(directory, variables)

    @property
    def server_label(self) -> str:
        url, _, context = self.server
        if context is not None:
            return escaped_text(context.name)
        from rwq_cli.core.server.urls import mask_url

        return escaped_text(url if url.startswith(LOCAL) else mask_url(url))

    @property
    def target_from_env(self) -> bool:
        """True if the environment names both server and queue, so that messages need not."""
        is_named = self.server.origin in ("RWQ_URL", "RWQ_CONTEXT", "REDIS_URL")
        return is_named and self.queue_origin == "RWQ_QUEUE"

    @property
    def queues(self) -> Sequence[bytes]:
        return [os.fsencode(name) for name in self._queue_setting[0]]

    @property
    def queue_origin(self) -> str:
        return self._queue_setting[1]

    @property
    def _queue_setting(self) -> tuple[Sequence[str], str]:
        if names := self.common_options.get("queue"):
            return names, "-q"
        if name := self.environment.variables.get("RWQ_QUEUE"):
            return [name], "RWQ_QUEUE"
        context = self.server.context
        if context is not None and context.queue is not None:
            return [context.queue], str(context)
        return [], "none"

    @property
    def queue(self) -> bytes:
        names = self.queues
        if not names:
            raise InvalidArgument("no queue named", "give one with -q NAME or in RWQ_QUEUE")
        if len(names) > 1:
            raise InvalidArgument("this command takes one queue", "give -q once")
        return names[0]

    @property
    def holder(self) -> bytes:
        """The holder that is written into this run's leases: `rwq:<user>@<host>:<session>`."""
        # The session is RWQ_SESSION, else the ID of the process's session, so that the commands of
        # one shell or script recognize their own leases.
        return self.holder_of(self.environment.variables.get("RWQ_SESSION") or str(os.getsid(0)))

    def holder_of(self, session: str) -> bytes:
        return OWN_LEASE + os.fsencode(f"{self.user_at_host}:{session}")

    @property
    def user_at_host(self) -> str:
        variables = self.environment.variables
        user = variables.get("USER") or variables.get("LOGNAME")
        if not user:
            from pwd import getpwuid

            try:
                user = getpwuid(os.getuid()).pw_name
            except KeyError:
                user = str(os.getuid())
        return f"{user}@{os.uname().nodename}"

    def check_yes_for(self) -> None:
        """Raise `InvalidArgument` if `--yes=NAME` names the context of no server of the run."""
        # Without it, a run does not fail because contexts cannot be read.
        if (confirmed_name := self.common_options.get("yes_for")) is None:
            return
        names = dict.fromkeys(context.name for context in self._protecting_contexts)
        if confirmed_name not in names:
            none = "this server does not belong to a context"
            whose = f"this is context {' and '.join(names)}" if names else none
            raise InvalidArgument(
                f"--yes={confirmed_name} is for another server: {whose}",
                "check -c, -u and rwq context show",
            )

    @property
    def asking_context(self) -> "Context | None":
        """The most protected of the contexts of all servers that the run writes to."""
        contexts = self._protecting_contexts
        return max(contexts, key=lambda context: context.protection_level, default=None)

    @property
    def _protecting_contexts(self) -> "Sequence[Context]":
        servers = [self] if self.second_server is None else [self, self.second_server]
        return [context for server in servers if (context := server.protecting_context) is not None]

    @property
    def is_read_only(self) -> bool:
        context = None if "write" in self.common_options else self.protecting_context
        return context is not None and context.read_only

    def check_read_only(self) -> None:
        if self._manual.may_change(self._options) and self.is_read_only:
            raise ReadOnlyContext(
                f"{self.protecting_context} is read-only",
                "--write allows this one command; --dry-run shows what it would do",
            )

    @cached_property
    def out(self) -> "Output":
        from rwq_cli.output.records import Output

        return Output(self)

    @cached_property
    def progress(self) -> "TerminalProgress | None":
        environment = self.environment
        if self.quiet or environment.stdout_is_pipe or not environment.stderr_is_terminal:
            return None
        from rwq_cli.output.progress import TerminalProgress

        return TerminalProgress(environment, colour=self.wants_colour(is_terminal=True))

    def read_limit(self, limit: int) -> int | None:
        """Return how many records a listing with this `-n` reads; None for all."""
        # Records that are sorted or counted are limited afterwards.
        return None if self.reads_all else limit or None

    def wants_colour(self, *, is_terminal: bool) -> bool:
        when = _one_of(ColourMode, self.common_options.get("color", "auto"), "--color")
        if when is not ColourMode.AUTO:
            return when is ColourMode.ALWAYS
        # NO_COLOR is honoured with any value, even empty; the others unless they are empty or 0.
        # NO_COLOR wins, as bixense.com/clicolors specifies.
        variables = self.environment.variables
        if "NO_COLOR" in variables:
            return False
        forcing = (variables.get(name, "0") for name in ("CLICOLOR_FORCE", "FORCE_COLOR"))
        is_forced = any(value not in ("", "0") for value in forcing)
        return is_forced or (is_terminal and variables.get("TERM") != "dumb")

    def check_endless(self, option: str) -> None:
        if self.output is OutputFormat.JSON:
            raise InvalidArgument(f"-o json cannot be combined with {option}", "use -o jsonl")


def _one_of(kind: type[E], name: str, source: str) -> E:
    if name not in tuple(kind):
        raise InvalidArgument(
            f"{source} cannot be {name!r}", f"it must be one of {', '.join(kind)}"
        )
    return kind(name)


class Call:
    """A command line while it is parsed: the `obj` of Typer's contexts."""

    def __init__(self, environment: Environment, arguments: Sequence[str] = ()) -> None:
        self.environment, self.arguments = environment, arguments
        self.common_options: dict[str, Any] = {}
        # The words of a command's options by parameter; None if they could not be told apart.
        self.words: Mapping[str, Any] | None = None
        self.manual = Manual()
        self.options: Mapping[str, Any] = {}

    def set_common_option(self, name: str, value: Any) -> None:
        # A duration of 0 counts.
        if value is not False and value not in (None, (), []):
            self.common_options[name] = list(value) if isinstance(value, tuple) else value

    @cached_property
    def settings(self) -> Settings:
        return Settings(self.environment, self.common_options, self.manual, self.options)

    def describe_unfinished(self) -> str:
        """Say what a run that Ctrl-C has ended did; empty if what it wrote says so."""
        # None of the two may have been made yet.
        out: Output | None = vars(vars(self).get("settings", self)).get("out")
        if out is not None and (done := out.describe_unfinished()) is not None:
            return done
        return self.manual.unfinished if self.manual.may_change(self.options) else ""
