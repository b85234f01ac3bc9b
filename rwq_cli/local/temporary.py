"""A server for a moment: in a directory of its own, which is removed with it."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from rwq_cli.core.errors import LocalServerError
from rwq_cli.local.instance import LocalServer

_STOP_TIMEOUT_S = 5.0


@contextmanager
def throwaway(environ: Mapping[str, str] | None = None) -> Iterator[LocalServer]:
    """Give a server in a fresh private directory; end it and remove the directory afterwards.

    The server is not started yet: `ensure_running` does that. It is ended after an exception and
    after Ctrl-C as well; a signal that ends the process at once is the caller's to turn into an
    exception.

    Args:
        environ: The environment; None for the process's own.

    Raises:
        LocalServerError: The directory cannot be made.
    """
    import shutil
    import tempfile

    try:
        directory = Path(tempfile.mkdtemp(prefix="rwq-"))
    except OSError as error:
        raise LocalServerError(f"cannot make a directory for a server: {error.strerror}") from error
    server = LocalServer(directory, environ)
    try:
        yield server
    finally:
        try:
            _end(server)
        finally:
            # The server may just have been killed in the middle of a file.
            shutil.rmtree(directory, ignore_errors=True)


def _end(server: LocalServer) -> None:
    try:
        server.stop(_STOP_TIMEOUT_S)
    except LocalServerError:
        _kill(server)
    except BaseException:
        _kill(server)
        raise


def _kill(server: LocalServer) -> None:
    pid = server.status().pid
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with suppress(LocalServerError):
        server.stop(_STOP_TIMEOUT_S)
