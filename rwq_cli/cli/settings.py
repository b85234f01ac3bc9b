"""The settings of one run, among them server, queue and password: options, variables, defaults."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import ColourMode, Environment
from rwq_cli.output.options import OutputFormat, OutputOptions

if TYPE_CHECKING:
    from rwq_cli.output.progress import TerminalProgress

E = TypeVar("E", bound=StrEnum)

# Fields that are null unless the data are read.
_DATA_FIELDS = frozenset({"data", "data_b64", "data_json"})
DEFAULT_URL = "redis://localhost:6379/0"


@dataclass
class Settings:
    """The settings of one run.

    Attributes:
        environment: The streams and environment variables.
        given: The global options of the command line, by name.
        null_separated: Whether `-0` was given.
        monitors: Whether the command reports to a monitoring system, including its errors.
        progress: Shows progress on the terminal; None for no progress.
    """

    environment: Environment
    given: dict[str, Any] = field(default_factory=dict)
    null_separated: bool = False
    monitors: bool = False
    progress: "TerminalProgress | None" = None

    def check(self) -> None:
        """Raise `InvalidArgument` for a value that can never work; called before a command runs."""
        _ = self.output, self.colour
        self.environment.quiet = self.quiet

    def end_progress(self) -> None:
        """Remove the progress line, before results are written."""
        if self.progress is not None:
            self.progress.end()

    @property
    def output(self) -> OutputFormat:
        """The output format: `-o`, else RWQ_OUTPUT, else a table on a terminal and plain elsewhere.

        Raises:
            InvalidArgument: There is no such format.
        """
        if (chosen := self.chosen_output) is not None:
            return chosen
        is_terminal = self.environment.stdout_is_terminal
        return OutputFormat.TABLE if is_terminal else OutputFormat.PLAIN

    @property
    def chosen_output(self) -> OutputFormat | None:
        """The format of `-o` or RWQ_OUTPUT; None if neither is given.

        Raises:
            InvalidArgument: There is no such format.
        """
        if (given := self.given.get("output")) is not None:
            return _one_of(OutputFormat, given, "-o")
        variable = self.environment.variables.get("RWQ_OUTPUT")
        return _one_of(OutputFormat, variable, "RWQ_OUTPUT") if variable else None

    @property
    def output_options(self) -> OutputOptions:
        """Where and how to write the results."""
        return OutputOptions(
            self.environment,
            self.output,
            self.colour,
            self.null_separated,
            self.progress,
            is_default=self.chosen_output is None,
            fields=self.fields,
            sort=self.given.get("sort"),
            reverse=bool(self.given.get("reverse")),
        )

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
            InvalidArgument: `--color` is none of its values.
        """
        return self._wants_colour(is_terminal=self.environment.stdout_is_terminal)

    @property
    def stderr_colour(self) -> bool:
        """Whether what is written to stderr has colour; see `colour`."""
        return self._wants_colour(is_terminal=self.environment.stderr_is_terminal)

    def _wants_colour(self, *, is_terminal: bool) -> bool:
        when = _one_of(ColourMode, self.given.get("color", "auto"), "--color")
        return self.environment.wants_colour(when, is_terminal=is_terminal)

    @property
    def quiet(self) -> bool:
        """Whether to leave out notes, summaries and progress."""
        return bool(self.given.get("quiet"))

    @property
    def debug(self) -> bool:
        """Whether to show the traceback of an error."""
        return bool(self.given.get("debug"))

    @property
    def verbose(self) -> bool:
        """Whether to print the server and the queue on stderr."""
        return bool(self.given.get("verbose"))

    @property
    def url(self) -> str:
        """The server's URL: `-u`, else RWQ_URL, else REDIS_URL, else localhost."""
        variables = self.environment.variables
        given = self.given.get("url")
        if given is not None:
            return str(given)
        return variables.get("RWQ_URL") or variables.get("REDIS_URL") or DEFAULT_URL

    @property
    def queues(self) -> Sequence[bytes]:
        """The names of the queues: every `-q`, else RWQ_QUEUE; may be empty."""
        names = self.given.get("queue")
        if names:
            return [os.fsencode(name) for name in names]
        variable = self.environment.variables.get("RWQ_QUEUE")
        return [os.fsencode(variable)] if variable else []

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

    @property
    def password(self) -> str | None:
        """The password outside the URL: the first line of --password-file, else RWQ_PASSWORD.

        Raises:
            InvalidArgument: The file cannot be read.
        """
        name = self.given.get("password_file")
        if name is None:
            return self.environment.variables.get("RWQ_PASSWORD")
        try:
            return Path(name).read_bytes().split(b"\n")[0].rstrip(b"\r").decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise InvalidArgument(
                f"cannot read the password file {name}: {reason.lower()}", "check --password-file"
            )

    def path(self, name: str) -> Path | None:
        """The file that a global option names."""
        value = self.given.get(name)
        return Path(value) if value is not None else None

    @property
    def holder(self) -> bytes:
        """The holder that leases of this run name: `rwq:<user>@<host>:<session>`.

        The session is RWQ_SESSION, else the ID of the process's session, so that the commands of
        one shell or script recognize their own leases.
        """
        return self.holder_of(self.environment.variables.get("RWQ_SESSION") or str(os.getsid(0)))

    def holder_of(self, session: str) -> bytes:
        """The holder that leases of one of this user's sessions on this host name."""
        variables = self.environment.variables
        user = variables.get("USER") or variables.get("LOGNAME") or _account()
        return os.fsencode(f"rwq:{user}@{os.uname().nodename}:{session}")


def _one_of(kind: type[E], name: str, source: str) -> E:
    """The member of an enumeration that an option or a variable names."""
    try:
        return kind(name)
    except ValueError:
        raise InvalidArgument(f"{source} cannot be {name!r}", f"it is one of {', '.join(kind)}")


def _account() -> str:
    """The name of the current user, or the user ID if there is no name."""
    from pwd import getpwuid

    try:
        return getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
