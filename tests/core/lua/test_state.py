"""What Lua says of facts, pushes, counts and results is what Python says."""

from collections.abc import Iterable, Iterator
from itertools import chain, product

import pytest
from redis import Redis

from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.keys import SETTLING_GUARD
from rwq_cli.core.lua import CONSTANTS, libraries_of
from rwq_cli.core.model import TIME_MS_MAX, Lease
from rwq_cli.core.state.reads import parse_returns
from rwq_cli.core.state.rules import Facts
from tests.core.lua.test_scripts import SCRIPTS

NOW_MS = 1_000_000
# What a lease key can hold, as far as any rule tells values apart; None is a key of another type.
HOLDERS = (
    b"them",
    b"rwq:me@here:1",
    b"rwq:you@there:2",
    b"rwq-clean:1",
    b"rwq-delayed:5",
    b"rwq-buried:why",
    b"rwq-buried:",
    b"rwq-settling:kicked",
    b"rwq-",
    b"",
    None,
)
LEFT_MS = (-1, 0, 80)
KEYS = [None, *product(HOLDERS, LEFT_MS)]
DUE_MS = (None, NOW_MS, NOW_MS + 1, NOW_MS + 80, TIME_MS_MAX + 2)
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
  local state = state_of(facts, NOW)
  lines[#lines + 1] = table.concat({
    state,
    not holder and 'none' or 'held:' .. (holder ~= true and holder or ''),
    effective_left_ms(facts),
    tostring(is_guarded(facts)),
    tostring(session and true or false),
    tostring(has_stale_schedule(facts, state)),
    reason_of(facts) or 'none',
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
            LUA[facts.has_stale_schedule],
            b"none" if facts.reason is None else facts.reason,
        )


def library_text(name: str) -> str:
    constants = (f"local {each} = {value}\n" for each, value in CONSTANTS.items())
    files = (*libraries_of(f"lib/{name}"), f"lib/{name}")
    return "".join((*constants, *(SCRIPTS[file] for file in files)))


@pytest.mark.parametrize("data", DATA)
def test_lua_and_python_agree_on_all_facts(raw: Redis, data: str) -> None:
    script = library_text("schedule") + HARNESS
    for name, values in (("ENTRIES", ENTRIES), ("DUE", DUE_MS), ("BURIED", BURIED_MS)):
        script = script.replace(f"{{ {name} }}", f"{{ {lua_values(values)} }}")
    sha = raw.script_load(script.replace("NOW", str(NOW_MS)))
    olds = [word for old in KEYS for word in lua_key(old)]
    for new in KEYS:
        reply = raw.execute_command("EVALSHA", sha, 0, data, *lua_key(new), *olds)
        expected = chain.from_iterable(lines_of(data, new, old) for old in KEYS)
        assert reply.split(b"\n") == [*expected], new


def test_lua_and_python_agree_on_times_of_pushes(raw: Redis) -> None:
    script = library_text("facts") + "return pushed_ms({ new = ARGV[1], old = ARGV[2] })"
    times = {
        b"rwq-settling:returned 1700000000000": 1_700_000_000_000,
        b"rwq-settling:moved 7": 7,
        b"rwq-settling:kicked": None,
        b"rwq-settling:5 6x": None,
        b"rwq-buried:8": None,
        b"them 9": None,
    }
    pushed_ms = {
        (new, old): times[new if new.startswith(SETTLING_GUARD) else old]
        for new, old in product(times, times)
    }
    assert {leases: raw.eval(script, 0, *leases) for leases in pushed_ms} == pushed_ms
    assert {
        (new, old): Facts(b"1", True, new_lease=Lease(new, 1), old_lease=Lease(old, 1)).pushed_ms
        for new, old in pushed_ms
    } == pushed_ms


# By what a field of `Q:returns` holds, how often the item was returned.
RETURNS = {
    b"0": 0,
    b"3": 3,
    b"007": 7,
    b"9" * 15: 999_999_999_999_999,
    **dict.fromkeys((b"9" * 16, b"0" * 16, b"9" * 400)),
    **dict.fromkeys((b"", b"x", b"-1", b"+1", b"1.5", b"1e3", b"0x1", b"1_0", b"1x", b"x1")),
    **dict.fromkeys((b" 1", b"1 ", b"1\n", b"1\0", b"\x001", b"\xb2", "\u0661".encode())),
    None: None,
}


def test_lua_and_python_agree_on_counts_of_returns(raw: Redis) -> None:
    prelude = """
    local returns = KEYS[1]
    local present = { [returns] = true }
    local function read_all(command, key, names) return redis.call(command, key, unpack(names)) end
    """
    harness = """
    local counts, reply = returns_of(ARGV), {}
    for i, id in ipairs(ARGV) do
      reply[i] = counts[id] and string.format('%.0f', counts[id]) or false
    end
    return reply
    """
    ids = [b"%d" % number for number in range(len(RETURNS))]
    fields = {i: value for i, value in zip(ids, RETURNS, strict=True) if value is not None}
    raw.hset("jobs:returns", mapping=fields)
    reply = raw.eval(prelude + library_text("schedule") + harness, 1, "jobs:returns", *ids)
    in_lua = [None if count is None else int(count) for count in reply]
    assert dict(zip(RETURNS, in_lua, strict=True)) == RETURNS
    assert {value: parse_returns(value) for value in RETURNS} == RETURNS


def test_lua_and_python_agree_on_what_is_a_result(raw: Redis) -> None:
    script = library_text("facts") + "return result_kind(KEYS[1])"
    statuses = (b"completed", b"rejected", b"Completed", b"done", b"", None)
    assert {status.value.encode() for status in ResultStatus} == {*statuses[:2]}
    times = dict.fromkeys((b"0", b"1700000000000", b"9" * 15), "result")
    times |= dict.fromkeys((b"9" * 16, b"", b"-1", b"1.5", b"1e3", b"soon", b" 1"), "hash")
    times[None] = "hash"
    kinds = {b"text": "string", b"list": "list", b"nothing": "none"}
    raw.set("text", "completed")
    raw.lpush("list", "completed")
    for status, (completed_ms, kind) in product(statuses, times.items()):
        key = b"%r %r" % (status, completed_ms)
        fields = {"holder": b"me", "status": status, "completed_ms": completed_ms}
        raw.hset(key, mapping={name: value for name, value in fields.items() if value is not None})
        kinds[key] = kind if status in statuses[:2] else "hash"
    assert {key: raw.eval(script, 1, key).decode() for key in kinds} == kinds
