"""The embedded server behind `local:`: a real Valkey of the user's own, started when needed.

Imports nothing but the standard library and the tree of errors.
"""

from rwq_cli.local.binary import find_server
from rwq_cli.local.directory import default_directory
from rwq_cli.local.instance import LocalServer
from rwq_cli.local.status import LocalStatus
from rwq_cli.local.temporary import throwaway

__all__ = ["LocalServer", "LocalStatus", "default_directory", "find_server", "throwaway"]
