"""Read a whole queue with redis-py and do nothing with the replies.

SCAN over all keys, LRANGE over both lists and ZRANGE over both sorted sets, in pages of 1,000. This
is the least that any command costs which looks at every item.

    python raw_walk.py SOCKET QUEUE
"""

import sys
from typing import Any

import redis

PAGE_SIZE = 1000


def main() -> None:
    """Walk over the queue once."""
    socket, queue = sys.argv[1:]
    client: Any = redis.Redis(unix_socket_path=socket)
    cursor = 0
    while True:
        cursor, _ = client.execute_command("SCAN", cursor, "COUNT", PAGE_SIZE)
        if int(cursor) == 0:
            break
    for command, names in (("LRANGE", ("queue", "processing")), ("ZRANGE", ("delayed", "buried"))):
        for name in names:
            start = 0
            while client.execute_command(command, f"{queue}:{name}", start, start + PAGE_SIZE - 1):
                start += PAGE_SIZE


if __name__ == "__main__":
    main()
