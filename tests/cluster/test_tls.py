"""TLS and ACL users: to every node of a cluster, to Sentinel, and to the primary that it names."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clusters import Moving, PrivateCluster, running_cluster, running_sentinels
from tests.driver import Result, Rwq
from tests.servers import HOST
from tests.tls import TlsFronts

# What the README says that a user needs.
_USER = (
    *("--user", "rwq", "on", ">pw", "~*", "&*", "+@read", "+@write", "+@scripting", "+time"),
    *("+@transaction", "+@connection", "+cluster|slots", "+role"),
)


@contextmanager
def fronts_in(folder: Path) -> Iterator[TlsFronts]:
    fronts = TlsFronts(folder)
    try:
        yield fronts
    finally:
        fronts.close()


def front_of(fronts: TlsFronts, port: int, *, also_plain: bool = False) -> int:
    """TLS for a server on a port; the port of the front."""
    return fronts.open(lambda: socket.create_connection((HOST, port)), also_plain=also_plain)


@pytest.fixture(scope="module")
def fronts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsFronts]:
    with fronts_in(tmp_path_factory.mktemp("tls")) as made:
        yield made


@pytest.fixture(scope="module")
def tls_cluster(fronts: TlsFronts) -> Iterator[PrivateCluster]:
    """Three primaries that announce the ports of their fronts."""
    with running_cluster(3, 0, *_USER, announced=lambda port: front_of(fronts, port)) as cluster:
        yield cluster


@pytest.mark.ci
def test_every_node_of_a_cluster_is_reached_by_tls(
    bare_rwq: Rwq, tls_cluster: PrivateCluster, fronts: TlsFronts
) -> None:
    url = f"rediss+cluster://rwq:pw@{tls_cluster.hosts}"
    bare_rwq.variables = {**bare_rwq.variables, "RWQ_URL": url}
    ca = ("--tls-ca", str(fronts.authority))
    names = ["{a}", "{b}", "{c}"]
    assert [bare_rwq("add", "x", "-q", name, *ca).code for name in names] == [0] * 3
    leases = [bare_rwq("lease", "-q", name, *ca, "-o", "data") for name in names]
    assert [lease.out for lease in leases] == [b"x"] * 3
    assert bare_rwq("queues", *ca, "-o", "ids").lines == names
    assert bare_rwq("mv", "--to", "{d}", "--all", "--yes", "-q", "{a}", *ca, "--force").code == 0
    moving = Moving(tls_cluster, "{d}")
    moving.finish()
    assert bare_rwq("ls", "-q", "{d}", *ca, "-o", "json").json[0]["state"] == "waiting"
    checked = bare_rwq("context", "check", "-q", "{d}", *ca, "-o", "json")
    assert checked.code == 0, checked


def assert_refused(result: Result, reason: str, hint: str) -> None:
    """One line says why, and what to do, without a password."""
    assert (result.code, result.text, result.notes.count("\n")) == (69, "", 1), result
    message, _, advice = result.notes.partition("; ")
    assert reason in message
    assert hint in advice
    assert not re.search("pw|sesame", result.notes)


@pytest.mark.ci
def test_sentinel_and_its_primary(bare_rwq: Rwq, tmp_path: Path) -> None:
    """Sentinels and servers speak no TLS to one another here: the servers' fronts pass on both."""
    own = ("user watcher on >sesame ~* &* +@all",)
    with fronts_in(tmp_path) as servers, fronts_in(tmp_path) as watchers:

        def announced(port: int) -> int:
            return front_of(servers, port, also_plain=True)

        with running_sentinels(*_USER, sentinel_lines=own, announced=announced) as private:
            ports = [front_of(watchers, sentinel.port) for sentinel in private.sentinels]
            hosts = ",".join(f"{HOST}:{port}" for port in ports)

            def add(
                *options: str, scheme: str = "rediss", user: str = "rwq:pw", own: str = "sesame"
            ) -> Result:
                url = f"{scheme}+sentinel://{user}@{hosts}/{private.SERVICE}/0"
                credentials = "?sentinel_username=watcher"
                credentials += f"&sentinel_password={own}" if own else ""
                return bare_rwq("add", "x", "-q", "jobs", "-u", url + credentials, *options)

            ca = ("--tls-ca", str(servers.authority))
            assert add(*ca).code == 0
            assert (servers.handshakes, watchers.handshakes > 0) == (1, True)
            private.fail_over()
            bare_rwq.variables = {**bare_rwq.variables, "RWQ_PASSWORD": "pw"}
            assert add(*ca, user="rwq").code == 0
            # One with the new primary; more with the old one, until the Sentinels agree.
            assert servers.handshakes > 1
            bare_rwq.variables = {**bare_rwq.variables, "RWQ_SENTINEL_PASSWORD": "sesame"}
            assert add(*ca, own="").code == 0
            assert private.primary().call("LLEN", "jobs:queue") == 3
            assert_refused(add(*ca, own="no"), "rejected the password", "RWQ_SENTINEL_PASSWORD")
            assert_refused(add(*ca, user="rwq:no"), "the primary of", "RWQ_PASSWORD")
            assert_refused(
                add(),
                "not signed by a known authority",
                "give the certificate of its authority with --tls-ca",
            )
            assert_refused(add(scheme="redis"), "because it speaks TLS (rediss://)", "rwq ls")
            # The variable is not for the server of a context.
            url = f"rediss+sentinel://rwq@{hosts}/main?sentinel_username=watcher"
            assert bare_rwq("context", "set", "prod", "-u", url).code == 0
            assert_refused(
                bare_rwq("queues", "-c", "prod", *ca), "a Sentinel of", "the url of context prod"
            )
