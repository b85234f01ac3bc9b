"""A server that is not there, refuses, cannot, or goes away: exit 69, and nothing is lost."""

import json
import re
from collections.abc import Callable, Iterator

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import TIMEOUT_S, Result, Rwq, next_line
from tests.proxies import Line, answering
from tests.servers import PrivateServer


def assert_one_line(result: Result) -> None:
    assert result.notes.startswith("rwq: error: ")
    assert result.notes.count("\n") == 1


class TestUnreachable:
    def test_a_command_says_that_the_server_is_loading(self, rwq: Rwq) -> None:
        with answering(b"-LOADING Redis is loading the dataset in memory\r\n") as url:
            for line in (("add", "x"), ("ls",)):
                result = rwq(*line, "-u", url, "--patience", "0")
                as_json = rwq(*line, "-u", url, "-o", "json", "--patience", "0")
                assert (result.code, result.text) == (69, "")
                assert_one_line(result)
                assert result.notes.startswith(f"rwq: error: {url} is still loading its data")
                assert result.notes.endswith("; try again in a moment\n")
                assert json.loads(as_json.err)["code"] == "loading"


class TestPermissions:
    """An ACL user who lacks one command."""

    @pytest.fixture
    def lacking(self, server: PrivateServer, raw: redis.Redis) -> Iterator[Callable[..., str]]:
        def url(*rules: str) -> str:
            raw.execute_command("ACL", "SETUSER", "ann", "reset", "on", ">pw", "~*", "&*", *rules)
            return f"unix://ann:pw@{server.socket}"

        yield url
        raw.execute_command("ACL", "DELUSER", "ann")

    def test_optional_commands_may_be_denied(
        self, rwq: Rwq, foreign: Foreign, lacking: Callable[..., str]
    ) -> None:
        foreign.waiting(b"a")
        url = lacking("+@all", "-client", "-object", "-config", "-info", "-memory")
        assert rwq("add", "x", "--id", "b", "-u", url).code == 0
        assert rwq("ls", "-o", "ids", "-u", url).as_tuple() == (0, "a\nb\n", "")
        (record, _) = rwq("ls", "-o", "json", "-u", url).json
        assert (record["idle_seconds"], record["bytes"]) == (None, None)
        assert rwq("show", "a", "-u", url).code == 0
        assert rwq("stats", "--deep", "-u", url).code == 0
        assert rwq("lease", "-o", "data", "-u", url).text == "data of a"
        assert rwq("leases", "-o", "ids", "-u", url).text == "a\n"
        assert rwq("complete", "a", "-u", url).code == 0
        assert rwq("clean", "deep", "--grace", "0", "-u", url).code == 0


class TestConnectionLost:
    """In the middle of a batch: it is said how many were acknowledged, and those are in."""

    COUNT = 20_000

    @pytest.fixture
    def lines(self) -> bytes:
        return b"".join(b"item %06d\n" % number for number in range(self.COUNT))

    @pytest.mark.parametrize(("side", "after_bytes"), [("up", 700_003), ("down", 50)])
    def test_an_add_says_how_many_items_are_in(
        self, rwq: Rwq, lines: bytes, side: str, after_bytes: int
    ) -> None:
        # The server shall know the script already, so that the answers are of one length.
        rwq("complete", rwq("add", "x", "-o", "ids").text.strip())
        with Line(side, after_bytes):
            result = rwq("add", "--id-from", "line", "-o", "ids", stdin=lines)
        acknowledged = result.text.splitlines()
        assert result.code == 69
        assert 0 < len(acknowledged) < self.COUNT
        assert f"{len(acknowledged):,}" in result.notes
        assert "lost the connection" in result.notes
        assert result.notes.endswith("; rwq ls --tail shows what was added last\n")
        waiting = rwq("ls", "-n", "0", "-o", "ids").text.splitlines()
        # What was acknowledged is in; besides, whole batches that were on their way.
        assert waiting[: len(acknowledged)] == acknowledged
        assert waiting == lines.decode().splitlines()[: len(waiting)]
        in_doubt = re.search(r"; ([\d,]+) in doubt: ", result.notes)
        assert in_doubt is not None
        assert len(waiting) - len(acknowledged) <= int(in_doubt[1].replace(",", ""))
        deep = rwq("stats", "--deep", "-o", "json").json
        assert [deep[name] for name in ("orphaned", "ghosts", "duplicated")] == [0, 0, 0]

    def test_a_paused_stream_reconnects(self, rwq: Rwq, raw: redis.Redis) -> None:
        """As a server with a `timeout` does, or a load balancer."""
        process = rwq.start("add", "--id-from", "line", "-o", "ids")
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (b"1\n", b"2\n", b"3\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert next_line(process.stdout) == line
            raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, b"added 3\n")
        assert raw.lrange("jobs:queue", 0, -1) == [b"3", b"2", b"1"]
