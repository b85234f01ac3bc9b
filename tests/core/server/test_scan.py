"""Walking over all keys."""

from redis import Redis

from rwq_cli.core import Connection
from rwq_cli.core.server.scan import scan_keys


def fill(raw: Redis) -> None:
    raw.mset({b"text:%d" % number: b"" for number in range(2500)})
    raw.rpush(b"list:1", b"x")
    raw.rpush(b"list:2", b"x")


def test_all_keys_are_scanned_in_pages(connection: Connection, raw: Redis) -> None:
    fill(raw)
    pages = list(scan_keys(connection))
    assert all(pages)
    assert {key for page in pages for key in page} == set(raw.keys())


def test_keys_are_scanned_by_pattern_and_type(connection: Connection, raw: Redis) -> None:
    fill(raw)
    lists = {key for page in scan_keys(connection, kind="list") for key in page}
    assert lists == {b"list:1", b"list:2"}
    matching = {key for page in scan_keys(connection, b"*:2", count=10) for key in page}
    assert matching == {b"list:2", b"text:2"}
    (page,) = scan_keys(connection, b"*:2", kind="list", count=10_000)
    assert page == [b"list:2"]


def test_an_empty_server_has_no_keys(connection: Connection) -> None:
    assert list(scan_keys(connection)) == []
