"""A few words with a server over its unix socket, without a client library."""

import socket
from enum import Enum
from pathlib import Path

_CHUNK_BYTES = 65536


class Presence(Enum):
    """What is found at a socket's path."""

    ABSENT = "nobody listens"
    BUSY = "it listens, but is loading or does not answer yet"
    READY = "it answers"


def look(path: Path, timeout_s: float) -> Presence:
    """Send a PING.

    Args:
        path: The unix socket.
        timeout_s: Seconds to wait for the answer.

    Raises:
        OSError: The path cannot be a socket's, or may not be used.
    """
    try:
        reply = ask(path, b"PING", timeout_s)
    # BlockingIOError: the queue of connections that were not accepted yet is full.
    except (TimeoutError, BlockingIOError):
        return Presence.BUSY
    except (FileNotFoundError, NotADirectoryError, ConnectionError):
        return Presence.ABSENT
    if not reply:
        return Presence.ABSENT
    # Any other error is an answer, too: PING is refused with MISCONF while a disk is full.
    return Presence.BUSY if reply.startswith(b"-LOADING") else Presence.READY


def ask(path: Path, command: bytes, timeout_s: float) -> bytes:
    """Send one inline command.

    Args:
        path: The unix socket.
        command: Words without spaces or quotes in them, parted by spaces.
        timeout_s: Seconds to wait for each part of the reply.

    Raises:
        TimeoutError: The reply took longer.
        ConnectionError: Nobody listens, or the connection broke.
        OSError: Anything else about the path or the socket.

    Returns:
        A bulk string's content; else the reply's line with its first character and without its end;
        b"" if the connection was closed instead.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(command + b"\r\n")
        received = b""
        while b"\r\n" not in received:
            chunk = connection.recv(_CHUNK_BYTES)
            if not chunk:
                return b""
            received += chunk
        line, _, rest = received.partition(b"\r\n")
        if not line.startswith(b"$"):
            return line
        content_bytes = int(line[1:])
        while len(rest) < content_bytes:
            chunk = connection.recv(_CHUNK_BYTES)
            if not chunk:
                return b""
            rest += chunk
        return rest[:content_bytes]
