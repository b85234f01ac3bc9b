"""Ages on servers whose clock was set back, which have been up for a shorter time, or keep none."""

import os
from pathlib import Path

import pytest
import redis

from rwq_cli.core.inspect.ages import LONGEST_S, believed
from tests.conftest import Foreign, StartServer
from tests.driver import Rwq

_LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


@pytest.mark.parametrize(
    ("idle_s", "uptime_s", "age_s"),
    [
        (5, 5, 5),
        (5, 2, None),
        (5, -40, None),
        (5, None, 5),
        ((1 << 24) - 5, 10**9, None),
        ((1 << 24) - 5, None, None),
        (LONGEST_S, 10**9, LONGEST_S),
        (None, 5, None),
        (redis.ResponseError("LFU"), 5, None),
    ],
)
def test_what_cannot_be_an_age_is_none(
    idle_s: object, uptime_s: int | None, age_s: int | None
) -> None:
    assert believed(idle_s, uptime_s) == age_s


@pytest.mark.skipif(not _LIBRARIES, reason="libfaketime is not installed")
@pytest.mark.skipif("RWQ_TEST_SERVER" in os.environ, reason="not every server starts with it")
def test_a_clock_that_is_set_back_makes_no_item_old(
    rwq: Rwq, start_server: StartServer, tmp_path: Path
) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(_LIBRARIES[0]))
        patch.setenv("FAKETIME_TIMESTAMP_FILE", str(clock))
        patch.setenv("FAKETIME_NO_CACHE", "1")
        patch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        server = start_server()
    on_it = ("-q", "jobs", "-u", server.url)
    with server.client() as raw:
        Foreign(raw).waiting(b"a")
        began_s = raw.time()[0]
        clock.write_text("-60")
        while raw.time()[0] >= began_s or raw.object("IDLETIME", "jobs:item:a") < LONGEST_S:
            pass
        result = rwq("rm", *on_it, "--older-than", "30d", "--yes")
        assert (result.code, raw.exists("jobs:item:a")) == (0, 1)
        assert "age the server cannot tell" in result.notes
        assert rwq("ls", *on_it, "-o", "json").json[0]["idle_seconds"] is None
        assert rwq("check", *on_it, "--critical", "age=1h").code == 3
        assert rwq("stats", *on_it, "-o", "json").json["oldest_waiting_seconds"] is None
        clock.write_text("+864000")
        while raw.time()[0] < began_s + 800_000:
            pass
        raw.set("jobs:item:a", "used now")
        clock.write_text("+0")
        while raw.time()[0] > began_s + 800_000:
            pass
        assert rwq("rm", *on_it, "--older-than", "3d", "--yes").code == 0
        assert raw.exists("jobs:item:a")


def test_what_has_no_data_lacks_no_age(rwq: Rwq, foreign: Foreign) -> None:
    foreign.raw.lpush(foreign.keys.main, b"ghost")
    assert rwq("ls", "--older-than", "1m").as_tuple() == (0, "", "")


@pytest.mark.parametrize("verb", ["ls", "export", "rm --dry-run", "bury --dry-run"])
def test_a_server_that_keeps_no_ages_says_so(
    rwq: Rwq, start_server: StartServer, verb: str
) -> None:
    server = start_server("--maxmemory-policy", "allkeys-lfu")
    with server.client() as raw:
        Foreign(raw).waiting(b"a")
    result = rwq(*verb.split(), "-u", server.url, "--older-than", "1s")
    assert result.as_tuple() == (
        2,
        "",
        "rwq: error: no age is known: by its maxmemory-policy, allkeys-lfu, the server keeps none; "
        "choose by something else; buried items alone have an age\n",
    )


def test_buried_items_are_as_old_as_they_are_buried(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"new")
    foreign.buried(b"old")
    assert rwq("ls", "buried", "--older-than", "300d", "-o", "ids").lines == ["old"]
    assert rwq("ls", "buried", "-o", "json").json[0]["idle_seconds"] > 10**7
    result = rwq("rm", "--older-than", "300d", "--yes")
    assert (result.code, "no age above 193 days is known" in result.notes) == (2, True)
    assert rwq("rm", "--state", "buried", "--older-than", "300d", "--yes").code == 0
    assert rwq("ls", "all", "-o", "ids").lines == ["new"]
