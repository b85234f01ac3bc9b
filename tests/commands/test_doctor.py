"""`rwq doctor`: what it says of a broken queue, in every format, and what its commands do."""

import os

import pytest
import redis

from tests.conftest import Foreign, contents
from tests.driver import Rwq
from tests.item_cases import BROKEN
from tests.servers import PrivateServer
from tests.support import snapshot

NOW = ("--grace", "0")
# Of the server and the name, the same in all of these tests.
AROUND = ["--skip", "no-persistence,restarted,flushed"]


def test_the_table_of_findings(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"a\x01", b"b", ttl_ms=None)
    foreign.abandoned(b"c")
    result = rwq("doctor", "--fix", *NOW, *AROUND, "-o", "table")
    assert result.code == 1
    assert result.lines == snapshot(
        [
            "SEVERITY  FINDING    COUNT  FIXED  LEFT",
            "───────────────────────────────────────",
            "error     held           2      0     2",
            "warning   abandoned      1      1     0",
            "",
            "held",
            "       error  2",
            "       cause  Its lease has no expiry. No worker sets such a lease.",
            "        cure  Release the item, or give its lease an expiry.",
            "left because  it may be intentional, to keep the item from workers",
            "     command  rwq release --force -q jobs \"$(printf -- 'a\\001')\"",
            " for example  a\\x01",
            "              b",
        ]
    )
    assert result.notes == "errors 1 (held 2), warnings 1 (abandoned 1); items 3; fixed 1, left 2\n"


def test_an_empty_queue_is_not_called_healthy(rwq: Rwq) -> None:
    assert rwq("doctor", *AROUND, "-o", "table").text == "jobs is empty\n"


def test_a_healthy_queue_has_no_findings(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w")
    summary = "no findings; items 1\n"
    healthy = (0, "Nothing is wrong with jobs: items 1\n", "")
    assert rwq("doctor", *AROUND, "-o", "table").as_tuple() == healthy
    assert rwq("doctor", "-v", *AROUND, "-o", "table").lines == snapshot(
        ["Nothing is wrong with jobs: items 1"]
    )
    assert rwq("doctor", "--fix", *AROUND, "-o", "table").as_tuple() == healthy
    assert rwq("doctor", *AROUND, "-o", "json").as_tuple() == (0, "[]\n", summary)
    assert rwq("doctor", *AROUND, "-o", "ids").as_tuple() == (0, "", summary)
    assert rwq("doctor", "-o", "ids").code == 0, "notes do not count"


def test_a_key_of_another_type_is_a_finding(
    rwq: Rwq, raw: redis.Redis, server: PrivateServer
) -> None:
    raw.set("jobs:queue", "x")
    result = rwq("doctor", "--fix", *AROUND, "-o", "plain")
    assert result.as_tuple() == (
        1,
        'wrong-type\terror\t1\t0\t1\t["jobs:queue"]\t'
        f"redis-cli -s {server.socket} TYPE jobs:queue\n",
        "errors 1 (wrong-type 1); the items were not checked; left 1\n",
    )


def test_ids_are_complete_and_examples_are_five(rwq: Rwq, foreign: Foreign) -> None:
    ids = [b"%02d" % number for number in range(30)]
    foreign.leased(*ids, ttl_ms=None)
    result = rwq("doctor", *NOW, "--only", "held", "-o", "ids")
    assert sorted(result.out.split()) == ids
    assert len(rwq("doctor", *NOW, "--only", "held", "-o", "json").json[0]["examples"]) == 5


def words_of(rwq: Rwq, command: str) -> list[str]:
    """The words that a shell makes of a command line."""
    printed = rwq.shell(f"printf '%s\\0' {command}").out
    return [os.fsdecode(word) for word in printed.split(b"\0")[:-1]]


# Their commands change nothing, or nothing yet.
SHOWN_ONLY = "two-holders", "stray-lease", "invalid-returns", "often-returned", "moving"


@pytest.mark.parametrize("name", BROKEN)
def test_the_command_of_a_finding_can_be_pasted(rwq: Rwq, raw: redis.Redis, name: str) -> None:
    item_id = b"-it's $(x)\n\x01"
    there = Foreign(raw, b"my jobs; $(y)")
    BROKEN[name].make(there, item_id)
    before = contents(raw)
    found = rwq("doctor", *NOW, *AROUND, "-q", "my jobs; $(y)", "-o", "jsonl").jsonl
    for finding in found:
        command = finding["command"]
        assert command.isprintable()
        if command.startswith("redis-cli"):
            continue
        _, *words = words_of(rwq, command)
        more = ["--yes"] if "--force" in words else []
        # Nobody else is at work on it.
        more += ["--grace", "0"] if words[0] in ("clean", "doctor") else []
        at = words.index("-q")
        done = rwq(*words[:at], *more, *words[at:], variables={"RWQ_QUEUE": ""})
        assert done.code in (0, 1), done.notes
        assert "error:" not in done.notes
        if finding["code"] not in SHOWN_ONLY:
            assert contents(raw) != before, command


def test_several_codes_may_be_separated_by_spaces(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"a")
    foreign.data(b"o")
    foreign.raw.lpush("jobs:queue", "g")
    only = rwq("doctor", *NOW, "--only", "ghost, orphaned", "-o", "jsonl").jsonl
    assert [finding["code"] for finding in only] == ["orphaned", "ghost"]
    both = rwq("doctor", *NOW, "--only", "ghost,orphaned", "--skip", "ghost", "-o", "jsonl")
    assert [finding["code"] for finding in both.jsonl] == ["orphaned"]
