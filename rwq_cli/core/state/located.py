"""How the caller of a script knows where IDs are in the lists."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from rwq_cli.core.batches import SCAN_BUDGET_ENTRIES


class Located(NamedTuple):
    """IDs, and how a script finds them: see `core/lua/lib/locate.lua`."""

    ids: Sequence[bytes]
    # `name`, `places` or `leased`.
    how: str
    # For `places`, where the entries of each ID were seen, and the server's clock before, unix ms.
    places: Sequence[str] = ()
    since_ms: int = 0
    # For `name`, how many entries to scan at most.
    scan_max: int = 0
    # The fingerprints of the data that was saved of each; None if none was read.
    saved: Mapping[bytes, str] | None = None
    # The snapshots of what was saved, if they were read now.
    read: Sequence[Any] = ()

    @classmethod
    def by_name(cls, ids: Sequence[bytes], *, scan_max: int = SCAN_BUDGET_ENTRIES) -> "Located":
        """IDs that are looked up in both lists, or none of them if that would take too long."""
        return cls(ids, "name", scan_max=scan_max)

    @classmethod
    def at_places(cls, ids: Sequence[bytes], places: Sequence[str], since_ms: int) -> "Located":
        """IDs whose entries were seen; "" for those in no list."""
        return cls(ids, "places", places, since_ms)

    @classmethod
    def leased(cls, ids: Sequence[bytes]) -> "Located":
        """IDs in processing that the caller has leased. In a long list, only the first of them is
        sure to be found: the others are to be tried again."""
        return cls(ids, "leased")

    def args(self) -> dict[str, Any]:
        """The script arguments."""
        return {
            "where": self.how,
            "places": "".join(each + ";" for each in self.places),
            "seen_ms": self.since_ms,
            "scan_max": self.scan_max,
        }

    def only(self, ids: Collection[bytes]) -> "Located":
        """The same for some of the IDs."""
        kept = [at for at, item_id in enumerate(self.ids) if item_id in ids]
        places = [self.places[at] for at in kept] if self.places else ()
        return self._replace(ids=[self.ids[at] for at in kept], places=places)

    def after(self, count: int) -> "Located":
        """The same without the first IDs."""
        return self._replace(ids=self.ids[count:], places=self.places[count:])
