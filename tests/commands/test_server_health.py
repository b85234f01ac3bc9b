"""A server in trouble, as doctor, check, context check and the metrics tell of it."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis
from redis.exceptions import OutOfMemoryError

from tests.clusters import PrivateCluster
from tests.conftest import Foreign, StartServer
from tests.driver import Rwq, until
from tests.servers import PrivateServer
from tests.support import numbered


def samples(text: str) -> dict[tuple[str, str], float]:
    """The samples of an exposition, by name and the value of their last label."""
    return {
        (sample.name, ["", *sample.labels.values()][-1]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def fill(raw: Redis, items: int = 1000) -> None:
    """Add items of 20 KB."""
    for number in range(items):
        raw.set(b"jobs:item:%d" % number, b"x" * 20_000)
        raw.lpush("jobs:queue", number)


def full(start: StartServer) -> PrivateServer:
    server = start("--maxmemory", "4mb")
    with server.client() as raw, pytest.raises(OutOfMemoryError):
        fill(raw)
    return server


def replica(start: StartServer) -> PrivateServer:
    server = start()
    with server.client() as raw:
        Foreign(raw, b"jobs").waiting(b"1")
        raw.replicaof("127.0.0.1", 1)
    return server


def failed_save(start: StartServer) -> PrivateServer:
    # Where nobody may create a file.
    server = start("--dir", "/proc", "--save", "3600 1000")
    with server.client() as raw:
        Foreign(raw, b"jobs").waiting(b"1")
        raw.bgsave()
        until(lambda: not raw.info("persistence")["rdb_bgsave_in_progress"])
    return server


def lonely(start: StartServer) -> PrivateServer:
    server = start()
    with server.client() as raw:
        Foreign(raw, b"jobs").waiting(b"1")
        raw.config_set("min-replicas-to-write", 1)
    return server


@pytest.mark.parametrize(
    ("outage", "code", "words"),
    [
        (full, "out-of-memory", r"it is out of memory \([\d.]+ MiB of 4.0 MiB\)"),
        (replica, "readonly", "it is a read-only replica of 127.0.0.1:1"),
        (failed_save, "write-errors", "it cannot save its data to disk"),
        (lonely, "too-few-replicas", "too few of its replicas are connected"),
    ],
)
def test_refused_writes_are_said_everywhere(
    rwq: Rwq,
    start_server: StartServer,
    outage: Callable[[StartServer], PrivateServer],
    code: str,
    words: str,
) -> None:
    at = ("-u", outage(start_server).url)
    doctor = rwq("doctor", *at, "-o", "json")
    assert doctor.code == 1
    assert [one["code"] for one in doctor.json if one["severity"] == "error"] == [code]
    assert re.search(words, doctor.json[0]["servers"][0])
    check = rwq("check", *at)
    assert check.code == 2
    assert re.match(f"RWQ CRITICAL - jobs: the server refuses writes: {words}; ", check.text)
    checked = rwq("context", "check", *at, "-o", "json").json
    assert checked["writes"] is False
    assert re.fullmatch(words, checked["no_writes_because"])
    metrics = samples(rwq("check", *at, "--format", "prometheus").text)
    reasons = {label for (name, label), value in metrics.items() if "refuses" in name and value}
    assert reasons == {code}


@pytest.fixture
def near(start_server: StartServer) -> Iterator[Redis]:
    with start_server().client() as raw:
        fill(raw, 500)
        used = raw.info("memory")["used_memory"]
        raw.config_set("maxmemory", round(used / 0.91))
        yield raw


def test_nearly_full_memory_is_an_error(rwq: Rwq, near: Redis) -> None:
    at = ("-u", f"unix://{near.connection_pool.connection_kwargs['path']}")
    assert rwq("doctor", *at, "-o", "plain").lines[0].startswith("near-maxmemory\terror\t")
    Foreign(near, b"many").waiting(*numbered(20))
    row = rwq("doctor", "--all-queues", *at, "-o", "json", "--only", "near-maxmemory").json[0]
    assert (row["queue"], row["examples"]) == (None, ["jobs"])
    assert rwq("check", *at).code == 0


def test_evicted_ghosts_are_saved_before_a_cure(rwq: Rwq, start_server: StartServer) -> None:
    # The lists are used most, and stay.
    server = start_server("--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lfu")
    with server.client() as raw:
        fill(raw, 400)
        assert raw.info("stats")["evicted_keys"]
    found = {one["code"]: one for one in rwq("doctor", "-u", server.url, "-o", "json").json}
    assert found["evicted"]["severity"] == "note"
    assert found["ghost"]["command"].startswith("rwq doctor -o ids --only ghost -u ")
    assert "Save their IDs" in found["ghost"]["cure"]


def test_flushes_and_restarts_are_noted_once_a_server(rwq: Rwq, start_server: StartServer) -> None:
    server = start_server()
    with server.client() as raw:
        raw.flushdb()
        for name in (b"a", b"b"):
            Foreign(raw, name).waiting(b"1")
    words = ("doctor", "-u", server.url, "--all-queues", "--only", "flushed,restarted")
    records = rwq(*words, "-o", "json").json
    assert [(one["queue"], one["code"], one["count"]) for one in records] == [
        (None, "restarted", 1),
        (None, "flushed", 1),
    ]


class TestExposition:
    def test_a_dead_server_has_a_whole_one(self, rwq: Rwq) -> None:
        words = ("check", "--all-queues", "--format", "prometheus", "-u", "unix:///nowhere")
        result = rwq(*words)
        assert samples(result.text) == {("rwq_server_up", ""): 0}
        assert result.code == 3
        assert "cannot reach unix:///nowhere" in result.notes

    def test_a_server_without_queues_has_one(self, rwq: Rwq, start_server: StartServer) -> None:
        text = rwq("check", "--all-queues", "--format", "prometheus", "-u", start_server().url).text
        assert samples(text)["rwq_server_up", ""] == 1

    def test_labels_of_different_queues_differ(self, rwq: Rwq, foreign: Foreign) -> None:
        names = [b"a\nx", b"a\\nx", b'a"x', b"a\xffx", b"a\\xffx"]
        for name in names:
            Foreign(foreign.raw, name).waiting(b"1")
        text = rwq("check", "--all-queues", "--format", "prometheus").text
        labels = [label for name, label in samples(text) if name == "rwq_up"]
        assert len(set(labels)) == len(names)


def test_a_full_node_of_a_cluster_is_named(rwq: Rwq, shared_cluster: PrivateCluster) -> None:
    with closing(shared_cluster.client(b"{jobs}")) as raw:
        limit = raw.config_get("maxmemory")["maxmemory"]
        raw.config_set("maxmemory", "1mb")
        try:
            found = rwq("doctor", "-u", shared_cluster.url, "-q", "{jobs}", "-o", "json")
        finally:
            raw.config_set("maxmemory", limit)
        port = raw.connection_pool.connection_kwargs["port"]
    errors = [one for one in found.json if one["severity"] == "error"]
    assert [one["code"] for one in errors] == ["out-of-memory"]
    assert errors[0]["examples"] == [f"127.0.0.1:{port}"]


def test_the_last_clean_is_in_the_exposition(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    foreign.raw.xadd("jobs:history", {"waiting": 1}, id="1700000040000-0")
    metrics = samples(rwq("check", "--format", "prometheus").text)
    assert metrics["rwq_last_clean_timestamp_seconds", "jobs"] == 1700000040
