"""The embedded server behind `local:`: a private Valkey or Redis, started on demand.

It needs the standard library and the tree of errors only.
"""

from rwq_cli.local.binary import find_server
from rwq_cli.local.directory import default_directory
from rwq_cli.local.server import LocalServer, LocalStatus, throwaway

__all__ = ["LocalServer", "LocalStatus", "default_directory", "find_server", "throwaway"]
