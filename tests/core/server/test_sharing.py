"""One connection object in many threads and processes, and redis-py clients that are given."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import redis

from rwq_cli.core import Connection, WorkQueue, connect
from rwq_cli.core.errors import InvalidArgument
from tests.servers import PrivateServer


def work(queue: WorkQueue, name: int) -> None:
    """Read one's own replies, among all that are on their way."""
    for number in range(30):
        word = b"%d-%d" % (name, number)
        assert queue.call("ECHO", word) == word
        words = [b"%b-%d" % (word, n) for n in range(20)]
        asked = (("ECHO", each) for each in words)
        assert list(queue.connection.stream(asked, reads_only=True)) == words
        assert queue.add(word, word)


def test_eight_threads_and_three_forks(connection: Connection, raw: redis.Redis) -> None:
    queue = WorkQueue(connection, "jobs")
    queue.call("PING")
    together = Barrier(9)

    def run(name: int) -> None:
        together.wait()
        work(queue, name)

    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(run, name) for name in range(8)]
        # While the threads wait; the connection that the children inherit is open.
        children = []
        for name in range(10, 13):
            if (child := os.fork()) == 0:
                status = 1
                try:
                    work(queue, name)
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        together.wait()
        for each in running:
            each.result()
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert raw.llen("jobs:queue") == 11 * 30
    assert queue.call("PING")


@pytest.mark.usefixtures("raw")
@pytest.mark.parametrize("protocol", [2, 3, None])
def test_a_client_of_redis_py_is_taken_as_it_is(
    server: PrivateServer, protocol: int | None
) -> None:
    pool = redis.BlockingConnectionPool(
        connection_class=redis.UnixDomainSocketConnection,
        path=str(server.socket),
        max_connections=1,
        **({} if protocol is None else {"protocol": protocol}),
    )
    client = redis.Redis(connection_pool=pool)
    for made in (Connection(client), connect(client)):
        queue = WorkQueue(made, "jobs")
        assert queue.add("data", "1")
        assert queue.counts(deep=True).waiting == 1
        assert queue.bury(b"1")
        assert queue.counts(deep=True).buried == 1
        assert queue.complete(b"1")
    # With no more than the one connection, which the client can still use.
    assert client.ping()


def test_a_client_that_decodes_replies_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="decodes replies") as caught:
        Connection(redis.Redis(decode_responses=True))
    assert caught.value.hint == "make it without decode_responses"
