"""All traffic with the server: a few ways to send commands, one place that translates errors.

The core speaks in raw commands (`("LRANGE", key, 0, 9)`) and raw replies, so that what goes over
the wire can be read where it is decided.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import redis
from hiredis import pack_command
from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.lua import Script, load_script
from rwq_cli.core.progress import ProgressListener

Command = Sequence[Any]

# One call in the server's hands and one in its socket keep it busy.
_SENT_AHEAD = 2


class CancelToken:
    """How whoever is in charge asks work that sends ahead to end at its next safe point.

    Attributes:
        asked: Set by them: send nothing more, wait for what was sent, and raise KeyboardInterrupt.
        is_polled: Whether the work would notice. While it waits for its source it would not.
    """

    def __init__(self) -> None:
        self.asked = False
        self.is_polled = False


class Connection:
    """A connection to one server.

    Args:
        client: A redis-py client with `decode_responses` off. Its retries should be off too: a
            command that is sent again after a lost reply runs twice.
        name: What to call the server in messages; must hold no password.

    Attributes:
        meter: Is told how long operations go.
        stop: Asks `run_each` and `transact_each` to end, so that nobody is in doubt of a call.
    """

    def __init__(self, client: redis.Redis, name: str = "the server") -> None:
        # redis-py types what it calls, not what it is called with.
        self._client: Any = client
        self.name = name
        self.progress = ProgressListener()
        self.stop = CancelToken()
        self._knows_no_touch = True

    def call(self, *command: Any) -> Any:
        """Send one command.

        Raises:
            ServerError: Its subclass says why the server did not do it.
        """
        with self._translated(command[1] if len(command) > 1 else None):
            return self._client.execute_command(*command)

    def call_all(
        self, commands: Iterable[Command], *, atomic: bool = False, return_errors: bool = False
    ) -> list[Any]:
        """Send commands in one round trip.

        Args:
            commands: The commands, each a sequence of the command's words.
            atomic: In MULTI and EXEC, so that they see one instant.
            return_errors: Return a server's error reply in its place instead of raising it.

        Raises:
            ServerError: Any of them failed, and `return_errors` is off; or the connection did.

        Returns:
            Their replies, in order; none for no commands.
        """
        given = list(commands)
        if not given:
            return []
        try:
            return self._pipelined(given, atomic, return_errors)
        except errors.OutOfMemory:
            # Redis before 7.2 queues nothing while it has no memory, not even reads. What we ask in
            # a transaction are reads, which it answers one by one.
            if not atomic:
                raise
            return self._pipelined(given, False, return_errors)

    def _pipelined(
        self, commands: Sequence[Command], atomic: bool, return_errors: bool
    ) -> list[Any]:
        pipeline = self._client.pipeline(transaction=atomic)
        for command in commands:
            pipeline.execute_command(*command)
        with self._translated():
            replies: list[Any] = pipeline.execute(raise_on_error=not return_errors)
        return replies

    def run(self, script_name: str, keys: Sequence[bytes], args: Sequence[Any]) -> Any:
        """Run one of our scripts, sending its text only where the server does not have it.

        Args:
            script_name: The file's name in `core/scripts`, without `.lua`.
            keys: The KEYS of the script.
            args: The ARGV of the script.

        Raises:
            ServerError: The server refused it, or was lost.
        """
        script: Script = load_script(script_name)
        with self._translated():
            try:
                return self._client.execute_command("EVALSHA", script.sha1, len(keys), *keys, *args)
            except rx.NoScriptError:
                return self._client.execute_command("EVAL", script.text, len(keys), *keys, *args)

    def run_each(
        self, script_name: str, keys: Sequence[bytes], calls: Iterable[Sequence[Any] | None]
    ) -> Iterator[Any]:
        """Run a script once for each list of arguments, sending ahead of the replies.

        A call is made and sent while the server works on the one before it. Calls reach the server
        in order, each is atomic as ever, and the replies come in the same order.

        Args:
            script_name: The file's name in `core/scripts`, without `.lua`.
            keys: The KEYS of the script.
            calls: The ARGV of each call, read at most two ahead of the replies; None says that the
                source pauses, and all replies are awaited.

        Raises:
            ServerError: The server refused a call, or was lost. A refusal is raised when all calls
                that were sent after it are answered, too.

        Yields:
            The replies; `REFUSED` in the place of one that was refused.
        """
        script: Script = load_script(script_name)
        return self._each(lambda wire: _ScriptFlight(wire, script, keys), calls)

    def transact_each(self, transactions: Iterable[Sequence[Command] | None]) -> Iterator[Any]:
        """Run lists of commands, each in MULTI and EXEC, sending ahead of the replies.

        For what needs no decision on the server: data that go through a script cost it as much
        again as result_options them.

        Args:
            transactions: The commands of each; None says that the source pauses.

        Raises:
            ServerError: As for `run_each`. Where the server refuses a command before EXEC, none of
                its transaction has run; one that fails in EXEC stops none of the others in it.

        Yields:
            The list of replies of each transaction; `REFUSED` in the place of one that failed.
        """
        return self._each(_TransactionFlight, transactions)

    def _each(self, make_flight: "Callable[[Any], _Flight]", calls: Iterable[Any]) -> Iterator[Any]:
        with self._translated():
            wire = self._client.connection_pool.get_connection()
        flight = make_flight(wire)
        try:
            source = iter(calls)
            failure: BaseException | None = None
            going = True
            while going:
                call = None
                self.stop.is_polled = False
                try:
                    if self.stop.asked:
                        raise KeyboardInterrupt
                    call = next(source)
                except StopIteration:
                    going = False
                except BaseException as error:
                    # What was sent is told before the source's failure is passed on.
                    going, failure = False, error
                self.stop.is_polled = True
                if call is not None:
                    with self._translated():
                        flight.send(call)
                # Where the source pauses or ends there is nothing to send ahead of.
                while len(flight) > (_SENT_AHEAD if call is not None else 0):
                    try:
                        with self._translated():
                            reply = flight.receive()
                    except (errors.ConnectionLost, errors.Unreachable):
                        raise
                    except errors.ServerError as error:
                        # Nothing more is sent, but what was sent may have run.
                        reply, going, call = REFUSED, False, None
                        failure = failure or error
                    yield reply
            if failure is not None:
                raise failure
        finally:
            self.stop.is_polled = False
            # With replies outstanding the connection cannot be used again.
            if len(flight):
                wire.disconnect()
            self._client.connection_pool.release(wire)

    def wire(self) -> "Wire":
        """One more connection to this server, for a command that is long in being answered.

        Whoever asks for it closes it.

        Raises:
            ServerError: It could not be made.
        """
        with self._translated():
            raw = self._client.connection_pool.get_connection()
        return Wire(raw, self._client.connection_pool, self._translated)

    def look_only(self) -> bool:
        """Ask the server not to count our reads as use, so that looking resets no idle time.

        Returns:
            Whether it agreed (Redis 7.2 and Valkey do); where it did not, reading an item's data
            or its size makes it look fresh.
        """
        # Asked for anew each time: a connection that was lost came back without it.
        if self._knows_no_touch:
            try:
                self.call("CLIENT", "NO-TOUCH", "ON")
            except (errors.AuthenticationFailed, errors.Unreachable, errors.ConnectionLost):
                raise
            except errors.ServerError:
                self._knows_no_touch = False
        return self._knows_no_touch

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    @contextmanager
    def _translated(self, key: Any = None) -> Iterator[None]:
        try:
            yield
        except rx.RedisError as error:
            raise translate(error, self.name, key) from error
        except OSError as error:
            raise errors.Unreachable(f"cannot reach {self.name}: {error}") from error


# So long is waited for what a readable connection holds: with TLS it may be no reply.
_READ_S = 0.001


class Wire:
    """A connection with one command on its way, to be waited for beside others.

    A selector takes it as it is.

    Args:
        raw: A connection of redis-py's pool.
        pool: That pool.
        translated: Translates errors about a key.
    """

    def __init__(
        self, raw: Any, pool: Any, translated: Callable[[Any], AbstractContextManager[None]]
    ) -> None:
        self._raw = raw
        self._pool = pool
        self._translated = translated
        self._key: Any = None

    def fileno(self) -> int:
        """Its socket, which is readable when there is an answer or the connection is lost."""
        number: int = self._raw._sock.fileno()
        return number

    def send(self, *command: Any) -> None:
        """Send a command, and do not wait.

        Raises:
            ServerError: The connection was lost.
        """
        self._key = command[1]
        with self._translated(self._key):
            self._raw.send_command(*command)

    def has_answered(self) -> bool:
        """Take the answer, if it is there.

        Raises:
            ServerError: The server refused the command, or the connection was lost.
        """
        with self._translated(self._key):
            self._raw._sock.settimeout(_READ_S)
            try:
                self._raw.read_response(disconnect_on_error=False)
            except rx.TimeoutError:
                return False
            self._raw._sock.settimeout(self._raw.socket_timeout)
        return True

    def close(self) -> None:
        """End the connection, whatever is on its way."""
        self._raw.disconnect()
        self._pool.release(self._raw)


REFUSED = object()
# What the server says; redis-py counts two of them among the failures of a connection.
_ANSWERS = (rx.ResponseError, rx.BusyLoadingError, rx.AuthenticationError)


class _Flight:
    """Calls that were sent and not answered yet, on one connection.

    Args:
        wire: A connection of redis-py's pool.
    """

    def __init__(self, wire: Any) -> None:
        self._wire = wire
        self._sent: deque[Sequence[Any]] = deque()

    def __len__(self) -> int:
        return len(self._sent)

    def send(self, call: Sequence[Any]) -> None:
        """Send one call."""
        raise NotImplementedError

    def receive(self) -> Any:
        """The reply to the oldest call; raises what the server answered to it."""
        raise NotImplementedError

    def _write(self, *commands: Sequence[Any]) -> None:
        # redis-py's own packing looks at each word first, which takes longer than the packing.
        self._wire.send_packed_command([b"".join(pack_command(tuple(c)) for c in commands)])

    def _read(self) -> Any:
        try:
            return self._wire.read_response()
        except _ANSWERS as error:
            return error


class _ScriptFlight(_Flight):
    """Calls of one script; each is its ARGV."""

    def __init__(self, wire: Any, script: Script, keys: Sequence[bytes]) -> None:
        super().__init__(wire)
        self._head = ("EVALSHA", script.sha1, len(keys), *keys)
        self._text_head = ("EVAL", script.text, len(keys), *keys)
        self._landed: deque[Any] = deque()

    def send(self, call: Sequence[Any]) -> None:
        self._write((*self._head, *call))
        self._sent.append(call)

    def receive(self) -> Any:
        if not self._landed:
            self._landed.append(self._read())
            if isinstance(self._landed[0], rx.NoScriptError):
                self._send_again()
        self._sent.popleft()
        reply = self._landed.popleft()
        if isinstance(reply, _ANSWERS):
            raise reply
        return reply

    def _send_again(self) -> None:
        """After a SCRIPT FLUSH: run again, by its text, whatever did not run for want of it."""
        while len(self._landed) < len(self._sent):
            self._landed.append(self._read())
        lost = [at for at, reply in enumerate(self._landed) if isinstance(reply, rx.NoScriptError)]
        for at in lost:
            self._write((*self._text_head, *self._sent[at]))
        for at in lost:
            self._landed[at] = self._read()


class _TransactionFlight(_Flight):
    """Transactions; each is its commands."""

    def send(self, call: Sequence[Any]) -> None:
        self._write(("MULTI",), *call, ("EXEC",))
        self._sent.append(call)

    def receive(self) -> Any:
        # MULTI's own reply, one for each command that was queued, and that of EXEC.
        replies = [self._read() for _ in range(len(self._sent[0]) + 2)]
        self._sent.popleft()
        done = replies[-1] if isinstance(replies[-1], list) else []
        for reply in (*replies, *done):
            # Of a refused command this is what it was refused for; EXEC's own comes after it.
            if isinstance(reply, _ANSWERS):
                raise reply
        return done


def translate(error: Exception, server: str, key: object = None) -> errors.ServerError:
    """Turn a redis-py exception into one of ours.

    Args:
        error: What redis-py raised.
        server: What to call the server in the message.
        key: The key that the command was about, for a server's error that does not name it.
    """
    text = " ".join(str(error).split())
    upper = text.upper()
    denied = isinstance(error, rx.AuthenticationError) or upper.startswith(("NOAUTH", "WRONGPASS"))
    denied = denied or "UNAUTHENTICATED" in upper
    if denied:
        return errors.AuthenticationFailed(
            f"{server} refused the password or wants one: {text}",
            "give it in RWQ_PASSWORD or with --password-file",
        )
    if (
        isinstance(error, rx.NoPermissionError)
        or "NOPERM" in upper
        or "NO PERMISSIONS" in upper
        or "CAN'T RUN" in upper
    ):
        return errors.PermissionDenied(
            f"{server} denied permission: {text}",
            "ask for an ACL rule that allows this command on the queue's keys",
        )
    if isinstance(error, rx.BusyLoadingError) or "LOADING" in upper[:20]:
        return errors.Loading(
            f"{server} is still loading its data: {text}", "try again in a moment"
        )
    if isinstance(error, rx.ReadOnlyError) or "READONLY" in upper or "MISCONF" in upper:
        return errors.ReadOnly(
            f"{server} takes no writes: {text}", "point -u at the primary, or mend its disk"
        )
    if isinstance(error, rx.OutOfMemoryError) or re.search(r"(?:^|[ -])OOM ", upper):
        return errors.OutOfMemory(
            f"{server} is out of memory: {text}", "raise its maxmemory or complete some items"
        )
    if "WRONGTYPE" in upper:
        return _wrong_type(text, key)
    if isinstance(error, rx.TimeoutError) and "connecting" in text:
        return errors.Unreachable(
            f"cannot reach {server}: it does not answer",
            "check -u or RWQ_URL, and that the server runs",
        )
    if isinstance(error, rx.TimeoutError):
        return errors.ConnectionLost(f"{server} did not answer in time: {text}")
    if isinstance(error, rx.ConnectionError):
        if "connecting to" in text or "Connection refused" in text:
            return errors.Unreachable(
                f"cannot reach {server}: {_os_reason(error, text)}",
                "check -u or RWQ_URL, and that the server runs",
            )
        return errors.ConnectionLost(
            f"lost the connection to {server}: {text}", "see what is in before you repeat it"
        )
    return errors.ServerError(f"{server} refused: {text}")


def _wrong_type(text: str, key: object) -> errors.WrongType:
    # Our scripts name the key; of a plain command it is known, of a pipeline redis-py says it.
    said = text.partition("WRONGTYPE ")[2].split(" script: ")[0].rstrip(".")
    if said.startswith("Operation against"):
        in_pipeline = re.match(r"Command # \d+ \(\S+ (\S+).*\) of pipeline", text)
        if isinstance(key, bytes):
            name = key.decode("utf-8", "backslashreplace")
        else:
            name = in_pipeline[1] if in_pipeline else "a key of the queue"
        said = f"{name} holds another type than the protocol says"
    return errors.WrongType(said)


def _os_reason(error: Exception, text: str) -> str:
    """The operating system's own words, which redis-py wraps in an address we already name."""
    cause = error.__cause__ or error.__context__
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return text.rstrip(".")
