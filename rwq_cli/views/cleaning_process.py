"""What a cleaning process has done so far: its status line and its metrics."""

from collections import Counter
from dataclasses import dataclass, field

from rwq_cli.core.repair.actions import Repair
from rwq_cli.output.exposition import Metric


@dataclass(eq=False, repr=False)
class CleanTally:
    """What a cleaning process has done so far.

    Attributes:
        rounds: Complete rounds, by `light` and `deep`.
        actions: Repairs, by queue and kind.
    """

    rounds: Counter[str] = field(default_factory=Counter)
    actions: Counter[tuple[bytes, Repair]] = field(default_factory=Counter)


def clean_status(tally: CleanTally, label: str) -> str:
    """A line on what a cleaning process has done in these queues."""
    counts: Counter[Repair] = Counter()
    for (_, action), number in tally.actions.copy().items():
        counts[action] += number
    done = ", ".join(f"{word} {number:,}" for word, number in counts.items())
    rounds = tally.rounds.total()
    return f"{label}: {done or 'nothing to clean'} in {rounds:,} round{'' if rounds == 1 else 's'}"


def clean_metrics(tally: CleanTally) -> list[Metric]:
    """What a cleaning process has done, as counters."""
    rounds = [({"depth": depth}, number) for depth, number in tally.rounds.copy().items()]
    actions = [
        ({"queue": queue, "action": action.value}, number)
        for (queue, action), number in tally.actions.copy().items()
    ]
    return [
        Metric("clean_rounds_total", "Complete rounds of this process.", rounds, "counter"),
        Metric("cleaned_items_total", "Repairs by this process.", actions, "counter"),
    ]
