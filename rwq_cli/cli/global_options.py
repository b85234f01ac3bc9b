"""The options of every command, accepted before and after its name."""

from typing import Any

from typer.core import TyperOption

from rwq_cli.cli.completing import offer_contexts, offer_queues
from rwq_cli.cli.settings import Settings
from rwq_cli.core.server.timeouts import CONNECT_TIMEOUT_S, PATIENCE_S, REPLY_TIMEOUT_S
from rwq_cli.environment import ColourMode
from rwq_cli.output.options import OutputFormat


def _store(context: Any, parameter: Any, value: Any) -> None:
    """Store the value of an option; one after the command's name overrides one before it."""
    settings: Settings = context.find_root().obj
    settings.give(**{parameter.name: list(value) if isinstance(value, tuple) else value})


def global_options() -> list[TyperOption]:
    """New parameter objects, for one command: two commands cannot share them."""

    def option(*names: str, help: str, metavar: str | None = None, **more: Any) -> TyperOption:
        return TyperOption(
            param_decls=list(names),
            help=help,
            metavar=metavar,
            callback=_store,
            expose_value=False,
            **more,
        )

    return [
        option(
            *("-q", "--queue"),
            metavar="NAME",
            multiple=True,
            autocompletion=offer_queues,
            help="The queue. Default: RWQ_QUEUE, else the context's.",
        ),
        option(
            "-u",
            "--url",
            metavar="URL",
            help="The server. Default: -c, RWQ_URL, RWQ_CONTEXT, the current context, REDIS_URL, "
            "redis://localhost:6379/0.",
        ),
        option(
            *("-c", "--context"),
            metavar="CONTEXT",
            autocompletion=offer_contexts,
            help="The server of this context.",
        ),
        option(
            "-o",
            "--output",
            metavar="FORMAT",
            autocompletion=lambda *_: list(OutputFormat),
            help=f"{', '.join(OutputFormat)}. Default: RWQ_OUTPUT, else table on a terminal.",
        ),
        option(
            "--password-file",
            metavar="FILE",
            help="A file with the password. Default: the password of the URL or context; else, "
            "for a server named by its URL, RWQ_PASSWORD.",
        ),
        option("--tls-ca", metavar="FILE", help="Certificate authorities to trust (rediss://)."),
        option("--tls-cert", metavar="FILE", help="The client's certificate."),
        option("--tls-key", metavar="FILE", help="The client's key."),
        option("--tls-insecure", is_flag=True, help="Accept any server certificate."),
        option(
            "--connect-timeout",
            metavar="DUR",
            help=f"How long connecting may take.  [default: {CONNECT_TIMEOUT_S:g}s]",
        ),
        option(
            "--reply-timeout",
            metavar="DUR",
            help="How long to wait for one reply, for slow servers; a command that waits by design "
            f"waits longer.  [default: {REPLY_TIMEOUT_S:g}s]",
        ),
        option(
            "--patience",
            metavar="DUR",
            help="How long to wait while a server loads its data, for a failover, or until a queue "
            f"has moved to another node.  [default: {PATIENCE_S:g}s]",
        ),
        option("--write", is_flag=True, help="Allow changes in a read-only context."),
        option(
            "--fields",
            metavar="NAME,...",
            help="Only these fields, in this order, in any format; an unknown name lists "
            "the valid ones, and .tenant.id is a path into JSON data.",
        ),
        option("--sort", metavar="FIELD", help="Sort the records by this field."),
        option(
            "--by",
            metavar="FIELD",
            help="Count the records by the values of this field, most first.",
        ),
        option("--reverse", is_flag=True, help="Reverse the order of the records."),
        option(
            "--color",
            metavar="WHEN",
            autocompletion=lambda *_: list(ColourMode),
            help=f"{', '.join(ColourMode)}. Default: auto: on a terminal, without NO_COLOR.",
        ),
        option(
            "-Q",
            "--quiet",
            is_flag=True,
            help="Print only results and errors: no notes, summaries or progress.",
        ),
        option(
            "-v",
            "--verbose",
            is_flag=True,
            help="Print server, queue and format on stderr, and where each comes from.",
        ),
        option("--debug", is_flag=True, help="Show the traceback of an error."),
    ]


GLOBAL_NAMES = frozenset(option.name for option in global_options())
