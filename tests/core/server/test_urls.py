"""What an address means, and how it is shown: no secret in it, wherever it was put."""

from rwq_cli.core.server.urls import is_same_server, mask_url, without_password


def test_a_url_without_a_secret_is_shown_as_it_was_typed() -> None:
    for url in (
        *("", "localhost", "localhost:6379", "redis://localhost:6379/0", "redis://user@host"),
        *("unix:///run/server.sock", "unix:///run/a@b.sock", "[::1]", "redis://[::1]:6379/0"),
        *("rediss://h?ssl_ca_certs=/etc/ca.pem&db=2", "redis://host/?db", "redis://host/zero"),
        *("redis+sentinel://a,b:1/main/0", "rediss+cluster://ops@a,[::1]:1", "not a url"),
    ):
        assert mask_url(url) == url


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


def test_a_url_without_its_password_names_the_same_server() -> None:
    assert [(url, without_password(url)) for url, _ in WITHOUT_PASSWORD] == WITHOUT_PASSWORD
    assert all(is_same_server(url, left) for url, left in WITHOUT_PASSWORD)


SAME = [
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
