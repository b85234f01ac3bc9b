"""Whether a server speaks TLS, to explain why it closes connections that do not use it."""

import socket
import ssl


def speaks_tls(host: str, port: int, timeout_s: float) -> bool:
    """Whether a TLS handshake succeeds, whoever the server is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return True
    except OSError:
        return False
