"""The rates at which queues fill and drain, from repeated readings."""

from collections.abc import Iterable

from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.activity import Activity, Rates, Sample, read_samples


class RateMeter:
    """Measures the rates of queues over the last few readings."""

    def __init__(self) -> None:
        self._activities: dict[bytes, Activity] = {}

    def read(self, queues: Iterable[Queue]) -> dict[bytes, Rates]:
        """The rates by the names of the queues; unknown at the first reading of a queue.

        A queue that has a key of the wrong type has none.
        """
        known = {name: each.last for name, each in self._activities.items()}
        last = {name: sample for name, sample in known.items() if sample is not None}
        for name, sample in read_samples(list(queues), last).items():
            if isinstance(sample, Sample):
                self._activities.setdefault(name, Activity()).add(sample)
        return {name: each.rates() for name, each in self._activities.items()}
