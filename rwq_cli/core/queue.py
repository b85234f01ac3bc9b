"""The work queue: a queue handle with the operations of the core as its methods."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rwq_cli.core.handle import Queue

if TYPE_CHECKING:
    from rwq_cli.core.inspect import (
        counting as counting_,
        forecast as forecast_,
        listing as listing_,
        queues as queues_,
        report as report_,
        results as result_keys_,
        selection as selection_,
        thresholds as thresholds_,
    )
    from rwq_cli.core.items import (
        add as add_,
        complete as complete_,
        exporting as exporting_,
        importing as importing_,
        lease as lease_,
        lease_by_id as lease_by_id_,
        move as move_,
        purge as purge_,
        release as release_,
        remove as remove_,
        results as results_,
        schedule as schedule_,
        set_data as set_data_,
        touch as touch_,
        waiting as waiting_,
    )
    from rwq_cli.core.repair import (
        clean as clean_,
        doctor as doctor_,
    )
    from rwq_cli.core.work import loop as work_

FOREVER = float("inf")


class _Operation:
    """A function of the core as a method; its module is imported when it is first used.

    So a command loads only the modules that it needs, which matters in shell loops.

    Args:
        module: The module, below `rwq_cli.core`.
        name: The function; "" if it has the method's name.
    """

    def __init__(self, module: str, name: str = "") -> None:
        self._module = module
        self._name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = self._name or name

    def __get__(self, queue: Queue | None, owner: type | None = None) -> Callable[..., Any]:
        return self._load() if queue is None else partial(self._call, queue)

    def _call(self, *args: Any, **options: Any) -> Any:
        return self._load()(*args, **options)

    def _load(self) -> Callable[..., Any]:
        module = import_module(f"rwq_cli.core.{self._module}")
        operation: Callable[..., Any] = getattr(module, self._name)
        return operation


class WorkQueue(Queue):
    """A redis-work-queue queue, shared with workers in any language.

    >>> from rwq_cli.core import Server, WorkQueue, connect
    >>> queue = WorkQueue(connect(Server("redis://localhost:6379/0")), "jobs")
    >>> queue.add(b"some work")  # doctest: +SKIP

    Every operation is atomic on the server: a client that is killed leaves nothing half done. Names
    and IDs are bytes; text is encoded as UTF-8. Each method is documented at its function:
    `help(rwq_cli.core.items.complete.complete)`.
    """

    if TYPE_CHECKING:
        add = add_.add
        add_unique = add_.add_unique
        add_many = add_.add_many
        add_batches = add_.add_batches
        lease = lease_.lease
        lease_many = lease_.lease_many
        lease_ids = lease_by_id_.lease_ids
        complete = complete_.complete
        touch = touch_.touch
        release = release_.release
        bury = schedule_.bury
        kick = schedule_.kick
        promote = schedule_.promote
        wait = waiting_.wait
        read_item = set_data_.read_item
        set_data = set_data_.set_data
        set_data_back = set_data_.set_data_back
        result = results_.result
        results = result_keys_.results
        result_kinds = result_keys_.result_kinds
        export = exporting_.export
        restore = importing_.restore
        remove = remove_.remove
        move = move_.move
        move_back = move_.move_back
        purge = purge_.purge
        count_items = purge_.count_items
        work = work_.work
        light_clean = clean_.light_clean
        deep_clean = clean_.deep_clean
        diagnose = doctor_.diagnose
        lengths = counting_.lengths
        lengths_and_abandoned = counting_.lengths_and_abandoned
        counts = counting_.counts
        count_leased = counting_.count_leased
        check = thresholds_.check
        exists = queues_.exists
        items = listing_.items
        listed_ids = listing_.listed_ids
        leases = listing_.leases
        choose = selection_.choose
        inspect_items = report_.inspect_items
        effective_leases = report_.effective_leases
        describe = report_.describe
        describe_with_results = report_.describe_with_results
        state = report_.state
        forecast = forecast_.forecast
    else:
        add = _Operation("items.add")
        add_unique = _Operation("items.add")
        add_many = _Operation("items.add")
        add_batches = _Operation("items.add")
        lease = _Operation("items.lease")
        lease_many = _Operation("items.lease")
        lease_ids = _Operation("items.lease_by_id")
        complete = _Operation("items.complete")
        touch = _Operation("items.touch")
        release = _Operation("items.release")
        bury = _Operation("items.schedule")
        kick = _Operation("items.schedule")
        promote = _Operation("items.schedule")
        wait = _Operation("items.waiting")
        read_item = _Operation("items.set_data")
        set_data = _Operation("items.set_data")
        set_data_back = _Operation("items.set_data")
        result = _Operation("items.results")
        results = _Operation("inspect.results")
        result_kinds = _Operation("inspect.results")
        export = _Operation("items.exporting")
        restore = _Operation("items.importing")
        remove = _Operation("items.remove")
        move = _Operation("items.move")
        move_back = _Operation("items.move")
        purge = _Operation("items.purge")
        count_items = _Operation("items.purge")
        work = _Operation("work.loop")
        light_clean = _Operation("repair.clean")
        deep_clean = _Operation("repair.clean")
        diagnose = _Operation("repair.doctor")
        lengths = _Operation("inspect.counting")
        lengths_and_abandoned = _Operation("inspect.counting")
        counts = _Operation("inspect.counting")
        count_leased = _Operation("inspect.counting")
        check = _Operation("inspect.thresholds")
        exists = _Operation("inspect.queues")
        items = _Operation("inspect.listing")
        listed_ids = _Operation("inspect.listing")
        leases = _Operation("inspect.listing")
        choose = _Operation("inspect.selection")
        inspect_items = _Operation("inspect.report")
        effective_leases = _Operation("inspect.report")
        describe = _Operation("inspect.report")
        describe_with_results = _Operation("inspect.report")
        state = _Operation("inspect.report")
        forecast = _Operation("inspect.forecast")
