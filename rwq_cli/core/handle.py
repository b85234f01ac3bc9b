"""The queue handle: the first argument of every operation of the core."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import nullcontext
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

from rwq_cli.core.batches import BUDGET, Budget, Flush, ProgressListener, in_batches, in_doubt
from rwq_cli.core.clock import Clock, unix_ms
from rwq_cli.core.errors import InvalidArgument, text_of
from rwq_cli.core.keys import OWN_LEASE, QueueKeys, hash_tag
from rwq_cli.core.lua import items_max, script_words
from rwq_cli.core.model import OutcomeBatch
from rwq_cli.core.server.commands import REFUSED, Command, ScriptCommand

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

Batch = TypeVar("Batch", bound=Sized)
# Lua unpacks some 8,000 values at most; a script adds a few to the words of a call.
WORDS_MAX = 7000


class Queue:
    """A queue on a server, whose `name` is the prefix of its keys; of a cluster, on one slot.

    `holder` is the value of the leases that are taken through this handle; None for a random one.
    Every method that sends a command raises `ServerError` if the server is unreachable, the
    connection is lost, or the server refuses the command. So do the operations that take a handle.
    """

    def __init__(
        self,
        connection: "Connection",
        name: bytes | str,
        *,
        holder: bytes | str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = to_bytes(name, "the name of a queue")
        self.keys = QueueKeys(self.name)
        self._connect(connection)
        self.holder = (
            to_bytes(holder, "a holder") if holder is not None else OWN_LEASE + uuid4().hex.encode()
        )
        self.clock = clock or Clock()

    def _connect(self, connection: "Connection") -> None:
        self.connection = connection.root.for_queue(self.name)
        self.call, self.call_all = self.connection.call, self.connection.call_all

    def on(self, connection: "Connection") -> Self:
        """This handle, on another connection to the same server."""
        other = copy(self)
        other._connect(connection)
        return other

    def within(self, seconds: float) -> Self:
        """This handle, whose calls have a deadline; see `Deadline.within`."""
        return self.on(self.connection.root.within(seconds))

    @property
    def is_in_one_slot(self) -> bool:
        return not self.connection.is_cluster or hash_tag(self.name) is not None

    def check_one_slot(self) -> None:
        """Refuse a queue whose keys are on several nodes."""
        if self.is_in_one_slot:
            return
        tagged = b"{%b}" % self.name
        if hash_tag(tagged) is None:
            tagged = b"{q}" + self.name
        raise InvalidArgument(
            f"{text_of(self.name)} has no hash tag: on a cluster its keys are on several nodes",
            f"name the queue {text_of(tagged)}: its keys are then in one slot",
        )

    @property
    def progress(self) -> ProgressListener:
        return self.connection.progress

    def run(self, script: str, *rest: Any, dry_run: bool = False, **args: Any) -> Any:
        """Run a script of `core/lua/ops` on this queue; in a dry run, it writes nothing.

        Its arguments by name are those of its header and of its libraries'; `rest` follows them.
        """
        return self.call_all([self.script(script, *rest, dry_run=dry_run, **args)])[0]

    def script(
        self, name: str, *rest: Any, dry_run: bool = False, reads_only: bool = False, **args: Any
    ) -> Command:
        """A command that runs a script; see `run` and `ScriptCommand`."""
        if dry_run:
            # A dry run changes nothing, not even idle times.
            self.connection.set_no_touch()
        self.check_one_slot()
        words = script_words(name, rest, **args)
        if len(words) > WORDS_MAX:
            raise ValueError(f"{name} got {len(words)} words; Lua unpacks at most {WORDS_MAX}")
        keys = (*self.keys.structures, *[self.keys.absent] * self.connection.is_cluster)
        # As `prelude.lua` names them.
        head = (*self.keys.id_prefixes, self.keys.result_prefix, b"1" if dry_run else b"0")
        return ScriptCommand(name, keys, (*head, *words), reads_only=reads_only or dry_run)

    def budget(self, script: str) -> Budget:
        """What a call of a script may take."""
        return BUDGET._replace(items=items_max(script))

    def run_each(
        self, calls: Iterable[tuple[Batch, Command] | None], *, reads_only: bool = False
    ) -> Iterator[tuple[Batch, Any]]:
        """Send the `script` of each batch, as `Connection.stream` does.

        Yields each batch that is not refused with its reply. After a lost reply, those without one
        are in doubt.
        """
        sent: deque[Batch] = deque()

        def commands() -> Iterator[Command | None]:
            for call in calls:
                if call is not None:
                    sent.append(call[0])
                yield call and call[1]

        # Also if there are no calls.
        self.check_one_slot()
        replies = self.connection.stream(commands(), reads_only=reads_only)
        doubt = in_doubt(lambda: sum(map(len, sent)))
        with nullcontext() if reads_only else doubt:
            for reply in replies:
                batch = sent.popleft()
                if reply is not REFUSED:
                    yield batch, reply

    def act_each(
        self, calls: Iterable[tuple[Sequence[bytes], Command] | None]
    ) -> Iterator[OutcomeBatch]:
        """The outcomes of the script of each batch of IDs that is not refused."""
        return (OutcomeBatch.from_reply(ids, reply) for ids, reply in self.run_each(calls))

    def read_each(
        self, script: str, ids: Iterable[bytes | Flush], **args: Any
    ) -> Iterator[tuple[Sequence[bytes], Any]]:
        """The replies of a script that writes nothing for each batch of IDs within its budget, but
        for those that are refused."""
        batches = in_batches(ids, items_max=self.budget(script).items)
        calls = ((batch, self.script(script, *batch, **args)) for batch in batches)
        return self.run_each(calls, reads_only=True)

    def sibling(self, name: "bytes | str | Queue") -> "Queue":
        """The queue with this name on the same connection; a handle is that of the queue itself."""
        if isinstance(name, Queue):
            return name
        return Queue(self.connection, name, holder=self.holder, clock=self.clock)

    def now_ms(self) -> int:
        """The server's clock, unix ms."""
        return unix_ms(self.call("TIME"))


class Lazy:
    """A module of the core, imported when it is first used: start-up matters in shell loops."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(f"rwq_cli.core.{self._name}"), name)


def to_bytes(text: bytes | str, what: str = "this") -> bytes:
    """Encode text as UTF-8; a `TypeError` says that `what` is something else than bytes or str."""
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode()
    raise TypeError(f"{what} is bytes or str, not {type(text).__name__}")


def checked_ids(ids: Iterable[bytes | str | Flush]) -> Iterable[bytes | Flush]:
    """Encode the IDs of a stream. One ID, or something that is none, is a TypeError."""
    if isinstance(ids, (bytes, bytearray, str)):
        raise TypeError("give several IDs, such as a list, not one")
    # A list is checked before anything is done.
    return list(map(_id, ids)) if isinstance(ids, (list, tuple)) else map(_id, ids)


def _id(item_id: bytes | str | Flush) -> bytes | Flush:
    return item_id if isinstance(item_id, Flush) else to_bytes(item_id, "an ID")


def distinct_queues(queues: Iterable[Queue]) -> list[Queue]:
    """The queues to take items from, on one connection, each once, in their order."""
    by_name: dict[bytes, Queue] = {}
    for queue in queues:
        by_name.setdefault(queue.name, queue)
    distinct = list(by_name.values())
    if not distinct:
        raise InvalidArgument("no queue to take items from", "name one")
    root = distinct[0].connection.root
    if any(queue.connection.root is not root for queue in distinct):
        raise InvalidArgument("the queues are not on one connection", "open all of them on one")
    return distinct
