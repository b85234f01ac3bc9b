"""Which findings the facts about an ID come to."""

import math

from rwq_cli.core import Code, Lease
from rwq_cli.core.repair.findings import findings_about
from rwq_cli.core.state.rules import Facts

THEM, OTHERS = Lease(b"them", 1000), Lease(b"others", 1000)


def test_an_item_is_late_a_minute_after_it_is_due() -> None:
    guard = Lease(b"rwq-delayed:", 1000)
    for age_ms, late in ((59_000, ()), (61_000, (Code.DUE,))):
        now_ms = 1_000_000 + age_ms
        facts = Facts(b"x", True, 0, 0, 0, guard, guard, due_ms=1_000_000, now_ms=now_ms)
        assert findings_about(facts) == late


def test_two_holders_need_leases_of_two_different_sessions() -> None:
    for new, old, two in (
        (THEM, OTHERS, True),
        (THEM, THEM, False),
        (THEM, None, False),
        (Lease(b"rwq-delayed:1", 1000), THEM, False),
        (THEM, Lease(b"rwq-settling:kicked", 1000), False),
    ):
        facts = Facts(b"x", True, in_processing=1, new_lease=new, old_lease=old)
        assert (Code.TWO_HOLDERS in findings_about(facts)) is two


def test_a_score_that_is_not_a_time() -> None:
    for field, score in (
        *(("due_ms", math.inf), ("due_ms", 1e300), ("due_ms", 2.0**63)),
        *(("buried_ms", math.inf), ("buried_ms", -math.inf), ("buried_ms", -1e300)),
    ):
        guard = Lease(b"rwq-delayed:" if field == "due_ms" else b"rwq-buried:", None)
        facts = Facts(b"x", True, new_lease=guard, old_lease=guard, **{field: score})
        assert findings_about(facts) == (Code.INVALID_SCORE,)
        unguarded = Facts(b"x", True, **{field: score})
        # No guard can outlast an item that is never due.
        missing = () if field == "due_ms" else (Code.UNGUARDED,)
        assert findings_about(unguarded) == (*missing, Code.INVALID_SCORE)
