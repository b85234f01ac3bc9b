"""Key names: the table of the protocol, and names that are patterns or binary."""

import pytest
from redis import Redis

from rwq_cli.core import InvalidArgument
from rwq_cli.core.keys import QueueKeys, hash_tag, owner_of_structure, pattern_of

STRANGE = [
    b"jobs",
    b"a:b",
    b"*",
    b"a?c",
    b"a[bc]",
    b"a[^b-z]",
    b"back\\slash",
    b"\\",
    b"[",
    b"nul\x00in",
    b"\xff\xfe not text",
    b"line\nbreak \r\n.",
    b"{tag}x",
    "Übung \u202e".encode(),
]


def test_keys_have_the_names_in_the_key_table() -> None:
    keys = QueueKeys(b"jobs")
    assert keys.item(b"x:y") == b"jobs:item:x:y"
    assert keys.lease(b"x:y") == b"jobs:lease:x:y"
    assert keys.old_lease(b"x:y") == b"jobs:leased_by_session:x:y"
    assert (keys.main, keys.processing, keys.cleaning, keys.delayed, keys.buried, keys.returns) == (
        *keys.structures,
    )
    assert keys.structures == {
        b"jobs:queue": "list",
        b"jobs:processing": "list",
        b"jobs:cleaning": "list",
        b"jobs:delayed": "zset",
        b"jobs:buried": "zset",
        b"jobs:returns": "hash",
    }


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(InvalidArgument) as caught:
        QueueKeys(b"")
    assert caught.value.message == "the queue's name is empty"
    assert caught.value.hint == "give a name with -q"


@pytest.mark.parametrize("name", STRANGE)
def test_a_pattern_matches_its_own_queue_only(raw: Redis, name: bytes) -> None:
    for other in (*STRANGE, b"abc", b"ab", b"a", b"b", b"x"):
        raw.set(QueueKeys(other).item(b"other"), b"")
    keys = QueueKeys(name)
    wanted = {keys.item(i) for i in (b"", b"1", b"\x00\xff", b"a:item:b", b"*", b"other")}
    raw.mset(dict.fromkeys(wanted, b""))
    assert set(raw.scan_iter(match=pattern_of(keys.item_prefix))) == wanted
    of_all = {key for key in raw.scan_iter() if key.startswith(name + b":")}
    assert set(raw.scan_iter(match=keys.pattern)) == of_all >= wanted


def test_the_queue_that_a_key_gives_away() -> None:
    owners = {
        name + suffix: name
        for name in (b"jobs", b"a:item:x", b"a:queue", b"\xff\x00")
        for suffix in (b":queue", b":processing", b":cleaning", b":delayed", b":buried")
    }
    owners |= dict.fromkeys((b":queue", b"queue", b"jobs:item:1", b"jobs:queue2", b"jobs:returns"))
    assert {key: owner_of_structure(key, "list", "zset") for key in owners} == owners


def test_the_hash_tag_of_a_name() -> None:
    tags = {b"{jobs}": b"jobs", b"a{jobs}b{x}": b"jobs", b"a{{b}}": b"{b", b"{\xff}": b"\xff"}
    tags |= dict.fromkeys((b"jobs", b"{}", b"{}{x}", b"{jobs", b"}jobs{"))
    assert {name: hash_tag(name) for name in tags} == tags


@pytest.mark.parametrize(
    ("name", "outer"),
    [
        (b"jobs:item", [b"jobs"]),
        (b"jobs:lease:x", [b"jobs"]),
        (b"a:item:b:result:c", [b"a", b"a:item:b"]),
        (b"a:undo", [b"a"]),
    ],
)
def test_a_name_among_anothers_keys_is_refused(name: bytes, outer: list[bytes]) -> None:
    assert QueueKeys(name).outer_names == outer
    with pytest.raises(InvalidArgument, match=f"{name.decode()} would look like items"):
        QueueKeys(name).check_new()


@pytest.mark.parametrize("name", [b"jobs", b"jobs:items", b"item:x", b":item", b"jobs:high"])
def test_a_name_among_no_others_keys(name: bytes) -> None:
    assert QueueKeys(name).outer_names == []
    QueueKeys(name).check_new()
