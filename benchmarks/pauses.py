"""How much the machine itself delays a process."""

import time
from threading import Event, Thread


class Pauses:
    """Watches, while the block runs, how late a thread wakes up that only sleeps."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._ended = Event()
        self._thread = Thread(target=self._watch)

    def __enter__(self) -> "Pauses":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.is_set():
            started = time.perf_counter()
            time.sleep(0.002)
            late_ms = (time.perf_counter() - started) * 1000 - 2
            self.longest_ms = max(self.longest_ms, late_ms)
