"""`rwq show`: every state with its facts, what happens next, and commands that would move it on."""

import re
import shlex

import pytest
import redis

from rwq_cli.core import State
from tests.conftest import Foreign, contents
from tests.driver import Rwq
from tests.item_cases import ITEM_CASES
from tests.servers import PrivateServer
from tests.support import snapshot

# One way for an ID to be in each state.
CASES = {case.state: case.make for case in reversed(ITEM_CASES.values())}


def data_shown(lines: list[str]) -> list[str]:
    return lines[lines.index("Data") + 1 :]


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("state", CASES)
def test_a_state_is_explained_with_commands_that_work(
    rwq: Rwq, foreign: Foreign, raw: redis.Redis, state: State
) -> None:
    CASES[state](foreign, b"a")
    result = rwq("show", "a", "-o", "json")
    record = result.json
    assert record["state"] == state
    assert result.code == (1 if state in ("gone", "stray-lease", "ghost") else 0)
    assert (record["meaning"][-1], record["next"][-1]) == (".", ".")
    text = rwq("show", "a", "-o", "table").text
    for word in (state, "queue", "next", "main list", "processing list", "lease"):
        assert word in text
    commands = record["commands"]
    # What removes an item is never the first where another moves it on.
    assert not commands or shlex.split(commands[0])[1] not in ("complete", "rm", "purge")
    for command in commands:
        raw.flushall()
        CASES[state](foreign, b"a")
        program, *words = shlex.split(command)
        if state == State.WRONG_TYPE:
            # Whose key it is, is not for rwq to say.
            assert command.endswith(" TYPE jobs:item:a")
            continue
        assert program == "rwq"
        more = ["--yes"] if "--force" in words else []
        more += ["--grace", "0"] if {"clean", "doctor"} & {*words} else []
        before = contents(raw)
        lease_left = raw.pttl("jobs:lease:a")
        assert rwq(*words, *more, variables={"RWQ_QUEUE": ""}).code == 0, command
        changed = contents(raw) != before
        assert changed or raw.pttl("jobs:lease:a") > lease_left, command


@pytest.mark.usefixtures("up_for_days")
@pytest.mark.needs("no-touch")
def test_all_of_a_waiting_item(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"z", b"a")
    foreign.unused_for(b"a", 30 * 3600 + 60)
    assert rwq("show", "a", "-o", "table").lines == snapshot(
        [
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
    )


MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (UTC|[-+]\d\d:\d\d)"


def test_times_are_relative_and_absolute(rwq: Rwq, foreign: Foreign) -> None:
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
    # A guard is nobody's lease.
    assert fact("b", "lease") == "none; guarded, no expiry"
    assert re.fullmatch(rf"ends in 4m\d+s, {MOMENT}, held by them", fact("l", "lease"))
    assert re.fullmatch(rf"in (1h|59m\d+s), {MOMENT}", fact("d", "due"))
    assert re.match(rf"rejected (just now|\d.* ago), {MOMENT}, none given", fact("r", "result"))
    assert re.search(r"  \d+d\d*h? ago  ", rwq("ls", "buried", "-o", "table").lines[-1])


def test_several_are_shown_in_the_order_given(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    result = rwq("show", "b", "gone", "a", "-o", "jsonl")
    assert [(record["id"], record["state"]) for record in result.jsonl] == [
        ("b", "waiting"),
        ("gone", "gone"),
        ("a", "waiting"),
    ]
    assert result.code == 3
    assert rwq("show", "a", "b", "-o", "table").text.count("\n\nb\n") == 1


class TestData:
    def test_json_data_is_indented_and_keeps_every_digit(self, rwq: Rwq) -> None:
        rwq("add", "--id", "a", '{"b":[1.10,{"c":"\\u001b[2J"}],"d":1e400}')
        shown = '{ "b": [ 1.10, { "c": "\\u001b[2J" } ], "d": 1e400 }'
        lines = data_shown(rwq("show", "a", "--data", "-o", "table").lines)
        assert (" ".join(map(str.strip, lines)), lines[2]) == (shown, "      1.10,")

    def test_lines_of_data_are_indented(self, rwq: Rwq) -> None:
        rwq("add", "--id", "a", "one\ntwo\x1b[2J\n\nfour")
        lines = rwq("show", "a", "--data", "-o", "table").lines
        assert data_shown(lines) == ["  one", "  two\\x1b[2J", "", "  four"]


@pytest.mark.parametrize("item_id", [b"-", b"--force", b"%s \\n\0'"])
def test_an_id_that_cannot_be_an_argument_is_piped(
    rwq: Rwq, foreign: Foreign, item_id: bytes, server: PrivateServer
) -> None:
    foreign.buried(item_id)
    (record,) = rwq("show", "-", "-o", "jsonl", stdin=item_id + b"\n").jsonl
    kick = next(command for command in record["commands"] if "kick" in command)
    assert kick.isprintable()
    done = rwq.shell(kick)
    note = "lines of stdin hold NUL; -0 reads IDs that end with it\n" if b"\0" in item_id else ""
    assert (done.code, done.notes) == (0, f"{note}kicked 1 (jobs on {server.url})\n")
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [item_id]


def test_the_result_of_a_completed_item_is_shown(rwq: Rwq, foreign: Foreign) -> None:
    fields = {"status": "rejected", "completed_ms": 1_700_000_000_000, "result": "four"}
    foreign.raw.hset("jobs:result:a", mapping=fields)  # type: ignore[arg-type]
    result = rwq("show", "a", "-o", "json")
    record = result.json
    assert (result.code, record["result"]) == (
        1,
        {"status": "rejected", "completed_ms": 1_700_000_000_000, "bytes": 4, "ttl_ms": None},
    )
    assert record["meaning"] == "The item no longer exists: it was rejected."
    assert record["commands"] == ["rwq result -q jobs a"]
    lines = rwq("show", "a", "-o", "table").lines
    assert any(line.strip() == "result  rwq result -q jobs a" for line in lines)
    assert any(line.endswith(", 4 B, no expiry") for line in lines)
