"""Looking up IDs wherever they are: their facts, and their places in the lists."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, SCAN_BUDGET_ENTRIES
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ListCursor
from rwq_cli.core.inspect.places import Positions, places_of
from rwq_cli.core.state.probe import FACT_FIELDS, parse_facts, probe
from rwq_cli.core.state.rules import Facts


class Found(NamedTuple):
    """An ID that was looked up.

    Attributes:
        facts: The facts about it.
        main: Its places in main; 0 is next to be leased.
        processing: Its places in processing; 0 is the oldest entry.
    """

    facts: Facts
    main: Positions
    processing: Positions


def look_up(
    queue: Queue,
    ids: Collection[bytes],
    *,
    main_twice: bool = True,
    digests: bool = False,
) -> Iterator[Found]:
    """Look up IDs in both lists, and in the list of 0.1 cleaners.

    If the lists are short, all facts are of one instant. Otherwise the facts
    are read after the places.

    Args:
        queue: The queue.
        ids: The IDs.
        main_twice: See `places_of`. An item that moves may otherwise seem duplicated or orphaned,
            which is good enough for a first look.
        digests: Whether to read `Facts.digest`.

    Yields:
        The facts and places of each ID, in order.
    """
    if not ids:
        return
    if len(ids) <= BATCH_ITEMS:
        lengths, *facts = queue.run("look_up", SCAN_BUDGET_ENTRIES, int(digests), *ids)
        if facts:
            yield from _found(queue, ids, lengths, facts[0])
            return
    places = places_of(queue, ids, main_twice=main_twice)
    cleaning = Counter(chain.from_iterable(ListCursor(queue, queue.keys.cleaning)))
    for facts in probe(queue, ids, digests=digests):
        item_id = facts.item_id
        main, processing = (found.get(item_id, ()) for found in places)
        yield Found(
            facts._replace(
                in_main=len(main),
                in_processing=len(processing),
                in_cleaning=cleaning[item_id],
            ),
            main,
            processing,
        )


def facts_of(
    queue: Queue,
    ids: Collection[bytes],
    *,
    main_twice: bool = True,
    digests: bool = False,
) -> Iterator[Facts]:
    """The facts about IDs, in order; see `look_up`."""
    found = look_up(queue, ids, main_twice=main_twice, digests=digests)
    return (each.facts for each in found)


def _found(
    queue: Queue, ids: Iterable[bytes], lengths: Sequence[int], facts_reply: Sequence[Any]
) -> Iterator[Found]:
    """Parse a reply of the script."""
    now, *values = facts_reply
    fields = FACT_FIELDS + 4
    for at, item_id in enumerate(ids):
        own = values[at * fields : (at + 1) * fields]
        main, processing, cleaning = (
            [length - 1 - int(index) for index in reversed(indexes.split())]
            for length, indexes in zip(lengths, own[FACT_FIELDS:-1], strict=True)
        )
        counts = (len(main), len(processing), len(cleaning))
        facts = parse_facts(queue.keys, item_id, own[:FACT_FIELDS], int(now), *counts, own[-1])
        yield Found(facts, main, processing)
