"""`rwq add --delay`, `--at` and `delay` in JSON lines: what is put off, and until when."""

from datetime import UTC, datetime, timedelta

import pytest
import redis

from tests.conftest import contents
from tests.driver import Rwq


def due_in_s(raw: redis.Redis) -> dict[str, int]:
    """The delayed items, in order, with whole seconds until each is due."""
    now_s = raw.time()[0]
    pairs = raw.zrange("jobs:delayed", 0, -1, withscores=True)
    return {item_id.decode(): round(score / 1000 - now_s) for item_id, score in pairs}


def near(seconds: int) -> list[int]:
    """What `seconds` may have become since: the clock goes on."""
    return list(range(max(0, seconds - 60), seconds + 2))


class TestDelay:
    def test_items_from_arguments_are_delayed(self, rwq: Rwq, raw: redis.Redis) -> None:
        result = rwq("add", "--delay", "5m", "--id-from", "line", "b", "a")
        assert result.as_tuple() == (0, "", "added 2\n")
        assert raw.exists("jobs:queue") == 0
        due = due_in_s(raw)
        assert list(due) == ["b", "a"]
        assert due["b"] in near(300)
        assert raw.get("jobs:item:a") == b"a"

    @pytest.mark.parametrize("form", ["lines", "nul", "raw", "jsonl"])
    def test_records_of_any_format_are_delayed(self, rwq: Rwq, raw: redis.Redis, form: str) -> None:
        given = {"nul": b"1\0", "jsonl": b'{"data": 1}\n'}.get(form, b"1\n")
        assert rwq("add", "--delay", "1h30m", "--format", form, stdin=given).code == 0
        (seconds,) = due_in_s(raw).values()
        assert seconds in near(5400)

    @pytest.mark.parametrize("text", ["-5", "soon", "5 minutes"])
    def test_a_bad_delay_is_a_usage_error(self, rwq: Rwq, raw: redis.Redis, text: str) -> None:
        result = rwq("add", f"--delay={text}", "x")
        assert (result.code, result.text) == (2, "")
        assert result.notes.startswith(f"rwq: error: not a duration: {text!r}")
        assert raw.keys() == []


class TestJsonLines:
    @pytest.mark.parametrize(
        ("delay", "seconds"),
        [("5", 5), ("2.5e2", 250), ('"5m"', 300), ('"90"', 90), ('"1h30m"', 5400)],
    )
    def test_each_line_has_its_delay(
        self, rwq: Rwq, raw: redis.Redis, delay: str, seconds: int
    ) -> None:
        line = f'{{"data": 1, "id": "a", "delay": {delay}}}'
        for words in ((), ("--delay", "9h"), ("--at", "2150-01-01T00:00Z")):
            raw.flushall()
            assert rwq("add", "--format", "jsonl", *words, stdin=line.encode()).code == 0
            assert due_in_s(raw)["a"] in near(seconds)

    @pytest.mark.parametrize("delay", ["0", "0.0", '"0s"'])
    def test_a_delay_of_zero_overrides_the_option(
        self, rwq: Rwq, raw: redis.Redis, delay: str
    ) -> None:
        line = f'{{"data": 1, "id": "a", "delay": {delay}}}'
        assert rwq("add", "--format", "jsonl", "--delay", "5m", stdin=line.encode()).code == 0
        assert contents(raw) == {b"jobs:queue": [b"a"], b"jobs:item:a": b"1"}

    def test_lines_without_a_delay_take_the_option(self, rwq: Rwq, raw: redis.Redis) -> None:
        given = (
            b'{"data": 1, "id": "a"}\n{"data": 2, "id": "b", "delay": 60}\n'
            b'{"data": 3, "id": "c", "delay": null}\n{"data": 4, "id": "d", "delay": "1m"}\n'
        )
        result = rwq("add", "--format", "jsonl", "-o", "ids", stdin=given)
        assert result.out == b"a\nb\nc\nd\n"
        assert raw.lrange("jobs:queue", 0, -1) == [b"c", b"a"]
        assert list(due_in_s(raw)) == ["b", "d"]

    def test_a_bad_delay_rejects_its_line_only(self, rwq: Rwq, raw: redis.Redis) -> None:
        given = b'{"data": 1, "id": "a", "delay": "x"}\n{"data": 2, "id": "b", "delay": 9}\n'
        result = rwq("add", "--format", "jsonl", stdin=given)
        assert result.as_tuple() == (
            3,
            "",
            "rwq: line 1: its delay is not a duration: 'x'; not added\nadded 1, rejected 1\n",
        )
        assert list(due_in_s(raw)) == ["b"]


class TestAt:
    def test_a_time_in_unix_seconds(self, rwq: Rwq, raw: redis.Redis) -> None:
        due_ms = (raw.time()[0] + 7200) * 1000 + 250
        assert rwq("add", "--at", f"@{due_ms / 1000:.3f}", "--id", "a", "x").code == 0
        assert raw.zscore("jobs:delayed", "a") == due_ms

    def test_a_time_with_a_zone(self, rwq: Rwq, raw: redis.Redis) -> None:
        moment = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
        for item_id, text in (
            ("utc", f"{moment:%Y-%m-%dT%H:%M:%S}Z"),
            ("east", f"{moment + timedelta(hours=5, minutes=30):%Y-%m-%dT%H:%M:%S}+05:30"),
            ("west", f"{moment - timedelta(hours=8):%Y-%m-%d %H:%M:%S}-0800"),
        ):
            assert rwq("add", "--at", text, "--id", item_id, "x").code == 0
            due_ms = raw.zscore("jobs:delayed", item_id)
            assert int(due_ms) == moment.timestamp() * 1000
        assert raw.zrange("jobs:delayed", 0, -1) == [b"utc", b"east", b"west"]

    def test_a_time_of_day_is_the_next_one(self, rwq: Rwq, raw: redis.Redis) -> None:
        now = datetime.fromtimestamp(raw.time()[0])
        for item_id, minutes in (("soon", 10), ("tomorrow", -10)):
            wanted = now + timedelta(minutes=minutes)
            assert rwq("add", "--at", f"{wanted:%H:%M}", "--id", item_id, "x").code == 0
        due = due_in_s(raw)
        assert 9 * 60 - 5 <= due["soon"] <= 10 * 60
        # Not a day everywhere: the clocks may be changed this night.
        assert 22 * 3600 <= due["tomorrow"] <= 25 * 3600

    @pytest.mark.parametrize(
        "text",
        [
            *("", "soon", "8:00", "24:00", "08:60", "08", "@", "@-5", "@1e9", "@x", "5m"),
            *(
                "2026-11-22",
                "2026-02-30T08:00",
                "2026-13-01T08:00",
                "2026-11-22T08",
                "\u0660\u0668:\u0660\u0660",
            ),
            *("2026-11-22T08:00+25:00", "2026-11-22T08:00+1", "2026-11-22T08:00 UTC", "nan"),
            *("08:00+25:00", "08:00+1", "08:00 UTC", "08Z"),
        ],
    )
    def test_a_bad_time_is_a_usage_error(self, rwq: Rwq, raw: redis.Redis, text: str) -> None:
        assert rwq("add", f"--at={text}", "x").as_tuple() == (
            2,
            "",
            f"rwq: error: not a time: {text!r}; "
            "write it like 08:00, 2026-11-22T08:00 or @1795334400\n",
        )
        assert raw.keys() == []
