"""Checking, on a server before Redis 7, what its user may do before a script writes.

There a script cannot check it, and one that is denied a command halfway is not rolled back. So it
does nothing but reply with the commands that it needs: the error `UNCHECKED`, see
`lua/lib/prelude.lua`. A server checks the permissions for a command when MULTI queues it, so the
commands are queued and then discarded, and the script is called again with what came of that.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from redis import exceptions as rx

from rwq_cli.core.server.link import Link
from rwq_cli.core.server.packing import pack

_CODE = "UNCHECKED "
_Words = tuple[bytes, ...]


def is_unchecked(reply: Any) -> bool:
    """Whether a reply says that a script needs its user's permissions checked, and did nothing."""
    return isinstance(reply, rx.ResponseError) and str(reply).startswith(_CODE)


def check_permissions(link: Link, refusal: Exception) -> bytes:
    """Check the commands that a script needs.

    Args:
        link: The link on which the script was refused, without outstanding replies.
        refusal: The reply that asks for it.

    Returns:
        What to append to the script's dry-run argument.
    """
    groups: dict[str, list[_Words]] = {}
    for group in str(refusal).removeprefix(_CODE).split(" "):
        digest, *commands = group.split(",")
        groups[digest] = [tuple(map(bytes.fromhex, each.split("."))) for each in commands]
    denied = _denied(link, dict.fromkeys(chain.from_iterable(groups.values())))
    found = b""
    for digest, group_commands in groups.items():
        place = next((at for at, each in enumerate(group_commands, 1) if each in denied), 0)
        found += b" %b:%d" % (digest.encode(), place)
    return found


def _denied(link: Link, commands: Iterable[_Words]) -> set[_Words]:
    """The commands that the user may not run; none of them if that cannot be found out."""
    # A command behind a refused MULTI would run. A MULTI that cannot be discarded must end, too.
    link.send(pack(("DISCARD",)) + pack(("MULTI",)))
    discarded, begun = link.read(), link.read()
    if isinstance(begun, rx.ResponseError):
        return set()
    if isinstance(discarded, rx.NoPermissionError):
        link.close()
        link.prepare()
        return set()
    asked = list(commands)
    link.send(b"".join(map(pack, (*asked, ("DISCARD",)))))
    replies = [link.read() for _ in (*asked, "DISCARD")]
    queued = zip(asked, replies, strict=False)
    return {command for command, reply in queued if isinstance(reply, rx.NoPermissionError)}
