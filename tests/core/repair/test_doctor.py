"""The doctor: finds exactly what is wrong, repairs what it can, and loses nothing."""

import pytest
from redis import Redis

from rwq_cli.core import Code, Diagnosis, Finding, Server, WorkQueue, connect
from rwq_cli.core.batches import Budget
from tests.conftest import QUEUE, AsUser, FakeClock, Foreign, Interleaved, StartServer, contents
from tests.item_cases import BROKEN, ITEM_CASES, STRANGE_IDS, ItemCase, real_items

# Of the server and the queue's name, the same in all of these tests.
AROUND = frozenset(
    {Code.NO_PERSISTENCE, Code.EVICTING_SERVER, Code.RESTARTED, Code.FLUSHED, Code.EVICTED}
)
STRANGE_ID = STRANGE_IDS[1]
OF_IDS = [name for name, case in BROKEN.items() if Code.WRONG_TYPE not in case.findings]
# The scripts that the doctor changes anything with.
ACTS = ("repair", "prune", "push_scheduled", "delete_stray_leases")
CURABLE = [name for name, case in BROKEN.items() if not all(case.findings.values())]


def counted(diagnosis: Diagnosis) -> dict[Code, tuple[int, int, int]]:
    """By code how many, how many fixed, and how many left."""
    return {
        finding.code: (finding.count, finding.fixed, finding.left)
        for finding in diagnosis.findings
        if finding.code not in AROUND
    }


def finding(diagnosis: Diagnosis, code: Code) -> Finding:
    (found,) = [finding for finding in diagnosis.findings if finding.code is code]
    return found


@pytest.mark.parametrize("case", ITEM_CASES.values(), ids=ITEM_CASES)
def test_each_case_has_its_findings_fixed_or_left(
    queue: WorkQueue, foreign: Foreign, raw: Redis, case: ItemCase
) -> None:
    case.make(foreign, STRANGE_ID)
    before = contents(raw)
    items = real_items(raw, foreign)
    found = queue.diagnose()
    assert counted(found) == dict.fromkeys(case.findings, (1, 0, 1))
    severe = {code: left for code, left in case.findings.items() if code.severity != "note"}
    assert found.is_healthy is not bool(severe)
    of_items = (f for f in found.findings if not (f.code in AROUND or f.of_keys))
    assert {finding.examples for finding in of_items} <= {(STRANGE_ID,)}
    planned = queue.diagnose(fix=True, dry_run=True)
    assert planned.is_healthy is not bool(severe)
    assert contents(raw) == before
    assert queue.state(STRANGE_ID) is case.state
    done = queue.diagnose(fix=True)
    assert done.is_healthy is not any(severe.values())
    wanted = {code: (1, 0, 1) if left else (1, 1, 0) for code, left in case.findings.items()}
    assert counted(planned) == counted(done) == wanted
    assert queue.state(STRANGE_ID) is case.state_after
    assert real_items(raw, foreign) == items
    again = counted(queue.diagnose(fix=True))
    assert again == {code: (1, 0, 1) for code, left in case.findings.items() if left}


class TestGrace:
    def test_a_push_between_list_and_keys_is_no_orphan(
        self,
        interleaved: Interleaved,
        clock: FakeClock,
        foreign: Foreign,
        raw: Redis,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        budget = Budget(entries=1)
        monkeypatch.setattr(WorkQueue, "budget", lambda *_: budget)
        foreign.waiting(b"other")
        foreign.data(b"added", b"orphan")

        def push(name: str) -> None:
            # The second look has read the lists.
            if clock.slept_s and name == "repair":
                interleaved.before = None
                raw.lpush(b"jobs:queue", b"added")

        interleaved.before = push
        diagnosis = WorkQueue(interleaved, QUEUE, clock=clock).diagnose(grace_s=1)
        assert interleaved.before is None
        assert finding(diagnosis, Code.ORPHANED).examples == (b"orphan",)

    def test_no_grace_period_when_nothing_looks_wrong(
        self, queue: WorkQueue, foreign: Foreign, clock: FakeClock
    ) -> None:
        foreign.waiting(b"w")
        foreign.leased(b"l")
        queue.diagnose(fix=True)
        assert clock.slept_s == []

    @pytest.mark.parametrize("name", OF_IDS)
    def test_what_looks_broken_only_once_is_not_a_finding(
        self, queue: WorkQueue, foreign: Foreign, raw: Redis, clock: FakeClock, name: str
    ) -> None:
        def heal() -> None:
            raw.flushall()
            foreign.leased(b"x")

        clock.during_sleep = heal
        raw.flushall()
        clock.slept_s.clear()
        BROKEN[name].make(foreign, b"x")
        assert counted(queue.diagnose(fix=True, grace_s=2.5)) == {}
        assert clock.slept_s == [2.5]
        assert (queue.state(b"x"), raw.dbsize()) == ("leased", 4)


@pytest.mark.parametrize("name", CURABLE)
def test_an_item_leased_meanwhile_is_left_alone(
    interleaved: Interleaved, foreign: Foreign, raw: Redis, clock: FakeClock, name: str
) -> None:
    """Right before each script that acts: it looks once more."""
    queue = WorkQueue(interleaved, QUEUE, clock=clock)
    raw.flushall()
    BROKEN[name].make(foreign, b"x")
    acted: list[str] = []

    def take_up(command: str, acted: list[str] = acted) -> None:
        if command in ACTS and not acted:
            acted.append(command)
            raw.flushall()
            foreign.leased(b"x", holder=b"live worker")

    interleaved.before = take_up
    found = counted(queue.diagnose(fix=True))
    assert acted
    assert {fixed + left for _, fixed, left in found.values()} <= {0, 1}
    assert queue.state(b"x") == "leased"
    assert raw.lrange("jobs:processing", 0, -1) == [b"x"]
    assert raw.get("jobs:lease:x") == b"live worker"


def test_only_the_requested_codes_are_found_and_fixed(queue: WorkQueue, foreign: Foreign) -> None:
    for name, case in BROKEN.items():
        case.make(foreign, name.encode())
    found = queue.diagnose(codes=[Code.ABANDONED, Code.HELD], fix=True)
    assert counted(found) == {Code.HELD: (3, 0, 3), Code.ABANDONED: (7, 7, 0)}
    assert {name: queue.state(name.encode()) for name in BROKEN} == {
        name: case.state_after if Code.ABANDONED in case.findings else case.state
        for name, case in BROKEN.items()
    }


@pytest.mark.parametrize(("age_s", "late"), [(50, {}), (61, {Code.DUE: (1, 0, 1)})])
def test_an_item_is_late_a_minute_after_it_is_due(
    queue: WorkQueue, foreign: Foreign, raw: Redis, age_s: int, late: dict[Code, object]
) -> None:
    foreign.delayed(b"d", (raw.time()[0] - age_s) * 1000)
    assert counted(queue.diagnose()) == late


class TestEmptyIds:
    def test_a_ghost_is_dropped(self, queue: WorkQueue, raw: Redis) -> None:
        raw.lpush("jobs:queue", b"")
        raw.lpush("jobs:processing", b"")
        assert counted(queue.diagnose()) == {Code.EMPTY_ID: (1, 0, 1)}
        assert counted(queue.diagnose(fix=True)) == {Code.EMPTY_ID: (1, 1, 0)}
        assert raw.dbsize() == 0
        assert counted(queue.diagnose()) == {}

    def test_an_item_is_left(self, queue: WorkQueue, foreign: Foreign, raw: Redis) -> None:
        foreign.waiting(b"")
        before = contents(raw)
        assert counted(queue.diagnose(fix=True)) == {Code.EMPTY_ID: (1, 0, 1)}
        assert contents(raw) == before


class TestKeys:
    @pytest.mark.parametrize(
        "key", ["queue", "processing", "cleaning", "delayed", "buried", "returns"]
    )
    def test_of_the_queue_itself_of_the_wrong_type(
        self, queue: WorkQueue, foreign: Foreign, raw: Redis, key: str
    ) -> None:
        foreign.abandoned(b"a")
        raw.set(f"jobs:{key}", "x")
        before = contents(raw)
        found = queue.diagnose(fix=True)
        assert counted(found) == {Code.WRONG_TYPE: (1, 0, 1)}
        assert finding(found, Code.WRONG_TYPE).examples == (f"jobs:{key}".encode(),)
        assert (found.items, found.is_healthy) == (None, False)
        assert contents(raw) == before

    def test_keys_that_belong_to_nothing_are_foreign(
        self, queue: WorkQueue, foreign: Foreign, raw: Redis
    ) -> None:
        foreign.waiting(b"w")
        raw.set("jobs:notes", "x")
        raw.hset("jobs:result:1", mapping={"status": "completed", "completed_ms": 5})
        raw.set("jobsnot:ours", "x")
        Foreign(raw, b"jobs:high").leased(b"1")
        Foreign(raw, b"jobs:orphans").data(b"1")
        found = queue.diagnose(fix=True)
        assert counted(found) == {Code.FOREIGN_KEY: (1, 0, 1)}
        assert finding(found, Code.FOREIGN_KEY).examples == (b"jobs:notes",)
        assert found.is_healthy


class TestServer:
    @pytest.mark.parametrize("limit", ["64mb", "0"])
    def test_a_server_that_may_evict_is_found(self, start_server: StartServer, limit: str) -> None:
        """Also one without a limit, which it may be given at any time."""
        server = start_server("--maxmemory", limit, "--maxmemory-policy", "allkeys-lru")
        with server.client() as raw:
            raw.lpush("{jobs}:queue", "g")
            connection = connect(Server(server.url))
            found = WorkQueue(connection, "{jobs}").diagnose(grace_s=0)
            connection.close()
        assert [(f.code, f.examples) for f in found.findings] == [
            (Code.EVICTING_SERVER, ()),
            (Code.GHOST, (b"g",)),
            (Code.RESTARTED, ()),
            (Code.NO_PERSISTENCE, ()),
        ]

    def test_hidden_server_settings_are_no_finding(self, as_user: AsUser) -> None:
        connection = as_user("+@all", "-info", "-config")
        found = WorkQueue(connection, b"{jobs}").diagnose()
        assert found.findings == ()
