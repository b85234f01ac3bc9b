"""Servers that forget scripts, kill clients, sleep, are full, or refuse commands."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from random import Random

import pytest
import redis

from tests.conftest import StartServer
from tests.driver import Result, Rwq
from tests.faults.stage import SOME_TRIALS, TRIALS, Stage, Trial, name_of, rwq_at
from tests.live.raw_keys import read_raw_keys
from tests.proxies import Line
from tests.servers import PrivateServer

every_trial = pytest.mark.parametrize("trial", TRIALS, ids=name_of)
some_trials = pytest.mark.parametrize("trial", SOME_TRIALS, ids=name_of)


@pytest.fixture
def stage_at(bare_rwq: Rwq) -> Iterator[Callable[[PrivateServer], Stage]]:
    """A stage on a server that the test started."""
    with ExitStack() as clients:
        yield lambda server: Stage(
            rwq_at(bare_rwq, server.url), clients.enter_context(server.client())
        )


@every_trial
def test_forgotten_scripts_are_sent_again(stage: Stage, raw: redis.Redis, trial: Trial) -> None:
    stage.arrange(trial)
    with Line() as line:
        line.before_send = raw.script_flush
        result = stage.run(trial)
    assert stage.check(trial, result) == "done"


@some_trials
def test_a_client_that_is_killed_loses_nothing(
    stage: Stage, raw: redis.Redis, trial: Trial
) -> None:
    """Before its last call, and before another one."""

    def run(killed_before: int) -> tuple[int, Result]:
        sends = 0

        def count() -> None:
            nonlocal sends
            sends += 1
            if sends == killed_before:
                raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

        stage.arrange(trial)
        with Line() as line:
            line.before_send = count
            result = stage.run(trial)
        return sends, result

    last, _ = run(0)
    for killed_before in {last, Random(trial.words).randint(1, last)}:
        stage.check(trial, run(killed_before)[1])


@pytest.fixture
def sleepy(
    start_server: StartServer, stage_at: Callable[[PrivateServer], Stage]
) -> tuple[Stage, PrivateServer]:
    try:
        server = start_server("--enable-debug-command", "yes")
    except RuntimeError:
        # Before Redis 7.0 it needs no permission.
        server = start_server()
    return stage_at(server), server


@some_trials
@pytest.mark.parametrize("timeouts", [(), ("--reply-timeout", "0.05")], ids=["awaits", "gives up"])
def test_a_sleeping_server_is_given_up_or_awaited(
    sleepy: tuple[Stage, PrivateServer], trial: Trial, timeouts: tuple[str, ...]
) -> None:
    stage, server = sleepy
    stage.arrange(trial)
    asleep = threading.Event()
    with server.client() as other, Line() as line:

        def sleep() -> None:
            asleep.set()
            other.execute_command("DEBUG", "SLEEP", "0.3")

        sleeper = threading.Thread(target=sleep)

        def before_send() -> None:
            if not asleep.is_set():
                sleeper.start()
                asleep.wait()

        line.before_send = before_send
        result = stage.run(trial, *timeouts)
        sleeper.join()
    # What it was sent while it slept it has done before the second of these.
    stage.raw.ping()
    stage.raw.ping()
    came_to = stage.check(trial, result)
    assert timeouts or came_to == "done"


# Enough for several calls of each.
_MANY = 4000
_BATCHES = (
    ("add --id-from line -o ids", "", lambda seen, i: i in seen.main),
    ("add --id-from line --delay 1h -o ids", "", lambda seen, i: i in seen.delayed),
    ("release - -o ids --delay 1h", "waiting", lambda seen, i: i in seen.delayed),
    ("bury - -o ids", "waiting", lambda seen, i: i in seen.buried),
    ("lease -n 4000 -o ids", "waiting", lambda seen, i: i in seen.processing),
    ("clean light --grace 0 -o ids", "abandoned", lambda seen, i: i in seen.main),
    ("mv - -o ids --to other --yes", "waiting", lambda seen, i: i not in seen.data),
)


@pytest.mark.parametrize(("words", "before", "done"), _BATCHES, ids=[b[0] for b in _BATCHES])
def test_a_server_that_fills_up_did_what_was_printed(
    start_server: StartServer,
    stage_at: Callable[[PrivateServer], Stage],
    words: str,
    before: str,
    done: Callable[..., bool],
) -> None:
    stage = stage_at(start_server("--maxmemory-policy", "noeviction"))
    raw = stage.raw
    raw.flushall()
    ids = [b"%06d" % number for number in range(_MANY)]
    if before:
        raw.mset({b"jobs:item:" + item_id: b"data of " + item_id for item_id in ids})
    if before in ("waiting", "abandoned"):
        raw.lpush("jobs:queue" if before == "waiting" else "jobs:processing", *ids)
    raw.config_set("maxmemory", raw.info("memory")["used_memory"] + 400_000)
    result = stage.rwq(*words.split(), stdin=b"\n".join(ids))
    raw.config_set("maxmemory", 0)
    seen = read_raw_keys(raw, b"jobs")
    assert result.code == 69, (result.code, result.notes)
    assert "is out of memory" in result.notes
    changed = {item_id for item_id in ids if done(seen, item_id)}
    assert {*result.out.split()} == changed
    assert 0 < len(changed) < _MANY
    if before:
        moved = {i for i in ids if raw.exists(b"other:item:" + i)} if "mv" in words else set()
        assert {*seen.data} | moved == {*ids}


def test_a_replica_is_only_read(
    start_server: StartServer, stage_at: Callable[[PrivateServer], Stage]
) -> None:
    stage = stage_at(start_server())

    def outcome_of(trial: Trial) -> tuple[bool, int, bool]:
        stage.arrange(trial)
        # Its primary does not exist, so it keeps what it has.
        stage.raw.execute_command("REPLICAOF", "127.0.0.1", "1")
        before = read_raw_keys(stage.raw, b"jobs")
        result = stage.run(trial, "--patience", "0")
        is_unchanged = read_raw_keys(stage.raw, b"jobs") == before
        stage.raw.execute_command("REPLICAOF", "NO", "ONE")
        return is_unchanged, result.code, "does not accept writes" in result.notes

    assert [(trial, outcome_of(trial)) for trial in TRIALS] == [
        (trial, (True, 69, True) if trial.done else (True, int("doctor" in trial.words), False))
        for trial in TRIALS
    ]


@every_trial
def test_a_managed_server_refuses_what_is_only_useful(
    stage: Stage, raw: redis.Redis, server: PrivateServer, trial: Trial
) -> None:
    """No CONFIG, CLIENT, OBJECT, DEBUG, MONITOR, INFO, MEMORY, LATENCY or SLOWLOG."""
    denied = ("config", "client", "object", "debug", "monitor", "info", "memory", "latency")
    rules = ["+@all", *(f"-{command}" for command in (*denied, "slowlog"))]
    raw.execute_command("ACL", "SETUSER", "managed", "reset", "on", ">pw", "~*", "&*", *rules)
    try:
        stage.arrange(trial)
        result = stage.run(trial, "-u", f"unix://managed:pw@{server.socket}")
        assert stage.check(trial, result) == "done"
    finally:
        raw.execute_command("ACL", "DELUSER", "managed")
