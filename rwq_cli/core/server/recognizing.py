"""What listens at an address, if it does not answer as Redis does."""

import socket
import ssl
from contextlib import suppress
from typing import Any

from rwq_cli.core import errors
from rwq_cli.core.server.error_mapping import is_strange

# How long each of the two questions may take, seconds.
_TIMEOUT_S = 1.0
_SHOWN_BYTES = 32
_STARTS = {b"HTTP/": "an HTTP server", b"SSH-": "an SSH server", b"220": "a mail or FTP server"}
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
# How a reply begins.
_REDIS = b"+-:$*"


def recognized(
    error: Exception, place: tuple[Any, Any], server: str, *, has_tls: bool
) -> errors.ServerError | None:
    """The error for something else at a host and port, if a failure may be due to that."""
    host, port = place
    if host is None or port is None or not is_strange(error):
        return None
    said = b""
    with suppress(OSError), socket.create_connection((host, port), _TIMEOUT_S) as plain:
        plain.sendall(b"*1\r\n$4\r\nPING\r\n")
        said = plain.recv(_SHOWN_BYTES)
    if not has_tls and (said.startswith(_TLS_RECORDS) or (not said and _speaks_tls(host, port))):
        hint = "use rediss:// in place of redis://, if it is a Redis server"
        return errors.ServerError(f"{server} speaks TLS", hint)
    if not said or said[:1] in _REDIS:
        return None
    what = next((what for start, what in _STARTS.items() if said.startswith(start)), None)
    line = said.split(b"\n")[0].rstrip().decode("ascii", "backslashreplace")
    seen = f"it says {line!r}" if what is None else f"it is {what}"
    hint = "check the host and the port of the server"
    return errors.ServerError(f"{server} is not a Redis server: {seen}", hint)


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        suppress(OSError),
        socket.create_connection((host, port), _TIMEOUT_S) as raw,
        context.wrap_socket(raw, server_hostname=host),
    ):
        return True
    return False
