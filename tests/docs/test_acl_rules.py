"""The ACL rules of the page on security: each user can do what the table says, and no more."""

import re
import shlex
from collections.abc import Iterator

import pytest
import redis

from rwq_cli.exit_codes import ExitStatus
from tests.conftest import Foreign, contents, supports_no_touch
from tests.docs.pages import text_of
from tests.docs.steps import steps
from tests.driver import Result, Rwq
from tests.verbs import LINES, fill

PAGE = "docs/security.md"
# What each verb of the table is, as a command line on the queue of `set_up`: that of the registry,
# but for other options, keys and rights.
OTHERS = {
    "show": "show w1 l1 d1 b1 a1 gone",
    "ls": "ls all --deep --data",
    "stats": "stats --deep",
    "check": "check --warn abandoned=100",
    "clean deep --dry-run": "clean deep --dry-run --grace 0",
    "add --delay": "add new --delay 1m",
    "add --unchecked": "add new --unchecked",
    "lease --id": "lease --id w1",
    # What it may not do it waits for, as for a server that is lost.
    "work": "work --drain --reconnect 1s -- true",
    "complete": "complete l1",
    "complete --result": "complete l1 --result -",
    "clean deep": "clean deep --grace 0 --bury-after 1",
    "doctor --fix": "doctor --fix --grace 0",
    "mv": "mv w1 --to jobs:slow --yes",
    "undo": "undo --yes",
}


def table() -> dict[str, dict[str, bool]]:
    """Whether each user can do each verb, as the page says."""
    after = text_of(PAGE).rpartition("is allowed together.")[2]
    rows = re.findall(r"^\| (.*) \|$", after, re.M)
    users = [name.strip() for name in rows[0].split("|")][1:]
    can: dict[str, dict[str, bool]] = {}
    for row in rows[2:]:
        verbs, *cells = (cell.strip() for cell in row.split("|"))
        assert set(cells) <= {"yes", "no"}
        for verb in re.findall(r"`([^`]+)`", verbs):
            can[verb] = {user: cell == "yes" for user, cell in zip(users, cells, strict=True)}
    return can


def rules() -> dict[str, list[str]]:
    """The ACL rules of each user, as the page types them."""
    found = {}
    for step in steps(PAGE):
        if "ACL SETUSER" in step.source:
            words = shlex.split(step.source.replace("\\\n", " "))
            assert words[:3] == ["valkey-cli", "ACL", "SETUSER"]
            found[words[3]] = words[4:]
    return found


CAN = table()
RULES = rules()


def test_the_table_is_about_all_users() -> None:
    assert {user for row in CAN.values() for user in row} == set(RULES)


@pytest.fixture
def users(raw: redis.Redis) -> Iterator[dict[str, str]]:
    """The passwords of the users, who exist while the test runs."""
    # As the page says: it is left out where the server does not know it.
    unknown = set() if supports_no_touch(raw) else {"+client|no-touch"}
    for name, words in RULES.items():
        raw.execute_command("ACL", "SETUSER", name, *(w for w in words if w not in unknown))
    yield {name: next(w[1:] for w in words if w[0] == ">") for name, words in RULES.items()}
    raw.acl_deluser(*RULES)


def prepared(verb: str, rwq: Rwq, foreign: Foreign) -> bytes:
    """Set up what a verb works on; returns what it gets on stdin."""
    fill(foreign)
    foreign.delayed(b"due", 1_000)
    foreign.raw.hset(foreign.keys.returns, b"a1", "2")
    if verb == "undo":
        assert rwq("purge", "--yes").code == 0
    if verb == "import":
        exported = rwq("export").out
        foreign.raw.flushall()
        return exported
    return b"new data"


@pytest.mark.needs("acl-check")
@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("verb", CAN)
def test_who_can_run_a_verb_is_in_the_table(
    verb: str, users: dict[str, str], rwq: Rwq, foreign: Foreign
) -> None:
    words = (OTHERS.get(verb) or LINES[verb]).split()
    unlimited = rwq(*words, stdin=prepared(verb, rwq, foreign))
    outcomes: dict[str, object] = {}
    for user, password in users.items():
        stdin = prepared(verb, rwq, foreign)
        before = contents(foreign.raw)
        url = rwq.variables["RWQ_URL"].replace("unix://", f"unix://{user}:{password}@")
        result = rwq(*words, stdin=stdin, variables={"RWQ_URL": url})
        # A worker is a loop of several verbs, and a lease is one of them.
        is_unchanged = (verb, user) == ("work", "cleaner") or contents(foreign.raw) == before
        outcomes[user] = (
            ("refused", is_unchanged) if is_refused(result) else (result.code, summary(result))
        )
    done, refused = (unlimited.code, summary(unlimited)), ("refused", True)
    assert outcomes == {user: done if CAN[verb][user] else refused for user in users}


def summary(result: Result) -> str:
    """What was done, without the names of undo files, and what an item is shown without."""
    lines = re.sub(r"\S+\.jsonl\S*", "FILE", result.notes)
    return lines.replace("rwq: this user may not read results; none are shown\n", "")


def is_refused(result: Result) -> bool:
    """Whether the server denied a permission; `check` has the exit codes of monitoring."""
    if result.code == 3:
        return result.text.startswith("RWQ UNKNOWN") and "permission" in result.text
    return result.code == ExitStatus.SERVER and "denied permission" in result.notes
