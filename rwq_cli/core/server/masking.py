"""A server's URL without its secrets, for messages and files."""

import re
from urllib.parse import unquote

# Patterns for parts of a URL that certainly hold no password.
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.ASCII | re.IGNORECASE)
_HOST = r"(?:[\w.-]*|\[[0-9a-f:.]+(?:%[\w.-]+)?\])(?::\d{1,5})?"
_ONE_SERVER = re.compile(rf"{_HOST}/?\d*/?", re.ASCII | re.IGNORECASE)
_PLACES = {
    "redis": _ONE_SERVER,
    "rediss": _ONE_SERVER,
    "unix": re.compile(r"(?:/[^,;=&\0-\x1f]*)?"),
    "redis+sentinel": re.compile(rf"{_HOST}(?:,{_HOST})*(?:/[\w.-]+)?(?:/\d+)?", re.ASCII),
    "redis+cluster": re.compile(rf"{_HOST}(?:,{_HOST})*", re.ASCII),
}
_NAME = re.compile(r"[\w.-]*", re.ASCII)
_OPTION = re.compile(r"[\w.%-]*", re.ASCII)
_PATH = re.compile(r"[\w./-]*", re.ASCII)
_SHOWN_OPTIONS = {
    "db": re.compile(r"\d*", re.ASCII),
    "username": _NAME,
    "ssl_ca_certs": _PATH,
    "ssl_certfile": _PATH,
    "ssl_cert_reqs": _NAME,
    "ssl_check_hostname": _NAME,
}
_MASK = "***"
_REST = "…"


def mask_url(url: str) -> str:
    """Mask a URL for messages.

    This masks the password, a user that is not plainly a name, the value of every option that may
    hold a secret, and the fragment. A malformed URL is reduced to its scheme, because the password
    may be anywhere in it.
    """
    scheme, separator, rest = url.partition("://")
    if not url:
        return ""
    if not separator or not _SCHEME.fullmatch(scheme):
        return _REST
    # The last @ ends the credentials: a password may hold an unescaped one.
    credentials, at, place = rest.rpartition("@")
    if credentials.startswith("/"):
        credentials, at, place = "", "", rest
    place, hash_sign, _ = place.partition("#")
    place, mark, query = place.partition("?")
    looks_like = _PLACES.get(scheme)
    is_certain = not re.search(r"[?#]", credentials)
    if not is_certain or looks_like is None or not looks_like.fullmatch(unquote(place)):
        return f"{scheme}{separator}{_REST}"
    user, colon, _ = credentials.partition(":")
    user = user if _NAME.fullmatch(user) else _MASK
    options = "&".join(map(_masked_option, query.split("&"))) if query else ""
    return (
        f"{scheme}{separator}{user}{colon}{_MASK if colon else ''}{at}"
        f"{place}{mark}{options}{hash_sign}{_MASK if hash_sign else ''}"
    )


def _masked_option(option: str) -> str:
    name, sign, value = option.partition("=")
    shown = _SHOWN_OPTIONS.get(name)
    if shown is not None and shown.fullmatch(value):
        return option
    # Without a value, the name itself may be the secret.
    is_name = _OPTION.fullmatch(name) and (sign or shown is not None)
    return f"{name if is_name else _MASK}{sign}{_MASK if value else ''}"
