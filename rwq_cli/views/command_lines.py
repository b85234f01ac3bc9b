"""Command lines that can be pasted into a shell, with names of any bytes."""

import os
import shlex
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from rwq_cli.core.state.rules import Transit
from rwq_cli.output.escape import escaped

# Commands that are suggested for an item but take no ID, as those of a whole state.
_WITHOUT_ID = ("clean", "doctor")


class CommandLines(NamedTuple):
    """A maker of command lines, with the options that name the server: for rwq, for redis-cli, and
    for `mv` and `diff` from another server."""

    server: str = ""
    redis_cli: str = "redis-cli"
    to: str = ""

    def of_item(self, verb: str, queue: bytes, item_id: bytes) -> str:
        # An ID that cannot be an argument, `-` or one that contains NUL, is passed through a pipe.
        command = self.of_queue(verb, queue)
        if verb.split()[0] in _WITHOUT_ID or " --state " in verb:
            return command
        if not can_be_argument(item_id):
            octal = "".join(f"\\{byte:03o}" for byte in item_id)
            return f"printf '{octal}\\n' | {command} -"
        return f"{command} {'-- ' if item_id.startswith(b'-') else ''}{shell_word(item_id)}"

    def of_queue(self, verb: str, queue: bytes) -> str:
        return f"rwq {verb}{self.server} -q {shell_word(queue)}"

    def of_transit(self, transit: Transit, queue: bytes, item_id: bytes) -> str:
        """Return the command line that finishes the move of this item and of all others."""
        server = b"" if transit.server is None else b" " + shell_word(transit.server).encode()
        server_option = os.fsdecode(server)
        if not transit.is_copy:
            to = f"mv --to {shell_word(transit.queue)}"
            to += f" --to-url{server_option}" if server_option else ""
            return self.of_item(to, queue, item_id)
        lines = self._replace(server=f" -u{server_option}") if server_option else self
        to = f"mv --to {shell_word(queue)}{self.to if server_option else ''}"
        return lines.of_item(to, transit.queue, item_id)


def redis_cli(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme == "unix":
        words = ["-s", unquote(parts.path)]
        db = parse_qs(parts.query).get("db", ["0"])[0]
    elif parts.scheme.endswith("+cluster"):
        # Any of the hosts: -c follows the slots from there.
        host, _, port = parts.netloc.split(",")[0].rpartition(":")
        words = ["-c", "-h", unquote(host.strip("[]")), "-p", port]
        words += ["--tls"] if parts.scheme.startswith("rediss") else []
        db = "0"
    else:
        words = ["-h", unquote(parts.hostname or ""), "-p", str(parts.port)]
        words += ["--tls"] if parts.scheme == "rediss" else []
        db = parts.path.strip("/")
    words += ["-n", db] if db != "0" else []
    return " ".join(("redis-cli", *(shell_word(os.fsencode(word)) for word in words)))


def shell_word(raw: bytes) -> str:
    """Quote bytes as a word that any shell of POSIX reads as exactly these bytes, safe to show."""
    text = escaped(raw)
    if text.encode() == raw:
        return shlex.quote(text)
    if raw.endswith(b"\n"):
        # Which `$(...)` would drop. This is for bash, zsh and ksh; dash before 0.5.13 cannot.
        quoted = raw.replace(b"\\", rb"\\").replace(b"'", rb"\'")
        characters = (chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in quoted)
        return f"$'{''.join(characters)}'"
    characters = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\!" else f"\\{byte:03o}"
        for byte in raw.replace(b"%", b"%%")
    )
    return f"\"$(printf -- '{''.join(characters)}')\""


def can_be_argument(item_id: bytes) -> bool:
    return item_id != b"-" and b"\0" not in item_id
