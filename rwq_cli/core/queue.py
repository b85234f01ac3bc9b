"""The work queue: a queue handle with the operations of the core as its methods."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rwq_cli.core.handle import Queue

if TYPE_CHECKING:
    from rwq_cli.core.inspect import (
        choosing as choosing_,
        counting as counting_,
        forecast as forecast_,
        listing as listing_,
        queues as queues_,
        report as report_,
        results as result_keys_,
        thresholds as thresholds_,
    )
    from rwq_cli.core.items import (
        add as add_,
        complete as complete_,
        export as export_,
        lease as lease_,
        lease_by_id as lease_by_id_,
        move as move_,
        purge as purge_,
        release as release_,
        remove as remove_,
        restore as restore_,
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


class _LazyMethod:
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

    Each item is changed in one atomic step on the server, except by `move` between two slots of a
    cluster. A client that is killed leaves no step half done. Names and IDs are bytes; text is
    encoded as UTF-8. Each method is documented at its function:
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
        export = export_.export
        restore = restore_.restore
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
        choose = choosing_.choose
        inspect_items = report_.inspect_items
        effective_leases = report_.effective_leases
        describe = report_.describe
        describe_with_results = report_.describe_with_results
        state = report_.state
        forecast = forecast_.forecast
    else:
        add = _LazyMethod("items.add")
        add_unique = _LazyMethod("items.add")
        add_many = _LazyMethod("items.add")
        add_batches = _LazyMethod("items.add")
        lease = _LazyMethod("items.lease")
        lease_many = _LazyMethod("items.lease")
        lease_ids = _LazyMethod("items.lease_by_id")
        complete = _LazyMethod("items.complete")
        touch = _LazyMethod("items.touch")
        release = _LazyMethod("items.release")
        bury = _LazyMethod("items.schedule")
        kick = _LazyMethod("items.schedule")
        promote = _LazyMethod("items.schedule")
        wait = _LazyMethod("items.waiting")
        read_item = _LazyMethod("items.set_data")
        set_data = _LazyMethod("items.set_data")
        set_data_back = _LazyMethod("items.set_data")
        result = _LazyMethod("items.results")
        results = _LazyMethod("inspect.results")
        export = _LazyMethod("items.export")
        restore = _LazyMethod("items.restore")
        remove = _LazyMethod("items.remove")
        move = _LazyMethod("items.move")
        move_back = _LazyMethod("items.move")
        purge = _LazyMethod("items.purge")
        count_items = _LazyMethod("items.purge")
        work = _LazyMethod("work.loop")
        light_clean = _LazyMethod("repair.clean")
        deep_clean = _LazyMethod("repair.clean")
        diagnose = _LazyMethod("repair.doctor")
        lengths = _LazyMethod("inspect.counting")
        lengths_and_abandoned = _LazyMethod("inspect.counting")
        counts = _LazyMethod("inspect.counting")
        count_leased = _LazyMethod("inspect.counting")
        check = _LazyMethod("inspect.thresholds")
        exists = _LazyMethod("inspect.queues")
        items = _LazyMethod("inspect.listing")
        listed_ids = _LazyMethod("inspect.listing")
        leases = _LazyMethod("inspect.listing")
        choose = _LazyMethod("inspect.choosing")
        inspect_items = _LazyMethod("inspect.report")
        effective_leases = _LazyMethod("inspect.report")
        describe = _LazyMethod("inspect.report")
        describe_with_results = _LazyMethod("inspect.report")
        state = _LazyMethod("inspect.report")
        forecast = _LazyMethod("inspect.forecast")
