"""How the ends of jobs are sent to the server, and what its replies mean."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_WRITES, in_batches
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.lease_policy import LeasePolicy
from rwq_cli.core.items.results import ResultOptions, completing_args
from rwq_cli.core.items.schedule import Burial, Delay, How, Release, schedule_args
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


class Ending:
    """The end of a job, until the server has settled it.

    Args:
        job: The job.
        end: How it ended.
        step: What to do with its item.

    Attributes:
        in_doubt: Whether a call was sent whose reply was lost.
    """

    def __init__(self, job: Job, end: JobEnd | None, step: Step) -> None:
        self.job = job
        self.end = end
        self.step = step
        self.in_doubt = False


class Call(NamedTuple):
    """A script call that settles some endings."""

    command: Command
    endings: Sequence[Ending]


def calls_for(
    endings: Sequence[Ending], is_held: Callable[[Job], bool], result_ttl_s: float
) -> list[Call]:
    """The calls for some endings; jobs that end alike share one."""
    alike: dict[tuple[object, ...], Sequence[Ending]] = {}
    if len(endings) == 1:
        # As usual: nothing to compare.
        alike[()] = endings
        endings = ()
    for ending in endings:
        # An item that was lost and leased again is never twice in a call.
        script, args = _script(ending, result_ttl_s)
        kind = (ending.job.queue, is_held(ending.job), script, *args.values())
        alike[kind] = [*alike.get(kind, ()), ending]
    calls: list[Call] = []
    fronts: list[Call] = []
    for group in alike.values():
        for batch in in_batches(group, items_max=JOBS_PER_CALL):
            owners = {each.job.holder for each in batch}
            script, args = _script(batch[0], result_ttl_s, owners)
            ids = [each.job.item_id for each in batch]
            command = batch[0].job.handle.script(script, *ids, **_PLACE, **args)
            call = Call(command, batch)
            (fronts if batch[0].step.front else calls).append(call)
    # Each pushes its items in front of those of the call before it.
    return [*calls, *reversed(fronts)]


def _script(
    ending: Ending, result_ttl_s: float, owners: Iterable[bytes] = ()
) -> tuple[str, dict[str, object]]:
    """The script for an ending, and its own arguments."""
    step = ending.step
    if step.fate is Fate.COMPLETED and step.data is None:
        return "complete", completing_args(None, owners)
    how: How
    counts_attempt = False
    match step.fate:
        case Fate.COMPLETED | Fate.REJECTED:
            options = ResultOptions(step.data, ResultStatus(step.fate.value), result_ttl_s)
            return "complete", completing_args(options, owners)
        case Fate.RETRY:
            how, counts_attempt = Delay(round(step.delay_s * 1000)), True
        case Fate.BURIED:
            how = Burial(step.data)
        case _:
            how, counts_attempt = Release(step.front), step.counted
    policy = LeasePolicy(ending.job.holder, force=False, own_only=True)
    args = schedule_args(policy, how, is_first_look=False, counts_attempt=counts_attempt)
    return how.script, args


def was_done(ending: Ending, outcome: Outcome) -> bool:
    """Whether a call did what it was to do, or an earlier one whose reply was lost."""
    if outcome.status in (Status.ELSEWHERE, Status.WRONG_TYPE):
        return False
    if outcome.status is Status.MISSING:
        return ending.in_doubt
    if outcome.status is Status.NOT_OWNER:
        # Completing it would have deleted the data.
        return ending.in_doubt and ending.step.fate not in (Fate.COMPLETED, Fate.REJECTED)
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
