"""A server's URL without its secrets, for messages and files."""

import re
from urllib.parse import unquote

_PLAIN_NAME = re.compile(r"[\w.-]*", re.ASCII)
_PLAIN_VALUE = re.compile(r"[\w./:,-]*", re.ASCII)
_SECRET_NAME = re.compile(r"pass|secret|key|token", re.IGNORECASE)
_MASK = "***"


def mask_url(url: str) -> str:
    """The URL as it may be shown.

    Masked are the password, a user that is not plainly a name, the values of options whose names
    sound like a secret or that are more than a word, a number or a path, and what follows a `#`.
    Where it is not certain how far the credentials go, all that follows the user is masked, too.
    """
    scheme, separator, rest = url.rpartition("://")
    start = scheme + separator
    # The last @ ends the credentials: a password may hold an unescaped one.
    credentials, at, place = rest.rpartition("@")
    if credentials.startswith("/"):
        credentials, at, place = "", "", rest
    if at:
        user, colon, _ = credentials.partition(":")
        start += user if _PLAIN_NAME.fullmatch(user) else _MASK
        start += f":{_MASK}" if colon else ""
        if re.search(r"[?#]", credentials):
            return start
    place, hash_sign, _ = place.partition("#")
    place, mark, query = place.partition("?")
    options = "&".join(map(_masked_option, query.split("&")))
    return f"{start}{at}{place}{mark}{options}{hash_sign}{_MASK if hash_sign else ''}"


def _masked_option(option: str) -> str:
    name, sign, value = option.partition("=")
    is_plain = _PLAIN_VALUE.fullmatch(value) and not _SECRET_NAME.search(unquote(name))
    return f"{name}{sign}{value if is_plain else _MASK}"
