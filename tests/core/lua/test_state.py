"""What Lua says of facts and of identities is what Python says, for every combination of them."""

from collections.abc import Iterator
from itertools import product

from redis import Redis

from rwq_cli.core.lua import DATA_DIGITS, PUSH_DIGITS, library_text
from rwq_cli.core.model import Lease
from rwq_cli.core.state.rules import Facts
from rwq_cli.core.state.seen import Seen

NOW_MS = 1_000_000
# What a lease key can hold, as far as any rule tells values apart; None is a key of another type.
HOLDERS = (
    b"them",
    b"others",
    b"rwq:me@host:1",
    b"rwq-clean:1",
    b"rwq-delayed:5",
    b"rwq-buried:why",
    b"rwq-settling:kicked",
    b"rwq-",
    b"",
    None,
)
LEFT_MS = (-1, 40, 80)
KEYS = [None, *product(HOLDERS, LEFT_MS)]
DUE_MS = (None, NOW_MS - 1, NOW_MS, NOW_MS + 1)
BURIED_MS = (None, NOW_MS)
DATA = ("none", "string", "hash")
ENTRIES = (0, 1, 2)

HARNESS = """
local replies = {}
for at = 1, #ARGV, 11 do
  local a = {}
  for i = 0, 10 do a[i] = ARGV[at + i] end
  local left = { new = tonumber(a[4]), old = tonumber(a[7]) }
  local function value(kind, text)
    return kind == 'string' and text or kind == 'other'
  end
  local facts = {
    data = a[0], main = tonumber(a[1]), processing = tonumber(a[2]),
    new = value(a[3], a[5]), old = value(a[6], a[8]),
    left = left,
    due_ms = tonumber(a[9]), buried_ms = tonumber(a[10]),
  }
  local holder = effective_lease(facts)
  replies[#replies + 1] = state_of(facts, NOW)
  replies[#replies + 1] = not holder and 'none' or 'held:' .. (holder ~= true and holder or '')
  replies[#replies + 1] = effective_left_ms(facts)
  replies[#replies + 1] = is_guarded(facts) and 1 or 0
  local session = session_of(facts)
  replies[#replies + 1] = session and 1 or 0
  local is_scheduled = facts.due_ms or facts.buried_ms
  replies[#replies + 1] = is_scheduled and is_guard_weak(facts, NOW) and 1 or 0
  replies[#replies + 1] = has_stale_schedule(facts, state_of(facts, NOW)) and 1 or 0
end
return replies
"""

Key = tuple[bytes | None, int] | None


def domain() -> Iterator[tuple[str, int, int, Key, Key, int | None, int | None]]:
    return product(DATA, ENTRIES, ENTRIES, KEYS, KEYS, DUE_MS, BURIED_MS)


def lua_key(key: Key) -> tuple[object, ...]:
    """Its kind, the time left and its value."""
    if key is None:
        return "absent", -2, b""
    holder, left_ms = key
    return ("other", left_ms, b"") if holder is None else ("string", left_ms, holder)


def python_lease(key: Key) -> Lease | None:
    if key is None:
        return None
    holder, left_ms = key
    return Lease(holder or b"", None if left_ms == -1 else left_ms)


def expected(
    data: str, main: int, processing: int, new: Key, old: Key, due: int | None, buried: int | None
) -> list[object]:
    wrong = {b"data": data} if data not in ("none", "string") else {}
    wrong |= {
        name: "not a string"
        for name, key in ((b"new", new), (b"old", old))
        if key and key[0] is None
    }
    facts = Facts(
        b"1",
        data != "none",
        main,
        processing,
        0,
        python_lease(new),
        python_lease(old),
        due,
        buried,
        NOW_MS,
        wrong_types=wrong,
    )
    lease = facts.lease
    left_ms = -2 if lease is None else -1 if lease.ttl_ms is None else lease.ttl_ms
    holder = b"none" if lease is None else b"held:" + lease.holder
    return [
        facts.state.value.encode(),
        holder,
        left_ms,
        int(facts.is_guarded),
        int(facts.session is not None),
        int(facts.is_scheduled and facts.is_guard_weak),
        int(facts.has_stale_schedule),
    ]


def test_lua_and_python_agree_on_every_combination_of_facts(raw: Redis) -> None:
    script = library_text("state") + HARNESS.replace("NOW", str(NOW_MS))
    sha = raw.script_load(script)
    combinations = list(domain())
    assert len(combinations) > 200_000
    for start in range(0, len(combinations), 4000):
        part = combinations[start : start + 4000]
        words: list[object] = []
        for data, main, processing, new, old, due, buried in part:
            kind, left, value = lua_key(new)
            old_kind, old_left, old_value = lua_key(old)
            words += (data, main, processing, kind, left, value)
            words += (old_kind, old_left, old_value)
            words += ("" if due is None else due, "" if buried is None else buried)
        # The order of the harness: kind, left, value of each key.
        replies = raw.execute_command("EVALSHA", sha, 0, *words)
        for at, facts in enumerate(part):
            reply = replies[at * 7 : at * 7 + 7]
            assert reply == expected(*facts), facts


def test_lua_and_python_agree_on_every_two_identities(raw: Redis) -> None:
    constants = f"local DATA_DIGITS, PUSH_DIGITS = {DATA_DIGITS}, {PUSH_DIGITS} "
    script = constants + library_text("identity") + "return is_same(ARGV[1], ARGV[2]) and 1 or 0"
    data = [digit * DATA_DIGITS for digit in "0af"]
    pushed = ["0" * PUSH_DIGITS, "0" * (PUSH_DIGITS - 1) + "1", "f" * PUSH_DIGITS]
    identities = ["".join(parts) for parts in product(data, pushed)]
    same = 0
    for seen_first, seen_now in product(identities, identities):
        seen = Seen()
        seen.note(b"1", seen_first.encode())
        is_same = seen.is_same(b"1", seen_now.encode())
        assert raw.eval(script, 0, seen_now, seen_first) == is_same, (seen_first, seen_now)
        same += is_same
    # Of each data: without a push, and two pushes that were seen.
    assert same == 3 * (3 + 2)
