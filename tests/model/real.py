"""The model's keys on a real server: put them there, run one of our scripts, read them again."""

from collections.abc import Iterable, Sequence
from hashlib import sha1
from itertools import islice
from typing import Any

import redis

from rwq_cli.core.items.complete import completing_args
from rwq_cli.core.items.lease import LeaseRequest
from rwq_cli.core.items.schedule import put_args
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.lua import DIGEST_DIGITS, load_script, script_words
from rwq_cli.core.model import TIME_MS_MAX, State, Status
from rwq_cli.core.state.expected import ANY, token_of
from rwq_cli.core.state.located import Located
from tests.everything import LOOK
from tests.live.raw_keys import raw_keys_of
from tests.model.keys import GUARDS, KEY_PARTS, LATER_S, MARGIN_S, SESSION_S, SETTLING_S, Frozen
from tests.model.programs import Command
from tests.model.scripts import Identity, Queue

NAME = b"jobs"
KEYS = QueueKeys(NAME)
_STATUS = {status.code: status.value for status in Status}
_STATE = {state.code: state for state in State}
_GUARDS = {
    "delayed": b"rwq-delayed:1",
    "buried": b"rwq-buried:why",
    "settling": b"rwq-settling:x %d",
}
# Far enough from now, either way, that no test lasts so long.
_DUE_MS = {"a": 1, "b": 2}


def data_of(item_id: str, life: int) -> bytes:
    return b"%s, life %d" % (item_id.encode(), life)


def _identity(item_id: str, seen: Identity | None) -> str:
    if seen is None:
        return ""
    return sha1(data_of(item_id, seen[0])).hexdigest()[:DIGEST_DIGITS]


def _looked_at(seen: Sequence[tuple[str, Identity | None]]) -> int:
    return min((identity[1] for _, identity in seen if identity), default=0)


def making(keys: Frozen, now_ms: int) -> list[tuple[Any, ...]]:
    """The commands that make the server's keys these."""
    queue = Queue(keys)
    commands: list[tuple[Any, ...]] = [("FLUSHDB",)]
    for item_id, life in queue.data.items():
        commands.append(("SET", KEYS.item(item_id.encode()), data_of(item_id, life)))
    for key, entries in (
        (KEYS.main, queue.main),
        (KEYS.processing, queue.processing),
        (KEYS.cleaning, queue.cleaning),
    ):
        if entries:
            commands.append(("RPUSH", key, *entries))
    for key_of, leases in ((KEYS.lease, queue.new), (KEYS.old_lease, queue.old)):
        for item_id, holder in leases.items():
            later_s = LATER_S if queue.delayed.get(item_id) == "later" else 0
            lasts_s = {"settling": SETTLING_S, "delayed": later_s + MARGIN_S}.get(holder, SESSION_S)
            value = _GUARDS.get(holder, holder.encode())
            if holder == "settling":
                value %= queue.pushed[item_id]
            expiry = () if holder == "buried" else ("EX", lasts_s)
            commands.append(("SET", key_of(item_id.encode()), value, *expiry))
    for item_id, when in queue.delayed.items():
        due_ms = now_ms + LATER_S * 1000 if when == "later" else _DUE_MS[item_id]
        commands.append(("ZADD", KEYS.delayed, due_ms, item_id))
    commands += [("ZADD", KEYS.buried, 1, item_id) for item_id in queue.buried]
    commands += [("HSET", KEYS.returns, item_id, count) for item_id, count in queue.returns.items()]
    return commands


def model_of(reply: Sequence[tuple[bytes, Sequence[bytes]]], now_ms: float) -> Frozen:
    """The model's keys for what `LOOK` saw on a server; without what only the witness notes."""
    queue, seen = Queue(), raw_keys_of(reply, NAME)
    queue.data = {i.decode(): _life(data) for i, data in seen.data.items()}
    for entries, ids in (
        (queue.main, seen.main),
        (queue.processing, seen.processing),
        (queue.cleaning, seen.cleaning),
    ):
        entries += [item_id.decode() for item_id in ids]
    for (item_id, kind), holder in seen.leases.items():
        name = "new" if kind == "lease" else "old"
        guard = holder.split(b":")[0].removeprefix(b"rwq-").decode()
        queue.leases(name)[item_id.decode()] = guard if guard in GUARDS else holder.decode()
    for item_id, due_ms in seen.delayed.items():
        queue.delayed[item_id.decode()] = "later" if due_ms > now_ms else "due"
    queue.buried = {item_id.decode() for item_id in seen.buried}
    queue.returns = {item_id.decode(): count for item_id, count in seen.returns.items()}
    return queue.frozen()[:KEY_PARTS]


def _life(data: bytes) -> int:
    return int(data.rsplit(b" ")[-1])


# What each of our scripts is sent for a command of the model, and what its reply means.


def script_call(command: Command, lives: Any) -> tuple[str, list[object]]:
    name, *args = command
    by_name, leased = Located(()).args(), Located((), "leased").args()
    anything = ANY.args()
    saved = {**anything, "has_tokens": True}

    def call(script: str, *rest: object, **named: object) -> tuple[str, list[object]]:
        return script, script_words(script, rest, **named)

    def put(to: str, own: str, first_look: bool, **policy: Any) -> dict[str, Any]:
        named = put_args(to, own.encode(), delay_ms=LATER_S * 1000, reason=b"why", **policy)
        return {**anything, **named, "is_first_look": first_look}

    match name:
        case "add":
            item_id, later = args
            data = data_of(item_id, lives.get(item_id, 0) + 1)
            delays = f"+{LATER_S * 1000};" if later else ""
            return call(name, item_id, data, ids_are="any", delays=delays)
        case "lease":
            request = LeaseRequest(1, args[0], SESSION_S * 1000)
            return call(name, **request.args(1, 100))
        case "lease_id":
            how = {"holder": args[1], "lease_ms": SESSION_S * 1000, "wants_data": True}
            return call("lease_by_id", id=args[0], **how, **by_name)
        case "complete":
            item_id, owner, is_leased = (*args, False)[:3]
            owners = () if owner is None else (owner.encode(),)
            place = leased if is_leased else by_name
            named = {**place, **anything, **completing_args(None, owners)}
            return call(name, item_id, **named)
        case "end_job":
            item_id, own, how, counts = args
            to = "main" if how == "released" else how
            named = put(to, own, False, own_only=True, counts=[1] if counts else ())
            return call("put", item_id, **leased, **named)
        case "remove":
            item_id, life = args
            token = token_of(data_of(item_id, life)) if life else ""
            options = {**by_name, **saved, **completing_args(done=Status.REMOVED)}
            return call("complete", item_id, token, **options)
        case "touch":
            return call(name, *args, lease_ms=SESSION_S * 1000, has_owners=len(args) > 1)
        case "release":
            item_id, own, force, first_look, front = args
            named = put("front" if front else "main", own, first_look, force=force)
            return call("put", item_id, **by_name, **named)
        case "schedule":
            item_id, how, own, force, first_look = args
            named = put(how, own, first_look, force=force)
            return call("put", item_id, **by_name, **named)
        case "push_scheduled":
            kept = args[0] == "delayed"
            named = {"which": args[0], "keeps_counts": kept, "transit": None}
            return call(name, *args[1], **by_name, **anything, **named)
        case "repair" | "repair_unlisted":
            expected, seen, place = ("orphaned",), ((args[0], args[1]),), by_name
            if name == "repair":
                expected, seen = args
            else:
                place = Located.unlisted((args[0],), args[2] + 1).args()
            ids = [word for i, identity in seen for word in (i, _identity(i, identity))]
            named = {**place, **saved, "states": ";".join(expected), "bury_after": -1}
            return call("repair", *ids, **named, looked_ms=_looked_at(seen))
        case "restore_guards":
            place = Located.unlisted(args[0], TIME_MS_MAX).args()
            named = {**place, **anything, "states": "buried;delayed;due", "bury_after": -1}
            return call("repair", *args[0], **named, looked_ms=TIME_MS_MAX)
        case "prune":
            return call(name, *args[1], which=args[0], sample=0)
        case "states":
            return call(name, *args[0], in_main=0, in_processing=1, digests_too=True)
        case "look_up":
            return call(name, *args[0], scan_max=1000, digests_too=True)
    raise AssertionError(f"no script for {name}")


def meaning(command: Command, reply: Any) -> Any:
    """A script's reply as the model's."""
    name, *args = command
    match name:
        case "add":
            return ((args[0], "duplicate" if reply else "added"),)
        case "lease":
            if len(reply) == 5:
                return None
            return reply[5].decode(), int((reply[3] or [None])[0] or 0)
        case "lease_id":
            is_leased, state = reply[0], reply[1].decode()
            refused = "leased" if state in ("held", "unlisted") else state
            return ((args[0], "taken" if is_leased else refused),)
        case "prune":
            return tuple(item_id.decode() for item_id in reply)
        case "restore_guards":
            statuses = zip(args[0], reply[0].decode(), strict=True)
            return tuple(i for i, code in statuses if code == Status.GUARDED.code)
        case "states":
            codes, fingerprints = (part.decode() for part in reply[:2])
            states = [_STATE[code] for code in codes]
            named = list(zip(args[0], states, strict=True))
            abandoned = [i for i, state in named if state is State.ABANDONED]
            known = [
                fingerprints[at : at + DIGEST_DIGITS]
                for at in range(0, len(fingerprints), DIGEST_DIGITS)
            ]
            ghosts = tuple(i for i, state in named if state is State.GHOST)
            return tuple(zip(abandoned, known, strict=True)), ghosts
        case _:
            ids = next((arg for arg in args[::-1] if isinstance(arg, tuple)), (args[0],))
            ids = (args[0],) if name == "repair_unlisted" else ids
            ids = tuple(i if isinstance(i, str) else i[0] for i in ids)
            statuses = (_STATUS[code] for code in reply[0].decode())
            return tuple(zip(ids, statuses, strict=True))


def as_server_says(command: Command, reply: Any) -> Any:
    """The model's reply in the server's words."""
    if command[0] == "states":
        abandoned, ghosts = reply
        return tuple((i, _identity(i, identity)) for i, identity in abandoned), ghosts
    return reply


# Runs the commands in ARGV, each after the number of its words.
_RUN_ALL = """
local at = 1
while at <= #ARGV do
  redis.call(unpack(ARGV, at + 1, at + ARGV[at]))
  at = at + 1 + ARGV[at]
end
"""
# How many states are put on the server in one round trip.
_AT_ONCE = 200
Effect = tuple[tuple[Frozen, Command], tuple[Frozen, Any]]


def differences(raw: redis.Redis, effects: Iterable[Effect]) -> list[str]:
    """In words, where a real server that holds the keys before it does something else."""
    seconds, _ = raw.time()
    now_ms = int(seconds) * 1000
    found: list[str] = []
    left = iter(effects)
    while some := list(islice(left, _AT_ONCE)):
        pipeline = raw.pipeline(transaction=False)
        for (before, command), _ in some:
            making_it = making(before, now_ms)
            words = (word for each in making_it for word in (len(each), *each))
            pipeline.execute_command("EVAL", _RUN_ALL, 0, *words)
            name, args = script_call(command, Queue(before).lives)
            script, keys = load_script(name), tuple(KEYS.structures)
            head = (*KEYS.id_prefixes, KEYS.result_prefix, b"0")
            pipeline.execute_command("EVAL", script.text, len(keys), *keys, *head, *args)
            pipeline.execute_command("EVAL", LOOK, 0)
        replies = pipeline.execute()
        for at, ((before, command), (after, reply)) in enumerate(some):
            real = (model_of(replies[3 * at + 2], now_ms), meaning(command, replies[3 * at + 1]))
            expected = after[:KEY_PARTS], as_server_says(command, reply)
            if real != expected:
                found.append(
                    f"{' '.join(map(str, command))}\n  before: {before[:KEY_PARTS]}\n"
                    f"  model:  {expected}\n  server: {real}"
                )
    return found
