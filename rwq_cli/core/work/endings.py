"""How the ends of jobs are sent to the server, and what its replies mean."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rwq_cli.core.batches import BATCH_WRITES, in_batches
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.results import ResultOptions, completing_args
from rwq_cli.core.items.schedule import How, burial, delay, returning, schedule_args
from rwq_cli.core.model import Lease, Outcome, Status
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.expected import ANY
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.rules import is_guard
from rwq_cli.core.work.job import Job, Loss
from rwq_cli.core.work.policy import Fate, JobEnd, Step

# How many jobs end, or have their leases renewed, in one call.
JOBS_PER_CALL = BATCH_WRITES
# All IDs are in processing, and have no conditions but their holder.
_PLACE = {**Located.leased(()).args(), **ANY.args()}


@dataclass(eq=False, slots=True)
class Ending:
    """The end of a job, and the script that does it, until the server has settled it.

    `in_doubt`: a call was sent whose reply was lost. `is_sending`: some thread sends it now.
    """

    job: Job
    end: JobEnd | None
    step: Step
    script: str
    args: Mapping[str, Any]
    in_doubt: bool = False
    is_sending: bool = False

    @property
    def keeps_result(self) -> bool:
        return self.script == "complete" and self.args["keep_ms"] is not None


def ending_of(job: Job, end: JobEnd | None, step: Step, result_ttl_s: float) -> Ending:
    """The ending of a job; its script acts only under the job's own lease."""
    how: How
    match step.fate:
        case Fate.COMPLETED | Fate.REJECTED:
            options = None
            if step.data is not None or step.fate is Fate.REJECTED:
                options = ResultOptions(step.data, ResultStatus(step.fate.value), result_ttl_s)
            args = completing_args(options, (job.holder,))
            return Ending(job, end, step, "complete", {**_PLACE, **args})
        case Fate.RETRY:
            how = delay(round(step.delay_s * 1000))
        case Fate.BURIED:
            how = burial(step.data)
        case _:
            how = returning(front=step.front)
    args = schedule_args(how, job.holder, own_only=True, counts_attempt=step.counted)
    return Ending(job, end, step, how.script, {**_PLACE, **args})


class Call(NamedTuple):
    """A script call that settles some endings."""

    command: Command
    endings: Sequence[Ending]


def calls_for(endings: Iterable[Ending]) -> list[Call]:
    """The calls for some endings; jobs of one lease call that end alike share one.

    Their IDs differ, for no call leases an item twice.
    """
    alike: dict[tuple[object, ...], list[Ending]] = {}
    for ending in endings:
        kind = (ending.job.queue, ending.script, *ending.args.values())
        alike.setdefault(kind, []).append(ending)
    calls: list[Call] = []
    for group in alike.values():
        for batch in in_batches(group, items_max=JOBS_PER_CALL):
            ids = [each.job.item_id for each in batch]
            first = batch[0]
            calls.append(Call(first.job.handle.script(first.script, *ids, **first.args), batch))
    # Each pushes its items in front of those of the call before it.
    fronts = [call for call in calls if call.endings[0].step.front]
    return [call for call in calls if call not in fronts] + fronts[::-1] if fronts else calls


def was_done(ending: Ending, outcome: Outcome) -> bool:
    """Whether a call did what it was to do, or an earlier one whose reply was lost."""
    if outcome.status in (Status.ELSEWHERE, Status.WRONG_TYPE):
        return False
    if outcome.status is Status.MISSING:
        return ending.in_doubt
    if outcome.status is Status.NOT_OWNER:
        # Completing it would have deleted the data.
        return ending.in_doubt and ending.script != "complete"
    return True


def loss_of(outcome: Outcome) -> Loss:
    """Why a job is lost, from the outcome of a call under its lease."""
    if outcome.status is Status.MISSING:
        return Loss.GONE
    if outcome.status is Status.WRONG_TYPE:
        return Loss.WRONG_TYPE
    if outcome.holder is None:
        return Loss.ENDED
    return Loss.MOVED if is_guard(Lease(outcome.holder, None)) else Loss.TAKEN
