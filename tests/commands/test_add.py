"""`rwq add`: where items come from, how input is cut, and what is reported."""

from pathlib import Path

import pytest
import redis

from tests.driver import Rwq


def waiting_data(raw: redis.Redis) -> list[bytes]:
    """The data of what waits, next first."""
    ids = raw.lrange("jobs:queue", 0, -1)[::-1]
    return [raw.get(b"jobs:item:" + item_id) for item_id in ids]


def test_an_item_is_its_data_and_an_entry(rwq: Rwq, raw: redis.Redis) -> None:
    assert rwq("add", "some work", "--id", "a").as_tuple() == (
        0,
        "",
        "added 1\n",
    )
    assert sorted(raw.keys()) == [b"jobs:item:a", b"jobs:queue"]
    assert raw.get("jobs:item:a") == b"some work"
    assert raw.lrange("jobs:queue", 0, -1) == [b"a"]
    assert [raw.ttl("jobs:item:a"), raw.ttl("jobs:queue")] == [-1, -1]


def test_arguments_are_items_in_order(rwq: Rwq, raw: redis.Redis) -> None:
    assert rwq("add", "one", "two words", "", "two words").code == 0
    assert waiting_data(raw) == [b"one", b"two words", b"", b"two words"]


def test_stdin_is_not_read_if_there_are_arguments(rwq: Rwq, raw: redis.Redis) -> None:
    """`while read x; do rwq add "$x"; done < file` must not lose lines."""
    script = 'while read -r x; do rwq add "$x" 2>/dev/null; done; true'
    assert rwq.shell(f"printf 'one\\ntwo\\nthree\\n' | ({script})").code == 0
    assert waiting_data(raw) == [b"one", b"two", b"three"]


class TestLines:
    @pytest.mark.parametrize(
        ("given", "items", "empty"),
        [
            (b"", [], 0),
            (b"\n", [], 1),
            (b"a", [b"a"], 0),
            (b"a\n", [b"a"], 0),
            (b"a\n\n\nb\n\n", [b"a", b"b"], 3),
            (b" a \n\t\n", [b" a ", b"\t"], 0),
            (b"a\0b\nc", [b"a\0b", b"c"], 0),
        ],
    )
    def test_each_line_is_an_item(
        self, rwq: Rwq, raw: redis.Redis, given: bytes, items: list[bytes], empty: int
    ) -> None:
        result = rwq("add", stdin=given)
        counts = {"added": len(items), "empty": empty}
        said = ", ".join(f"{word} {number}" for word, number in counts.items() if number)
        assert result.as_tuple() == (
            0,
            "",
            f"{said or 'nothing added'}\n",
        )
        assert waiting_data(raw) == items


class TestJsonl:
    @pytest.mark.parametrize(
        ("line", "data"),
        [
            (b'{"data": "text"}', b"text"),
            (b'{"data": ""}', b""),
            (b'{"data": "caf\\u00e9"}', "café".encode()),
            (b'{"data": "\\u0000"}', b"\0"),
            (b'{"data": 1}', b"1"),
            (b'{"data": 1.50}', b"1.50"),
            (b'{"data": [1.0e5, 0.10000000000000000555]}', b"[1.0e5,0.10000000000000000555]"),
            (b'{"data": null}', b"null"),
            (b'{"data": true}', b"true"),
            (b'{"data": {"b": [1, "\xc3\xa9"], "a": null}}', '{"b":[1,"é"],"a":null}'.encode()),
            (b'{"data": 12345678901234567890}', b"12345678901234567890"),
            (b'{"data": [123456789012345678901234567890]}', b"[123456789012345678901234567890]"),
            (b'{"data_b64": "//4="}', b"\xff\xfe"),
            (b'{"data": null, "data_b64": "YQ=="}', b"a"),
            (b'{"data": "x", "data_b64": null}', b"x"),
            (b'{"data": "x", "delay": null, "other": 1}', b"x"),
            (b'  {"data": "x"}  ', b"x"),
        ],
    )
    def test_data_is_text_base64_or_json(
        self, rwq: Rwq, raw: redis.Redis, line: bytes, data: bytes
    ) -> None:
        assert rwq("add", "--format", "jsonl", stdin=line + b"\n").code == 0
        assert waiting_data(raw) == [data]

    @pytest.mark.parametrize(
        ("line", "item_id"),
        [
            (b'{"data": 1, "id": "a"}', b"a"),
            (b'{"data": 1, "id": 42}', b"42"),
            (b'{"data": 1, "id_b64": "/w=="}', b"\xff"),
            (b'{"data": 1, "id": null, "id_b64": "YQ=="}', b"a"),
        ],
    )
    def test_ids_are_text_or_base64(
        self, rwq: Rwq, raw: redis.Redis, line: bytes, item_id: bytes
    ) -> None:
        assert rwq("add", "--format", "jsonl", stdin=line).code == 0
        assert raw.lrange("jobs:queue", 0, -1) == [item_id]

    def test_arguments_are_json_lines(self, rwq: Rwq, raw: redis.Redis) -> None:
        assert rwq("add", "--format", "jsonl", '{"data": "x", "id": "a"}').code == 0
        assert raw.get("jobs:item:a") == b"x"


def test_records_end_with_nul(rwq: Rwq, raw: redis.Redis) -> None:
    result = rwq("add", "--format", "nul", stdin=b"a\nb\0\0c")
    assert result.as_tuple() == (0, "", "added 2, empty 1\n")
    assert waiting_data(raw) == [b"a\nb", b"c"]


def test_the_whole_input_is_one_item(rwq: Rwq, raw: redis.Redis, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"\n\xff\0\n")
    (tmp_path / "two").write_bytes(b"")
    words = ("-f", str(tmp_path / "one"), "-f", "-", "-f", str(tmp_path / "two"))
    assert rwq("add", "--format", "raw", *words, stdin=b"a\nb\n").code == 0
    assert waiting_data(raw) == [b"\n\xff\0\n", b"a\nb\n", b""]


class TestFiles:
    def test_files_and_stdin_are_read_in_order(
        self, rwq: Rwq, raw: redis.Redis, tmp_path: Path
    ) -> None:
        (tmp_path / "one").write_bytes(b"1\n2")
        (tmp_path / "two").write_bytes(b"3\n")
        words = ("-f", str(tmp_path / "one"), "--file", "-", "-f", str(tmp_path / "two"))
        assert rwq("add", *words, stdin=b"x\ny").code == 0
        assert waiting_data(raw) == [b"1", b"2", b"x", b"y", b"3"]

    def test_a_bad_line_is_reported_with_its_file(
        self, rwq: Rwq, raw: redis.Redis, tmp_path: Path
    ) -> None:
        file = tmp_path / "items"
        file.write_bytes(b'{"data": 1}\n\nx\n')
        result = rwq("add", "--format", "jsonl", "-f", str(file))
        bad, summary = result.notes.splitlines()
        assert bad.startswith(f"rwq: {file}, line 3: not JSON: ")
        assert bad.endswith("; not added")
        assert summary == "added 1, rejected 1, empty 1"
        assert (result.code, result.text) == (3, "")
        assert raw.llen("jobs:queue") == 1

    def test_a_missing_file_adds_nothing(self, rwq: Rwq, raw: redis.Redis, tmp_path: Path) -> None:
        """A typing error in the last name must not leave half of the files added."""
        (tmp_path / "one").write_bytes(b"1\n")
        result = rwq("add", "-f", str(tmp_path / "one"), "-f", "nowhere")
        assert (result.code, result.text) == (2, "")
        assert result.notes.startswith("rwq: error: cannot read nowhere: no such file or directory")
        assert raw.keys() == []


class TestStrict:
    GIVEN = b'{"data": 1}\nbad\n{"data": 2}\nbad\n'

    def test_nothing_is_added_after_a_bad_line(self, rwq: Rwq, raw: redis.Redis) -> None:
        result = rwq("add", "--format", "jsonl", "--strict", stdin=self.GIVEN)
        bad, summary = result.notes.splitlines()
        assert bad.startswith("rwq: line 2: not JSON")
        assert summary == "added 1, rejected 1"
        assert result.code == 3
        assert waiting_data(raw) == [b"1"]

    def test_a_bad_first_line_adds_nothing(self, rwq: Rwq, raw: redis.Redis) -> None:
        result = rwq("add", "--format", "jsonl", "--strict", stdin=b"bad\n" + self.GIVEN)
        assert result.code == 1
        assert raw.keys() == []


def test_the_summary_in_json(rwq: Rwq) -> None:
    result = rwq("add", "a", "b", "-o", "json")
    assert result.as_tuple() == (
        0,
        '{"queue": "jobs", "queue_b64": null, "dry_run": false, "added": 2, "duplicates": 0, '
        '"rejected": 0, "empty": 0}\n',
        "",
    )
