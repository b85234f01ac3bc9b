"""`rwq show`: every state with its facts, what happens next, and commands that would move it on."""

import shlex

import pytest
import redis

from rwq_cli.core import State
from tests.conftest import Foreign, contents
from tests.driver import Rwq
from tests.item_cases import ITEM_CASES
from tests.servers import PrivateServer

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
    words = (state, "queue", "next", "main list", "processing list", "lease")
    assert [word for word in words if word not in text] == [], text
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


MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (UTC|[-+]\d\d:\d\d)"


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
