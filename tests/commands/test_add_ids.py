"""`rwq add`: where the IDs come from, and what a duplicate is."""

import hashlib
import re

import pytest
import redis

from tests.driver import Rwq
from tests.proxies import Line


def ids(raw: redis.Redis) -> list[bytes]:
    return raw.lrange("jobs:queue", 0, -1)[::-1]


class TestUuid:
    def test_uuids_as_upstream_writes_them_are_the_default(
        self, rwq: Rwq, raw: redis.Redis
    ) -> None:
        assert rwq("add", stdin=b"x\n" * 3000).code == 0
        assert len(set(ids(raw))) == 3000
        form = re.compile(rb"[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}")
        assert [item_id for item_id in ids(raw) if not form.fullmatch(item_id)] == []


class TestSha256:
    def test_the_id_is_the_digest_of_the_data(self, rwq: Rwq, raw: redis.Redis) -> None:
        result = rwq("add", "--id-from", "sha256", stdin=b"a\nb\na\n")
        assert result.notes == "added 2, duplicates 1\n"
        assert ids(raw) == [hashlib.sha256(data).hexdigest().encode() for data in (b"a", b"b")]


class TestLine:
    def test_the_id_is_the_line(self, rwq: Rwq, raw: redis.Redis) -> None:
        rwq("add", "--id-from", "line", stdin=b"\xff\nb c\n")
        assert ids(raw) == [b"\xff", b"b c"]

    def test_an_empty_line_is_rejected(self, rwq: Rwq, raw: redis.Redis) -> None:
        result = rwq("add", "--id-from", "line", "a", "")
        assert result.as_tuple() == (
            3,
            "",
            "rwq: argument 2: empty data cannot be its own ID; not added\nadded 1, rejected 1\n",
        )
        assert ids(raw) == [b"a"]


class TestField:
    @pytest.mark.parametrize(
        ("data", "item_id"),
        [
            (b'{"user": "ann"}', b"ann"),
            (b'{"user": 42}', b"42"),
            (b'{"user": 0}', b"0"),
            (b'{"user": false}', b"false"),
            (b'{"user": {"b": 1}}', b'{"b":1}'),
        ],
    )
    def test_the_id_is_a_field_of_the_line(
        self, rwq: Rwq, raw: redis.Redis, data: bytes, item_id: bytes
    ) -> None:
        assert rwq("add", "--id-from", "field:user", stdin=data).code == 0
        assert ids(raw) == [item_id]
        assert raw.get(b"jobs:item:" + item_id) == data

    @pytest.mark.parametrize(
        "data", [b"x", b"[]", b'"user"', b"{}", b'{"user": null}', b'{"user": ""}', b"\xff"]
    )
    def test_a_missing_field_is_rejected(self, rwq: Rwq, raw: redis.Redis, data: bytes) -> None:
        result = rwq("add", "--id-from", "field:user", stdin=data + b'\n{"user": 1}\n')
        first, summary = result.notes.splitlines()
        assert first.startswith("rwq: line 1: its data ")
        assert "no field 'user'" in first
        assert first.endswith("; not added")
        assert summary == "added 1, rejected 1"
        assert result.code == 3
        assert ids(raw) == [b"1"]

    def test_the_id_is_a_field_of_the_data(self, rwq: Rwq, raw: redis.Redis) -> None:
        given = b'{"data": {"k": "a"}}\n{"data": "{\\"k\\": \\"b\\"}"}\n{"data": 1, "id": "c"}\n'
        result = rwq("add", "--format", "jsonl", "--id-from", "field:k", stdin=given)
        assert result.notes == "added 3\n"
        assert ids(raw) == [b"a", b"b", b"c"]


class TestOneId:
    @pytest.mark.parametrize("stdin", [b"data", b"data\n", b"\ndata\n"])
    def test_one_id_for_one_record_of_stdin(self, rwq: Rwq, raw: redis.Redis, stdin: bytes) -> None:
        assert rwq("add", "--id", "a", stdin=stdin).code == 0
        assert raw.get("jobs:item:a") == b"data"

    @pytest.mark.parametrize("words", [("x", "y"), ("x", "x")])
    def test_one_id_for_two_arguments_is_an_error(
        self, rwq: Rwq, raw: redis.Redis, words: tuple[str, ...]
    ) -> None:
        assert rwq("add", "--id", "a", *words).as_tuple() == (
            2,
            "",
            "rwq: error: --id names one item, but there are more; use --id-from\n",
        )
        assert raw.keys() == []


class TestDuplicates:
    def test_a_duplicate_keeps_the_first_data(self, rwq: Rwq, raw: redis.Redis) -> None:
        rwq("add", "--id", "a", "old")
        result = rwq("add", "--id", "a", "new")
        assert result.as_tuple() == (0, "", "duplicates 1\n")
        assert raw.get("jobs:item:a") == b"old"
        assert ids(raw) == [b"a"]

    def test_duplicates_within_a_batch(self, rwq: Rwq, raw: redis.Redis) -> None:
        result = rwq(
            "add",
            "--id-from",
            "line",
            stdin=b"a\na\nb\na\n",
        )
        assert result.notes == "added 2, duplicates 2\n"
        assert ids(raw) == [b"a", b"b"]


class TestReconnect:
    @pytest.mark.usefixtures("slept_s")
    @pytest.mark.parametrize("side", ["up", "down"])
    def test_it_goes_on_after_a_lost_server(self, rwq: Rwq, raw: redis.Redis, side: str) -> None:
        ids = [b"%05d" % number for number in range(5000)]
        words = ("add", "--id-from", "line", "-o", "jsonl")
        with Line() as whole:
            rwq(*words, stdin=b"\n".join(ids))
        raw.flushall()
        with Line(side, whole.passed[side] // 2):
            result = rwq(*words, "--reconnect", "1m", stdin=b"\n".join(ids))
        assert (result.code, len(result.notes.splitlines())) == (0, 2)
        assert "; trying again for 1m\n" in result.notes
        assert sorted(raw.lrange("jobs:queue", 0, -1)) == ids
        # What it may have added is a duplicate, and no line comes twice.
        assert sorted(each["id"].encode() for each in result.jsonl) == sorted(
            {each["id"].encode() for each in result.jsonl}
        )

    def test_it_gives_up_in_time(self, rwq: Rwq) -> None:
        words = ("add", "--id", "a", "x", "-u", "unix:///nowhere")
        result = rwq(*words, "--reconnect", "10ms")
        assert result.code == 69

    @pytest.mark.parametrize("words", ["x", "x --id a --unique", "x --id a -q jobs -q other"])
    def test_it_needs_ids_and_their_check(self, rwq: Rwq, words: str) -> None:
        assert rwq("add", *words.split(), "--reconnect", "1m").code == 2
