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

PAGE = "docs/security.md"
# What each verb of the table is, as a command line on the queue of `set_up`.
LINES = {
    "leases": "leases",
    "show": "show waiting leased delayed buried abandoned gone",
    "ls": "ls all --deep --data",
    "stats": "stats --deep",
    "check": "check --warn abandoned=100",
    "export": "export",
    "doctor": "doctor --grace 0",
    "clean deep --dry-run": "clean deep --dry-run --grace 0",
    "wait": "wait --below 100",
    "result": "result done",
    "add": "add new",
    "add --delay": "add new --delay 1m",
    "add --unchecked": "add new --unchecked",
    "lease": "lease",
    "lease --id": "lease --id waiting",
    "touch": "touch leased",
    "release": "release leased --force --yes",
    "bury": "bury waiting",
    "kick": "kick buried",
    # What it may not do it waits for, as for a server that is lost.
    "work": "work --drain --reconnect 1s -- true",
    "complete": "complete leased",
    "complete --result": "complete leased --result -",
    "rm": "rm waiting --yes",
    "clean light": "clean light --grace 0",
    "clean deep": "clean deep --grace 0 --bury-after 1",
    "doctor --fix": "doctor --fix --grace 0",
    "edit": "edit waiting --yes -f -",
    "mv": "mv waiting --to jobs:slow --yes",
    "purge": "purge --yes",
    "undo": "undo --yes",
    "import": "import -",
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


def test_the_table_is_about_all_verbs_and_all_users() -> None:
    assert list(CAN) == list(LINES)
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


def set_up(foreign: Foreign) -> None:
    """A queue with an item in each state, one that came back often, a ghost, and a result."""
    keys = foreign.keys
    foreign.raw.flushall()
    foreign.waiting(b"waiting", b"other")
    foreign.leased(b"leased")
    foreign.abandoned(b"abandoned", b"again")
    foreign.delayed(b"delayed", 4_000_000_000_000)
    foreign.delayed(b"due", 1_000)
    foreign.buried(b"buried")
    foreign.data(b"orphaned")
    foreign.raw.lpush(keys.main, b"ghost")
    foreign.raw.hset(keys.returns, b"again", "2")
    foreign.raw.hset(keys.result(b"done"), mapping={"status": "completed", "completed_ms": 1})
    Foreign(foreign.raw, b"mail").waiting(b"1")


def prepared(verb: str, rwq: Rwq, foreign: Foreign) -> bytes:
    """Set up what a verb works on; returns what it gets on stdin."""
    set_up(foreign)
    if verb == "undo":
        assert rwq("purge", "--yes").code == 0
    if verb == "import":
        exported = rwq("export").out
        foreign.raw.flushall()
        return exported
    return b"new data"


@pytest.mark.needs("acl-check")
@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("verb", LINES)
def test_who_can_run_a_verb_is_in_the_table(
    verb: str, users: dict[str, str], rwq: Rwq, foreign: Foreign
) -> None:
    words = LINES[verb].split()
    unlimited = rwq(*words, stdin=prepared(verb, rwq, foreign))
    for user, password in users.items():
        stdin = prepared(verb, rwq, foreign)
        before = contents(foreign.raw)
        url = rwq.variables["RWQ_URL"].replace("unix://", f"unix://{user}:{password}@")
        result = rwq(*words, stdin=stdin, variables={"RWQ_URL": url})
        if CAN[verb][user]:
            assert (result.code, summary(result)) == (unlimited.code, summary(unlimited)), user
            continue
        assert is_refused(result), (user, result.as_tuple())
        # A worker is a loop of several verbs, and a lease is one of them.
        if (verb, user) != ("work", "cleaner"):
            assert contents(foreign.raw) == before, user


def summary(result: Result) -> str:
    """What was done, without the names of undo files, and what an item is shown without."""
    lines = re.sub(r"\S+\.jsonl\S*", "FILE", result.notes)
    return lines.replace("rwq: this user may not read results; none are shown\n", "")


def is_refused(result: Result) -> bool:
    """Whether the server denied a permission; `check` has the exit codes of monitoring."""
    if result.code == 3:
        return result.text.startswith("RWQ UNKNOWN") and "permission" in result.text
    return result.code == ExitStatus.SERVER and "denied permission" in result.notes
