"""The commands, one module each; the names here are those that most of them import."""

from rwq_cli.cli.command import command as command
from rwq_cli.cli.options import Duration as Duration, argument as argument, option as option
from rwq_cli.cli.settings import Settings as Settings
from rwq_cli.core.errors import InvalidArgument as InvalidArgument
from rwq_cli.exit_codes import ExitStatus as ExitStatus
from rwq_cli.output.escape import escaped as escaped
