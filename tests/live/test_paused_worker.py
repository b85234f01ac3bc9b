"""A worker that stood still for longer than its lease leaves the item to whoever has it by then."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from rwq_cli.core import Connection, NewItem, Server, WorkQueue, connect
from rwq_cli.core.inspect.report import effective_leases
from tests.live.conftest import StartProcess
from tests.live.core_worker import SLOW
from tests.live.peers import core_peer, read_book
from tests.servers import PrivateServer

QUEUE = "jobs"
_TIMEOUT_S = 60.0


def _wait_until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + _TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def _is_returned(queue: WorkQueue) -> bool:
    return any(action.item_id == b"1" for action in queue.light_clean(grace_s=0))


def test_it_completes_nothing_that_it_lost_while_it_stood_still(
    live_server: PrivateServer, start_process: StartProcess, tmp_path: Path
) -> None:
    connection: Connection = connect(Server(live_server.url))
    queue = WorkQueue(connection, QUEUE, holder="another")
    list(queue.add_many([NewItem(b"1", SLOW)]))
    book = tmp_path / "book"
    worker = start_process(
        *core_peer(retries=3, death=0).command_line(
            do="chaos",
            socket=live_server.socket,
            queue=QUEUE,
            book=book,
            calm=tmp_path / "calm",
            stop=tmp_path / "stop",
            lease_s=1,
        )
    )
    (tmp_path / "calm").touch()
    _wait_until(lambda: any(entry.did == "leased" for entry in read_book(book)))
    os.kill(worker.pid, signal.SIGSTOP)
    _wait_until(lambda: _is_returned(queue))
    item = queue.lease()
    assert item is not None
    assert item.returns == 1

    os.kill(worker.pid, signal.SIGCONT)
    _wait_until(lambda: any(entry.did == "refused" for entry in read_book(book)))
    assert [entry.did for entry in read_book(book)] == ["leased", "intends", "refused"]
    (lease,) = effective_leases(queue, [b"1"])
    assert lease is not None
    assert lease.holder == b"another"
    (outcome,) = queue.complete_many([b"1"], owner=b"another")
    assert outcome.status == "completed"
    (tmp_path / "stop").touch()
    assert worker.wait(_TIMEOUT_S) == 0
    connection.close()
