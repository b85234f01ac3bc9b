"""`--backend=fake`: fakeredis in place of a server, and what it cannot do."""

import hashlib

import fakeredis
import redis
from fakeredis._socket import FakeSocket

# What has this in its name is skipped, for this reason.
CANNOT = {
    "items/test_full_server.py": "fakeredis has no limit of memory",
    "items/test_operation.py": "its lists are long: fakeredis takes minutes",
    "test_the_list_of_a_01_cleaner_goes": "fakeredis counts no calls",
    "test_data_of_another_length_are_never_read": "fakeredis counts no calls",
    "test_a_push_onto_any_queue_wakes_it": "fakeredis has no socket to wait on",
    "test_it_is_leased_when_it_is_due_and_not_before": "fakeredis has no socket to wait on",
}
# The errors of `redis.pcall` are no texts.
_MEND_PCALL = """
local call = redis.pcall
redis.pcall = function(...)
    local reply = call(...)
    if type(reply) == 'table' and reply.err then
        reply.err = tostring(reply.err)
    end
    return reply
end
"""


def why_not(nodeid: str) -> str | None:
    """Why a test cannot run on fakeredis, or None."""
    return next((reason for part, reason in CANNOT.items() if part in nodeid), None)


def new_server() -> fakeredis.FakeServer:
    """A server of fakeredis, with the `redis.sha1hex` that it lacks."""
    # Its sockets have no timeouts.
    FakeSocket.gettimeout = FakeSocket.settimeout = lambda *_: None
    server = fakeredis.FakeServer(version=(7, 4))
    client_of(server).eval(_MEND_PCALL, 0)
    # Its interpreter, of which nothing public knows.
    runtime = server._lua_runtime
    runtime.globals().redis.sha1hex = lambda text: hashlib.sha1(text).hexdigest().encode()
    return server


def client_of(server: fakeredis.FakeServer) -> redis.Redis:
    client: redis.Redis = fakeredis.FakeRedis(server=server)
    return client
