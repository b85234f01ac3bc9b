"""The embedded server behind `local:`: a private Valkey or Redis, started on demand.

It imports only the standard library and the errors of the core.
"""

from rwq_cli.local.binary import find_server
from rwq_cli.local.directory import default_directory
from rwq_cli.local.server import LocalServer, LocalStatus, throwaway

__all__ = ["LocalServer", "LocalStatus", "default_directory", "find_server", "throwaway"]
