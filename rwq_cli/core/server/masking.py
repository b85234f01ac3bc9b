"""Server URLs without their secrets, for messages and files."""

import re
from urllib.parse import unquote

# Patterns for parts of a URL that certainly hold no password.
_SCHEME = r"(?i)[a-z][a-z0-9+.-]*"
_HOST = r"(?:[\w.-]*|\[[0-9a-fA-F:.]+(?:%[\w.-]+)?\])(?::\d{1,5})?"
_ONE_SERVER = rf"{_HOST}/?\d*/?"
_HOSTS = rf"{_HOST}(?:,{_HOST})*/?"
_SENTINELS = rf"{_HOST}(?:,{_HOST})*(?:/[\w.-]+)?(?:/\d+)?"
_PLACES = {
    "redis": _ONE_SERVER,
    "rediss": _ONE_SERVER,
    "unix": r"(?:/[^,;=&\0-\x1f]*)?",
    "redis+sentinel": _SENTINELS,
    "rediss+sentinel": _SENTINELS,
    "redis+cluster": _HOSTS,
    "rediss+cluster": _HOSTS,
}
_NAME = r"[\w.-]*"
_OPTION = r"[\w.%-]*"
_PATH = r"[\w./-]*"
_SHOWN_OPTIONS = {
    "db": r"\d*",
    "username": _NAME,
    "sentinel_username": _NAME,
    "ssl_ca_certs": _PATH,
    "ssl_certfile": _PATH,
    "ssl_cert_reqs": _NAME,
    "ssl_check_hostname": _NAME,
}
_SECRETS = ("password", "ssl_password", "sentinel_password")
_MASK = "***"
_REST = "…"


def _fits(pattern: str, text: str) -> bool:
    # Compiled when first used: all of them would take a millisecond of each start.
    return re.fullmatch(pattern, text, re.ASCII) is not None


def mask_url(url: str) -> str:
    """Mask a URL for messages.

    This masks the password, a user that does not look like a name, the value of every option that
    may hold a secret, and the fragment. A malformed URL is reduced to its scheme, because the
    password may be anywhere in it.
    """
    scheme, separator, rest = url.partition("://")
    if not url:
        return ""
    if not separator or not _fits(_SCHEME, scheme):
        return _REST
    # The last @ ends the credentials: a password may hold an unescaped one.
    credentials, at, place = rest.rpartition("@")
    if credentials.startswith("/"):
        credentials, at, place = "", "", rest
    place, hash_sign, _ = place.partition("#")
    place, mark, query = place.partition("?")
    looks_like = _PLACES.get(scheme)
    is_certain = not re.search(r"[?#]", credentials)
    if not is_certain or looks_like is None or not _fits(looks_like, unquote(place)):
        return f"{scheme}{separator}{_REST}"
    user, colon, _ = credentials.partition(":")
    user = user if _fits(_NAME, user) else _MASK
    options = "&".join(map(_masked_option, query.split("&"))) if query else ""
    return (
        f"{scheme}{separator}{user}{colon}{_MASK if colon else ''}{at}"
        f"{place}{mark}{options}{hash_sign}{_MASK if hash_sign else ''}"
    )


def without_password(url: str) -> str:
    """A valid URL without its password and without the password of its key."""
    scheme, separator, rest = url.partition("://")
    credentials, at, place = rest.rpartition("@")
    if credentials.startswith("/"):
        credentials, at, place = "", "", rest
    user = credentials.partition(":")[0]
    place, _, query = place.partition("?")
    kept = [
        option
        for option in query.split("&")
        if option and unquote(option.partition("=")[0]) not in _SECRETS
    ]
    options = f"?{'&'.join(kept)}" if kept else ""
    return f"{scheme}{separator}{user}{at if user else ''}{place}{options}"


def _masked_option(option: str) -> str:
    name, sign, value = option.partition("=")
    shown = _SHOWN_OPTIONS.get(name)
    if shown is not None and _fits(shown, value):
        return option
    # Without a value, the name itself may be the secret.
    is_name = _fits(_OPTION, name) and (sign or shown is not None)
    return f"{name if is_name else _MASK}{sign}{_MASK if value else ''}"
