"""What supervisors see of a running process, and rounds of work until it is stopped."""

import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from threading import Event, Thread, main_thread
from typing import TYPE_CHECKING

import rwq_cli.core
from rwq_cli.core.batches import ProgressListener
from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import AuthenticationFailed, ServerError
from rwq_cli.core.lua import all_files, load_script
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.exposition import Metric, exposition

if TYPE_CHECKING:
    from rwq_cli.service.http import HttpServer

# A service manager that does not read its socket must not block the service.
NOTIFY_TIMEOUT_S = 0.2
# How long closing the HTTP server takes at most.
_POLL_S = 0.1
# While the server is lost, pauses grow from the first to the second, and vary by this share.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _PAUSE_SPREAD = 0.5, 10.0, 0.2
# After a round that took longer than the interval, the pause is this share of the interval.
_LEAST_REST = 0.1


class Supervision:
    """Notifies systemd, if it `notifies`, and answers HTTP clients, while its block runs.

    `refusal` says why the server refuses writes, if it does: a restart would not help.

    A process is stuck if its main loop does not beat for `silence_s`, announced pauses aside:
    systemd's watchdog is then not notified, and `/healthz` answers with 503. A lost server is no
    reason for that: a restart would not bring it back, and might kill running work.
    """

    url: str | None = None

    def __init__(
        self,
        *,
        notifies: bool,
        address: tuple[str, int] | None,
        variables: Mapping[str, str],
        metrics: Callable[[], Iterable[Metric]],
        refusal: Callable[[], str | None] = lambda: None,
        silence_s: float = 60.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._manager = variables.get("NOTIFY_SOCKET", "") if notifies else ""
        # It may be for another process, such as the shell that started this one.
        is_watched = variables.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        text = variables.get("WATCHDOG_USEC", "") if notifies and is_watched else ""
        self._watchdog_s = int(text) / 1e6 if text.isdecimal() else 0.0
        self._address, self._metrics, self._refusal = address, metrics, refusal
        self._silence_s, self._monotonic = silence_s, monotonic
        self._due_s = monotonic() + silence_s
        self._ended = Event()
        self._is_ready = False
        self._lost: str | None = None
        self._status = self._shown = ""
        self._http: HttpServer | None = None
        self._failure: BaseException | None = None

    def __enter__(self) -> "Supervision":
        _load_everything()
        if self._address is not None:
            # Importing it takes as long as a short command.
            from rwq_cli.service.http import HttpServer

            http = HttpServer(self._address, self.health, lambda: exposition(self._metrics()))
            self._http, self.url = http, http.url
            self.start(lambda _: http.serve_forever(_POLL_S))
        if self._watchdog_s:
            self.start(self._notify_watchdog)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.stopping()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
        if self._failure is not None:
            raise self._failure

    def start(self, work: Callable[[Event], None]) -> None:
        """Do `work`, which is told when it is over, in a thread; an unexpected error there ends the
        process."""

        def guarded() -> None:
            try:
                work(self._ended)
            except BaseException as error:
                self._failure = error
                # The main thread may wait for something; `__exit__` raises the error.
                if not self._ended.is_set():
                    signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

        Thread(target=guarded, name="rwq-supervision", daemon=True).start()

    def beat(self, pause_s: float = 0.0) -> None:
        """Report that the main loop runs, and now sleeps for this long, seconds."""
        self._due_s = self._monotonic() + pause_s + self._silence_s

    @property
    def late_s(self) -> float:
        """How much later than announced the main loop is, seconds; 0 if it is not late."""
        return max(0.0, self._monotonic() - self._due_s)

    def ready(self, status: str) -> None:
        """Report that the process works, and on what; the first call tells systemd of the start."""
        self._lost = None
        if not self._is_ready:
            self._is_ready = True
            self._notify("READY=1")
        self.status(status)

    def status(self, text: str) -> None:
        """Report in a line what the process does; a lost server is shown instead."""
        self._status = text
        if self._is_ready and self._lost is None:
            self._show(text)

    def lost(self, reason: str) -> None:
        self._lost = reason
        self._show(reason)

    def stopping(self) -> None:
        self._notify("STOPPING=1")

    def health(self) -> tuple[bool, str]:
        if late_s := self.late_s:
            return False, f"stuck: nothing done for {late_s:.0f} s longer than expected"
        if self._lost is not None:
            return True, f"ok, but {self._lost}"
        if refusal := self._refusal():
            return True, f"ok, but the server refuses writes: {refusal}"
        return True, f"ok: {self._status}" if self._status else "ok"

    def _show(self, status: str) -> None:
        if status != self._shown:
            self._shown = status
            self._notify(f"STATUS={status}")

    def _notify(self, message: str) -> None:
        # A path, or `@` and an abstract name.
        name = self._manager
        if name[:1] not in ("@", "/"):
            return
        address = "\0" + name[1:] if name[0] == "@" else name
        # A manager that is not there does not stop the service.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(NOTIFY_TIMEOUT_S)
            sender.sendto(message.encode("utf-8", "backslashreplace"), os.fsencode(address))

    def _notify_watchdog(self, ended: Event) -> None:
        # systemd recommends half of the time.
        while not ended.wait(self._watchdog_s / 2):
            if not self.late_s:
                self._notify("WATCHDOG=1")


def _load_everything() -> None:
    """Load what is otherwise loaded later: an upgrade in place must not change this process."""
    for module in walk_packages(rwq_cli.core.__path__, "rwq_cli.core."):
        import_module(module.name)
    for operation in (file for file in all_files() if file.startswith("ops/")):
        load_script(operation.removeprefix("ops/"))


class Beats(ProgressListener, Clock):
    """A clock whose sleeps are beats, and a progress listener whose reports are."""

    def __init__(self, clock: Clock, progress: ProgressListener, beat: Callable[..., None]) -> None:
        self.monotonic, self.hide = clock.monotonic, progress.hide  # type: ignore[method-assign]
        self._clock, self._progress, self._beat = clock, progress, beat

    def sleep(self, seconds: float) -> None:
        self._beat(seconds)
        self._clock.sleep(seconds)

    def begin(self, what: str, total: int | Callable[[], int] | None = None) -> None:
        self._beat()
        self._progress.begin(what, total)

    def advance(self, count: int) -> None:
        self._beat()
        self._progress.advance(count)


def jittered(seconds: float, spread: float = 0.1) -> float:
    """Return a random time near this one, so that processes started together drift apart."""
    return seconds * random.uniform(1 - spread, 1 + spread)


class Rounds:
    """Rounds of work that begin every `every_s`, the first at once.

    `note` writes a line about the server. Unless the rounds are exact, the first pause has a random
    length, and the others vary as in `jittered`.
    `has_failed` is True if the server was lost in this round, which must then end.
    """

    def __init__(
        self,
        every_s: float,
        clock: Clock,
        *,
        note: Callable[[str], None],
        supervision: Supervision | None = None,
        is_exact: bool = False,
    ) -> None:
        self._every_s, self._clock, self._is_exact = every_s, clock, is_exact
        self._note, self._supervision = note, supervision
        self._lost_s: float | None = None
        self._pause_s, self._was_found = _FIRST_PAUSE_S, False
        self.has_failed = False

    def __iter__(self) -> Iterator[int]:
        """Yield the number of each round when it is due."""
        number = 0
        while True:
            number += 1
            self.has_failed = False
            began_s = self._clock.monotonic()
            if self._supervision is not None:
                self._supervision.beat()
            yield number
            now_s = self._clock.monotonic()
            if self.has_failed:
                pause_s = jittered(self._pause_s, _PAUSE_SPREAD)
                self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            else:
                self._pause_s, self._was_found = _FIRST_PAUSE_S, True
                if self._lost_s is not None:
                    lost_s, self._lost_s = now_s - self._lost_s, None
                    self._note(f"the server is responding again after {lost_s:.0f} s")
                every_s = self._every_s
                if not self._is_exact:
                    every_s = every_s * random.random() if number == 1 else jittered(every_s)
                pause_s = max(began_s + every_s - now_s, _LEAST_REST * every_s)
            self._clock.sleep(pause_s)

    def failed(self, error: ServerError) -> None:
        """Note that a round failed, or raise the error if trying again would not help."""
        # A password that worked may have been changed, and the new one be known a moment later.
        is_rotated = self._was_found and isinstance(error, AuthenticationFailed)
        if not (error.is_transient or is_rotated):
            raise error
        self.has_failed = True
        message = escaped_text(error.message)
        if self._supervision is not None:
            self._supervision.lost(message)
        if self._lost_s is None:
            self._lost_s = self._clock.monotonic()
            self._note(f"{message}; trying again until the server responds")
