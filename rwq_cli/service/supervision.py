"""What supervisors see of a running process: systemd's protocol, `/healthz` and `/metrics`."""

from collections.abc import Callable, Iterable, Mapping
from threading import Event, Thread
from typing import TYPE_CHECKING

from rwq_cli.output.exposition import Metric, exposition
from rwq_cli.service.heartbeat import Heartbeat
from rwq_cli.service.notify import Notifier

if TYPE_CHECKING:
    from rwq_cli.service.http import Health, HttpServer


class Supervision:
    """Answers systemd and HTTP clients while its `with` block runs.

    A process is stuck if its main loop does not beat: systemd's watchdog is not notified then, and
    `/healthz` answers with 503. A lost server is no reason for that. A restart would not bring it
    back, and may kill running work.

    Args:
        notifies: Whether to notify systemd.
        address: The host and port to listen on; None for no HTTP.
        variables: The environment variables.
        metrics: Makes the metrics, in a thread of the HTTP server.
        silence_s: How long the main loop may be silent, besides announced pauses, seconds.

    Attributes:
        url: The address of the HTTP server; None if there is none.
    """

    url: str | None = None

    def __init__(
        self,
        *,
        notifies: bool,
        address: tuple[str, int] | None,
        variables: Mapping[str, str],
        metrics: Callable[[], Iterable[Metric]],
        silence_s: float = 60.0,
    ) -> None:
        self._notifier = Notifier(variables if notifies else {})
        self._address = address
        self._metrics = metrics
        self._heartbeat = Heartbeat(silence_s)
        self._ended = Event()
        self._is_ready = False
        self._lost: str | None = None
        self._status = ""
        self._http: HttpServer | None = None

    def __enter__(self) -> "Supervision":
        """Begin to answer.

        Raises:
            InvalidArgument: The address cannot be used.
        """
        if self._address is not None:
            # Importing it takes as long as a short command.
            from rwq_cli.service.http import HttpServer

            self._http = HttpServer(
                self._address, self._health, lambda: exposition(self._metrics())
            )
            self.url = self._http.url
        if self._notifier.watchdog_s is not None:
            Thread(target=self._notify_watchdog, name="watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping()
        self._ended.set()
        if self._http is not None:
            self._http.close()

    def beat(self, pause_s: float = 0.0) -> None:
        """The main loop runs, and sleeps now for this long, seconds."""
        self._heartbeat.beat(pause_s)

    def ready(self, status: str) -> None:
        """The process works; the first call also tells systemd that it has started."""
        self._lost = None
        if not self._is_ready:
            self._is_ready = True
            self._notifier.ready()
        self.status(status)

    def status(self, text: str) -> None:
        """What the process does, in a line."""
        self._status = text
        self._notifier.status(text)

    def lost(self, reason: str) -> None:
        """The server is lost; `ready` says that it is back."""
        self._lost = reason
        self._notifier.status(reason)

    def stopping(self) -> None:
        """The process ends."""
        self._notifier.stopping()

    def _health(self) -> "Health":
        from rwq_cli.service.http import Health

        if late_s := self._heartbeat.late_s:
            return Health(False, f"stuck: nothing done for {late_s:.0f} s longer than expected")
        if self._lost is not None:
            return Health(True, f"ok, but {self._lost}")
        return Health(True, f"ok: {self._status}" if self._status else "ok")

    def _notify_watchdog(self) -> None:
        assert self._notifier.watchdog_s is not None
        # systemd recommends half of the time.
        while not self._ended.wait(self._notifier.watchdog_s / 2):
            if not self._heartbeat.late_s:
                self._notifier.watchdog()
