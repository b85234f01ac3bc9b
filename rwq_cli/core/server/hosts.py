"""URLs that name several hosts: those of Sentinel and of Redis Cluster."""

from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

SENTINEL_PORT = 26379
CLUSTER_PORT = 6379
# The options of a Sentinel URL that are those of the Sentinels themselves.
SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")


class HostsUrl(NamedTuple):
    """The parts of such a URL.

    Attributes:
        hosts: Hosts and ports.
        service: The service that the Sentinels watch; "" for a cluster.
        db: The database, as it was given; "" for none.
        own: The options that belong to the Sentinels.
        single: The URL of one server with the same user, password, database and options.
    """

    hosts: tuple[tuple[str, int], ...]
    service: str
    db: str
    own: dict[str, str]
    single: str

    @property
    def place(self) -> str:
        """The hosts, with the service and the database."""
        hosts = ",".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts
        )
        return f"{hosts}/{self.service}/{self.db or 0}" if self.service else hosts


def split_hosts(url: str) -> HostsUrl:
    """Split a URL that begins with `redis+sentinel`, `redis+cluster`, or the same with `rediss`.

    Raises:
        ValueError: A host or port cannot be read.
    """
    scheme, _, rest = url.partition("://")
    kind = scheme.partition("+")[2]
    rest, question, query = rest.partition("?")
    credentials, at, place = rest.rpartition("@")
    names, *path = place.split("/")
    service, db = "", "/".join(path)
    if kind == "sentinel":
        service, db = unquote(path[0]) if path else "", "/".join(path[1:])
    default = SENTINEL_PORT if kind == "sentinel" else CLUSTER_PORT
    hosts = tuple(_host(name, default) for name in names.split(",") if name)
    options = parse_qsl(query, keep_blank_values=True)
    own = {name: value for name, value in options if name in SENTINEL_OPTIONS}
    if own and kind == "sentinel":
        rest_of_options = [option for option in options if option[0] not in SENTINEL_OPTIONS]
        query = urlencode(rest_of_options)
        question = "?" if query else ""
    first = names.split(",")[0]
    single = f"{scheme.partition('+')[0]}://{credentials}{at}{first}/{db}{question}{query}"
    return HostsUrl(hosts, service, db.strip("/"), own, single)


def _host(name: str, port: int) -> tuple[str, int]:
    parts = urlsplit(f"redis://{name}")
    return unquote(parts.hostname or "localhost"), parts.port or port
