"""What the address of a server means, and how it is shown. Without redis: messages need it, too."""

import os
import re
from typing import NamedTuple
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

_BARE = r"(?!local$)(\w[\w.-]*|\[[0-9a-fA-F:.]+(%[\w.-]+)?\])(:\d+)?(/\d*)?"
_SHOWN_OPTIONS = (
    *("db", "username", "sentinel_username"),
    *("ssl_ca_certs", "ssl_certfile", "ssl_cert_reqs", "ssl_check_hostname"),
)
_SECRETS = ("password", "ssl_password", "sentinel_password")
# The options of a Sentinel URL that are those of the Sentinels themselves.
SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")
_PORTS = {"sentinel": 26379}
_PORT = 6379
_MASK = "***"
# The unspecified address connects to the loopback, too.
_LOCALHOST = ("127.0.0.1", "::1", "0.0.0.0", "::")


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
    scheme, separator, rest = _split(url)
    start = scheme + separator
    credentials, at, place = rest.rpartition("@")
    if credentials.startswith("/"):
        credentials, at, place = "", "", rest
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


def _split(url: str) -> tuple[str, str, str]:
    scheme, separator, rest = url.partition("://")
    has_scheme = separator and _fits(r"(?i)[a-z][a-z0-9+.-]*", scheme)
    return (scheme, separator, rest) if has_scheme else ("", "", url)


def _masked_place(place: str) -> str:
    # Other clients take options after a comma or semicolon.
    shown = re.sub(r"(=|%3[dD]).*", rf"\1{_MASK}", place)
    if shown.startswith("/"):
        return shown
    host = r"\[[^\]]*\]|[^\[:,/]*"
    return re.sub(
        rf"^((?:(?:{host})(?::\d+)?,)*(?:{host}):)(?!\d+([,/]|$)).+", rf"\1{_MASK}", shown
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
    scheme, separator, rest = _split(url)
    credentials, _, place = rest.rpartition("@")
    if credentials.startswith("/"):
        credentials, place = "", rest
    user = credentials.partition(":")[0]
    place, _, query = place.partition("?")
    options = [each for each in query.split("&") if each]
    kept = [each for each in options if unquote(each.partition("=")[0]) not in _SECRETS]
    return (
        f"{scheme}{separator}{user}{'@' if user else ''}{place}{'?' if kept else ''}"
        f"{'&'.join(kept)}"
    )


class HostsUrl(NamedTuple):
    """The parts of a URL that names the nodes of a cluster, or Sentinels and their service.

    `own` are the Sentinels' options; `single` is the URL of one server with the rest of it.
    """

    hosts: tuple[tuple[str, int], ...]
    service: str
    db: str
    own: dict[str, str]
    single: str

    @property
    def place(self) -> str:
        """The hosts, with the service and the database."""
        hosts = ",".join(f"{bracketed(host)}:{port}" for host, port in self.hosts)
        return f"{hosts}/{self.service}/{self.db or 0}" if self.service else hosts


def bracketed(host: str) -> str:
    """A host as URLs have it."""
    return f"[{host}]" if ":" in host else host


def split_hosts(url: str) -> HostsUrl:
    """Split a URL that begins with `redis+sentinel`, `redis+cluster`, or the same with `rediss`.

    A host or port that cannot be read is a ValueError.
    """
    scheme, _, rest = url.partition("://")
    base, _, kind = scheme.partition("+")
    rest, _, query = rest.partition("?")
    credentials, at, place = rest.rpartition("@")
    names, *path = place.split("/")
    service = unquote(path.pop(0)) if path and kind == "sentinel" else ""
    hosts = tuple(_host_port(name, _PORTS.get(kind, _PORT)) for name in names.split(",") if name)
    options = parse_qsl(query, keep_blank_values=True)
    is_own = {name: kind == "sentinel" and name in SENTINEL_OPTIONS for name, _ in options}
    own = {name: value for name, value in options if is_own[name]}
    others = urlencode([(name, value) for name, value in options if not is_own[name]])
    db = "/".join(path)
    single = f"{base}://{credentials}{at}{names.split(',')[0]}/{db}{'?' if others else ''}{others}"
    return HostsUrl(hosts, service, db.strip("/"), own, single)


def _host_port(name: str, port: int) -> tuple[str, int]:
    parts = urlsplit(f"redis://{name}")
    return unquote(parts.hostname or "localhost"), parts.port or port


def is_same_server(one: str, other: str) -> bool:
    """Whether two URLs name the same server and database, regardless of user and TLS.

    Two lists of hosts name the same cluster or Sentinels if they have a host in common.
    """
    return not _endpoints(one).isdisjoint(_endpoints(other))


def _endpoints(url: str) -> set[tuple[object, ...]]:
    """Socket, or each host and port, then the database; a malformed URL equals only itself."""
    scheme, _, rest = full_url(url).partition("://")
    # Undo files of version 0.1 have a masked user and password here.
    place = rest if rest.startswith("/") else rest.rpartition("@")[2]
    try:
        if "+" in scheme:
            hosts = split_hosts(f"{scheme}://{place}")
            service = (hosts.service,) if hosts.service else ()
            db = int(hosts.db or 0)
            return {(_host(host), port, *service, db) for host, port in hosts.hosts}
        parts = urlsplit(f"{scheme}://{place}")
        path = unquote(parts.path)
        (name,) = parse_qs(parts.query).get("db", [""])[:1]
        if scheme == "unix":
            return {(os.path.realpath(path), int(name or 0))}
        host = unquote(parts.hostname or "localhost")
        return {(_host(host), parts.port or _PORT, int(name or path.strip("/") or 0))}
    except ValueError:
        return {(url,)}


def _host(name: str) -> str:
    """The name, which is not looked up; every address of the loopback is `localhost`."""
    return "localhost" if name in _LOCALHOST or name.startswith("127.") else name.lower()
