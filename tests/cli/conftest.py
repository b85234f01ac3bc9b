"""What the tests of the command line share: a real server, raw keys, and rwq pointed at them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from rwq_cli.core.clock import SystemClock
from tests.cli.driver import Rwq
from tests.conftest import Foreign
from tests.servers import PrivateServer

QUEUE = b"jobs"


@pytest.fixture
def raw(server: PrivateServer) -> Iterator[redis.Redis]:
    """A plain client of the server, which is empty when a test begins."""
    with server.client() as client:
        client.flushall()
        yield client


@pytest.fixture
def foreign(raw: redis.Redis) -> Foreign:
    """Other workers, and their crashes, on the queue `jobs`."""
    return Foreign(raw, QUEUE)


@pytest.fixture
def bare_rwq(tmp_path: Path) -> Iterator[Rwq]:
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
    monkeypatch.setattr(SystemClock, "sleep", lambda _clock, seconds: slept_s.append(seconds))
    return slept_s


# Where the server counts reading as use, listings do not read sizes and previews unless asked to.
_SHOWS_SIZES = frozenset(
    {
        "test_plain",
        "test_table",
        "test_whole",
        "test_markup_is_text",
        "test_an_item_in_plain",
        "test_the_data_are_left_out_unless_asked_for",
        "test_a_preview_does_not_cut_a_character_in_two",
        "test_numbers_are_raw_outside_of_tables",
        "test_whole_of_a_waiting_item_on_paper",
        "test_preview_and_all",
        "test_of_a_sample",
        "test_are_of_a_part_of_a_long_queue",
        "test_a_line_of_100_mb",
    }
)
# There, `ls --match` says on stderr that it makes items look fresh.
_MATCHES = frozenset(
    {
        "test_match",
        "test_match_of_non_ascii",
        "test_match_looks_beyond_the_preview",
        "test_together",
        "test_nothing_that_matches",
        "test_machines_get_an_empty_listing",
    }
)
_ASKS_FOR_PERMISSION = frozenset(
    {
        "test_is_named_and_nothing_is_changed",
        "test_a_clean_that_lacks_one_breaks_nothing",
        "test_a_complete_of_many_that_lacks_one_changes_nothing",
        "test_a_doctor_that_lacks_one_loses_nothing",
        "test_a_script_that_lacks_one_leaves_no_half_step",
    }
)


@pytest.fixture(scope="session")
def lacks(server: PrivateServer) -> dict[str, str]:
    """What this server cannot do, by the tests that need it, in words."""
    missing: dict[str, str] = {}
    with server.client() as client:
        try:
            client.execute_command("CLIENT", "NO-TOUCH", "OFF")
        except redis.ResponseError:
            reason = "this server has no CLIENT NO-TOUCH (Redis before 7.2): no sizes are read"
            missing.update(dict.fromkeys(_SHOWS_SIZES, reason))
            reason = "this server has no CLIENT NO-TOUCH (Redis before 7.2): ls --match says so"
            missing.update(dict.fromkeys(_MATCHES, reason))
        if not client.eval("return redis.acl_check_cmd and 1 or 0", 0):
            reason = "a script cannot ask this server for permissions (Redis before 7.0)"
            missing.update(dict.fromkeys(_ASKS_FOR_PERMISSION, reason))
    return missing


@pytest.fixture(autouse=True)
def skip_what_the_server_lacks(request: pytest.FixtureRequest, lacks: dict[str, str]) -> None:
    """Skip with the reason in words."""
    reason = lacks.get(request.node.originalname)
    if reason:
        pytest.skip(reason)
