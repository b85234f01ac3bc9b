"""What Lua says of facts and of identities is what Python says, for every combination of them."""

from collections.abc import Iterable, Iterator
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

# For one type of the data and one lease key: a line for each combination of the other lease key,
# the entries and the scores, in the order of `lines_of`. ARGV: the type; of the lease key its kind,
# the time left and its value; and the same of every other one.
HARNESS = """
local lines = {}
local function key(at)
  local kind = ARGV[at]
  return kind == 'string' and ARGV[at + 2] or kind == 'other', tonumber(ARGV[at + 1])
end
local function line(facts)
  local holder, session = effective_lease(facts), session_of(facts)
  local is_scheduled = facts.due_ms or facts.buried_ms
  local state = state_of(facts, NOW)
  lines[#lines + 1] = table.concat({
    state,
    not holder and 'none' or 'held:' .. (holder ~= true and holder or ''),
    effective_left_ms(facts),
    tostring(is_guarded(facts)),
    tostring(session and true or false),
    tostring(is_scheduled and is_guard_weak(facts, NOW) or false),
    tostring(has_stale_schedule(facts, state)),
  }, ' ')
end
local new, new_left = key(2)
for at = 5, #ARGV, 3 do
  local old, old_left = key(at)
  for _, main in ipairs({ ENTRIES }) do
    for _, processing in ipairs({ ENTRIES }) do
      for _, due in ipairs({ DUE }) do
        for _, buried in ipairs({ BURIED }) do
          line({
            data = ARGV[1], main = main, processing = processing, new = new, old = old,
            left = { new = new_left, old = old_left },
            due_ms = due or nil, buried_ms = buried or nil,
          })
        end
      end
    end
  end
end
return table.concat(lines, '\\n')
"""

LUA = {True: b"true", False: b"false"}
Key = tuple[bytes | None, int] | None


def lua_values(values: Iterable[int | None]) -> str:
    return ", ".join("false" if value is None else str(value) for value in values)


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


def lines_of(data: str, new: Key, old: Key) -> Iterator[bytes]:
    """What Python says, in the form and the order of the harness."""
    wrong = {b"data": data} if data not in ("none", "string") else {}
    wrong |= {
        name: "not a string"
        for name, key in ((b"new", new), (b"old", old))
        if key and key[0] is None
    }
    leases = python_lease(new), python_lease(old)
    for main, processing, due, buried in product(ENTRIES, ENTRIES, DUE_MS, BURIED_MS):
        facts = Facts(
            *(b"1", data != "none", main, processing, 0, *leases, due, buried, NOW_MS),
            wrong_types=wrong,
        )
        lease = facts.lease
        left_ms = -2 if lease is None else -1 if lease.ttl_ms is None else lease.ttl_ms
        yield b"%b %b %d %b %b %b %b" % (
            facts.state.value.encode(),
            b"none" if lease is None else b"held:" + lease.holder,
            left_ms,
            LUA[facts.is_guarded],
            LUA[facts.session is not None],
            LUA[facts.is_scheduled and facts.is_guard_weak],
            LUA[facts.has_stale_schedule],
        )


def test_lua_and_python_agree_on_every_combination_of_facts(raw: Redis) -> None:
    script = library_text("state") + HARNESS
    for name, values in (("ENTRIES", ENTRIES), ("DUE", DUE_MS), ("BURIED", BURIED_MS)):
        script = script.replace(f"{{ {name} }}", f"{{ {lua_values(values)} }}")
    sha = raw.script_load(script.replace("NOW", str(NOW_MS)))
    combinations = 0
    olds = [word for old in KEYS for word in lua_key(old)]
    for data, new in product(DATA, KEYS):
        reply = raw.execute_command("EVALSHA", sha, 0, data, *lua_key(new), *olds)
        lines = iter(reply.split(b"\n"))
        for old in KEYS:
            for expected in lines_of(data, new, old):
                assert next(lines) == expected, (data, new, old)
                combinations += 1
        assert [*lines] == []
    assert combinations > 200_000


def test_lua_and_python_agree_on_every_two_identities(raw: Redis) -> None:
    script = library_text("identity") + "return is_same(ARGV[1], ARGV[2]) and 1 or 0"
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
