"""A primary behind Sentinel: found, and found again after a failover; see also `test_tls.py`."""

from threading import Thread
from typing import Any

import pytest

from rwq_cli.core import Server, WorkQueue, connect
from tests.clusters import PrivateSentinels
from tests.driver import Rwq, until


def test_commands_run_on_the_primary(srwq: Rwq, sentinels: PrivateSentinels) -> None:
    assert srwq("add", "one", "two", "-Q").code == 0
    assert sentinels.primary().call("LLEN", "jobs:queue") == 2
    assert srwq("queues").lines == ["jobs\t2\t0\t0\t0\t0"]
    assert srwq("lease", "-o", "data").out == b"one"
    assert srwq("complete", "--mine", "--yes").code == 0
    assert srwq("stats", "--fast", "-o", "json").json["waiting"] == 1


@pytest.mark.parametrize("words", [("stats", "--fast"), ("add", "x")])
def test_a_service_that_no_sentinel_knows(
    bare_rwq: Rwq, sentinels: PrivateSentinels, words: tuple[str, ...]
) -> None:
    url = f"redis+sentinel://{sentinels.hosts}/other"
    result = bare_rwq(*words, "-q", "jobs", "-u", url)
    assert result.as_tuple() == (
        69,
        "",
        f"rwq: error: the Sentinels of {url} do not monitor a service other; they monitor: main\n",
    )


def test_a_server_that_is_no_sentinel(bare_rwq: Rwq, sentinels: PrivateSentinels) -> None:
    url = f"redis+sentinel://127.0.0.1:{sentinels.primary().port}/main/0"
    assert bare_rwq("queues", "-u", url).as_tuple() == (
        69,
        "",
        f"rwq: error: {url} names a server that is not a Sentinel; name the Sentinels, whose port "
        "is 26379 by default; redis:// is for one server\n",
    )


def test_one_sentinel_that_is_down_is_passed_over(srwq: Rwq, sentinels: PrivateSentinels) -> None:
    sentinels.sentinels[0].kill()
    assert srwq("add", "one", "-Q").as_tuple() == (0, "", "")


def test_a_session_goes_on_after_a_failover(fresh_sentinels: PrivateSentinels) -> None:
    queue = WorkQueue(connect(Server(fresh_sentinels.url)), "jobs")
    queue.add("one", "1")
    before = fresh_sentinels.primary().port
    fresh_sentinels.fail_over()
    assert queue.add("two", "2")
    assert fresh_sentinels.primary().port != before
    assert [item.item_id for item in queue.lease_many(5)] == [b"1", b"2"]


@pytest.mark.ci
def test_a_primary_that_is_killed(srwq: Rwq, fresh_sentinels: PrivateSentinels) -> None:
    """Without patience the failure is told at once; else commands, also waiting ones, go on."""
    sentinels = fresh_sentinels
    url = {"RWQ_URL": sentinels.url}
    srwq("add", "--id", "a", "one", "-Q", variables=url)
    srwq("bury", "a", variables=url)
    waiting = srwq.start("lease", "--wait", "-o", "data", variables=url)
    primary = sentinels.primary()
    until(sentinels.is_replicated, "the replica")
    # Between two calls that block, a killed server leaves it open whether it gave the item out: so
    # it is killed at the beginning of one.
    with primary.client() as client, client.monitor() as monitor:
        next(each for each in monitor.listen() if each["command"].startswith("BLMOVE"))
        primary.kill()
    result = srwq("add", "two", "--patience", "0", variables=url)
    assert (result.code, result.text) == (69, "")
    assert "connection refused" in result.notes
    result = srwq("add", "--id", "b", "two", variables=url)
    assert result.code == 0, result.notes
    assert sentinels.primary() is not primary
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (0, b"two"), err
    assert srwq("ls", "all", "-o", "ids", variables=url).lines == ["b", "a"]


def test_after_a_wait_was_lost_no_earlier_link_is_used(sentinels: PrivateSentinels) -> None:
    """A server that ends may close the link of the wait first, and the others later."""
    queue = WorkQueue(connect(Server(sentinels.url)), "jobs")
    found: list[Any] = []
    waiting = Thread(target=lambda: found.append(queue.lease(wait_s=60)), daemon=True)
    with sentinels.primary().client() as raw:
        others = {each["id"] for each in raw.client_list(_type="normal")}
        waiting.start()
        until(lambda: raw.info("clients")["blocked_clients"] == 1, "the wait")
        links = [each for each in raw.client_list(_type="normal") if each["id"] not in others]
        raw.client_kill_filter(_id=next(each["id"] for each in links if each["flags"] == "b"))
        until(lambda: raw.info("clients")["blocked_clients"] == 1, "the next wait")
        now = {each["id"] for each in raw.client_list()}
        assert now.isdisjoint(each["id"] for each in links)
        WorkQueue(connect(Server(sentinels.url)), "jobs").add("one", "1")
        waiting.join()
    assert found[0].item_id == b"1"


@pytest.mark.ci
def test_a_long_wait_is_reported_and_times_out(
    srwq: Rwq, fresh_sentinels: PrivateSentinels
) -> None:
    for server in fresh_sentinels.servers:
        server.kill()
    variables = {"RWQ_URL": fresh_sentinels.url}
    result = srwq("add", "one", "--patience", "1.5s", variables=variables)
    assert (result.code, result.text) == (69, "")
    waiting, error = result.notes.splitlines()
    assert waiting.startswith("rwq: waiting up to 1.5 s: ")
    assert error.startswith("rwq: error: ")
    quiet = srwq("add", "one", "--patience", "1.1s", "-Q", variables=variables)
    assert quiet.notes.count("\n") == 1
