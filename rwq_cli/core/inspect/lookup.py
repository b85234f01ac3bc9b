"""Looking up IDs wherever they are: their facts, and what is shown of them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Literal, NamedTuple

from rwq_cli.core.errors import PermissionDenied, WrongType
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.inspect.ages import ServerAges
from rwq_cli.core.inspect.cursor import ListCursor
from rwq_cli.core.inspect.places import Places
from rwq_cli.core.inspect.results import ResultKey, read_result_keys
from rwq_cli.core.model import PREVIEW_BYTES, Item, State
from rwq_cli.core.state.expected import FirstLook
from rwq_cli.core.state.located import Positions
from rwq_cli.core.state.reads import FACT_FIELDS, parse_facts, read_facts, read_parts
from rwq_cli.core.state.rules import Facts, whole_ms


class ItemReport(NamedTuple):
    """The facts about an ID, and its places as in `Places`."""

    facts: Facts
    main_places: Positions = ()
    processing_places: Positions = ()

    @property
    def position(self) -> int | None:
        """Its place in main: 0 is next to be leased; None if it is not there."""
        return self.main_places[0] if self.main_places else None


def look_up(queue: Queue, ids: Collection[bytes], *, digests: bool = False) -> Iterator[ItemReport]:
    """Look up IDs in both lists, and in the list of 0.1 cleaners; in order. If the lists are short,
    all facts are of one instant; otherwise they are read after the places."""
    if not ids:
        return
    budget = queue.budget("look_up")
    if len(ids) <= budget.items:
        scan_max = budget.entries
        now_ms, *reply = queue.run("look_up", *ids, scan_max=scan_max, digests_too=digests)
        if values := reply[3:]:
            for item_id, at in zip(ids, range(0, len(values), FACT_FIELDS + 3), strict=True):
                fields, ends = values[at : at + FACT_FIELDS], at + FACT_FIELDS
                from_right = [
                    [length - 1 - int(index) for index in reversed(indexes.split())]
                    for length, indexes in zip(reply, values[ends : ends + 3], strict=False)
                ]
                counts = map(len, from_right)
                facts = parse_facts(queue.keys, item_id, fields, int(now_ms), *counts)
                yield ItemReport(facts, *from_right[:2])
            return
    main, processing, *_ = Places.read(queue, ids)
    cleaning = Counter(chain.from_iterable(ListCursor(queue, queue.keys.cleaning)))

    def in_lists(item_id: bytes) -> tuple[int, int, int]:
        in_main, in_processing = main.get(item_id, ()), processing.get(item_id, ())
        return len(in_main), len(in_processing), cleaning.get(item_id, 0)

    for facts in read_facts(queue, ids, digests=digests, counts=in_lists):
        item_id = facts.item_id
        yield ItemReport(facts, main.get(item_id, ()), processing.get(item_id, ()))


def facts_of(queue: Queue, ids: Collection[bytes], *, digests: bool = False) -> Iterator[Facts]:
    return (report.facts for report in look_up(queue, ids, digests=digests))


def look_twice(queue: Queue, ids: Collection[bytes], grace_s: float) -> Iterator[Facts]:
    """Look up IDs twice, a grace period apart: the facts of the second look, for the IDs that still
    name the same item (`FirstLook`), that are protected by now, or that have no data."""
    look = FirstLook(queue.now_ms())
    for facts in facts_of(queue, ids, digests=True):
        look.note(facts)
    queue.clock.sleep(grace_s)
    for facts in facts_of(queue, ids, digests=True):
        if not facts.digest or look.is_same(facts):
            yield facts


def inspect_items(queue: Queue, ids: Iterable[bytes]) -> list[ItemReport]:
    """Read everything that the server stores about IDs, in order."""
    queue.connection.set_no_touch()
    reports = list(look_up(queue, list(ids)))
    for at, (facts, *places) in enumerate(reports):
        if facts.wrong_types:
            # The scripts only say of a lease that it is not a string.
            types = types_of(queue, facts.wrong_types)
            reports[at] = ItemReport(facts._replace(wrong_types=types), *places)
    return reports


def state(queue: Queue, item_id: bytes | str) -> State:
    (report,) = inspect_items(queue, [to_bytes(item_id)])
    return report.facts.state


class Forecast(NamedTuple):
    """How many places an item moves up per second, and in how many seconds its turn comes at that
    rate; None if it did not move up."""

    rate_per_s: float
    turn_in_s: float | None


def forecast(
    queue: Queue, reports: Sequence[ItemReport], *, sample_s: float
) -> list[Forecast | None]:
    """Compare the places of items with those after a while; None if one is not waiting both times.
    The rate, of the moment, counts the entries that leave the list ahead of an item, by a lease or
    otherwise, minus those that are pushed in front of it."""
    began_s = queue.clock.monotonic()
    waiting = [report.facts.item_id for report in reports if report.position is not None]
    if waiting:
        queue.clock.sleep(sample_s)
    again = {report.facts.item_id: report.position for report in inspect_items(queue, waiting)}
    # Reading the places takes time, too.
    passed_s = max(queue.clock.monotonic() - began_s, 1e-3)

    def compared(first: int | None, second: int | None) -> Forecast | None:
        if first is None or second is None:
            return None
        rate_per_s = max(0.0, (first - second) / passed_s)
        return Forecast(rate_per_s, second / rate_per_s if rate_per_s else None)

    return [compared(report.position, again.get(report.facts.item_id)) for report in reports]


def describe(
    queue: Queue, reports: Iterable[ItemReport], *, data: bool = False, sizes: bool = False
) -> tuple[list[Item], list[ResultKey] | None]:
    """The items of reports, in order, with their idle times, sizes and previews, or all data; and
    the result key of each ID, None if this user may not read them. `sizes` reads sizes and previews
    even if that resets idle times, which are read before."""
    items = [item_from(queue.name, report.facts, report.position) for report in reports]
    ids, detail = [item.item_id for item in items], detail_of(queue, data=data, sizes=sizes)
    kept: list[ResultKey] | None = None
    with suppress(PermissionDenied):
        kept = [key for batch in read_result_keys(queue, ids) for key in batch]
    return list(with_details(queue, items, detail)), kept


def wrong_structures(queue: Queue) -> dict[bytes, str]:
    """The queue's lists, sorted sets and hash that have a wrong type, with their types."""
    structures = queue.keys.structures
    types = types_of(queue, structures)
    return {key: kind for key, kind in types.items() if kind not in ("none", structures[key])}


def types_of(queue: Queue, keys: Iterable[bytes]) -> dict[bytes, str]:
    wanted = list(keys)
    types = queue.call_all([("TYPE", key) for key in wanted])
    return dict(zip(wanted, map(bytes.decode, types), strict=True))


# What a listing reads of an item, in addition to its facts: all but "bare" include its idle time.
Detail = Literal["bare", "nothing", "preview", "data"]


def detail_of(
    queue: Queue, *, data: bool = False, bare: bool = False, sizes: bool = False
) -> Detail:
    """How much to read: sizes and previews if asked for, or if that does not reset idle times."""
    has_no_touch = queue.connection.set_no_touch()
    if data or bare:
        return "data" if data else "bare"
    return "preview" if sizes or has_no_touch else "nothing"


def item_from(queue: bytes, facts: Facts, position: int | None = None) -> Item:
    return Item(
        queue=queue,
        item_id=facts.item_id,
        state=facts.state,
        position=position,
        lease=facts.lease,
        due_ms=whole_ms(facts.due_ms),
        buried_ms=whole_ms(facts.buried_ms),
        reason=facts.reason,
        returns=facts.returns,
    )


def with_details(queue: Queue, items: Sequence[Item], detail: Detail) -> Iterator[Item]:
    """Add idle times, which are read first, as reading data may reset them; sizes and data."""
    remaining = iter(items)
    if items and detail != "bare":
        ids = [item.item_id for item in items]
        args = {"what": detail, "preview_bytes": PREVIEW_BYTES}
        ages = ServerAges.of_server(queue)
        # A structure of the wrong type keeps them from being read.
        with suppress(WrongType):
            for read, reply in read_parts(queue, "details", ids, 3, **args):
                for at, item in enumerate(islice(remaining, len(read))):
                    # None is what was not read.
                    idle_s, size, data = reply[3 * at : 3 * at + 3]
                    # STRLEN of a missing key is 0, like that of an empty payload.
                    has_data = item.state.has_data
                    yield item._replace(
                        idle_s=ages.of_item(item, idle_s),
                        payload_bytes=size if has_data else None,
                        preview=data[:PREVIEW_BYTES] if has_data and data is not None else None,
                        data=data if detail == "data" else None,
                    )
    yield from remaining
