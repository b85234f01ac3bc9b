"""The commands, a module for each; and here, what most of them are written with."""

from rwq_cli.cli.command import command
from rwq_cli.cli.options import argument, option
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped

__all__ = ("ExitStatus", "InvalidArgument", "Settings", "argument", "command", "escaped", "option")
