"""What the address of a server means, and how it is shown. Without redis: messages need it, too."""

import os
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

_BARE = r"(?!local$)(\w[\w.-]*|\[[0-9a-fA-F:.]+(%[\w.-]+)?\])(:\d+)?(/\d*)?"
_SHOWN_OPTIONS = (
    *("db", "username", "sentinel_username"),
    *("ssl_ca_certs", "ssl_certfile", "ssl_cert_reqs", "ssl_check_hostname"),
)
_SECRETS = ("password", "ssl_password", "sentinel_password")
_MASK = "***"
# The unspecified address connects to the loopback, too.
_LOOPBACK = r"^(127\..*|0\.0\.0\.0|::1?)$"


def full_url(url: str) -> str:
    """The URL with the scheme that redis-py knows: none is `redis`, and so is `valkey`."""
    if _fits(_BARE, url):
        return f"redis://{url}"
    return re.sub(r"^valkey(s?)(?=[+:])", r"redis\1", url)


def _fits(pattern: str, text: str) -> bool:
    # Compiled when first used: a start need not take that time.
    return re.fullmatch(pattern, text, re.ASCII) is not None


def mask_url(url: str) -> str:
    """A URL as it was typed, for messages, without what may be a password.

    That is what stands before the last @, what follows a colon and is no port, the value of every
    option that is not known, and the fragment.
    """
    start, credentials, at, place = _split(url)
    if re.search(r"[?#]", credentials):
        # The @ may be part of a value.
        return f"{start}…"
    place, hash_sign, _ = place.partition("#")
    place, mark, query = place.partition("?")
    user, colon, _ = credentials.partition(":")
    user = user if _fits(r"[\w.-]*", user) else _MASK
    options = "&".join(map(_masked_option, query.split("&"))) if query else ""
    return (
        f"{start}{user}{colon}{_MASK if colon else ''}{at}"
        f"{_masked_place(place)}{mark}{options}{hash_sign}{_MASK if hash_sign else ''}"
    )


def _split(url: str) -> tuple[str, str, str, str]:
    """Scheme and `://`, what may be credentials, their @, and the rest."""
    scheme, separator, rest = url.partition("://")
    if not (separator and _fits(r"(?i)[a-z][a-z0-9+.-]*", scheme)):
        scheme, separator, rest = "", "", url
    credentials, at, place = rest.rpartition("@")
    if credentials.startswith("/"):
        credentials, at, place = "", "", rest
    return scheme + separator, credentials, at, place


def _masked_place(place: str) -> str:
    # Other clients take options after a comma or semicolon.
    masked = re.sub(r"(=|%3[dD]).*", rf"\1{_MASK}", place)
    if masked.startswith("/"):
        return masked
    host = r"\[[^\]]*\]|[^\[:,/]*"
    return re.sub(
        rf"^((?:(?:{host})(?::\d+)?,)*(?:{host}):)(?!\d+([,/]|$)).+", rf"\1{_MASK}", masked
    )


def _masked_option(option: str) -> str:
    name, sign, value = option.partition("=")
    if name in _SHOWN_OPTIONS and _fits(r"[\w./-]*", value):
        return option
    # Without a value, the name itself may be the secret.
    is_name = _fits(r"[\w.%-]*", name) and sign
    return f"{name if is_name else _MASK}{sign}{_MASK if value else ''}"


def without_password(url: str) -> str:
    """A valid URL without its password and without the password of its key."""
    start, credentials, _, place = _split(url)
    user = credentials.partition(":")[0]
    place, _, query = place.partition("?")
    options = [option for option in query.split("&") if option]
    kept = [option for option in options if unquote(option.partition("=")[0]) not in _SECRETS]
    return f"{start}{user}{'@' if user else ''}{place}{'?' if kept else ''}{'&'.join(kept)}"


class Address(NamedTuple):
    """What a URL names: a socket, a server, the nodes of a cluster, or Sentinels and their service.

    `options` are those of the query, with the user and the password that stand before the @.
    """

    scheme: str
    hosts: tuple[tuple[str, int], ...]
    socket: str
    service: str
    db: str
    options: dict[str, str]

    def __str__(self) -> str:
        """The URL without user and password."""
        if self.socket:
            return f"unix://{quote(self.socket)}{f'?db={self.db}' if int(self.db or 0) else ''}"
        hosts = ",".join(f"{bracketed(host)}:{port}" for host, port in self.hosts)
        service = f"/{self.service}" if self.service else ""
        db = "" if self.scheme.endswith("+cluster") else f"/{self.db or 0}"
        return f"{self.scheme}://{hosts}{service}{db}"


def bracketed(host: str) -> str:
    """A host as URLs have it."""
    return f"[{host}]" if ":" in host else host


def parse_address(url: str) -> Address:
    """Split a full URL; a host or port that cannot be read is a ValueError."""
    scheme, _, rest = url.partition("://")
    kind = scheme.partition("+")[2]
    rest, _, query = rest.partition("?")
    _, credentials, _, place = _split(f"{scheme}://{rest}")
    # Of several values, the first counts.
    options = dict(reversed(parse_qsl(query, keep_blank_values=True)))
    user, _, password = map(unquote, credentials.partition(":"))
    options |= {"username": user} if user else {}
    options |= {"password": password} if password else {}
    if scheme == "unix":
        return Address(scheme, (), unquote(place), "", options.get("db", ""), options)
    names, *path = place.split("/")
    service = unquote(path.pop(0)) if path and kind == "sentinel" else ""
    port = 26379 if kind == "sentinel" else 6379
    host_names = names.split(",") if kind else [names]
    parts = [urlsplit(f"redis://{name}") for name in host_names if name or not kind]
    hosts = tuple((unquote(part.hostname or "localhost"), part.port or port) for part in parts)
    db = options.get("db") or unquote("/".join(path)).strip("/")
    return Address(scheme, hosts, "", service, db, options)


def has_tls(url: str) -> bool:
    """Whether a URL is that of a server with TLS."""
    return full_url(url).startswith("rediss")


def is_same_server(one: str, other: str) -> bool:
    """Whether two URLs name the same server and database, regardless of user and TLS.

    Two lists of hosts name the same cluster or Sentinels if they have a host in common. A malformed
    URL is only itself.
    """
    return not _endpoints(one).isdisjoint(_endpoints(other))


def is_same_database(one: str, other: str) -> bool:
    """Whether two URLs name databases of one number, of whatever server."""
    numbers = [{endpoint[-1] for endpoint in _endpoints(url)} for url in (one, other)]
    return numbers[0] == numbers[1]


def _endpoints(url: str) -> set[tuple[object, ...]]:
    """The socket, or each host and port, with the database. No name is looked up."""
    try:
        address = parse_address(full_url(url))
        db = int(address.db or 0)
    except ValueError:
        return {(url,)}
    if address.socket:
        return {(os.path.realpath(address.socket), db)}
    return {
        (re.sub(_LOOPBACK, "localhost", host.lower()), port, address.service, db)
        for host, port in address.hosts
    }
