"""Key names: the table of the protocol, and names that are patterns or binary."""

import pytest
from redis import Redis

from rwq_cli.core import InvalidArgument
from rwq_cli.core.keys import QueueKeys, hash_tag, queue_of_structure

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
    b"line\nbreak \r\n",
    b"{tag}x",
    "Übung \u202e".encode(),
]


def test_keys_have_the_names_in_the_key_table() -> None:
    keys = QueueKeys(b"jobs")
    assert {
        "main": keys.main,
        "processing": keys.processing,
        "cleaning": keys.cleaning,
        "delayed": keys.delayed,
        "buried": keys.buried,
        "returns": keys.returns,
        "item": keys.item(b"x:y"),
        "lease": keys.lease(b"x:y"),
        "old lease": keys.old_lease(b"x:y"),
        "pattern": keys.item_pattern,
        "pattern of all": keys.pattern,
        "results": keys.result_prefix,
    } == {
        "main": b"jobs:queue",
        "processing": b"jobs:processing",
        "cleaning": b"jobs:cleaning",
        "delayed": b"jobs:delayed",
        "buried": b"jobs:buried",
        "returns": b"jobs:returns",
        "item": b"jobs:item:x:y",
        "lease": b"jobs:lease:x:y",
        "old lease": b"jobs:leased_by_session:x:y",
        "pattern": b"jobs:item:*",
        "pattern of all": b"jobs:*",
        "results": b"jobs:result:",
    }
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
    ids = [b"", b"1", b"\x00\xff", b"a:item:b", b"*"]
    for other in (*STRANGE, b"abc", b"ab", b"a", b"b", b"x"):
        raw.set(QueueKeys(other).item(b"other"), b"")
    wanted = {QueueKeys(name).item(item_id) for item_id in ids}
    for key in wanted:
        raw.set(key, b"")
    found = set(raw.scan_iter(match=QueueKeys(name).item_pattern))
    assert found == wanted | {QueueKeys(name).item(b"other")}
    of_all = {key for key in raw.scan_iter() if key.startswith(name + b":")}
    assert set(raw.scan_iter(match=QueueKeys(name).pattern)) == of_all >= wanted


@pytest.mark.parametrize(
    ("key", "queue"),
    [
        (b"jobs:queue", b"jobs"),
        (b"jobs:processing", b"jobs"),
        (b"jobs:cleaning", b"jobs"),
        (b"jobs:delayed", b"jobs"),
        (b"jobs:buried", b"jobs"),
        (b"a:item:x:queue", b"a:item:x"),
        (b"a:queue:queue", b"a:queue"),
        (b"\xff\x00:queue", b"\xff\x00"),
        (b":queue", None),
        (b"queue", None),
        (b"jobs:item:1", None),
        (b"jobs:queue2", None),
        (b"jobs:returns", None),
    ],
)
def test_the_queue_that_a_key_gives_away(key: bytes, queue: bytes | None) -> None:
    assert queue_of_structure(key) == queue


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        (b"jobs", None),
        (b"{jobs}", b"jobs"),
        (b"a{jobs}b{x}", b"jobs"),
        (b"{}", None),
        (b"{}{x}", None),
        (b"{jobs", None),
        (b"}jobs{", None),
        (b"a{{b}}", b"{b"),
        (b"{\xff}", b"\xff"),
    ],
)
def test_the_hash_tag_of_a_name(name: bytes, tag: bytes | None) -> None:
    assert hash_tag(name) == tag


@pytest.mark.parametrize(
    ("name", "outer"),
    [
        (b"jobs:item", [b"jobs"]),
        (b"jobs:lease:x", [b"jobs"]),
        (b"a:item:b:result:c", [b"a", b"a:item:b"]),
        (b"a:undo", [b"a"]),
        *((name, []) for name in (b"jobs", b"jobs:items", b"item:x", b":item", b"jobs:high")),
    ],
)
def test_a_name_among_the_keys_of_another_queue_is_refused(name: bytes, outer: list[bytes]) -> None:
    keys = QueueKeys(name)
    assert keys.outer_names == outer
    if not outer:
        keys.check_new()
        return
    with pytest.raises(InvalidArgument, match=f"{name.decode()} would look like items"):
        keys.check_new()
