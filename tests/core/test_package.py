"""The core as a package: what it offers, its errors, and that it needs nothing but redis-py."""

import ast
import re
import subprocess
import venv
from pathlib import Path

import redis

import rwq_cli.core
from rwq_cli import core
from rwq_cli.core import errors
from tests.servers import PrivateServer

MODULES = sorted(Path(rwq_cli.core.__file__).parent.rglob("*.py"))


def test_it_neither_prints_nor_exits() -> None:
    banned, uses = {"print", "input", "exit", "quit", "_exit", "sys"}, set()
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Name | ast.Attribute):
                uses.add((module, node.id if isinstance(node, ast.Name) else node.attr))
            elif isinstance(node, ast.alias):
                uses.add((module, node.name))
    assert {(module, name) for module, name in uses if name in banned} == set()


def test_every_error_is_offered_and_has_its_own_code() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.RwqError)
    ]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes) > 10
    assert {kind.__name__ for kind in kinds} <= set(dir(core))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)


PROGRAM = """
import importlib.util, sys
from rwq_cli.core import NewItem, Server, WorkQueue, connect

for missing in ("hiredis", "typer", "rich", "msgspec"):
    assert importlib.util.find_spec(missing) is None, missing
queue = WorkQueue(connect(Server(sys.argv[1])), "jobs")
assert queue.add(b"data\\xff", "1") and not queue.add("again", "1")
list(queue.add_many(NewItem(b"%d" % n, b"x" * 10_000) for n in range(2, 3000)))
list(queue.add_many((NewItem(b"u%d" % n, b"x") for n in range(3000)), unique=True))
item = queue.lease()
assert (item.item_id, item.data) == (b"1", b"data\\xff"), item
(outcome,) = queue.complete(b"1")
assert [item.item_id for item in queue.lease_many(2)] == [b"2", b"3"]
assert [queue.state(item_id).value for item_id in (b"1", b"2")] == ["gone", "leased"]
assert list(queue.light_clean(grace_s=0)) == []
assert queue.add("more", "m") and queue.lease(wait_s=1).item_id == b"4"
print(outcome.status.value, queue.lengths().waiting)
"""


def test_it_adds_leases_completes_and_cleans(server: PrivateServer, tmp_path: Path) -> None:
    venv.create(tmp_path, symlinks=True, with_pip=False)
    (packages,) = tmp_path.glob("lib/python*/site-packages")
    for package in (redis, rwq_cli):
        (packages / package.__name__).symlink_to(package.__path__[0])
    with server.client() as raw:
        raw.flushall()
    ran = subprocess.run(
        [tmp_path / "bin" / "python", "-I", "-c", PROGRAM, server.url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout == "completed 5996\n"
