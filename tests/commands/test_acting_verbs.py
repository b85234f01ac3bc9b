"""What bury, kick, release and touch have in common: leases of other sessions, and dry runs."""

import re

import pytest

from tests.conftest import Foreign, contents
from tests.driver import Rwq, configure

pytestmark = pytest.mark.usefixtures("slept_s")

# The words that end a lease, what the summary says, and what a dry run says.
ENDING = {
    "bury --reason x": ("buried", "bury"),
    "release": ("released", "release"),
    "release --delay 1h": ("delayed", "delay"),
}


@pytest.mark.parametrize("line", ENDING)
class TestLeasesOfOtherSessions:
    def test_items_leased_by_others_need_force(self, rwq: Rwq, foreign: Foreign, line: str) -> None:
        foreign.leased(b"a", ttl_ms=None)
        before = contents(foreign.raw)
        result = rwq(*line.split(), "a", "-o", "jsonl")
        (record,) = result.jsonl
        assert (record["status"], record["holder"]) == ("not-owner", "them")
        assert (result.code, result.notes) == (1, "not owner 1\n")
        assert contents(foreign.raw) == before

    def test_force_and_yes_end_them(self, rwq: Rwq, foreign: Foreign, line: str) -> None:
        foreign.leased(b"a", b"b")
        result = rwq(*line.split(), "a", "b", "--force", "--yes")
        assert result.as_tuple() == (0, "", f"{ENDING[line][0]} 2\n")
        states = {"buried": "buried", "released": "waiting", "delayed": "delayed"}
        assert rwq("ls", states[ENDING[line][0]], "-o", "ids").text == "a\nb\n"
        assert foreign.raw.exists("jobs:processing") == 0

    def test_without_a_terminal_force_needs_yes(
        self, rwq: Rwq, foreign: Foreign, line: str
    ) -> None:
        foreign.leased(b"a", ttl_ms=None)
        before = contents(foreign.raw)
        assert rwq(*line.split(), "a", "--force").as_tuple() == (
            2,
            "",
            "rwq: error: this needs confirmation, and there is no terminal to ask on: rwq will "
            f"{line.split()[0]} 1 item of jobs (1 of them leased) and end the leases of other "
            f"sessions on {rwq.variables['RWQ_URL']}; use --yes\n",
        )
        assert contents(foreign.raw) == before

    def test_a_dry_run_needs_no_confirmation(self, rwq: Rwq, foreign: Foreign, line: str) -> None:
        foreign.leased(b"a", ttl_ms=None)
        before = contents(foreign.raw)
        result = rwq(*line.split(), "a", "--force", "--dry-run", "-o", "ids")
        summary = f"dry run: would {ENDING[line][1]} 1\n"
        assert result.as_tuple() == (0, "a\n", summary)
        assert contents(foreign.raw) == before


class TestMany:
    """Items that options choose are asked about from 1,000 on, and on a protected context."""

    @pytest.mark.parametrize(
        "line", ["bury --all", "complete --all", "release --all", "kick --all"]
    )
    def test_on_a_terminal_the_queue_has_to_be_named(
        self, rwq: Rwq, foreign: Foreign, line: str
    ) -> None:
        ids = [b"%d" % number for number in range(1000)]
        foreign.data(*ids)
        if line.startswith("kick"):
            foreign.raw.zadd("jobs:buried", dict.fromkeys(ids, 1))
            for item_id in ids:
                foreign.lease(item_id, holder=b"rwq-buried:x", ttl_ms=None)
        else:
            place = "jobs:processing" if line.startswith("release") else "jobs:queue"
            foreign.raw.lpush(place, *ids)
        before = contents(foreign.raw)
        asked = b"Type the queue's name to continue: "
        code, seen = rwq.asked(*line.split(), type_in=[(asked, b"other\n")])
        said = f"rwq will {line.split()[0]} 1,000 items of jobs "
        assert (code, said in " ".join(seen.decode().split())) == (1, True)
        assert contents(foreign.raw) == before
        # Fewer, or by name, or where nobody can be asked, they are not.
        assert rwq.asked(*line.split()[:1], "-n", "999", type_in=[])[0] == 0
        assert rwq(*line.split()).code == 0

    @pytest.mark.parametrize("verb", ["bury", "complete", "release", "kick"])
    def test_on_a_protected_context_always(self, rwq: Rwq, foreign: Foreign, verb: str) -> None:
        url = rwq.variables["RWQ_URL"]
        configure(rwq.home, f'[contexts.prod]\nurl = "{url}"\nprotect = "type"\n')
        {"kick": foreign.buried, "release": foreign.abandoned}.get(verb, foreign.waiting)(b"a")
        before = contents(foreign.raw)
        result = rwq(verb, "--all")
        assert (result.code, result.notes.endswith("; use --yes=prod\n")) == (2, True)
        assert contents(foreign.raw) == before
        assert rwq(verb, "--all", "--dry-run").code == 0
        assert rwq(verb, "--all", "--yes=prod").code == 0

    def test_what_does_not_exist_is_not_asked_about(self, rwq: Rwq) -> None:
        assert rwq("release", "gone", "--force").as_tuple() == (
            1,
            "",
            "rwq: gone: no such item\nmissing 1\n",
        )


# With the statuses of: a waiting item, one leased by another session, one that is abandoned, one
# that is orphaned, one that is buried, and one that does not exist.
DRY_RUNS = {
    "bury": "buried not-owner buried buried already-buried missing",
    "kick": "not-buried not-buried not-buried not-buried kicked missing",
    "release": "already-waiting not-owner released released released missing",
    "release --delay 1h": "delayed not-owner delayed delayed delayed missing",
    "touch": "not-leased touched not-leased not-leased not-leased missing",
}


@pytest.mark.parametrize("line", DRY_RUNS)
def test_a_dry_run_prints_the_report_of_the_run(rwq: Rwq, foreign: Foreign, line: str) -> None:
    foreign.waiting(b"w")
    foreign.leased(b"l", ttl_ms=None)
    foreign.abandoned(b"a")
    foreign.data(b"o")
    foreign.buried(b"b")
    before = contents(foreign.raw)
    ids = ("w", "l", "a", "o", "b", "gone")
    words = (*line.split(), *ids, "-o", "jsonl")
    dry = rwq(*words, "--dry-run")
    assert contents(foreign.raw) == before
    real = rwq(*words)
    assert dry.jsonl == real.jsonl
    statuses = {record["id"]: record["status"] for record in real.jsonl}
    assert statuses == dict(zip(ids, DRY_RUNS[line].split(), strict=True))
    assert dry.code == real.code == 3
    # The verb alone differs: would bury 3, buried 3.
    assert dry.notes.startswith("dry run: would ")
    assert re.findall(r"\d+", dry.notes) == re.findall(r"\d+", real.notes)
