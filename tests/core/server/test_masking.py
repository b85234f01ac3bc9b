"""A server's URL as it is shown: no secret in it, wherever it was put."""

import pytest

from rwq_cli.core.server.masking import mask_url, without_password
from rwq_cli.core.server.same_server import is_same_server


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://:secret@host", "redis://:***@host"),
        ("redis://user:secret@host:1/2?a=b", "redis://user:***@host:1/2?a=***"),
        ("redis://user@host", "redis://user@host"),
        ("rediss://user:se:cret@host", "rediss://user:***@host"),
        ("redis://user:s@cr@t@host", "redis://user:***@host"),
        ("redis://user:se/cr/et@host/1", "redis://user:***@host/1"),
        ("redis://host?password=secret", "redis://host?password=***"),
        ("redis://host/0?db=1&password=secret&x=y", "redis://host/0?db=1&password=***&x=***"),
        ("unix:///run/server.sock", "unix:///run/server.sock"),
        ("unix:///run/a@b.sock", "unix:///run/a@b.sock"),
        ("unix://user:secret@/run/server.sock?db=1", "unix://user:***@/run/server.sock?db=1"),
        ("unix:///run/server.sock?password=secret", "unix:///run/server.sock?password=***"),
        ("unix:///run/server.sock?password=se@cret", "unix:///run/server.sock?password=***"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
        ("rediss://h?ssl_ca_certs=/etc/ca.pem&db=2", "rediss://h?ssl_ca_certs=/etc/ca.pem&db=2"),
        ("redis://host/?db", "redis://host/?db"),
        ("redis+sentinel://:secret@a,b:1/main/0", "redis+sentinel://:***@a,b:1/main/0"),
        ("rediss+cluster://ops:secret@a,[::1]:1", "rediss+cluster://ops:***@a,[::1]:1"),
        (
            "rediss+sentinel://a/main?sentinel_username=ops&sentinel_password=secret",
            "rediss+sentinel://a/main?sentinel_username=ops&sentinel_password=***",
        ),
        ("not a url", "…"),
        ("localhost:6379", "…"),
        ("user:secret@host", "…"),
        ("host?password=secret", "…"),
        ("", ""),
    ],
)
def test_secrets_in_a_url_are_masked(url: str, masked: str) -> None:
    assert mask_url(url) == masked


@pytest.mark.parametrize(
    "name",
    [
        *("password", "PASSWORD", "ssl_password", "passphrase", "pass", "p%61ss", "ssl%5Fpassword"),
        *("secret", "client_secret", "api_key", "ssl_keyfile", "token", "AuthToken"),
    ],
)
def test_options_whose_name_sounds_like_a_secret(name: str) -> None:
    assert mask_url(f"rediss://host/0?{name}=hunter2&db=1") == f"rediss://host/0?{name}=***&db=1"


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("redis://host/0#hunter2", "redis://host/0#***"),
        ("redis://host/0?db=1#hunter2", "redis://host/0?db=1#***"),
        ("unix:///run/server.sock#hunter2", "unix:///run/server.sock#***"),
        # The colon was escaped, so all of it is the user's name.
        ("redis://user%3Ahunter2@host", "redis://***@host"),
        ("redis://user hunter2@host", "redis://***@host"),
        ("redis://hunter2%40x:y@host", "redis://***:***@host"),
        # A value in which another option may hide.
        ("redis://host?db=1;password=hunter2", "redis://host?db=***"),
        ("redis://host?db=password%3Dhunter2", "redis://host?db=***"),
        # How far the credentials go is not certain.
        ("redis://user:hunter2?x@host/0", "redis://…"),
        ("redis://user:hunter2#x@host/0", "redis://…"),
        ("redis://user:?hunter2@host/0", "redis://…"),
        ("redis://user:x?a@hunter2@host/0", "redis://…"),
        ("redis://host?password=a@hunter2", "redis://…"),
        ("redis://host:1?password=a@hunter2", "redis://…"),
        ("redis://host/0#a@hunter2", "redis://…"),
    ],
)
def test_other_places_where_a_secret_may_be(url: str, masked: str) -> None:
    assert mask_url(url) == masked
    assert "hunter2" not in masked


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        # The host was forgotten.
        ("redis://ops:hunter2", "redis://…"),
        ("redis://:hunter2", "redis://…"),
        ("redis://ops:hunter2/0", "redis://…"),
        ("unix://ops:hunter2", "unix://…"),
        # Separators that other clients use.
        ("redis://host:6379,password=hunter2", "redis://…"),
        ("redis://host,password=hunter2", "redis://…"),
        ("redis://host:6379/0;password=hunter2", "redis://…"),
        ("redis://host:6379%2Cpassword%3Dhunter2", "redis://…"),
        ("unix:///run/server.sock,password=hunter2", "unix://…"),
        ("unix:///run/server.sock;password=hunter2", "unix://…"),
        ("redis+sentinel://a,b,password=hunter2", "redis+sentinel://…"),
        ("redis+cluster://a:1,hunter2=x", "redis+cluster://…"),
        ("host:6379,password=hunter2", "…"),
        # Parts that are not what belongs there.
        ("redis://host:hunter2/0", "redis://…"),
        ("redis://host/hunter2", "redis://…"),
        ("redis://[hunter2/0", "redis://…"),
        ("redis://hunter2 x/0", "redis://…"),
        ("redis://x:hunter2://@host", "redis://x:***@host"),
        ("redis://host?db=hunter2", "redis://host?db=***"),
        ("redis://host?hunter2", "redis://host?***"),
        ("redis://host?db=1&hunter2&db=2", "redis://host?db=1&***&db=2"),
        ("redis://host?auth=hunter2", "redis://host?auth=***"),
        ("redis://host?pwd=hunter2", "redis://host?pwd=***"),
        ("redis://host?foo=hunter2", "redis://host?foo=***"),
        ("redis://host?hunter2!=x", "redis://host?***=***"),
        ("postgres://user:hunter2@host", "postgres://…"),
        ("hunter2", "…"),
    ],
)
def test_a_malformed_url_is_masked(url: str, masked: str) -> None:
    assert mask_url(url) == masked
    assert "hunter2" not in masked


@pytest.mark.parametrize(
    ("url", "left"),
    [
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
    ],
)
def test_a_url_without_its_password_names_the_same_server(url: str, left: str) -> None:
    assert without_password(url) == left
    assert is_same_server(url, left)
