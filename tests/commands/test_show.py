"""`rwq show`: every state with its facts, what happens next, and commands that would move it on."""

import re
import shlex
import threading
from collections.abc import Callable

import pytest
import redis

from rwq_cli.core import State
from tests.conftest import Foreign, contents
from tests.driver import Rwq
from tests.servers import PrivateServer

FAR_MS = 9_999_999_999_999


def _duplicate(there: Foreign) -> None:
    there.waiting(b"a")
    there.raw.lpush(there.keys.main, b"a")


def _hash(there: Foreign) -> None:
    there.raw.hset(there.keys.item(b"a"), "x", "y")


MAKERS: dict[str, Callable[[Foreign], object]] = {
    "waiting": lambda there: there.waiting(b"z", b"a"),
    "leased": lambda there: there.leased(b"a"),
    "held": lambda there: there.leased(b"a", ttl_ms=None),
    "abandoned": lambda there: there.abandoned(b"a"),
    "orphaned": lambda there: there.data(b"a"),
    "unlisted": lambda there: (there.data(b"a"), there.lease(b"a")),
    "delayed": lambda there: there.delayed(b"a", FAR_MS),
    "due": lambda there: there.delayed(b"a", 1),
    "buried": lambda there: there.buried(b"a", b"it broke"),
    "duplicated": _duplicate,
    "ghost": lambda there: there.raw.lpush(there.keys.main, b"a"),
    "stray-lease": lambda there: there.lease(b"a"),
    "gone": lambda _there: None,
    "wrong-type": _hash,
}


def test_every_state_is_tested() -> None:
    assert set(MAKERS) == {state.value for state in State}


@pytest.mark.parametrize("state", MAKERS)
class TestStates:
    def test_the_state_is_shown(self, rwq: Rwq, foreign: Foreign, state: str) -> None:
        MAKERS[state](foreign)
        result = rwq("show", "a", "-o", "json")
        assert result.json["state"] == state
        assert result.code == (1 if state in ("gone", "stray-lease", "ghost") else 0)

    def test_the_state_is_explained(self, rwq: Rwq, foreign: Foreign, state: str) -> None:
        MAKERS[state](foreign)
        record = rwq("show", "a", "-o", "json").json
        assert record["meaning"].endswith(".")
        assert record["next"].endswith(".")
        text = rwq("show", "a", "-o", "table").text
        for word in (state, "queue", "next", "main list", "processing list", "lease"):
            assert word in text

    @pytest.mark.usefixtures("slept_s")
    def test_the_suggested_commands_work(
        self, rwq: Rwq, foreign: Foreign, raw: redis.Redis, state: str
    ) -> None:
        MAKERS[state](foreign)
        for command in rwq("show", "a", "-o", "json").json["commands"]:
            raw.flushall()
            MAKERS[state](foreign)
            program, *words = shlex.split(command)
            if state == "wrong-type":
                # Whose key it is, is not for rwq to say.
                assert command.endswith(" TYPE jobs:item:a")
                continue
            assert program == "rwq"
            more = ["--yes"] if "--force" in words else []
            more += ["--grace", "0"] if {"clean", "doctor"} & {*words} else []
            before = contents(raw)
            lease_left = raw.pttl("jobs:lease:a")
            result = rwq(*words, *more, variables={"RWQ_QUEUE": ""})
            assert result.code == 0, command
            changed = contents(raw) != before
            assert changed or raw.pttl("jobs:lease:a") > lease_left, command


def test_a_cure_that_is_what_happens_next_is_shown_once(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"a")
    record = rwq("show", "a", "-o", "json").json
    assert record["next"] == record["cure"] == "A light clean returns it."
    assert rwq("show", "a", "-o", "table").text.count("A light clean returns it.") == 1
    foreign.leased(b"h", ttl_ms=None)
    assert "    cure  Release the item, or give its lease an expiry." in (
        rwq("show", "h", "-o", "table").lines
    )


@pytest.mark.needs("no-touch")
def test_all_of_a_waiting_item(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"z", b"a")
    foreign.unused_for(b"a", 30 * 3600 + 60)
    assert rwq("show", "a", "-o", "table").lines == [
        "a",
        "   queue  jobs",
        "   state  waiting",
        "          It waits to be leased.",
        "    next  It is leased after the item ahead of it.",
        "commands  rwq release --front -q jobs a",
        "          rwq complete -q jobs a",
        "",
        "Facts",
        "           data  9 B, last used 1d6h ago",
        "      main list  yes, 1 ahead of it",
        "processing list  no",
        "          lease  none",
        "",
        "Data",
        "  data of a",
    ]


MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (UTC|[-+]\d\d:\d\d)"


def test_times_are_relative_and_absolute_with_their_zone(rwq: Rwq, foreign: Foreign) -> None:
    foreign.buried(b"b")
    foreign.leased(b"l", holder=b"them", ttl_ms=250_000)
    rwq("add", "--delay", "1h", "--id", "d", "x")
    rwq("add", "--id", "r", "x")
    rwq("complete", "r", "--rejected")

    def fact(item_id: str, name: str) -> str:
        lines = [line.strip() for line in rwq("show", item_id).lines]
        *_, found = [line for line in lines if line.startswith(f"{name}  ")]
        return found.removeprefix(f"{name}  ")

    assert re.fullmatch(rf"\d+d\d*h? ago, {MOMENT}", fact("b", "buried"))
    assert re.fullmatch(rf"ends in 4m\d+s, {MOMENT}, held by them", fact("l", "lease"))
    assert re.fullmatch(rf"in (1h|59m\d+s), {MOMENT}", fact("d", "due"))
    assert re.match(rf"rejected (just now|\d.* ago), {MOMENT}, none given", fact("r", "result"))
    assert re.search(r"  \d+d\d*h? ago  ", rwq("ls", "buried", "-o", "table").lines[-1])


def test_a_buried_item_has_its_time_and_reason(rwq: Rwq, foreign: Foreign) -> None:
    foreign.buried(b"a", b"it broke")
    record = rwq("show", "a", "-o", "json").json
    assert record["reason"] == "it broke"
    assert record["buried_ms"] == 1_700_000_000_000
    text = rwq("show", "a", "-o", "table").text
    assert "  reason  it broke\n" in text
    # A guard is nobody's lease.
    assert "  lease  none; guarded, no expiry\n" in text


class TestSeveral:
    def test_items_are_shown_in_the_order_given(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b")
        result = rwq("show", "b", "gone", "a", "-o", "jsonl")
        assert [(record["id"], record["state"]) for record in result.jsonl] == [
            ("b", "waiting"),
            ("gone", "gone"),
            ("a", "waiting"),
        ]
        assert result.code == 3

    def test_ids_are_read_from_stdin(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b")
        result = rwq("show", "-", "-o", "json", stdin=b"a\nb\n")
        assert [record["id"] for record in result.json] == ["a", "b"]
        assert rwq("show", "-", "-o", "json", stdin=b"a\n").json[0]["id"] == "a"

    def test_items_are_separated_by_empty_lines(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b")
        text = rwq("show", "a", "b", "-o", "table").text
        assert text.count("\n\nb\n") == 1


class TestData:
    @pytest.mark.parametrize("data", [b"", b"\n", b"a\n", bytes(range(256)), b"x" * 300_000])
    def test_data_is_printed_unchanged(self, rwq: Rwq, raw: redis.Redis, data: bytes) -> None:
        raw.set("jobs:item:a", data)
        raw.lpush("jobs:queue", "a")
        assert rwq.process("show", "a", "-o", "data").out == data

    def test_missing_data_is_a_note(self, rwq: Rwq) -> None:
        """`rwq show ID -o data > file` with a mistyped ID must not fail without a word."""
        result = rwq("show", "gone", "-o", "data")
        assert (result.code, result.text) == (1, "")
        assert "gone" in result.notes

    @pytest.mark.needs("no-touch")
    def test_the_preview_ends_with_a_whole_character(self, rwq: Rwq, raw: redis.Redis) -> None:
        raw.set("jobs:item:a", "x" * 198 + "👍🏽" * 10)
        raw.lpush("jobs:queue", "a")
        text = rwq("show", "a", "-o", "table", variables={"COLUMNS": "300"}).text
        assert f"{'x' * 198} …" in text

    @pytest.mark.needs("no-touch")
    def test_data_shows_more_than_the_preview(self, rwq: Rwq, raw: redis.Redis) -> None:
        raw.set("jobs:item:a", "x" * 500)
        raw.lpush("jobs:queue", "a")
        record = rwq("show", "a", "-o", "json").json
        assert (record["bytes"], record["data"], record["preview"]) == (500, None, "x" * 200)
        assert rwq("show", "a", "--data", "-o", "json").json["data"] == "x" * 500

    def test_json_data_is_indented(self, rwq: Rwq) -> None:
        rwq("add", "--id", "a", '{"b":[1,{"c":"\\u001b[2J"}],"d":"é"}')
        lines = rwq("show", "a", "--data", "-o", "table").lines
        assert lines[lines.index("Data") + 1 :] == [
            "  {",
            '    "b": [',
            "      1,",
            "      {",
            '        "c": "\\u001b[2J"',
            "      }",
            "    ],",
            '    "d": "é"',
            "  }",
        ]

    def test_large_numbers_keep_their_digits(self, rwq: Rwq) -> None:
        rwq("add", "--id", "a", '{"n": 12345678901234567890.123456789, "m": 1e400, "k": 1.10}')
        text = rwq("show", "a", "--data", "-o", "table").text
        assert "12345678901234567890.123456789" in text
        assert "1e400" in text

    def test_lines_of_data_are_indented(self, rwq: Rwq) -> None:
        rwq("add", "--id", "a", "one\ntwo\x1b[2J\n\nfour")
        lines = rwq("show", "a", "--data", "-o", "table").lines
        assert lines[lines.index("Data") + 1 :] == ["  one", "  two\\x1b[2J", "", "  four"]


def test_each_key_of_another_type_is_shown(
    rwq: Rwq, raw: redis.Redis, server: PrivateServer
) -> None:
    raw.hset(b"my jobs:item:it's \xff", "field", "value")
    raw.lpush(b"my jobs:leased_by_session:it's \xff", "x")
    words = ("show", "-", "-0", "-q", "my jobs", "-o", "jsonl")
    (record,) = rwq(*words, stdin=b"it's \xff").jsonl
    assert sorted(record["commands"]) == [
        f"redis-cli -s {server.socket} TYPE $'my jobs:item:it\\'s \\xff'",
        f"redis-cli -s {server.socket} TYPE $'my jobs:leased_by_session:it\\'s \\xff'",
    ]


def test_suggested_commands_are_quoted(rwq: Rwq, raw: redis.Redis) -> None:
    """They can be pasted, whatever the names are."""
    queue, item_id = "my jobs; rm -rf", b"it's $(x) `y`\n\x1b[2J \xff"
    there = Foreign(raw, queue.encode())
    there.buried(item_id)
    words = ("show", "-", "-0", "-o", "jsonl", "-q", queue)
    (record,) = rwq(*words, stdin=item_id).jsonl
    kick = next(command for command in record["commands"] if "kick" in command)
    assert kick.isprintable()
    assert rwq.shell(kick).code == 0
    assert raw.lrange(there.keys.main, 0, -1) == [item_id]


def test_an_id_can_begin_with_a_dash(rwq: Rwq, foreign: Foreign) -> None:
    foreign.buried(b"--force")
    record = rwq("show", "-o", "json", "--", "--force").json
    kick = next(command for command in record["commands"] if "kick" in command)
    assert rwq.shell(kick).code == 0


@pytest.mark.parametrize("item_id", [b"-", b"a\0b", b"%s \\n\0'"])
def test_an_id_that_cannot_be_an_argument_is_piped(
    rwq: Rwq, foreign: Foreign, item_id: bytes, server: PrivateServer
) -> None:
    foreign.buried(item_id)
    (record,) = rwq("show", "-", "-o", "jsonl", stdin=item_id + b"\n").jsonl
    kick = next(command for command in record["commands"] if "kick" in command)
    assert kick.isprintable()
    done = rwq.shell(kick)
    assert (done.code, done.notes) == (0, f"kicked 1 (jobs on {server.url})\n")
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [item_id]


class TestWhen:
    @pytest.mark.parametrize("state", ["leased", "unlisted", "stray-lease"])
    def test_the_end_of_a_lease_is_shown(self, rwq: Rwq, foreign: Foreign, state: str) -> None:
        MAKERS[state](foreign)
        record = rwq("show", "a", "-o", "json").json
        assert 30 < record["next_in_seconds"] <= 60
        assert re.search(r"in ([345]\ds|1m)", record["next"])

    def test_the_due_time_is_shown(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.delayed(b"a", foreign.raw.time()[0] * 1000 + 3_700_000)
        record = rwq("show", "a", "-o", "json").json
        assert 3600 < record["next_in_seconds"] <= 3700
        assert record["next"].startswith("It is due in 1h1m")

    def test_the_turn_of_a_waiting_item_is_estimated(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(*(b"%d" % number for number in range(5000)))
        ended = threading.Event()

        def lease_on() -> None:
            while not ended.wait(0.01):
                foreign.raw.rpop("jobs:queue", 2)

        worker = threading.Thread(target=lease_on)
        worker.start()
        record = rwq("show", "4999", "--eta", "300ms", "-o", "json").json
        ended.set()
        worker.join()
        rate = record["places_per_second"]
        assert 0 < rate <= 200 * 1.1
        # What was ahead of it, less what left while it was watched.
        left = record["next_in_seconds"] * rate
        assert left == pytest.approx(record["position"] - 0.3 * rate, rel=0.05)
        assert re.fullmatch(
            r"It is leased after the 4,9\d\d items ahead of it, in about \S+ at the present rate\.",
            record["next"],
        )

    def test_the_turn_of_an_item_that_does_not_move_is_unknown(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        foreign.waiting(b"z", b"a")
        record = rwq("show", "a", "--eta", "10ms", "-o", "json").json
        assert (record["next_in_seconds"], record["places_per_second"]) == (None, 0.0)
        assert record["next"] == (
            "It is leased after the item ahead of it; "
            "it did not move up while the queue was watched."
        )


class TestLocations:
    def test_locations_in_both_lists_are_shown(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"z", b"a")
        foreign.leased(b"y", b"x", b"a")
        record = rwq("show", "a", "-o", "json").json
        assert (record["position"], record["facts"]["main_places"]) == (0, [0, 2])
        assert record["facts"]["processing_places"] == [2]
        assert record["facts"]["data_key"] == "jobs:item:a"
        assert "yes, 2 older than it" in rwq("show", "a", "-o", "table").text

    def test_lease_keys_are_shown_with_their_values(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a", generations="new", holder=b"one")
        foreign.lease(b"a", generations="old", holder=b"other", ttl_ms=None)
        record = rwq("show", "a", "-o", "json").json
        new, old = record["facts"]["leases"]
        assert (new["key"], new["holder"]) == ("jobs:lease:a", "one")
        assert 30_000 < new["ttl_ms"] <= 60_000
        assert old == {"key": "jobs:leased_by_session:a", "holder": "other", "ttl_ms": None}
        text = rwq("show", "a", "-o", "table").text
        assert "jobs:leased_by_session:a: no expiry, held by other" in text

    def test_a_lease_that_cannot_be_read(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a", b"b")
        foreign.raw.rpush("jobs:lease:a", "x")
        foreign.raw.set("jobs:lease:b", "")
        assert "  lease  unknown: jobs:lease:a is a list\n" in rwq("show", "a", "-o", "table").text
        text = rwq("show", "b", "-o", "table").text
        assert "  lease  no expiry, held by an unknown holder\n" in text


@pytest.mark.parametrize(("count", "said"), [(1, "once"), (3, "3 times"), (1234, "1,234 times")])
def test_the_number_of_returns_is_shown(rwq: Rwq, foreign: Foreign, count: int, said: str) -> None:
    foreign.waiting(b"w1")
    assert "brought it back" not in rwq("show", "w1", "-o", "table").text
    foreign.raw.hset(foreign.keys.returns, "w1", count)
    assert f"{said}, by cleans or after failed attempts\n" in rwq("show", "w1", "-o", "table").text
    assert rwq("show", "w1", "-o", "json").json["returns"] == count
    assert rwq("ls", "-o", "json").json[0]["returns"] == count


class TestResults:
    def keep(self, foreign: Foreign, item_id: str) -> None:
        fields = {"status": "rejected", "completed_ms": 1_700_000_000_000, "result": "four"}
        foreign.raw.hset(f"jobs:result:{item_id}", mapping=fields)  # type: ignore[arg-type]

    def test_the_result_of_a_completed_item_is_shown(self, rwq: Rwq, foreign: Foreign) -> None:
        self.keep(foreign, "a")
        result = rwq("show", "a", "-o", "json")
        assert result.code == 1
        record = result.json
        assert record["result"] == {
            "status": "rejected",
            "completed_ms": 1_700_000_000_000,
            "bytes": 4,
            "ttl_ms": None,
        }
        assert record["meaning"] == "The item no longer exists: it was rejected."
        assert record["commands"] == ["rwq result -q jobs a"]
        lines = rwq("show", "a", "-o", "table").lines
        assert any(line.strip() == "result  rwq result -q jobs a" for line in lines)
        assert any(line.endswith(", 4 B, no expiry") for line in lines)

    def test_the_result_of_an_earlier_item_is_shown(self, rwq: Rwq, foreign: Foreign) -> None:
        self.keep(foreign, "a")
        foreign.waiting(b"a")
        result = rwq("show", "a", "-o", "json")
        assert (result.code, result.json["result"]["status"]) == (0, "rejected")
        assert "rwq result -q jobs a" not in result.json["commands"]
        shown = " ".join(rwq("show", "a", "-o", "table").text.split())
        assert "4 B, no expiry, of an earlier item with this ID" in shown

    def test_no_result_is_null(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        assert [r["result"] for r in rwq("show", "a", "b", "-o", "json").json] == [None, None]


@pytest.mark.parametrize("kind", ["string", "hash"])
def test_other_keys_in_the_place_of_a_result_are_shown(
    rwq: Rwq, foreign: Foreign, kind: str
) -> None:
    foreign.waiting(b"w")
    if kind == "string":
        foreign.raw.set("jobs:result:w", "x")
    else:
        foreign.raw.hset("jobs:result:w", "x", "y")
    before = contents(foreign.raw)
    assert rwq("complete", "w", "--rejected").code == 1
    record = rwq("show", "w", "-o", "json").json
    assert (record["state"], record["result"], record["findings"]) == (
        "waiting",
        None,
        ["wrong-type"],
    )
    assert record["facts"]["wrong_types"] == [{"key": "jobs:result:w", "type": kind}]
    assert record["commands"][-1].endswith(" TYPE jobs:result:w")
    text = rwq("show", "w", "-o", "table").text
    assert f"jobs:result:w  is a {kind}" in text
    assert rwq("doctor", "--only", "wrong-type").code == 1
    assert contents(foreign.raw) == before


def test_the_clean_for_a_ghost_drops_it(rwq: Rwq, foreign: Foreign) -> None:
    foreign.buried(b"buried")
    foreign.abandoned(b"processing")
    foreign.raw.delete(foreign.keys.item(b"buried"), foreign.keys.item(b"processing"))
    for item_id, clean in (("processing", "clean light"), ("buried", "clean deep")):
        (command,) = rwq("show", item_id, "-o", "json").json["commands"]
        assert command.startswith(f"rwq {clean}")
        rwq(*clean.split(), "--grace", "0")
        assert rwq("show", item_id, "-o", "json").json["state"] != "ghost"


def test_the_command_for_an_endless_stray_lease_ends_it(rwq: Rwq, foreign: Foreign) -> None:
    foreign.lease(b"stray", ttl_ms=None)
    (command,) = rwq("show", "stray", "-o", "json").json["commands"]
    assert command == "rwq doctor --fix -q jobs"
    rwq("doctor", "--fix", "--grace", "0")
    assert rwq("show", "stray", "-o", "json").json["state"] == "gone"
