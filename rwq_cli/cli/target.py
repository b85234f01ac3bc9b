"""Which server, queue and holder the settings name."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import Environment, user_directory
from rwq_cli.output.escape import escaped_text

if TYPE_CHECKING:
    from rwq_cli.contexts.file import Context, Contexts

DEFAULT_URL = "redis://localhost:6379/0"
LOCAL = "local:"
_VARIABLES = ("RWQ_URL", "RWQ_CONTEXT", "REDIS_URL")


class ServerSetting(NamedTuple):
    """A server's URL, the setting that names it, and the context; None if the URL was given."""

    url: str
    origin: str
    context: "Context | None" = None


class Target:
    environment: Environment
    given: Mapping[str, Any]

    @cached_property
    def contexts(self) -> "Contexts":
        from rwq_cli.contexts.file import read_contexts

        return read_contexts(self.contexts_path)

    @property
    def contexts_path(self) -> Path:
        folder = user_directory(self.environment.variables, "XDG_CONFIG_HOME", ".config")
        return folder / "rwq" / "config.toml"

    @cached_property
    def _has_contexts(self) -> bool:
        """True if there may be contexts: most runs have none, and do not load that module."""
        return os.path.lexists(self.contexts_path)

    @cached_property
    def server(self) -> ServerSetting:
        """The server: `-u`, `-c`, RWQ_URL, RWQ_CONTEXT, current context, REDIS_URL, localhost."""
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
        """The context whose protection applies: the one named, else that of the address."""
        # Of several contexts with this address, it is the most protected one. None if there is
        # none.
        url, _, context = self.server
        if context is not None or not self._has_contexts:
            return context
        from rwq_cli.contexts.file import Protection
        from rwq_cli.core.server.urls import is_same_server

        place, levels = self._without_local(url), list(Protection)
        return max(
            (
                each
                for each in self.contexts.by_name.values()
                if is_same_server(self._without_local(each.url), place)
            ),
            key=lambda each: (each.read_only, levels.index(each.protect)),
            default=None,
        )

    def is_server(self, url: str) -> bool:
        from rwq_cli.core.server.urls import is_same_server

        return is_same_server(url, self._without_local(self.server.url))

    def _without_local(self, url: str) -> str:
        if not url.startswith(LOCAL):
            return url
        from rwq_cli.core.errors import LocalServerError
        from rwq_cli.local.server import LocalServer

        try:
            return LocalServer(self.local_directory(url), self.environment.variables).url
        except LocalServerError:
            return url

    def local_directory(self, url: str) -> Path:
        from rwq_cli.local.directory import default_directory

        if named := url.removeprefix(LOCAL):
            return Path(os.path.abspath(os.path.expanduser(named)))
        return default_directory(self.environment.variables)

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
        return self.server.origin in _VARIABLES and self.queue_origin == "RWQ_QUEUE"

    @property
    def queues(self) -> Sequence[bytes]:
        return [os.fsencode(name) for name in self._queue_setting[0]]

    @property
    def queue_origin(self) -> str:
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
        return os.fsencode(f"rwq:{self.user_at_host}:{session}")

    @property
    def user_at_host(self) -> str:
        variables = self.environment.variables
        user = variables.get("USER") or variables.get("LOGNAME") or _account()
        return f"{user}@{os.uname().nodename}"


def _account() -> str:
    """The name of the current user, or the user ID if there is no name."""
    from pwd import getpwuid

    try:
        return getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
