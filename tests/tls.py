"""TLS in front of a server of the tests': for one that was built without it."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select

# Made for the tests, and known to everybody: it says nothing about anybody.
_KEY_AND_CERTIFICATE = """\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIMQldBYWqvbokFP0lqTsD6VfJjztH5X2ZFk9WClQtPtEoAoGCCqGSM49
AwEHoUQDQgAErXgzOBxQgXCZTTo8dcIkuNZyw17HPblq40MMupSFcWwAB9V2RxLK
OpLWj7Z32ffb9+bqOgxsmjJwmTcJac8Exw==
-----END EC PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBljCCATugAwIBAgIUVA8QLn3e9nNrsppwoS8UjycGM7UwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE4NTkzOVoYDzIxMjYxMDI4
MTg1OTM5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASteDM4HFCBcJlNOjx1wiS41nLDXsc9uWrjQwy6lIVxbAAH1XZHEso6
ktaPtnfZ99v35uo6DGyaMnCZNwlpzwTHo2kwZzAdBgNVHQ4EFgQU9gI50FEQrxAI
T2iipaR1xRYqzrQwHwYDVR0jBBgwFoAU9gI50FEQrxAIT2iipaR1xRYqzrQwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
SQAwRgIhAJ1+xB70ju3P6MshPEUQv/tstBlYDyyVZ5VlXVS7AlStAiEAy3iiO1KT
DF+HIcHaBPMOksxTm/OYMltEsHjpapKkGJE=
-----END CERTIFICATE-----
"""


@contextmanager
def tls_front(server: Path, folder: Path) -> Iterator[str]:
    """Pass TLS on to a server on a unix socket; the URL, for `tls_insecure`.

    As OpenSSL does it by default, it sends session tickets on its own, right after the handshake.
    """
    pem = folder / "server.pem"
    pem.write_text(_KEY_AND_CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    plain, _ = listener.accept()
                    threading.Thread(target=pass_on, args=(plain,), daemon=True).start()

        def pass_on(plain: socket.socket) -> None:
            there = socket.socket(socket.AF_UNIX)
            with plain, there, suppress(OSError):
                here = context.wrap_socket(plain, server_side=True)
                there.connect(str(server))
                while True:
                    ready = [here] if here.pending() else select([here, there], [], [])[0]
                    source, sink = (here, there) if here in ready else (there, here)
                    piece = source.recv(1 << 16)
                    if not piece:
                        return
                    sink.sendall(piece)

        threading.Thread(target=serve, daemon=True).start()
        yield f"rediss://localhost:{listener.getsockname()[1]}/0"
        listener.close()
