"""What all tests share: a server, a queue on it, a clock, foreign workers, and rwq itself."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from time import time, tzset
from typing import Any, TypeVar

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings

from rwq_cli.core import Connection, Server, WorkQueue, connect
from rwq_cli.core.clock import Clock
from rwq_cli.core.inspect import ages
from rwq_cli.core.keys import SETTLING_GUARD, QueueKeys
from rwq_cli.core.server.commands import ScriptCommand, Transaction
from tests.clusters import PrivateCluster, PrivateSentinels, running_cluster, running_sentinels
from tests.driver import Rwq
from tests.everything import everything
from tests.servers import NoServerBinary, PrivateServer, running_server

T = TypeVar("T")
QUEUE = b"jobs"
HOLDER = b"me"
# A busy machine fails no test.
settings.register_profile("rwq", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rwq")
# For tests.mutants: that there is a failure is enough.
settings.register_profile("mutants", database=None, phases=(Phase.explicit, Phase.generate))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="more of everything: it takes hours")
    parser.addoption("--ci", action="store_true", help="also what is marked `ci`")
    parser.addoption(
        "--backend",
        choices=("server", "fake"),
        default="server",
        help="fake: on fakeredis, without a server; for tests/core/items and tests/core/repair",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.long:
        os.environ["RWQ_LONG"] = "1"
    config.addinivalue_line(
        "markers",
        "ci: for CI, --long, and whoever names the file: it takes seconds, and seldom finds what "
        "others do not",
    )
    config.addinivalue_line(
        "markers",
        "needs(feature): skipped on a server without it; see FEATURES in tests/conftest.py",
    )
    # The homes of tests are in memory where there is room: rwq syncs its undo files to the disk.
    with suppress(OSError):
        memory = os.statvfs("/dev/shm")
        if memory.f_bavail * memory.f_frsize > 1 << 30 and not memory.f_flag & os.ST_NOEXEC:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")
    # A shell lets what it starts in the background ignore Ctrl-C, and nohup a hangup, and so would
    # every rwq that the tests start and signal.
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the tests once for all processes: each begins with other files than the rest."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    folders = [Path(word) for word in session.config.args]
    files = sorted({file for folder in folders for file in folder.rglob("test_*.py")})
    number = int(worker["workerid"].removeprefix("gw"))
    for file in files[number :: worker["workercount"]]:
        module = file.resolve().relative_to(session.config.rootpath).with_suffix("")
        # What cannot be imported is told when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(module.parts))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Four processes, as CI has two cores and tests also wait; this one alone for named tests."""
    named = [Path(word.partition("::")[0]) for word in config.args]
    return 0 if all(path.is_file() for path in named) else 4


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for CI, and run what shares a cluster or Sentinels in one process.

    That process alone starts them. pytest-randomly mixes the files, of which some wait for most of
    their time and some compute.
    """
    if not (config.option.ci or config.option.long):
        named = {Path(word.partition("::")[0]).resolve() for word in config.args}
        left = [each for each in items if each.get_closest_marker("ci") and each.path not in named]
        config.hook.pytest_deselected(items=left)
        items[:] = [each for each in items if each not in left]
    for item in items:
        for kind in ("cluster", "sentinels"):
            if f"shared_{kind}" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(kind.removesuffix("s")))


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """One private server for the whole session, stopped and removed at its end."""
    if request.config.option.backend == "fake":
        pytest.skip("the test asks for a server of its own")
    yield from _started(running_server())


def _started(starting: AbstractContextManager[T]) -> Iterator[T]:
    with ExitStack() as stack:
        try:
            started = stack.enter_context(starting)
        except NoServerBinary as reason:
            pytest.skip(str(reason))
        yield started


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[PrivateCluster]:
    """One private cluster for the whole session, of three primaries and three replicas."""
    yield from _started(running_cluster())


@pytest.fixture(scope="session")
def shared_sentinels() -> Iterator[PrivateSentinels]:
    """One private primary with a replica and three Sentinels for the whole session."""
    yield from _started(running_sentinels())


def _knows(raw: redis.Redis, *command: str) -> bool:
    try:
        raw.execute_command(*command)
    except redis.ResponseError:
        return False
    return True


def supports_no_touch(raw: redis.Redis) -> bool:
    """Whether the server can be looked at without counting that as use (Redis 7.2, Valkey)."""
    return _knows(raw, "CLIENT", "NO-TOUCH", "OFF")


def _checks_permissions(client: redis.Redis) -> bool:
    return bool(client.eval("return redis.acl_check_cmd and 1 or 0", 0))


def absent(url: str, queue: str = "jobs") -> str:
    """What a command that looks or heals says of a queue without a key."""
    return f"rwq: {queue}: no such queue on {url}, or it is empty; rwq queues lists them\n"


# What some servers cannot do, by the name that `needs` gives it: the check, and the reason to skip.
FEATURES: dict[str, tuple[Callable[[redis.Redis], bool], str]] = {
    "no-touch": (
        supports_no_touch,
        "no CLIENT NO-TOUCH (Redis before 7.2): rwq reads no sizes or previews unless asked to",
    ),
    "expiry-times": (
        lambda client: _knows(client, "PEXPIRETIME", "x"),
        "no PEXPIRETIME (Redis before 7.0), by which the test compares keys",
    ),
    "functions": (lambda client: _knows(client, "FUNCTION", "LIST"), "no functions (before 7.0)"),
    "tracking": (
        lambda client: _knows(client, "CLIENT", "TRACKINGINFO"),
        "the server does not say which keys change",
    ),
    "acl-check": (_checks_permissions, "scripts cannot ask for permissions (Redis before 7.0)"),
}


@pytest.fixture(scope="session")
def missing_features(server: PrivateServer) -> dict[str, str]:
    """The features that the server lacks, each with the reason to skip."""
    with server.client() as client:
        return {name: reason for name, (check, reason) in FEATURES.items() if not check(client)}


@pytest.fixture(autouse=True)
def skip_what_the_server_lacks(request: pytest.FixtureRequest) -> None:
    """Skip tests that are marked with `needs`, with the reason in words."""
    for marker in request.node.iter_markers("needs"):
        reason = request.getfixturevalue("missing_features").get(marker.args[0])
        if reason is not None:
            pytest.skip(reason)


# As `running_server` does, with these options; it is stopped when the test ends.
StartServer = Callable[..., PrivateServer]


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """For tests that change a server, stop it, or need one set up in a special way."""
    with ExitStack() as stack:

        def start(*options: str, password: str | None = None) -> PrivateServer:
            try:
                return stack.enter_context(running_server(*options, password=password))
            except NoServerBinary as reason:
                pytest.skip(str(reason))

        yield start


# Connects to the session's server as a user who may do only this, in ACL rules.
AsUser = Callable[..., Connection]


@pytest.fixture
def as_user(server: PrivateServer) -> Iterator[AsUser]:
    """The server is empty at first; the users end with the test."""
    made: list[Connection] = []
    with server.client() as raw:
        raw.flushall()

        def as_limited(*rules: str, keys: Sequence[str] = ("*",)) -> Connection:
            raw.acl_setuser(
                "limited",
                enabled=True,
                reset_keys=True,
                passwords=["+pw"],
                keys=list(keys),
                commands=list(rules),
            )
            made.append(connect(Server(f"unix://limited:pw@{server.socket}")))
            return made[-1]

        yield as_limited
        for connection in made:
            connection.close()
        raw.acl_deluser("limited")


@dataclass(frozen=True)
class Backend:
    """The session's server, empty when a test begins: a plain client, and how rwq connects."""

    raw: redis.Redis
    connect: Callable[[], Connection]


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """The server, and any number of connections to it."""
    if request.config.option.backend == "fake":
        # Its import takes half a second.
        from tests import fake

        if reason := fake.why_not(request.node.nodeid):
            pytest.skip(reason)
        fake_server = fake.new_server()
        yield Backend(
            fake.client_of(fake_server),
            lambda: Connection(fake.client_of(fake_server), "a fake server"),
        )
        return
    server: PrivateServer = request.getfixturevalue("server")
    with ExitStack() as stack:
        raw = stack.enter_context(server.client())
        raw.flushall()

        def new_connection() -> Connection:
            made = connect(Server(server.url))
            stack.callback(made.close)
            return made

        yield Backend(raw, new_connection)


@pytest.fixture
def raw(backend: Backend) -> redis.Redis:
    """A plain client of the server, which is empty when a test begins."""
    return backend.raw


@pytest.fixture
def connection(backend: Backend) -> Connection:
    """The connection under test."""
    return backend.connect()


class FakeClock:
    """A clock that stands still; sleeping takes no time and lets others act."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept_s: list[float] = []
        self.during_sleep: Callable[[], object] | None = None

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds
        if self.during_sleep is not None:
            self.during_sleep()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(connection: Connection, clock: FakeClock) -> WorkQueue:
    """The queue under test."""
    return WorkQueue(connection, QUEUE, holder=HOLDER, clock=clock)


@pytest.fixture
def keys() -> QueueKeys:
    return QueueKeys(QUEUE)


class Interleaved(Connection):
    """A connection that lets others act before each of its calls, and notes the calls."""

    def __init__(self, inner: Connection, before: Callable[[str], object] | None = None) -> None:
        super().__init__(inner.client(), inner.name)
        self.before = before
        # That of a pipeline is its commands' names, joined by `+`.
        self.calls: list[str] = []
        # Of the single command, or the ARGV of the script, that is being sent.
        self.words: tuple[Any, ...] = ()

    def call_all(self, commands: Any, **options: Any) -> list[Any]:
        listed = list(commands)
        if listed:
            names = (
                "MULTI" if isinstance(each, Transaction) else self._of(each) for each in listed
            )
            self._note("+".join(names))
        return super().call_all(listed, **options)

    def stream(self, requests: Any, **options: Any) -> Iterator[Any]:
        def noted() -> Iterator[Any]:
            for request in requests:
                if request is not None:
                    commands = request if isinstance(request, Transaction) else [request]
                    self._note("+".join(map(self._of, commands)))
                yield request

        return super().stream(noted(), **options)

    def _exchange(self, requests: Any, *, writes: bool) -> list[Any]:
        if requests[0][0] in ("SCAN", "HSCAN", "ZSCAN"):
            self.words = requests[0]
            self._note(requests[0][0])
        return super()._exchange(requests, writes=writes)

    def _of(self, command: Any) -> str:
        if isinstance(command, ScriptCommand):
            self.words = command[3 + int(command[2]) :]
            return command.script.name
        self.words = tuple(command)
        return str(command[0])

    def _note(self, name: str) -> None:
        self.calls.append(name)
        if self.before is not None:
            self.before(name)


@pytest.fixture
def interleaved(connection: Connection) -> Interleaved:
    """A connection between whose calls the test can act."""
    return Interleaved(connection)


class Foreign:
    """Writes raw keys as other workers, their crashes, and mistakes leave them."""

    def __init__(self, raw: redis.Redis, name: bytes = QUEUE) -> None:
        self.raw = raw
        self.keys = QueueKeys(name)

    def data(self, *ids: bytes) -> None:
        """The data keys alone, each holding `data of <id>`: orphans."""
        if ids:
            self.raw.mset({self.keys.item(item_id): b"data of " + item_id for item_id in ids})

    def unused_for(self, item_id: bytes, seconds: int) -> None:
        """Give the data key an idle time, large enough for its text not to change meanwhile."""
        key = self.keys.item(item_id)
        value = self.raw.dump(key)
        assert value is not None
        self.raw.restore(key, 0, value, replace=True, idletime=seconds)

    def waiting(self, *ids: bytes) -> None:
        """Items added in this order: the first is next."""
        if ids:
            # At once: a clean with a short grace period would push what is in no list.
            pipeline = self.raw.pipeline()
            pipeline.mset({self.keys.item(item_id): b"data of " + item_id for item_id in ids})
            pipeline.lpush(self.keys.main, *ids)
            pipeline.execute()

    def abandoned(self, *ids: bytes) -> None:
        """Items whose worker died after its pop."""
        self.data(*ids)
        if ids:
            self.raw.lpush(self.keys.processing, *ids)

    def lease(
        self,
        *ids: bytes,
        holder: bytes = b"them",
        ttl_ms: int | None = 60_000,
        generations: str = "both",
    ) -> None:
        """Lease keys alone; `generations` is `old`, `new` or `both`."""
        writes = self.raw.pipeline(transaction=False)
        for item_id in ids:
            if generations != "new":
                writes.set(self.keys.old_lease(item_id), holder, px=ttl_ms)
            if generations != "old":
                writes.set(self.keys.lease(item_id), holder, px=ttl_ms)
        writes.execute()

    def leased(self, *ids: bytes, **lease: Any) -> None:
        """Items that a worker has in hand."""
        self.abandoned(*ids)
        self.lease(*ids, **lease)

    def delayed(self, item_id: bytes, due_ms: int) -> None:
        """An item for later, behind a guard that outlives its due time by an hour."""
        self.data(item_id)
        self.raw.zadd(self.keys.delayed, {item_id: due_ms})
        ttl_ms = max(0, due_ms - round(time() * 1000)) + 3_600_000
        self.lease(item_id, holder=b"rwq-delayed:", ttl_ms=ttl_ms)

    def buried(self, item_id: bytes, reason: bytes = b"broken") -> None:
        """An item put away, behind its guard."""
        self.data(item_id)
        self.raw.zadd(self.keys.buried, {item_id: 1_700_000_000_000})
        self.lease(item_id, holder=b"rwq-buried:" + reason, ttl_ms=None)


@pytest.fixture
def foreign(raw: redis.Redis) -> Foreign:
    """Others at work on the queue under test."""
    return Foreign(raw)


@pytest.fixture
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can be asked: this process has no terminal, whatever it was started from."""
    open_file = os.open

    def open_no_terminal(path: Any, *more: Any, **named: Any) -> int:
        if path == "/dev/tty":
            raise OSError("there is no terminal")
        return open_file(path, *more, **named)

    monkeypatch.setattr("os.open", open_no_terminal)


@pytest.fixture
def bare_rwq(tmp_path: Path, no_terminal: None) -> Iterator[Rwq]:  # noqa: ARG001
    """rwq without a server or a queue in its environment."""
    rwq = Rwq(
        {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "USER": "tester",
            "RWQ_SESSION": "s1",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        },
        tmp_path,
    )
    yield rwq
    rwq.close()


@pytest.fixture
def rwq(bare_rwq: Rwq, server: PrivateServer, raw: redis.Redis) -> Rwq:  # noqa: ARG001
    """rwq with RWQ_URL and RWQ_QUEUE set to the empty server and the queue `jobs`."""
    bare_rwq.variables = {**bare_rwq.variables, "RWQ_URL": server.url, "RWQ_QUEUE": "jobs"}
    return bare_rwq


@pytest.fixture
def slept_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long each time runs in this process would have slept, seconds; it takes no time.

    It is also for tests beside which nobody else acts, so that a second look may come at once.
    """
    slept_s: list[float] = []
    monkeypatch.setattr(Clock, "sleep", lambda _clock, seconds: slept_s.append(seconds))
    return slept_s


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what happens in place of each pause in this process; Ctrl-C ends the one after them."""

    def set_up(*steps: Callable[[], object]) -> None:
        remaining = list(steps)

        def sleep(_clock: object, seconds: float) -> None:
            # A grace period of 0 is none.
            if not seconds:
                return
            if not remaining:
                raise KeyboardInterrupt
            remaining.pop(0)()

        monkeypatch.setattr(Clock, "sleep", sleep)

    return set_up


@pytest.fixture
def guarded(start_server: StartServer) -> PrivateServer:
    """A server with the password `hunter2`."""
    return start_server("--requirepass", "hunter2", password="hunter2")


@pytest.fixture
def set_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the time zone of this process."""

    def set_to(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        tzset()

    yield set_to
    monkeypatch.undo()
    tzset()


def contents(raw: redis.Redis) -> dict[bytes, Any]:
    """Every key of the server with its whole value; a key that expires as `("expires", value)`.

    Without settling leases and the key by which undo files know a server: for the state of an item
    they do not exist.
    """
    return {
        key: value if at_ms == -1 else ("expires", value)
        for key, (value, at_ms) in sorted(everything(raw).items())
        if not (isinstance(value, bytes) and value.startswith(SETTLING_GUARD))
        and not key.endswith(b":undo:server")
    }


def settling(raw: redis.Redis, name: bytes = QUEUE) -> dict[str, list[bytes]]:
    """By what pushed them, the IDs that have a settling lease, which is under the new name."""
    keys, seen = QueueKeys(name), everything(raw)
    found: dict[str, list[bytes]] = {}
    for key, (value, at_ms) in sorted(seen.items()):
        is_settling = isinstance(value, bytes) and value.startswith(SETTLING_GUARD)
        if is_settling and key.startswith(keys.lease_prefix):
            item_id = key.removeprefix(keys.lease_prefix)
            # Redis 6.2 says of a time no more than that there is one.
            assert at_ms != -1
            assert keys.old_lease(item_id) not in seen
            why = value.removeprefix(SETTLING_GUARD).decode().partition(" ")[0]
            found.setdefault(why, []).append(item_id)
    return found


# How many list entries one call may pass in searches: about 50 ms of a server's time; and how many
# commands it may run: about 10 ms.
SEARCHED_MAX, COMMANDS_MAX = 5_000_000, 20_000


@dataclass(frozen=True, slots=True)
class ServerWork:
    """What a server did, by its own counts, which are the same on a busy machine."""

    calls: dict[str, int]

    @property
    def searches(self) -> int:
        """How often it passed a list: by an LREM, an LPOS or an LINSERT."""
        return sum(self.calls.get(name, 0) for name in ("lrem", "lpos", "linsert"))

    @property
    def commands(self) -> int:
        return sum(self.calls.values())


def work_of(raw: redis.Redis) -> ServerWork:
    """How often the server has run each command so far, in scripts or by itself."""
    stats = raw.info("commandstats")
    return ServerWork({name.removeprefix("cmdstat_"): s["calls"] for name, s in stats.items()})


@contextmanager
def no_call_is_long(
    interleaved: Interleaved, raw: redis.Redis, list_length: int, *, at_once: int = 1
) -> Iterator[None]:
    """Fails if between two calls the server passed too many list entries, or ran too many commands.

    Where calls are sent ahead of their replies, several may be carried out `at_once`.
    """
    seen = [work_of(raw)]
    interleaved.before = lambda _name: seen.append(work_of(raw))
    yield
    seen.append(work_of(raw))
    interleaved.before = None
    for before, after in pairwise(seen):
        searches = after.searches - before.searches
        assert searches * list_length <= SEARCHED_MAX * at_once
        assert after.commands - before.commands <= COMMANDS_MAX


def lasts(raw: redis.Redis, seconds: float, *keys: bytes | str) -> bool:
    """Whether each key was given this time to live since the client connected.

    However long ago that was: the test began then, and a busy machine may take its time.
    """
    left_s = [raw.pttl(key) / 1000 for key in keys]
    passed_s = _connected_s(raw)
    return all(seconds - passed_s <= each_s <= seconds for each_s in left_s)


@pytest.fixture
def up_for_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server has been up for longer than the idle times that a test gives to keys."""
    monkeypatch.setattr(ages, "LOADING_S", 10 * 86_400)


def has_aged(raw: redis.Redis, seconds: int, age_s: float | None) -> bool:
    """Whether an age was given as this many seconds since the client connected: see `lasts`."""
    return age_s is not None and seconds <= age_s <= seconds + _connected_s(raw)


def _connected_s(raw: redis.Redis) -> int:
    """How long ago the client connected, rounded up."""
    return int(raw.client_info()["age"]) + 1
