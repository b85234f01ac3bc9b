"""What a server's replies mean, and failures to reach it: redis-py's exceptions as our errors.

The first word of a reply is its code. The rest is ignored, because a key or a command may contain
`readonly` or `OOM`; but for `ERR`, under which servers put what has no code.
"""

import re
from typing import Any, NamedTuple

from redis import exceptions as rx
from redis._parsers.base import BaseParser
from redis.connection import SSLConnection

from rwq_cli.core import errors
from rwq_cli.core.health import CURES, Refusal
from rwq_cli.core.server.commands import Command, ScriptCommand

# redis-py's exceptions for error replies; two of them are subclasses of its ConnectionError.
REPLIES = (rx.ResponseError, rx.AuthenticationError, rx.BusyLoadingError)
FAILURES = (rx.RedisError, OSError)


class _Meaning(NamedTuple):
    """What a reply means: what the server does, before its own words, and what helps."""

    kind: type[errors.ServerError]
    verb: str
    hint: str | None


_SOON = "try again in a moment"
_AUTHENTICATION = _Meaning(
    errors.AuthenticationFailed,
    "rejected the password, or requires one",
    "give it in RWQ_PASSWORD or with --password-file",
)
_PERMISSION = _Meaning(
    errors.PermissionDenied,
    "denied permission",
    "ask for an ACL rule that allows this command on the queue's keys",
)
_MOVING = _Meaning(errors.Unavailable, "is moving this queue to another node of its cluster", _SOON)
_READ_ONLY = _Meaning(errors.ReadOnly, "does not accept writes", CURES[Refusal.READONLY])
_MEANINGS = {
    "NOAUTH": _AUTHENTICATION,
    "WRONGPASS": _AUTHENTICATION,
    "NOPERM": _PERMISSION,
    "DENIED": _PERMISSION._replace(hint="set a password on it, or turn its protected mode off"),
    "LOADING": _Meaning(errors.Loading, "is still loading its data", _SOON),
    "BUSY": _Meaning(
        errors.Busy, "is busy with a script", "wait, or end that script with SCRIPT KILL"
    ),
    "MASTERDOWN": _Meaning(
        errors.Unavailable, "has lost its primary", "point -u at the primary, or try again"
    ),
    "CLUSTERDOWN": _Meaning(errors.Unavailable, "is in a cluster that is down", _SOON),
    "UNBLOCKED": _Meaning(errors.Unavailable, "has become a replica", _SOON),
    "TRYAGAIN": _MOVING,
    "ASK": _MOVING,
    "MOVED": _Meaning(
        errors.WrongNode,
        "is a cluster node that does not hold this queue",
        "use redis+cluster:// in place of redis://",
    ),
    "CROSSSLOT": _Meaning(
        errors.ServerError,
        "is in a cluster, and the queue's keys are on several nodes of it",
        "give the queue's name a hash tag: {jobs} instead of jobs",
    ),
    "READONLY": _READ_ONLY,
    "MISCONF": _READ_ONLY._replace(hint=CURES[Refusal.WRITE_ERRORS]),
    "NOREPLICAS": _READ_ONLY._replace(hint=CURES[Refusal.TOO_FEW_REPLICAS]),
    "OOM": _Meaning(errors.OutOfMemory, "is out of memory", CURES[Refusal.OUT_OF_MEMORY]),
}
# Of errors without a code, by how their text begins.
_TEXTS = {
    # An unauthenticated client may send only short commands.
    "Protocol error: unauthenticated": _AUTHENTICATION,
    **dict.fromkeys(
        ("AUTH <password> called without any", "Client sent AUTH, but no password"),
        _Meaning(
            errors.AuthenticationFailed,
            "wants no password, and one was given",
            "leave out the password of the URL, RWQ_PASSWORD or --password-file",
        ),
    ),
    # A command that is denied inside a script, by Redis up to 7.0 and by later servers.
    "The user executing the script can't ": _PERMISSION,
    "ACL failure in script: ": _PERMISSION,
    # By Dragonfly.
    "script tried accessing undeclared": _Meaning(
        errors.ServerError,
        "lets scripts use only declared keys",
        "allow undeclared ones, such as by Dragonfly's --default_lua_flags=allow-undeclared-keys; "
        "docs/servers.md says which servers can be used",
    ),
}

# redis-py strips the code from the reply for these. Newer versions keep it in `status_code`.
_CUT_CODES = {
    kind: code
    for code, kind in BaseParser.EXCEPTION_CLASSES.items()
    if isinstance(kind, type) and kind is not rx.AuthenticationError
}
_CODES = {*_MEANINGS, *_CUT_CODES.values(), "WRONGTYPE"}

# Redis 6.2 puts the script's line before the error, once or twice; later servers put it after. An
# error that Lua raises begins with the line on all servers.
_OLD_SCRIPT_ERROR = re.compile(
    r"Error running script \(call to \w+\): @\w+:(\d+|\?): (?:@?user_script: ?\d+: )?-?(.*)"
)
_SCRIPT_ERROR = re.compile(r"(?:user_script:\d+: )?(.*) script: \w+, on @\w+:(\d+)\.?")
# By a cluster that is down but answers reads: a script has only read when this ends it.
_DOWN_IN_SCRIPT = re.compile(
    "Script attempted to execute a (write )?command while the cluster is down"
)
# Python's messages for a server that answers in plain text.
_NO_TLS = ("wrong version number", "record layer failure")
# A server without TLS waits for the end of a command, and so may one that is busy.
NO_HANDSHAKE = "handshake operation timed out"
_FULL = "max number of clients reached"
_CLOSED = ("connection closed", "connection reset", "connection not ready")
# The first byte with which a server that speaks TLS refuses what does not.
_TLS_ALERT = "\\x15"


def _split(text: str) -> tuple[str, str]:
    first, _, rest = text.partition(" ")
    return (first, rest) if first in _CODES else ("ERR", text.removeprefix("ERR "))


def _parse(error: Exception) -> tuple[str, str, int | None]:
    """The code of an error reply or `ERR`, what follows, and the script's line if it has one."""
    text = " ".join(str(error).split())
    code_of_kind = getattr(error, "status_code", None) or _CUT_CODES.get(type(error))
    code, text = (
        (code_of_kind, text.removeprefix(f"{code_of_kind} ")) if code_of_kind else _split(text)
    )
    line = None
    if code == "EXECABORT" and " because of: " in text:
        code, text = _split(text.partition(" because of: ")[2])
    elif old := _OLD_SCRIPT_ERROR.fullmatch(text):
        code, text = _split(old[2])
        line = int(old[1]) if old[1].isdigit() else None
    elif new := _SCRIPT_ERROR.fullmatch(text):
        text, line = new[1], int(new[2])
        code, text = _split(text) if code == "ERR" else (code, text)
    if code == "ERR" and _DOWN_IN_SCRIPT.match(text):
        code = "CLUSTERDOWN"
    return code, text, line


def code_of(error: Exception) -> str:
    """The code of an error reply; `ERR` if it has none."""
    return _parse(error)[0]


def translate(error: Exception, server: str, request: Command = ()) -> errors.ServerError:
    """Turn redis-py's exception for the error reply to a request into an error about `server`."""
    code, text, line = _parse(error)
    if code == "WRONGTYPE":
        # The scripts name the key; the server does not.
        if not text.startswith("Operation against"):
            return errors.WrongType(text)
        key = request[1] if len(request) > 1 else None
        return errors.WrongType.of(key if isinstance(key, bytes) else b"a key of the queue")
    whole = (text if code == "ERR" else f"{code} {text}").rstrip(".")
    meaning = _MEANINGS.get(code)
    if code == "ERR":
        meaning = next((_TEXTS[start] for start in _TEXTS if text.startswith(start)), None)
    if meaning is None and isinstance(error, rx.AuthenticationError):
        meaning = _AUTHENTICATION
    if meaning is None and isinstance(request, ScriptCommand) and line is not None:
        return errors.ScriptError(
            f"{server} failed in rwq's script {request.script.name}, line {line}: {whole}",
            "this is a bug in rwq: please report it",
        )
    kind, verb, hint = meaning or _Meaning(errors.ServerError, "refused", None)
    failure = kind(f"{server} {verb}: {whole}", hint)
    failure.refusal = code
    return failure


def unreachable(error: Exception, server: str, timeout_s: float, pool: Any) -> errors.RwqError:
    """The error for a connection of redis-py's pool that could not be made."""
    # A provider of credentials that fails does so within redis-py's own error.
    if isinstance(error.__cause__, errors.RwqError):
        return error.__cause__
    for refusal in (error, error.__cause__):
        if isinstance(refusal, REPLIES):
            return translate(refusal, server)
    return _recognized(error, server, pool) or _unreachable(error, server, timeout_s)


def _unreachable(error: Exception, server: str, timeout_s: float) -> errors.Unreachable:
    reason, hint = _reason(error), "check -u or RWQ_URL, and that the server runs"
    if any(words in reason for words in _NO_TLS):
        reason, hint = "it does not speak TLS", "use redis://, not rediss://, for a server without"
    elif NO_HANDSHAKE in reason:
        reason = f"no TLS handshake within {timeout_s:.3g} s: it is busy, or it does not speak TLS"
        hint = "use redis://, not rediss://, only if the server has no TLS"
    elif tls := _tls_failure(reason):
        reason, hint = tls
    elif reason == _FULL:
        hint = "raise its maxclients, or close idle connections"
    elif _is_timeout(error):
        reason = f"it did not answer within {timeout_s:.3g} s"
    return errors.Unreachable(f"cannot reach {server}: {reason}", hint)


# Of OpenSSL's reasons, what is wrong and what to do.
_TLS_FAILURES = (
    ("certificate has expired", "its certificate has expired", "renew the server's certificate"),
    ("not yet valid", "its certificate is not valid yet", "check the clocks of both machines"),
    (
        r"(hostname|ip address) mismatch",
        "its certificate is for another host",
        "use the host's name that is in its certificate",
    ),
    (
        "certificate verify failed",
        "its certificate is not signed by a known authority",
        "give the certificate of its authority with --tls-ca",
    ),
    (
        "certificate required|peer did not return a certificate|alert handshake failure",
        "it wants a client certificate",
        "give one with --tls-cert and --tls-key",
    ),
    (
        "alert (unknown ca|bad certificate|certificate unknown)",
        "it does not accept the client certificate",
        "give one that its authority has signed with --tls-cert and --tls-key",
    ),
    (
        "key values mismatch",
        "the client's key does not fit its certificate",
        "check --tls-cert and --tls-key",
    ),
    ("bad decrypt", "the pass phrase of the client's key is wrong", "try again"),
    (
        "pem lib|no start line",
        "the client's certificate or key cannot be read",
        "check --tls-cert and --tls-key: they have to be PEM files",
    ),
)


def _tls_failure(reason: str) -> tuple[str, str] | None:
    """What failed of a TLS handshake, and the way out."""
    failures = (words[1:] for words in _TLS_FAILURES if re.search(words[0], reason.lower()))
    return next(failures, None)


def lost(error: Exception, server: str, timeout_s: float, pool: Any = None) -> errors.ServerError:
    """The error for a connection that broke; its `pool` if that may not lead to a Redis server."""
    reason, times_out = _reason(error), _is_timeout(error)
    if reason == _FULL or _tls_failure(reason):
        return _unreachable(error, server, timeout_s)
    if pool is not None and (other := _recognized(error, server, pool)):
        return other
    message = f"lost the connection to {server}: {reason}"
    if times_out:
        message = f"{server} did not answer within {timeout_s:.3g} s"
    failure = errors.ConnectionLost(message, _SOON)
    failure.refusal = "timeout" if times_out else "lost"
    return failure


def is_unknown(error: object, command: str) -> bool:
    """Whether a server replied that it knows no such command."""
    return isinstance(error, rx.ResponseError) and f"unknown command '{command}'" in str(error)


def _is_timeout(error: Exception) -> bool:
    return isinstance(error, rx.TimeoutError | TimeoutError)


def _reason(error: Exception) -> str:
    """The operating system's message, without the address that redis-py adds."""
    cause = error.__cause__ or error.__context__ or error
    reason = getattr(cause, "strerror", None) or str(cause if _is_timeout(error) else error)
    reason = re.sub(r"^\[[^]]*\] | \(_ssl\.c:\d+\)$|_ssl\.c:\d+: ", "", " ".join(reason.split()))
    return (reason[:1].lower() + reason[1:]).rstrip(".")


def _recognized(error: Exception, server: str, pool: Any) -> errors.ServerError | None:
    """The error for a server that speaks TLS, or is not Redis, if a failure may be due to that."""
    if isinstance(error, MemoryError):
        # It announced a reply of billions of entries.
        error = rx.InvalidResponse(str(error))
    reason = _reason(error)
    if isinstance(error, rx.InvalidResponse):
        if _TLS_ALERT in reason:
            hint = "use rediss:// in place of redis://, if it is a Redis server"
            return errors.ServerError(f"{server} speaks TLS", hint)
        hint = "check the host and the port of the server"
        return errors.ServerError(f"{server} is not a Redis server", hint)
    has_tls = issubclass(pool.connection_class, SSLConnection) or "path" in pool.connection_kwargs
    if reason.startswith(_CLOSED) and not has_tls:
        why = f"closed the connection at once, perhaps because it speaks TLS (rediss://): {reason}"
        return errors.ConnectionLost(f"{server} {why}", _SOON)
    return None
