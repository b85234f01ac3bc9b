"""`rwq doctor`: what it says of a broken queue, in every format, and what its commands do."""

import base64
import os
import re
import shlex
import subprocess
from collections.abc import Sequence

import pytest
import redis

from rwq_cli.core import Code, Severity
from rwq_cli.core.repair.doctor import AUTO_FIXABLE
from rwq_cli.views.remedies import REMEDIES
from tests.conftest import Foreign, contents
from tests.driver import Rwq
from tests.item_cases import BROKEN, ITEM_CASES, STRANGE_IDS
from tests.servers import PrivateServer

NOW = ("--grace", "0")
# Of the server and the name, the same in all of these tests.
AROUND = ["--skip", "no-persistence,no-hash-tag"]


@pytest.mark.parametrize("name", ITEM_CASES)
@pytest.mark.parametrize("item_id", STRANGE_IDS[1:2])
def test_show_and_doctor_report_the_findings_of_each_state(
    rwq: Rwq, foreign: Foreign, name: str, item_id: bytes
) -> None:
    case = ITEM_CASES[name]
    case.make(foreign, item_id)
    (shown,) = (
        rwq("show", "-", "-0", "-o", "jsonl", stdin=item_id).jsonl
        if (b"\0" not in item_id)
        else rwq("show", "-", "-o", "jsonl", stdin=item_id + b"\n").jsonl
    )
    assert (shown["state"], sorted(shown["findings"])) == (case.state, sorted(case.findings))
    found = rwq("doctor", *NOW, *AROUND, "-o", "jsonl").jsonl
    assert sorted(finding["code"] for finding in found) == sorted(case.findings)
    for finding in found:
        remedy = REMEDIES[Code(finding["code"])]
        assert (finding["cause"], finding["cure"]) == (remedy.cause, remedy.cure)
        assert remedy.cause in shown["cause"]
        assert remedy.cure in shown["cure"]
        (example,) = map(base64.b64decode, finding["examples_b64"])
        assert example.endswith(item_id)
    done = rwq("doctor", "--fix", *NOW, *AROUND, "-o", "jsonl").jsonl
    for finding in done:
        left = case.findings[finding["code"]]
        assert (finding["fixed"], finding["left"]) == (0 if left else 1, 1 if left else 0)
        assert bool(finding["left_because"]) is left
    again = rwq("doctor", *NOW, *AROUND, "-o", "jsonl").jsonl
    assert [finding["code"] for finding in again] == [
        finding["code"] for finding in done if finding["left"]
    ]


def test_the_table_of_findings(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"a\xff", b"b", ttl_ms=None)
    foreign.abandoned(b"c")
    result = rwq("doctor", "--fix", *NOW, *AROUND, "-o", "table")
    assert result.code == 1
    assert result.lines == [
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
        "     command  rwq release --force -q jobs $'a\\xff'",
        " for example  a\\xff",
        "              b",
    ]
    assert result.notes == "errors 1 (held 2), warnings 1 (abandoned 1); items 3; fixed 1, left 2\n"


def test_errors_and_warnings_are_explained_and_notes_with_verbose(
    rwq: Rwq, foreign: Foreign
) -> None:
    foreign.abandoned(b"a")
    foreign.lease(b"s")
    result = rwq("doctor", *NOW, *AROUND)
    assert result.lines[2:] == [
        "warning   abandoned        1",
        "note      stray-lease      1",
        "",
        "abandoned",
        "    warning  1",
        "      cause  In processing without a lease: its worker died or gave up.",
        "       cure  A light clean returns it.",
        "    command  rwq clean light -q jobs",
        "for example  a",
    ]
    assert result.notes == "warnings 1 (abandoned 1), notes 1 (-v explains them); items 1\n"
    verbose = rwq("doctor", "-v", *NOW, *AROUND)
    assert verbose.lines[:11] == result.lines
    assert verbose.lines[12] == "stray-lease"
    last = "warnings 1 (abandoned 1), notes 1 (stray-lease 1); items 1"
    assert verbose.notes.splitlines()[-1] == last


def test_what_was_fixed_is_one_line(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"a")
    dry = rwq("doctor", "--fix", "--dry-run", *NOW, *AROUND)
    real = rwq("doctor", "--fix", *NOW, *AROUND)
    assert dry.lines[::2] == [
        "SEVERITY  FINDING    COUNT  WOULD FIX  LEFT",
        "warning   abandoned      1          1     0",
    ]
    assert real.lines[::2] == [
        "SEVERITY  FINDING    COUNT  FIXED  LEFT",
        "warning   abandoned      1      1     0",
    ]
    assert (len(dry.lines), len(real.lines)) == (3, 3)
    assert dry.notes == "dry run: warnings 1 (abandoned 1); items 1; would fix 1\n"
    assert real.notes == "warnings 1 (abandoned 1); items 1; fixed 1\n"


def test_a_finding_in_json(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"\xff")
    (finding,) = rwq("doctor", *NOW, *AROUND, "-o", "json").json
    assert finding == {
        "queue": "jobs",
        "queue_b64": None,
        "code": "abandoned",
        "severity": "warning",
        "count": 1,
        "fixed": 0,
        "left": 1,
        "examples": ["\\xff"],
        "examples_b64": ["/w=="],
        "examples_are": "ids",
        "cause": REMEDIES[Code.ABANDONED].cause,
        "cure": REMEDIES[Code.ABANDONED].cure,
        "command": "rwq clean light -q jobs",
        "left_because": None,
        "dry_run": False,
    }


def test_a_healthy_queue_has_no_findings(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w")
    summary = "no findings; items 1\n"
    healthy = (0, "Nothing is wrong with jobs: items 1\n", "")
    assert rwq("doctor", *AROUND, "-o", "table").as_tuple() == healthy
    assert rwq("doctor", "-v", *AROUND, "-o", "table").lines == [
        "Nothing is wrong with jobs: items 1"
    ]
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
        f"wrong-type\terror\t1\t0\t1\tjobs:queue\tredis-cli -s {server.socket} TYPE jobs:queue\n",
        "errors 1 (wrong-type 1); the items were not checked; left 1\n",
    )


class TestIds:
    def test_ids_are_complete_and_examples_are_five(self, rwq: Rwq, foreign: Foreign) -> None:
        ids = [b"%02d" % number for number in range(30)]
        foreign.leased(*ids, ttl_ms=None)
        result = rwq("doctor", *NOW, "--only", "held", "-o", "ids")
        assert sorted(result.out.split()) == ids
        assert len(rwq("doctor", *NOW, "--only", "held", "-o", "json").json[0]["examples"]) == 5

    def test_ids_can_be_piped_unescaped(self, rwq: Rwq, foreign: Foreign) -> None:
        ids = [b"a\nb", b"\xff", b"-"]
        foreign.leased(*ids, ttl_ms=None)
        done = rwq.shell(
            "rwq doctor --grace 0 --only held -o ids -0 | rwq release --force --yes -0 -"
        )
        assert done.notes.splitlines()[1] == "released 3"
        assert sorted(foreign.raw.lrange("jobs:queue", 0, -1)) == sorted(ids)


def words_of(command: str) -> list[str]:
    """The words that a shell makes of a command line."""
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True
    )
    return [os.fsdecode(word) for word in printed.stdout.split(b"\0")[:-1]]


@pytest.mark.parametrize("name", BROKEN)
def test_the_command_of_a_finding_can_be_pasted(rwq: Rwq, raw: redis.Redis, name: str) -> None:
    item_id = b"-it's $(x)\n\xff"
    there = Foreign(raw, b"my jobs; $(y)")
    BROKEN[name].make(there, item_id)
    before = contents(raw)
    found = rwq("doctor", *NOW, *AROUND, "-q", "my jobs; $(y)", "-o", "jsonl").jsonl
    for finding in found:
        command = finding["command"]
        assert command.isprintable()
        if command.startswith("redis-cli"):
            continue
        _, *words = words_of(command)
        more = ["--yes"] if "--force" in words else []
        # Nobody else is at work on it.
        more += ["--grace", "0"] if words[0] in ("clean", "doctor") else []
        at = words.index("-q")
        done = rwq(*words[:at], *more, *words[at:], variables={"RWQ_QUEUE": ""})
        assert done.code in (0, 1), done.notes
        assert "error:" not in done.notes
        if finding["code"] not in ("two-holders", "stray-lease", "invalid-returns", "moving"):
            assert contents(raw) != before, command


@pytest.mark.parametrize("code", Code)
def test_every_remedy_is_a_command_of_rwq_or_of_redis(rwq: Rwq, code: Code) -> None:
    remedy = REMEDIES[code]
    program, *words = shlex.split(remedy.command)
    assert program in ("rwq", "redis-cli")
    if program == "rwq":
        assert rwq(*(word for word in words if word != "ID"), "--help").code == 0
    assert re.fullmatch(r"[A-Z].*\.", remedy.cause)
    assert re.fullmatch(r"[A-Z].*\.", remedy.cure)
    assert remedy.left_because is not None or code in AUTO_FIXABLE


class TestCodes:
    def test_several_codes_may_be_separated_by_spaces(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.abandoned(b"a")
        foreign.data(b"o")
        foreign.raw.lpush("jobs:queue", "g")
        only = rwq("doctor", *NOW, "--only", "ghost, orphaned", "-o", "jsonl").jsonl
        assert [finding["code"] for finding in only] == ["orphaned", "ghost"]
        both = rwq("doctor", *NOW, "--only", "ghost,orphaned", "--skip", "ghost", "-o", "jsonl")
        assert [finding["code"] for finding in both.jsonl] == ["orphaned"]

    def test_healthy_is_claimed_only_for_the_requested_findings(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        foreign.waiting(b"w")
        for words in (("--only", "ghost"), ("--skip", "no-persistence,no-hash-tag,unlisted")):
            found = rwq("doctor", *NOW, *words)
            assert found.lines == ["jobs has none of these findings: items 1"]

    def test_an_unknown_code_is_an_error_with_the_known_ones(self, rwq: Rwq) -> None:
        result = rwq("doctor", "--only", "ghost,gohst")
        assert result.code == 2
        assert result.notes == (
            f"rwq: error: no such finding: 'gohst'; known findings: {', '.join(Code)}\n"
        )

    @pytest.mark.parametrize(
        "words", [("--only", ""), ("--only", ","), ("--only", "due", "--skip", "due,ghost")]
    )
    def test_no_findings_to_look_for_are_an_error(
        self, rwq: Rwq, foreign: Foreign, words: Sequence[str]
    ) -> None:
        foreign.abandoned(b"a")
        result = rwq("doctor", *NOW, *words)
        assert (result.code, result.text) == (2, "")
        assert result.notes == (
            f"rwq: error: --only and --skip leave no findings; known findings: {', '.join(Code)}\n"
        )

    def test_the_summary_counts_each_severity(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"h", ttl_ms=None)
        foreign.abandoned(b"a")
        foreign.lease(b"s")
        result = rwq("doctor", *NOW, *AROUND, "-o", "jsonl")
        counts = "errors 1 (held 1), warnings 1 (abandoned 1), notes 1 (stray-lease 1)"
        assert result.notes == f"{counts}; items 2\n"
        severities = [finding["severity"] for finding in result.jsonl]
        assert severities == [severity.value for severity in Severity]


class TestDryRun:
    def test_a_dry_run_reports_the_repairs_and_changes_nothing(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        for name, case in ITEM_CASES.items():
            case.make(foreign, name.encode())
        before = contents(foreign.raw)
        dry = rwq("doctor", "--fix", "--dry-run", *NOW, "-o", "jsonl")
        assert contents(foreign.raw) == before
        real = rwq("doctor", "--fix", *NOW, "-o", "jsonl")
        assert contents(foreign.raw) != before

        def numbers(findings: list[dict[str, object]]) -> list[list[object]]:
            return [
                [each[name] for name in ("code", "count", "fixed", "left")] for each in findings
            ]

        assert numbers(dry.jsonl) == numbers(real.jsonl)
        would = real.notes.replace("fixed", "would fix").replace("left", "leave")
        assert dry.notes == f"dry run: {would}"
        assert (dry.code, real.code) == (1, 1)

    def test_a_dry_run_needs_fix(self, rwq: Rwq) -> None:
        result = rwq("doctor", "--dry-run")
        assert result.as_tuple() == (
            2,
            "",
            "rwq: error: --dry-run needs --fix; without --fix, doctor changes nothing\n",
        )


def test_quiet_is_quiet_about_notes(rwq: Rwq, foreign: Foreign) -> None:
    foreign.lease(b"stray")
    assert "stray-lease" in rwq("doctor", *NOW, *AROUND).text
    assert rwq("doctor", "-Q", *NOW, *AROUND).as_tuple() == (0, "", "")
    (record,) = rwq("doctor", "-Q", *NOW, *AROUND, "-o", "jsonl").jsonl
    assert record["code"] == "stray-lease"
    foreign.abandoned(b"a")
    quiet = rwq("doctor", "-Q", *NOW, *AROUND)
    assert (quiet.code, quiet.notes) == (1, "")
    assert quiet.lines[2:4] == ["warning   abandoned      1", ""]


def test_the_summary_names_queue_and_server_of_the_command_line(
    rwq: Rwq, foreign: Foreign, server: PrivateServer
) -> None:
    foreign.waiting(b"a")
    one = rwq("doctor", *NOW, *AROUND, "-q", "jobs")
    assert one.lines == [f"Nothing is wrong with jobs: items 1 (on {server.url})"]
    foreign.abandoned(b"b")
    found = "warnings 1 (abandoned 1); items 2"
    one = rwq("doctor", *NOW, *AROUND, "-q", "jobs")
    assert one.notes == f"{found} (jobs on {server.url})\n"
    several = rwq("doctor", *NOW, *AROUND, "-q", "jobs*")
    assert several.notes == f"jobs: {found} (on {server.url})\n"
