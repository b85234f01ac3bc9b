"""Opens the server and the queues that the settings name (several `-q`, patterns, or all), and
names them in messages.
"""

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rwq_cli.cli.interrupts import cancel_on_interrupt
from rwq_cli.cli.settings import LOCAL, Settings
from rwq_cli.core.errors import InvalidArgument, ServerError, WrongType, text_of
from rwq_cli.core.keys import is_glob
from rwq_cli.output.escape import escaped, escaped_text

if TYPE_CHECKING:
    from rwq_cli.contexts.config import Context
    from rwq_cli.core.inspect.selection import Selection
    from rwq_cli.core.queue import WorkQueue
    from rwq_cli.core.server.connection import Connection
    from rwq_cli.views.command_lines import CommandLines

T = TypeVar("T")

# How long the result of a scan of all keys is reused.
_FIND_EVERY_S = 30.0
# The options that name files for TLS, with redis-py's names.
_TLS_FILES = {"tls_ca": "ssl_ca_certs", "tls_cert": "ssl_certfile", "tls_key": "ssl_keyfile"}
_FILES = ("password_file", *_TLS_FILES)
_DURATIONS = ("connect_timeout", "reply_timeout", "patience")

# The settings that the core's hints name for the run's server and its password.
_BY_URL = "-u or RWQ_URL"


def open_connection(
    settings: Settings, *, named_by: str = _BY_URL, tls_is_elsewhere: bool = False
) -> "Connection":
    """Connect to the server that the settings name; start an embedded one if necessary."""
    # `named_by` is the setting that gives its URL, if no context does, for the hint of an error;
    # with `tls_is_elsewhere`, TLS options may be for another server of this run.
    # Importing redis takes half of the start-up time, and `--help` does not need it.
    from rwq_cli.core.server.address import Server, connect

    url, origin, context = settings.server
    words, environment = settings.common_options, settings.environment
    variables = environment.variables
    if url.startswith(LOCAL):
        server = settings.local_server(url)
        server.ensure_running(reply_timeout_s=settings.reply_timeout_s)
        url = server.url
    settings.check_read_only()
    password, password_origin = _read_password(settings)
    read: str | Callable[[], str | None] | None = password
    if password is not None and password_origin != "RWQ_PASSWORD":
        # Each later connection reads its file, or runs its command, again.
        first = iter([password])
        read = lambda: next(first, None) or _read_password(settings)[0]  # noqa: E731
    options = _tls_options(settings, url, may_be_elsewhere=tls_is_elsewhere)
    options |= {f"{name}_s": words[name] for name in _DURATIONS if name in words}
    connection = connect(
        Server(
            url=url,
            password=read,
            password_first="password_file" in words,
            tls_pass_phrase=_ask_pass_phrase,
            **options,
            # Like RWQ_PASSWORD, it is never for a context's server.
            sentinel_password=None if context else variables.get("RWQ_SENTINEL_PASSWORD"),
        )
    )
    connection.on_wait = lambda line: environment.note(escaped_text(line))
    if context is not None or named_by != _BY_URL:
        place = named_by if context is None else f"the url of {context}"
        connection.explain = lambda error: _name_setting(error, place, context)
    cancel_on_interrupt(connection.stop)
    if settings.verbose:
        where = origin if context is None else f"{origin}, {context}"
        environment.note(f"server {connection.name} ({where})")
        if password is not None:
            environment.note(f"password ({password_origin})")
        environment.note(f"output {settings.output} ({settings.output_origin})")
    if settings.progress is not None:
        connection.progress = settings.progress
    if not gc.isenabled():
        # `__main__` imports with the collector disabled; it need not traverse imported objects.
        gc.freeze()
        gc.enable()
    return connection


def _tls_options(settings: Settings, url: str, *, may_be_elsewhere: bool) -> dict[str, Any]:
    """Return the TLS options for a server: those that were given for it, else its context's."""
    from rwq_cli.core.server.urls import has_tls

    words, context = settings.common_options, settings.server.context
    options: dict[str, Any] = {name: Path(words[name]) for name in _TLS_FILES if name in words}
    options |= {"tls_insecure": True} if "tls_insecure" in words else {}
    if options and not has_tls(url) and (may_be_elsewhere or has_tls(settings.other_url)):
        return {}
    if options or context is None:
        return options
    folder = settings.contexts.path.parent
    paths = ((name, getattr(context, name)) for name in _TLS_FILES)
    options = {name: folder / Path(path).expanduser() for name, path in paths if path is not None}
    return {**options, "tls_insecure": context.tls_insecure}


def _ask_pass_phrase() -> str:
    """Ask for the pass phrase of a client's key on the terminal: stdin may be a pipe of items."""
    from getpass import getpass

    from rwq_cli.environment import has_terminal

    # Without a terminal, `getpass` would read stdin.
    with suppress(EOFError):
        if has_terminal():
            return getpass("Pass phrase of the client's key: ")
    raise InvalidArgument(
        "the client's key is encrypted, and there is no terminal to ask for its pass phrase on",
        "put ?ssl_password=... into the URL, or decrypt the key",
    )


def _name_setting(error: "ServerError", place: str, context: "Context | None") -> None:
    """Make the hint of a connection error name the settings that this server comes from."""
    from rwq_cli.core import errors

    if isinstance(error, errors.SentinelAuthenticationFailed):
        error.hint = f"put ?sentinel_password=... into {place}"
    elif isinstance(error, errors.AuthenticationFailed):
        error.hint = f"check the password in {place}, or use a context that has it"
        if context is not None:
            error.hint = f"check the password_command or password_file of {context}"
    elif isinstance(error, errors.Unreachable) and error.hint is not None:
        error.hint = error.hint.replace(_BY_URL, place)


def _read_password(settings: Settings) -> tuple[str | None, str]:
    """Return the password that is given outside the URL, and where it comes from."""
    # RWQ_PASSWORD is for a server that is named by its URL: no other server may see it.
    file, context = settings.common_options.get("password_file"), settings.server.context
    if file is not None:
        from rwq_cli.contexts.password import read_password_file

        return read_password_file(Path(file), "--password-file"), "--password-file"
    if context is None:
        password = settings.environment.variables.get("RWQ_PASSWORD")
        # A secret written with `echo` ends with a newline, as a file does.
        return password and password.removesuffix("\n").removesuffix("\r"), "RWQ_PASSWORD"
    if context.password_command is context.password_file is None:
        return None, str(context)
    from rwq_cli.contexts.password import password_of

    return password_of(context, settings.contexts.path), str(context)


def make_server_variables(settings: Settings) -> dict[bytes, bytes | None]:
    # A context's server is named by the context, so that its password stays where it is, unless
    # options override some of its settings.
    url, _, context = settings.server
    words = settings.common_options
    variables: dict[str, str | None]
    if context is not None and words.keys().isdisjoint((*_FILES, "tls_insecure")):
        variables = {"RWQ_URL": None, "RWQ_CONTEXT": context.name}
    else:
        from urllib.parse import quote, urlencode

        from rwq_cli.core.server.urls import without_password

        password, _ = _read_password(settings)
        if url.startswith(LOCAL):
            url = f"{LOCAL}{settings.local_server(url).directory}"
        elif "password_file" in words:
            url = without_password(url)
        files = [name for name in _TLS_FILES if name in words]
        options = {_TLS_FILES[name]: os.path.abspath(words[name]) for name in files}
        if "tls_insecure" in words:
            options |= {"ssl_cert_reqs": "none", "ssl_check_hostname": "false"}
        if options:
            query = urlencode(options, safe="/", quote_via=quote)
            url += ("&" if "?" in url else "?") + query
        variables = {"RWQ_URL": url, "RWQ_CONTEXT": None, "RWQ_PASSWORD": password}
    return {
        os.fsencode(name): None if value is None else os.fsencode(value)
        for name, value in variables.items()
    }


def describe_target(settings: Settings, queues: str | None) -> str:
    """Return a summary's end; `queues` is None if a prefix names them. See `target_from_env`."""
    if settings.target_from_env:
        return ""
    return f" ({queues + ' ' if queues else ''}on {settings.server_label})"


def make_command_lines(settings: Settings, connection: "Connection") -> "CommandLines":
    """Return what makes command lines to paste: they reach this server, and contain no password."""
    from rwq_cli.core.server.urls import without_password
    from rwq_cli.views.command_lines import CommandLines, redis_cli, shell_word

    url, _, context = settings.server
    url_shown = url if url.startswith(LOCAL) else without_password(url)
    words, to_words = ["-u", url_shown], ["--to-url", url_shown]
    if context is not None:
        words, to_words = ["-c", context.name], ["--to-context", context.name]
    if settings.target_from_env:
        words = []
    elif context is None and url_shown != url and settings.is_for_people:
        settings.environment.note(
            "note: the commands shown do not have the password; give it in RWQ_PASSWORD or with "
            "--password-file",
            once=True,
        )
    for name in filter(settings.common_options.__contains__, _FILES):
        words += [f"--{name.replace('_', '-')}", settings.common_options[name]]
    words += ["--tls-insecure"] * ("tls_insecure" in settings.common_options)
    server, to = (
        "".join(f" {shell_word(os.fsencode(word))}" for word in words_of)
        for words_of in (words, to_words)
    )
    return CommandLines(server, redis_cli(connection.primary_url), to)


def open_queue(settings: Settings) -> "WorkQueue":
    return open_queues(settings, [settings.queue])[0]


def open_queues(settings: Settings, names: Sequence[bytes] = ()) -> "list[WorkQueue]":
    """Open the queues, each once, on one connection; without names, those the settings name."""
    names = names or list(dict.fromkeys(settings.queues)) or [settings.queue]
    return make_queues(settings, open_connection(settings), names, settings.queue_origin)


def make_queues(
    settings: Settings, connection: "Connection", names: Sequence[bytes], origin: str
) -> "list[WorkQueue]":
    """Return the queues with these names, which come from `origin`, on an open connection."""
    from rwq_cli.core.queue import WorkQueue

    if settings.verbose:
        for name in names:
            settings.environment.note(f"queue {escaped(name)} ({origin})", once=True)
    queues = [WorkQueue(connection, name, holder=settings.holder) for name in names]
    for queue in queues:
        if queue.keys.has_odd_ends:
            note = "rwq: note: the queue's name begins or ends with white space or a quote: "
            note += f"{text_of(queue.name)!a}"
            settings.environment.note(note, once=True)
    return queues


def cache_find(find: Callable[[], T]) -> Callable[[], T]:
    """Return a function that caches the result of `find` for `_FIND_EVERY_S`."""
    cached: list[tuple[float, T]] = []

    def find_or_reuse() -> T:
        if not cached or monotonic() - cached[0][0] >= _FIND_EVERY_S:
            cached[:] = [(monotonic(), find())]
        return cached[0][1]

    return find_or_reuse


class OpenQueues:
    """The queues that the settings name or their patterns match, looked up as often as needed."""

    # `is_one` is true if the user named one: the output is then that of one. `left_out` are those
    # that a pattern found but that have a structure of the wrong type. If the command `changes`
    # queues, one without items that a pattern found is skipped: it may belong to another program.
    def __init__(
        self, settings: Settings, *, all_queues: bool, changes: bool = False, any_type: bool = False
    ) -> None:
        self._settings, self._changes, self._any_type = settings, changes, any_type
        self._is_all = all_queues
        self._words = list(dict.fromkeys(settings.queues))
        has_patterns = all_queues or any(map(is_glob, self._words))
        queues = [] if has_patterns else open_queues(settings)
        self.connection = queues[0].connection if queues else open_connection(settings)
        self.names = "all queues" if all_queues else ", ".join(map(escaped, self._words))
        self._found = cache_find(self._find) if has_patterns else lambda: (queues, False)

    def find(self) -> Self:
        """Find the queues; for patterns, all keys are scanned: see `cache_find`."""
        # A pattern may match keys of other programs, too.
        self.queues, self._are_found = self._found()
        count = len(self.queues)
        self.is_one = count == 1 and not self._are_found
        self.label = escaped(self.queues[0].name) if count == 1 else f"{count:,} queues"
        self.left_out: set[bytes] = set()
        return self

    def read(self, read: "Callable[[WorkQueue], Iterable[T]]") -> Iterator[T]:
        return chain.from_iterable(self.read_one(read, queue) for queue in self.queues)

    def read_one(
        self, read: "Callable[[WorkQueue], Iterable[T]]", queue: "WorkQueue"
    ) -> Iterator[T]:
        """Yield what is read from one queue; one that a pattern found may be left out."""
        if queue.name in self.left_out:
            return
        try:
            yield from read(queue)
        except WrongType as error:
            if not self._are_found:
                raise
            self.left_out.add(queue.name)
            skipped = f"skipped: {escaped_text(error.message)}"
            self._settings.environment.error(skipped, once=True)

    def _find(self) -> "tuple[list[WorkQueue], bool]":
        """Find the queues; return them, and False if what looked like patterns were names."""
        from rwq_cli.core.inspect.queues import has_items, matching_queues, queue_names

        note = partial(self._settings.environment.note, once=True)
        none = "rwq: {}: no queue matches, or all are empty; rwq queues lists those that are not"
        if self._is_all:
            none = "rwq: no queues on this server"
            names_by_word = {b"*": queue_names(self.connection, any_type=self._any_type)}
        else:
            names_by_word = matching_queues(self.connection, self._words, any_type=self._any_type)
        for word in [word for word, names in names_by_word.items() if not names]:
            note(none.format(escaped(word)))
        names = list(dict.fromkeys(chain.from_iterable(names_by_word.values())))
        origin = "--all-queues" if self._is_all else self._settings.queue_origin
        kept = []
        for queue in make_queues(self._settings, self.connection, names, origin):
            if not self._changes or queue.name in self._words or has_items(queue):
                kept.append(queue)
            else:
                note(
                    f"skipped: {escaped(queue.name)} has no items, and may belong to another "
                    "program; -q with its name includes it"
                )
        return kept, self._is_all or names != self._words


def warn_if_missing(
    settings: Settings,
    queue: "WorkQueue",
    results: Iterable[T],
    is_nothing: Callable[[T], bool] = lambda _result: False,
) -> Iterator[T]:
    """Yield what a command found in a queue; if nothing, print a note if there is no such queue."""
    has_found = False
    for result in results:
        has_found = has_found or not is_nothing(result)
        yield result
    if not has_found:
        warn_missing(settings, queue)


def warn_missing(settings: Settings, queue: "WorkQueue") -> None:
    from rwq_cli.core.inspect.queues import exists, similar_name

    # The command itself has succeeded, whatever becomes of this check.
    with suppress(ServerError):
        if not exists(queue):
            patterns = "; this command takes no patterns" if is_glob(queue.name) else ""
            settings.environment.note(
                f"rwq: {escaped(queue.name)}: no such queue on {settings.server_label}, or it is "
                f"empty; rwq queues lists them{patterns}",
                once=True,
            )
            if settings.environment.stderr_is_terminal and (name := similar_name(queue)):
                settings.environment.note(f"rwq: did you mean {escaped(name)}?", once=True)


def note_idle_reset(settings: Settings, queue: "WorkQueue", consequence: str) -> None:
    if not queue.connection.set_no_touch():
        reset = "note: on this server, reading an item resets its idle time"
        settings.environment.note(f"{reset}; {consequence}", once=True)


def warn_of_reading(
    settings: Settings, queues: "Sequence[WorkQueue]", selection: "Selection"
) -> None:
    """Print a note if `--match` or `--where` resets the idle times of items on this server."""
    if selection.needs_data and queues:
        note_idle_reset(settings, queues[0], "--match and --where read the data")


def warn_of_paths(settings: Settings, selection: "Selection", place: str) -> None:
    """Print a note for each path of `--where` that no item had; all must have been read."""
    from rwq_cli.input.where import Conditions

    conditions = selection.match
    for name in conditions.unseen if isinstance(conditions, Conditions) else ():
        settings.environment.note(f"rwq: {place}: no item has {escaped_text(name)}", once=True)
