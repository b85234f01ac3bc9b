"""A second server besides that of the run: `--to-url` and `--to-context`."""

from copy import copy
from typing import Annotated, NamedTuple

from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.options import offer_contexts, option
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.server.urls import has_tls, is_same_server
from rwq_cli.output.escape import escaped

ToUrlOption = Annotated[
    str | None, option("--to-url URL", "The server of the other queue, if it is not the same.")
]
ToContextOption = Annotated[
    str | None, option("--to-context NAME", "The context of that server.", offer=offer_contexts)
]
# Secrets for the server of the run, which no other server may see.
_OWN = ("RWQ_PASSWORD", "RWQ_SENTINEL_PASSWORD")
_TLS = ("tls_ca", "tls_cert", "tls_key", "tls_insecure")


class OtherQueue(NamedTuple):
    """The other queue, with the settings of its server; None for the server of the run."""

    queue: WorkQueue
    settings: Settings | None = None

    @property
    def label(self) -> str:
        """Its name in messages: `jobs`, or `jobs on prod`."""
        name = escaped(self.queue.name)
        return name if self.settings is None else f"{name} on {self.settings.server_label}"

    @property
    def label_to_ask(self) -> str:
        """Its name in a question, with the context in its colour."""
        from rwq_cli.cli.confirm import describe_server

        name = escaped(self.queue.name)
        return name if self.settings is None else f"{name} on {describe_server(self.settings)}"

    def settings_of_both(self, settings: Settings) -> Settings:
        """Return the run's settings, extended so that the protection of either server applies."""
        if self.settings is None:
            return settings
        both = copy(settings)
        both.second_server = self.settings
        return both


def open_elsewhere(
    settings: Settings,
    queue: WorkQueue,
    name: bytes,
    url: str | None,
    context: str | None,
    *,
    named_by: str = "--to-url",
) -> OtherQueue:
    """Open the other queue; `named_by` is the setting that gives its URL, for an error's hint."""
    connection, others = queue.connection, None
    if url is not None or context is not None:
        environment = copy(settings.environment)
        variables = environment.variables
        environment.variables = {k: v for k, v in variables.items() if k not in _OWN}
        # A context brings its own TLS options; those that were given may be for the run's server.
        is_theirs = context is None and (has_tls(url or "") or not has_tls(settings.server.url))
        tls = {} if is_theirs else dict.fromkeys(_TLS)
        other_settings = settings.replaced(url=url, context=context, password_file=None, **tls)
        other_settings.environment = environment
        opened = open_connection(other_settings, named_by=named_by)
        if is_same_server(opened.address, queue.connection.address):
            opened.close()
        else:
            connection, others = opened, other_settings
    if others is None and name == queue.name:
        raise InvalidArgument("that is the same queue", "name another one")
    return OtherQueue(WorkQueue(connection, name, holder=settings.holder), others)
