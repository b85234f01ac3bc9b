"""A long line to a server: a proxy that delays what passes, and counts round trips."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_CHUNK_BYTES = 1024 * 1024


class Line:
    """What has passed over a line.

    Requests that are sent within one latency of each other share a round trip: none of them waited
    for a reply to another. So a caller that sends ahead is counted by the time it waits, and one
    that waits for each reply by its requests.

    Args:
        latency_s: The time of one round trip, seconds.
    """

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.round_trips = 0
        self._began_s = float("-inf")

    def reset(self) -> None:
        """Count from zero."""
        self.round_trips = 0
        self._began_s = float("-inf")

    def sent(self, now_s: float) -> None:
        """Count a request."""
        if now_s - self._began_s >= self.latency_s:
            self._began_s = now_s
            self.round_trips += 1


@contextmanager
def long_line(server: Path, socket: Path, latency_s: float) -> Iterator[Line]:
    """A line to a server on a unix socket, while the block runs.

    Args:
        server: The server's socket.
        socket: The socket of the line's near end.
        latency_s: The time of one round trip, seconds.
    """
    line = Line(latency_s)
    loop = asyncio.new_event_loop()

    async def pump(
        source: asyncio.StreamReader, target: asyncio.StreamWriter, *, counts: bool
    ) -> None:
        with suppress(ConnectionError):
            while chunk := await source.read(_CHUNK_BYTES):
                if counts:
                    line.sent(loop.time())
                loop.call_later(latency_s / 2, target.write, chunk)
        loop.call_later(latency_s / 2, target.close)

    async def accept(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        # Whoever stops the line cuts this connection.
        with suppress(asyncio.CancelledError):
            far, out = await asyncio.open_unix_connection(server, limit=_CHUNK_BYTES)
            await asyncio.gather(pump(near, out, counts=True), pump(far, back, counts=False))

    listener = loop.run_until_complete(
        asyncio.start_unix_server(accept, socket, limit=_CHUNK_BYTES)
    )
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield line
    finally:
        asyncio.run_coroutine_threadsafe(_end(listener), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(listener: asyncio.Server) -> None:
    """Close the listener and cut what is still connected."""
    listener.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
