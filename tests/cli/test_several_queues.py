"""Several `-q`, patterns and `--all-queues`: which queues they are; each record names its own."""

import pytest
import redis

from tests.conftest import Foreign, contents
from tests.driver import Rwq

LOOKING = (
    "ls",
    "leases",
    "stats",
    "wait --below 9",
    "clean light",
    "clean deep",
    # The tests of a server have all begun on it within the hour.
    "doctor --skip restarted,flushed,no-persistence",
)
ALL = ("--all-queues",)


@pytest.fixture
def mails(raw: redis.Redis) -> dict[bytes, Foreign]:
    """`mail:in` with two waiting, `mail:out` with one and a lease, `other` with one."""
    made = {name: Foreign(raw, name) for name in (b"mail:in", b"mail:out", b"other")}
    made[b"mail:in"].waiting(b"i1", b"i2")
    made[b"mail:out"].waiting(b"o1")
    made[b"mail:out"].leased(b"o2", ttl_ms=60_000)
    made[b"other"].waiting(b"x1")
    return made


@pytest.mark.usefixtures("mails")
class TestWhich:
    @pytest.mark.parametrize("command", ["stats", "stats --fast", "check"])
    @pytest.mark.parametrize(
        ("words", "names"),
        {
            "-q other -q mail:in": "other mail:in",
            "-q mail:in -q mail:in": "mail:in",
            "-q mail:*": "mail:in mail:out",
            "-q o* -q mail:*": "other mail:in mail:out",
            "-q mail:out -q mail:*": "mail:out mail:in",
            "-q mail:in -q none*": "mail:in",
            "--all-queues": "mail:in mail:out other",
        }.items(),
    )
    def test_these_queues(self, rwq: Rwq, command: str, words: str, names: str) -> None:
        result = rwq(*command.split(), *words.split(), "-o", "jsonl")
        assert [record["queue"] for record in result.jsonl] == names.split()

    def test_all_queues_wins_over_a_pattern_of_a_variable(self, rwq: Rwq) -> None:
        variables = {"RWQ_QUEUE": "mail:*"}
        assert rwq("ls", "-o", "ids", variables=variables).text.split() == ["i1", "i2", "o1"]
        every = rwq("ls", *ALL, "-o", "ids", variables=variables)
        assert every.text.split() == ["i1", "i2", "o1", "x1"]

    @pytest.mark.parametrize("line", LOOKING)
    def test_a_pattern_without_a_match_is_empty(self, rwq: Rwq, line: str) -> None:
        said = (
            "rwq: nail:*: no queue matches, or all are empty; rwq queues lists those that are not\n"
        )
        words = line.split()
        empty = rwq(*words, "-q", "nail:*", "-o", "json")
        notes = said
        if words[0] == "doctor":
            notes += f"the server: no findings (on {rwq.variables['RWQ_URL']})\n"
        assert empty.as_tuple() == (0, "[]\n", notes)
        more = rwq(*words, "-q", "nail:*", "-q", "other", "-o", "json")
        assert more.notes.startswith(said)

    @pytest.mark.needs("no-touch")
    def test_a_found_queue_with_another_type_is_left_out(self, rwq: Rwq, raw: redis.Redis) -> None:
        raw.set("mail:odd:processing", "text")
        raw.lpush("mail:odd:queue", "1")
        said = "skipped: mail:odd:processing has the wrong type\n"
        result = rwq("stats", "-q", "mail:*", "-o", "ids")
        assert result.as_tuple() == (0, "mail:in\nmail:out\n", said)
        result = rwq("leases", *ALL, "-o", "table")
        assert (result.code, result.notes) == (0, f"{said}1 shown of 1 processing in 4 queues\n")
        assert rwq("stats", "-q", "mail:odd").code == 69
        assert rwq("stats", "-q", "mail:in", "-q", "mail:odd").code == 69


def test_leases_of_all_queues_are_one_list(rwq: Rwq, mails: dict[bytes, Foreign]) -> None:
    mails[b"mail:in"].leased(b"long", ttl_ms=500_000)
    mails[b"mail:in"].leased(b"short", ttl_ms=9_000)
    mails[b"other"].abandoned(b"dead")
    order = ["dead", "short", "o2", "long"]
    records = rwq("leases", *ALL, "-o", "jsonl").jsonl
    assert [record["id"] for record in records] == order
    assert [record["queue"] for record in records] == [*("other", "mail:in", "mail:out", "mail:in")]
    assert rwq("leases", *ALL, "-n", "2", "-o", "ids").text.split() == order[:2]
    assert rwq("leases", *ALL, "-o", "table").lines[0].split()[0] == "QUEUE"


@pytest.mark.usefixtures("mails")
class TestCheck:
    def test_the_line_names_what_is_not_ok(self, rwq: Rwq) -> None:
        result = rwq("check", *ALL, "--warn", "waiting=1", "--critical", "processing=0")
        assert result.code == 2
        assert result.text.startswith(
            "RWQ CRITICAL - mail:in: 2 waiting (above 1); mail:out: 1 processing (above 0); "
            "1 of 3 queues OK | 'mail:in:waiting'=2;1;;0 "
        )
        assert "'mail:out:processing'=1;;0;0" in result.text
        assert result.text.count("|") == 1

    def test_an_unreadable_one_is_unknown_or_worse(self, rwq: Rwq, raw: redis.Redis) -> None:
        raw.set("mail:odd:processing", "text")
        raw.lpush("mail:odd:queue", "1")
        result = rwq("check", "-q", "mail:*")
        assert result.code == 3
        reason = "mail:odd: mail:odd:processing has the wrong type"
        assert result.text.startswith(f"RWQ UNKNOWN - {reason}; 2 of 3 queues OK | ")
        result = rwq("check", "-q", "mail:*", "--warn", "waiting=1")
        assert result.code == 1
        assert result.text.startswith(
            f"RWQ WARNING - {reason}; mail:in: 2 waiting (above 1); 1 of 3 queues OK"
        )


@pytest.mark.usefixtures("slept_s")
def test_each_queue_has_its_summary_of_a_clean(
    rwq: Rwq, raw: redis.Redis, mails: dict[bytes, Foreign]
) -> None:
    mails[b"mail:out"].abandoned(b"a1", b"a2")
    mails[b"other"].abandoned(b"a3")
    mails[b"other"].raw.lpush("other:queue", "ghost")
    dry = rwq("clean", "deep", *ALL, "--dry-run")
    assert dry.as_tuple() == (
        0,
        "",
        "mail:out: would return a1: abandoned\n"
        "mail:out: would return a2: abandoned\n"
        "mail:out: dry run: would return 2\n"
        "other: would return a3: abandoned\n"
        "other: would drop ghost: ghost\n"
        "other: dry run: would return 1, drop 1\n",
    )
    result = rwq("clean", "deep", *ALL)
    assert result.as_tuple() == (
        0,
        "",
        "mail:out: returned 2\nother: returned 1, dropped 1\n",
    )
    assert raw.lrange("mail:out:processing", 0, -1) == [b"o2"]
    assert raw.llen("other:processing") == 0
    assert rwq("clean", "light", *ALL).notes == "nothing to clean in 3 queues\n"
    assert rwq("clean", "light", *ALL, "-Q").notes == ""


@pytest.mark.usefixtures("mails", "slept_s")
class TestKeysOfOtherPrograms:
    """A list or sorted set may have the name of a queue's, and be none."""

    @pytest.fixture(autouse=True)
    def others(self, raw: redis.Redis) -> None:
        raw.lpush("celery:queue", "task 1", "task 2")
        raw.lpush("celery:processing", "task 3")
        raw.zadd("bull:delayed", {"7": 1, "8": 2})
        raw.zadd("bull:buried", {"9": 1})

    @pytest.mark.parametrize(
        "line", ["clean light", "clean deep --bury-after 0", "doctor --fix", "wait --timeout 0"]
    )
    def test_they_are_not_changed(self, rwq: Rwq, raw: redis.Redis, line: str) -> None:
        names = ("celery:queue", "celery:processing", "bull:delayed", "bull:buried")
        before = [raw.dump(name) for name in names]
        result = rwq(*line.split(), *ALL)
        assert [raw.dump(name) for name in names] == before
        note = "skipped: {} has no items, and may belong to another program; -q with its name "
        notes = [note.format(name) + "includes it\n" for name in ("bull", "celery")]
        assert [note for note in notes if note not in result.notes] == []

    def test_one_item_anywhere_makes_a_queue(self, rwq: Rwq, raw: redis.Redis) -> None:
        raw.set("bull:item:9", "data")
        raw.set("celery:item:task 3", "data")
        assert "skipped" not in rwq("clean", "light", *ALL).notes


def without_times(keys: dict[bytes, object]) -> dict[bytes, object]:
    """The contents of a server without the times that leases have left."""
    return {key: value for key, value in keys.items() if b":lease" not in key}


def test_import_restores_each_into_its_queue(
    rwq: Rwq, raw: redis.Redis, mails: dict[bytes, Foreign]
) -> None:
    mails[b"mail:in"].delayed(b"later", 9_999_999_999_999)
    mails[b"mail:out"].buried(b"i1")
    Foreign(mails[b"other"].raw, b"\xff").waiting(b"odd\xff")
    assert rwq("complete", "-q", "other", "done", "--result", "-", stdin=b"42").code == 1
    rwq("add", "x", "--id", "done", "-q", "other")
    assert rwq("complete", "-q", "other", "done", "--result", "-", stdin=b"42").code == 0
    before = without_times(contents(raw))
    exported = rwq("export", *ALL).out
    raw.flushdb()
    (rwq.home / "all.jsonl").write_bytes(exported)
    result = rwq("import", str(rwq.home / "all.jsonl"), "-o", "json")
    assert result.code == 0, result.notes
    assert [(each["queue"], each["queue_b64"], each["imported"]) for each in result.json] == [
        *(("mail:in", None, 3), ("mail:out", None, 3), ("other", None, 1), (None, "/w==", 1))
    ]
    assert without_times(contents(raw)) == before
    again = rwq("import", "-", stdin=exported)
    assert again.code == 0
    assert again.notes.splitlines()[0] == "mail:in: already there 3"
    assert without_times(contents(raw)) == before
