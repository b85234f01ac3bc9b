"""URLs and addresses: what connects, what is refused and why, and no password is ever printed."""

import ssl
from pathlib import Path

import pytest

from rwq_cli.core import InvalidArgument, Server, ServerError, connect
from rwq_cli.core.server.urls import is_same_server, mask_url, without_password
from tests.conftest import StartServer
from tests.servers import PrivateServer
from tests.tls import tls_front


def test_a_url_without_a_secret_is_shown_as_typed() -> None:
    urls = [
        *("", "localhost", "localhost:6379", "redis://localhost:6379/0", "redis://user@host"),
        *("unix:///run/server.sock", "unix:///run/a@b.sock", "[::1]", "redis://[::1]:6379/0"),
        *("rediss://h?ssl_ca_certs=/etc/ca.pem&db=2", "redis://host/?db", "redis://host/zero"),
        *("redis+sentinel://a,b:1/main/0", "rediss+cluster://ops@a,[::1]:1", "not a url"),
    ]
    assert [mask_url(url) for url in urls] == urls


SECRETS = [
    ("redis://:hunter2@host", "redis://:***@host"),
    ("user:hunter2@host:1", "user:***@host:1"),
    ("postgres://user:hunter2@host", "postgres://user:***@host"),
    ("redis://user:s@cr@hunter2@host", "redis://user:***@host"),
    ("redis://user:se/hunter2@host/1", "redis://user:***@host/1"),
    ("redis://x:hunter2://@host", "redis://x:***@host"),
    ("user:hunter2://x@host", "user:***@host"),
    ("unix://user:hunter2@/run/server.sock?db=1", "unix://user:***@/run/server.sock?db=1"),
    ("redis+sentinel://:hunter2@a,b:1/main/0", "redis+sentinel://:***@a,b:1/main/0"),
    ("rediss+cluster://ops:hunter2@a,[::1]:1", "rediss+cluster://ops:***@a,[::1]:1"),
    # The colon was escaped, so all of it is the user's name.
    ("redis://user%3Ahunter2@host", "redis://***@host"),
    ("redis://hunter2%40x:y@host", "redis://***:***@host"),
    # Options.
    ("redis://host/0?db=1&password=hunter2&x=y", "redis://host/0?db=1&password=***&x=***"),
    ("unix:///run/server.sock?password=se@hunter2", "unix:///run/server.sock?password=***"),
    ("rediss://host/0?p%61ss=hunter2&db=1", "rediss://host/0?p%61ss=***&db=1"),
    ("redis://host?db=1;password=hunter2", "redis://host?db=***"),
    ("redis://host?db=1&hunter2&db=2", "redis://host?db=1&***&db=2"),
    ("redis://host?hunter2!=x", "redis://host?***=***"),
    ("redis://host/0?db=1#hunter2", "redis://host/0?db=1#***"),
    # How far the credentials go is not certain.
    ("redis://user:hunter2?x@host/0", "redis://…"),
    ("redis://user:x?a@hunter2@host/0", "redis://…"),
    ("redis://host?password=a@hunter2", "redis://…"),
    ("redis://host/0#a@hunter2", "redis://…"),
    # The host was forgotten.
    ("redis://ops:hunter2", "redis://ops:***"),
    ("redis://ops:12hunter2/0", "redis://ops:***"),
    ("redis://:hun/ter2", "redis://:***"),
    ("redis+cluster://a:1,b:hunter2,c", "redis+cluster://a:1,b:***"),
    ("unix://ops:hunter2", "unix://ops:***"),
    # Separators that other clients use.
    ("host:6379,password=hunter2", "host:6379,password=***"),
    ("redis://host:6379/0;password=hunter2", "redis://host:6379/0;password=***"),
    ("redis://host%2Cpassword%3Dhunter2", "redis://host%2Cpassword%3D***"),
    ("unix:///run/server.sock,password=hunter2", "unix:///run/server.sock,password=***"),
    ("redis+sentinel://a,b,password=hunter2", "redis+sentinel://a,b,password=***"),
]


def test_secrets_in_a_url_are_masked() -> None:
    assert [(url, mask_url(url)) for url, _ in SECRETS] == SECRETS


WITHOUT_PASSWORD = [
    ("redis://db1:6379/0", "redis://db1:6379/0"),
    ("redis://ops@db1", "redis://ops@db1"),
    ("redis://:hunter2@db1/0", "redis://db1/0"),
    ("redis+cluster://:hunter2@db1,db2:7000", "redis+cluster://db1,db2:7000"),
    ("redis+sentinel://db1/main?sentinel_password=hunter2", "redis+sentinel://db1/main"),
    ("redis://ops:hun%40ter2@db1/0", "redis://ops@db1/0"),
    ("redis://db1/0?password=hunter2", "redis://db1/0"),
    ("redis://db1?db=3&%70assword=hunter2&username=ops", "redis://db1?db=3&username=ops"),
    ("rediss://ops:x@db1/0?ssl_password=x&ssl_keyfile=k", "rediss://ops@db1/0?ssl_keyfile=k"),
    ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
    ("unix://:hunter2@/run/redis.sock", "unix:///run/redis.sock"),
    ("unix://ops:hunter2@/run/redis.sock", "unix://ops@/run/redis.sock"),
]


def test_a_url_without_its_password_is_of_that_server() -> None:
    assert [(url, without_password(url)) for url, _ in WITHOUT_PASSWORD] == WITHOUT_PASSWORD
    assert all(is_same_server(url, left) for url, left in WITHOUT_PASSWORD)


SAME = [
    ("unix:///home/ann@example/sock", "unix:///home/ann%40example/sock", True),
    ("redis://a/0?db=1&db=2", "redis://a/1", True),
    ("redis://:***@h:7391/0", "redis://h:7391/0", True),
    ("redis://ops:***@h", "rediss://h:6379/0", True),
    ("redis://H/2", "redis://h:6379?db=2", True),
    ("redis://h?password=***&db=0", "redis://h:6379/0", True),
    ("unix://:***@/run/s.sock?db=1", "unix:///run/s.sock?db=1", True),
    ("unix:///run/a b.sock?password=***", "unix:///run/a%20b.sock", True),
    ("redis://localhost:7391", "redis://127.0.0.1:7391", True),
    ("redis://LOCALHOST", "redis://[::1]", True),
    ("redis://127.1/3", "rediss://localhost/3", True),
    ("redis://[::]", "redis://localhost", True),
    ("redis://[fe80::1]", "redis://[fe80::2]", False),
    ("unix:///run/x/../s.sock", "unix:///run/s.sock", True),
    ("redis://128.0.0.1", "redis://localhost", False),
    ("redis://h:6379/0", "redis://h:6379/1", False),
    ("redis://h:6379/0", "redis://h:6380/0", False),
    ("redis://g:6379/0", "redis://h:6379/0", False),
    ("unix:///run/s.sock", "unix:///run/s.sock?db=1", False),
    ("unix:///run/s.sock", "unix:///run/t.sock", False),
    # Names in older undo files that tell no place.
    ("redis://***", "redis://h:6379/0", False),
    ("redis://user:***", "redis://user:6379/0", False),
    # Lists of hosts of one server have a host in common.
    ("redis+cluster://a,b:7000", "redis+cluster://:***@b:7000,c", True),
    ("redis+cluster://a,b", "redis+cluster://c,d", False),
    ("redis+cluster://a,b", "redis://b:6379/0", True),
    ("redis+sentinel://a,b/main/0", "rediss+sentinel://b:26379/main", True),
    ("redis+sentinel://a,b/main/0", "redis+sentinel://a,b/main/1", False),
    ("redis+sentinel://a,b/main/0", "redis+sentinel://a,b/other/0", False),
    ("redis+sentinel://a,b/main/0", "redis://a:26379/0", False),
]


def test_whether_two_urls_name_the_same_server() -> None:
    assert [(one, other, is_same_server(one, other)) for one, other, _ in SAME] == SAME


HOSTS = "use redis+sentinel://h1:26379,h2/SERVICE/0 or redis+cluster://h1:6379,h2"
EXAMPLES = "use host:6379, redis://host:6379/0, rediss://host, unix:///path/to/socket or local:"


REFUSED = (
    # Its `+cluster` or `+sentinel` was forgotten.
    (
        "redis://a:1,b:2/0",
        "malformed server URL redis://a:1,b:2/0: a host or port cannot be read",
        "use redis://user:password@host:6379/0, with % escapes in the password",
    ),
    ("local", "not a server URL: local", EXAMPLES),
    ("http://user:secret@host", "not a server URL: http://user:***@host", EXAMPLES),
    (
        "redis+sentinel://:secret@a,b",
        *("malformed server URL redis+sentinel://:***@a,b: it names no service", HOSTS),
    ),
    (
        "redis+cluster://a:b",
        *("malformed server URL redis+cluster://a:***: a host or port cannot be read", HOSTS),
    ),
    (
        "redis+cluster://a,b/1",
        "malformed server URL redis+cluster://a,b/1: a cluster has no databases",
        "leave the number out",
    ),
    (
        "redis+cluster://a#b",
        "malformed server URL redis+cluster://a#***: it has a #",
        "write %23 for a # in a password",
    ),
    (
        "redis+cluster://a?x=y",
        "the server URL redis+cluster://a?x=*** has an option that is not supported",
        "supported options: db, username, password",
    ),
    (
        "unix://",
        *("malformed server URL unix://: it names no socket", "use unix:///path/to/socket"),
    ),
    (
        "valkey://host/zero",
        "malformed server URL valkey://host/zero: its database is not a number",
        "use redis://host:6379/0",
    ),
    (
        "rediss://host?ssl_cert_reqs=sometimes",
        "malformed server URL rediss://host?ssl_cert_reqs=sometimes: "
        "an option has a value that cannot be used",
        EXAMPLES,
    ),
)


@pytest.mark.parametrize(("url", "message", "hint"), REFUSED)
def test_a_url_that_is_refused(url: str, message: str, hint: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        connect(Server(url))
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize("start", ["redis://host/0", "unix:///run/server.sock"])
@pytest.mark.parametrize(
    "option", ["decode_responses=1", "retry=3", "ssl_certfile=/x", "host=x", "no_such", "DB=1"]
)
def test_an_option_that_is_not_supported(start: str, option: str) -> None:
    """redis-py would take most of them, and some would break what the core relies on."""
    with pytest.raises(InvalidArgument, match="has an option that is not supported") as caught:
        connect(Server(f"{start}?{option}"))
    assert caught.value.hint == "supported options: db, username, password"


def test_the_options_of_a_tls_url() -> None:
    with pytest.raises(InvalidArgument) as caught:
        connect(Server("rediss://host?decode_responses=1"))
    assert caught.value.hint == (
        "supported options: db, username, password, ssl_ca_certs, ssl_certfile, ssl_keyfile, "
        "ssl_password, ssl_cert_reqs, ssl_check_hostname"
    )
    url = "rediss://host?ssl_cert_reqs=optional&ssl_check_hostname=no&ssl_password=x&db=2"
    link = connect(Server(url)).client().connection_pool.make_connection()
    assert (link.cert_reqs, link.check_hostname) == (ssl.CERT_OPTIONAL, False)
    assert (link.certificate_password, link.db) == ("x", 2)
    # A reply is not asked for twice by redis-py.
    assert link.retry.get_retries() == 0
    link = connect(Server("rediss://host")).client().connection_pool.make_connection()
    assert (link.cert_reqs, link.check_hostname) == (ssl.CERT_REQUIRED, True)


def refusal_of(url: str) -> InvalidArgument | None:
    try:
        connect(Server(url))
    except InvalidArgument as error:
        return error
    return None


def test_no_refusal_tells_a_password() -> None:
    more = ("redis://user:hunter2\u2100@host", "redis://user:hunter2@host?socket_timeout=soon")
    refusals = [*filter(None, map(refusal_of, (*more, *(url for url, _ in SECRETS))))]
    assert len(refusals) > 10
    assert [error for error in refusals if "hunter2" in str(error) or error.__cause__] == []


def test_a_printed_server_tells_no_password() -> None:
    """Tracebacks and logs print it."""
    server = Server("redis://user:hunter2@host", password="swordfish")
    assert "hunter2" not in repr(server)
    assert "swordfish" not in repr(server)


@pytest.mark.parametrize("option", ["tls_ca", "tls_cert", "tls_key"])
def test_tls_files_need_a_tls_url_and_must_be_there(tmp_path: Path, option: str) -> None:
    file, missing = tmp_path / "file.pem", tmp_path / "missing.pem"
    file.touch()
    with pytest.raises(InvalidArgument) as caught:
        connect(Server("redis://host", **{option: file}))
    assert caught.value.message == "TLS options need a rediss:// URL, not redis://host"
    with pytest.raises(InvalidArgument) as caught:
        connect(Server("rediss://host", **{option: missing}))
    assert caught.value.message == f"no such file: {missing}"


def test_a_database_and_a_password_in_the_url(start_server: StartServer) -> None:
    private = start_server("--requirepass", "p@ss/w?rd", password="p@ss/w?rd")
    made = connect(Server(f"unix://:p%40ss%2Fw%3Frd@{private.socket}?db=3"))
    assert made.call("SET", "key", "value") is True
    # The URL's password wins over the other.
    url = f"unix://:p%40ss%2Fw%3Frd@{private.socket}"
    assert connect(Server(url, password="wrong")).call("PING") is True
    assert connect(Server(private.url, password="p@ss/w?rd")).call("PING") is True
    assert made.name == f"unix://:***@{private.socket}?db=3"
    with private.client(password="p@ss/w?rd", db=3) as client:
        assert client.get("key") == b"value"


def test_a_server_that_asks_for_a_certificate(server: PrivateServer, tmp_path: Path) -> None:
    ours = tmp_path / "server.pem"
    with tls_front(server.socket, tmp_path, asks_clients=True) as url:
        shown = connect(Server(url, tls_ca=ours, tls_cert=ours, tls_key=ours))
        assert shown.call("PING") is True
        shown.close()
        # What the server says may be lost with the connection.
        with pytest.raises(ServerError, match=r"certificate|closed"):
            connect(Server(url, tls_ca=ours)).call("PING")


def test_tickets_that_a_tls_server_sends_unasked(server: PrivateServer, tmp_path: Path) -> None:
    """They may be there before the first command, and are no answer to one."""
    with tls_front(server.socket, tmp_path) as url:
        for _ in range(8):
            connection = connect(Server(url, tls_insecure=True))
            assert connection.call("PING") is True
            # Nor do they look like the end of the connection.
            assert len({connection.call("CLIENT", "ID") for _ in range(5)}) == 1
            connection.close()


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://ops:hunter2@localhost:7391/2", "redis://localhost:7391/2"),
        ("redis://localhost?password=a@hunter2", "redis://localhost:6379/0"),
        ("rediss://host/1?db=3&ssl_password=hunter2", "rediss://host:6379/3"),
        ("redis://:hunter2@[::1]:7000", "redis://[::1]:7000/0"),
        ("unix://:hunter2@/run/a%20b.sock?db=1", "unix:///run/a%20b.sock?db=1"),
        ("unix:///run/server.sock", "unix:///run/server.sock"),
        ("db1", "redis://db1:6379/0"),
        ("db1:7000/2", "redis://db1:7000/2"),
        ("[::1]:7000", "redis://[::1]:7000/0"),
        ("valkey://ops:hunter2@db1", "redis://db1:6379/0"),
        ("valkeys://db1/1", "rediss://db1:6379/1"),
        ("redis+cluster://ops:hunter2@a,[::1]:7000", "redis+cluster://a:6379,[::1]:7000"),
        ("redis+sentinel://a:1,b/main", "redis+sentinel://a:1,b:26379/main/0"),
        ("rediss+sentinel://:x@a/main/3?username=y", "rediss+sentinel://a:26379/main/3"),
    ],
)
def test_the_address_of_a_server_has_no_credentials(url: str, address: str) -> None:
    made = connect(Server(url)).address
    assert made == address
    assert is_same_server(made, address)
