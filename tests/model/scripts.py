"""What each of our scripts does to the keys, by the protocol's words: one atomic step each.

Written from the protocol, not from the Lua files, with which `test_model.py` compares it.

`MUTATIONS` are defects that the checker must find.
"""

from collections.abc import Iterable, Sequence

from tests.model.keys import GUARDS, LATER_S, MARGIN_S, SESSION_S, SETTLING_S, Keys

MUTATIONS = (
    "a clean does not check again",
    "two writes swapped",
    "no guard",
    "one lease name forgotten",
    "a promotion leaves the entry",
    "no settling lease",
    "a clean takes what was pushed since its first look",
    "an add is next",
    "the front is the end",
    "a lease takes the newest",
    "a lease finds nothing that is due",
)
# What a look saw of an item: its data, when that was, and when rwq pushed it, 0 if it does not
# settle. The time is counted in pushes.
Identity = tuple[int, int, int]
Seen = Sequence[tuple[str, Identity | None]]
Outcomes = tuple[tuple[str, str], ...]


def is_session(holder: str | None) -> bool:
    """Whether somebody works under this lease."""
    return holder is not None and holder not in GUARDS


class Queue(Keys):
    """The keys with our scripts as methods; with a mutation, the scripts have a defect."""

    mutation = ""

    # Facts.

    def _left_s(self, item_id: str, holder: str) -> float:
        due_s = LATER_S if self.delayed.get(item_id) == "later" else 0
        guards = {"buried": float("inf"), "delayed": due_s + MARGIN_S, "settling": SETTLING_S}
        return guards.get(holder, SESSION_S)

    def effective(self, item_id: str) -> str | None:
        """The effective lease: a session's before a guard, then the one that ends later.

        A lease of ours is over unless both names have it.
        """
        held = [leases[item_id] for leases in (self.new, self.old) if item_id in leases]
        held = [holder for holder in held if holder != "settling"]
        if self.new.get(item_id) != self.old.get(item_id):
            held = [holder for holder in held if not holder.startswith("rwq:")]
        return max(
            held,
            key=lambda holder: (is_session(holder), self._left_s(item_id, holder)),
            default=None,
        )

    def session(self, item_id: str) -> str | None:
        holder = self.effective(item_id)
        return holder if is_session(holder) else None

    def is_guarded(self, item_id: str) -> bool:
        new, old = self.new.get(item_id), self.old.get(item_id)
        entry = {"delayed": item_id in self.delayed, "buried": item_id in self.buried}
        return new == old and entry.get(new or "", False)

    def state(self, item_id: str) -> str:
        """The protocol's table."""
        in_main, working = self.main.count(item_id), item_id in self.processing
        scheduled = item_id in self.delayed or item_id in self.buried
        if item_id not in self.data:
            if in_main or working or scheduled:
                return "ghost"
            return "stray-lease" if self.effective(item_id) else "gone"
        if in_main > 1 or (in_main and working):
            return "duplicated"
        if in_main:
            return "waiting"
        if working and not self.is_guarded(item_id):
            return "leased" if self.session(item_id) else "abandoned"
        if item_id in self.buried:
            return "buried"
        if item_id in self.delayed:
            return "due" if self.delayed[item_id] == "due" else "delayed"
        if self.session(item_id):
            return "unlisted"
        return "orphaned"

    # Parts of scripts.

    def _set_leases(self, item_id: str, holder: str) -> None:
        self.new[item_id] = holder
        if self.mutation != "one lease name forgotten":
            self.old[item_id] = holder
        self.guarded[item_id] = holder

    def _guard(self, item_id: str, kind: str) -> None:
        if self.mutation != "no guard":
            self._set_leases(item_id, kind)
        else:
            self._drop_leases(item_id)
            self.guarded[item_id] = kind

    def _drop_leases(self, item_id: str) -> None:
        self.new.pop(item_id, None)
        self.old.pop(item_id, None)
        self.guarded.pop(item_id, None)

    def _drop_guards(self, item_id: str) -> None:
        for leases in (self.new, self.old):
            if leases.get(item_id) in ("delayed", "buried"):
                del leases[item_id]
        self.guarded.pop(item_id, None)

    def _unlist(self, item_id: str, *, leased: bool = False) -> None:
        """Remove its entries; under its own lease, only its latest in processing is looked for."""
        if leased:
            if item_id in self.processing:
                self.processing.remove(item_id)
            return
        for entries in (self.main, self.processing):
            entries[:] = [entry for entry in entries if entry != item_id]

    def _unschedule(self, item_id: str) -> None:
        self.delayed.pop(item_id, None)
        self.buried.discard(item_id)

    def _forget(self, item_id: str) -> None:
        self._drop_leases(item_id)
        self._unschedule(item_id)
        self.returns.pop(item_id, None)
        self.cleaning[:] = [entry for entry in self.cleaning if entry != item_id]

    def _push_settled(
        self, item_id: str, *, front: bool = False, leased: bool = False, unlists: bool = True
    ) -> None:
        self.pushed[item_id] = self.now() + 1
        if self.mutation == "no settling lease":
            self.new.pop(item_id, None)
        else:
            self.new[item_id] = "settling"
        self.old.pop(item_id, None)
        self.guarded[item_id] = "pushed"
        if unlists:
            self._unlist(item_id, leased=leased)
        self._unschedule(item_id)
        front = front and self.mutation != "the front is the end"
        self.main.insert(len(self.main) if front else 0, item_id)

    # Reading scripts.

    def states(
        self, ids: Sequence[str]
    ) -> tuple[tuple[tuple[str, Identity | None], ...], tuple[str, ...]]:
        """Of IDs in processing: those that look abandoned, with identities, and the ghosts."""
        abandoned, ghosts = [], []
        for item_id in ids:
            if item_id not in self.data:
                ghosts.append(item_id)
            elif not self.session(item_id) and not self.is_guarded(item_id):
                abandoned.append((item_id, self._identity(item_id)))
        return tuple(abandoned), tuple(ghosts)

    def look_up(
        self, ids: Sequence[str]
    ) -> tuple[tuple[str, str, tuple[str, ...], Identity | None], ...]:
        """Of each ID its state, places, and identity if nobody and no guard protects it."""
        return tuple(
            (item_id, self.state(item_id), self._places(item_id), self._identity(item_id))
            for item_id in ids
        )

    def _places(self, item_id: str) -> tuple[str, ...]:
        structures = {
            "main": self.main,
            "processing": self.processing,
            "cleaning": self.cleaning,
            "delayed": self.delayed,
            "buried": self.buried,
        }
        return tuple(name for name, ids in structures.items() if item_id in ids)

    def _identity(self, item_id: str) -> Identity | None:
        if item_id not in self.data or self.session(item_id) or self.is_guarded(item_id):
            return None
        return self.data[item_id], self.now(), self._pushed_at(item_id)

    def now(self) -> int:
        return max(self.pushed.values(), default=0)

    def _pushed_at(self, item_id: str) -> int:
        return self.pushed[item_id] if self.is_settling(item_id) else 0

    def is_settling(self, item_id: str) -> bool:
        return "settling" in (self.new.get(item_id), self.old.get(item_id))

    def _is_same(self, item_id: str, seen: Identity | None) -> bool:
        """Whether it is the item that was seen, and was not pushed since; any for None."""
        if seen is None:
            return True
        life, looked_at, _ = seen
        if self.data.get(item_id) != life:
            return False
        if self.mutation == "a clean takes what was pushed since its first look":
            return True
        return self._pushed_at(item_id) <= looked_at

    def scheduled(self) -> tuple[str, ...]:
        return tuple(sorted({*self.delayed, *self.buried}))

    def due(self) -> tuple[str, ...]:
        return tuple(sorted(i for i, at in self.delayed.items() if at == "due"))

    def unguarded(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Of delayed and buried IDs, those that some cleaner could return too early."""
        return tuple(
            i for i in ids if self.state(i) in ("delayed", "buried") and self._lacks_guard(i)
        )

    def _lacks_guard(self, item_id: str) -> bool:
        """Whether nobody holds a scheduled item, and its guard is missing under a name."""
        if self.session(item_id) or self.state(item_id) not in ("delayed", "due", "buried"):
            return False
        return not self.is_guarded(item_id)

    # Writing scripts.

    def add(self, item_id: str, later: bool) -> Outcomes:
        if item_id in self.data:
            return ((item_id, "duplicate"),)
        self.create(item_id)
        self._drop_leases(item_id)
        self._unschedule(item_id)
        self.returns.pop(item_id, None)
        if later:
            self._guard(item_id, "delayed")
            self.delayed[item_id] = "later"
        else:
            is_next = self.mutation == "an add is next"
            self.main.insert(len(self.main) if is_next else 0, item_id)
        return ((item_id, "added"),)

    def lease(self, holder: str) -> tuple[str, int] | None:
        """Promote what is due, then take the next item; ghosts on the way are dropped."""
        promotes = self.mutation != "a lease finds nothing that is due"
        for item_id in self.due() if promotes else ():
            if item_id in self.data and self.session(item_id):
                continue
            # That nobody has pushed a guarded item is believed without a look at the lists. Others,
            # and what is due later, are left to `push_scheduled`.
            if item_id in self.buried or not (item_id in self.data and self.is_guarded(item_id)):
                break
            self._promote(item_id, unlists=False)
        while self.main:
            item_id = self.main.pop(0 if self.mutation == "a lease takes the newest" else -1)
            working = item_id in self.processing and self.session(item_id)
            if item_id in self.data and not working:
                self._set_leases(item_id, holder)
                self.processing.insert(0, item_id)
                return item_id, self.returns.get(item_id, 0)
        return None

    def lease_id(self, item_id: str, holder: str) -> Outcomes:
        if item_id not in self.data:
            return ((item_id, "gone"),)
        state = self.state(item_id)
        if self.session(item_id) and (item_id in self.processing or item_id not in self.main):
            return ((item_id, "leased"),)
        if state in ("abandoned", "orphaned"):
            return ((item_id, state),)
        self._set_leases(item_id, holder)
        self._unlist(item_id)
        self._unschedule(item_id)
        self.processing.insert(0, item_id)
        return ((item_id, "taken"),)

    def complete(self, item_id: str, owner: str | None, leased: bool = False) -> Outcomes:
        """The owner, if any, must hold its lease; who has leased it looks only in processing."""
        if owner is not None and item_id in self.data and self.effective(item_id) != owner:
            return ((item_id, "not-owner"),)
        if leased and item_id in self.data and item_id not in self.processing:
            # Another worker is completing it.
            return ((item_id, "elsewhere"),)
        life = self.data.pop(item_id, 0)
        if life:
            self.wins.append((item_id, life))
        self._forget(item_id)
        self._unlist(item_id, leased=leased)
        return ((item_id, "completed" if life else "missing"),)

    def remove(self, item_id: str, life: int) -> Outcomes:
        """Delete an item whose data the caller has saved; or every trace of one without data."""
        if item_id not in self.data:
            self._forget(item_id)
            self._unlist(item_id)
            return ((item_id, "missing"),)
        if self.data[item_id] != life:
            return ((item_id, "changed"),)
        del self.data[item_id]
        self._forget(item_id)
        self._unlist(item_id)
        return ((item_id, "removed"),)

    def touch(self, item_id: str, owner: str | None = None) -> Outcomes:
        session = self.session(item_id)
        if item_id not in self.data:
            return ((item_id, "missing"),)
        if owner is not None and session != owner:
            return ((item_id, "not-owner"),)
        if not session:
            return ((item_id, "not-leased"),)
        self._set_leases(item_id, session)
        return ((item_id, "touched"),)

    def _refusal(self, item_id: str, own: str, force: bool, first_look: bool) -> str | None:
        session = self.session(item_id)
        if session and session != own and not force:
            return "not-owner"
        if first_look and self.state(item_id) in ("abandoned", "orphaned"):
            return "in-transit"
        return None

    def end_job(self, item_id: str, own: str, how: str, counts: bool) -> Outcomes:
        """What a worker does with what it has leased, only while its lease lasts."""
        if item_id not in self.data:
            return ((item_id, "missing"),)
        if self.session(item_id) != own:
            return ((item_id, "not-owner"),)
        if item_id not in self.processing:
            return ((item_id, "elsewhere"),)
        if counts:
            self.returns[item_id] = self.returns.get(item_id, 0) + 1
        if how == "released":
            self._push_settled(item_id, leased=True)
        else:
            self._guard(item_id, how)
            self._unlist(item_id, leased=True)
            self._put_away(item_id, how)
        return ((item_id, how),)

    def release(
        self, item_id: str, own: str, force: bool, first_look: bool, front: bool
    ) -> Outcomes:
        if item_id not in self.data:
            return ((item_id, "missing"),)
        if item_id in self.main and not front:
            return ((item_id, "already-waiting"),)
        refusal = self._refusal(item_id, own, force, first_look)
        if refusal:
            return ((item_id, refusal),)
        self._push_settled(item_id, front=front)
        return ((item_id, "released"),)

    def schedule(self, item_id: str, how: str, own: str, force: bool, first_look: bool) -> Outcomes:
        """Delay (`how` is `delayed`) or bury."""
        if item_id not in self.data:
            return ((item_id, "missing"),)
        refusal = self._refusal(item_id, own, force, first_look)
        if refusal:
            return ((item_id, refusal),)
        known = item_id in self.buried and item_id not in self.main
        if (
            how == "buried"
            and known
            and (item_id not in self.processing or self.is_guarded(item_id))
        ):
            self._guard(item_id, "buried")
            self.delayed.pop(item_id, None)
            self._unlist(item_id)
            return ((item_id, "already-buried"),)
        self._guard(item_id, how)
        self._unlist(item_id)
        self._put_away(item_id, how)
        return ((item_id, how),)

    def _put_away(self, item_id: str, how: str) -> None:
        if self.mutation != "two writes swapped":
            self._unschedule(item_id)
        if how == "delayed":
            self.delayed[item_id] = "later"
        else:
            self.buried.add(item_id)
        if self.mutation == "two writes swapped":
            self._unschedule(item_id)

    def _entry_kind(self, item_id: str, which: str) -> str | None:
        """What the entry of an ID in a sorted set calls for."""
        entries = self.delayed if which == "delayed" else self.buried
        if item_id not in entries or (which == "delayed" and self.delayed[item_id] != "due"):
            return None
        if item_id not in self.data:
            return "stale"
        session = self.session(item_id)
        if session:
            listed = item_id in self.main or item_id in self.processing
            return None if which == "delayed" and not listed else "leased"
        state = self.state(item_id)
        if which == "delayed" and state == "buried":
            return "superseded"
        return "push" if state in ("due", "buried") else "stale"

    def _promote(self, item_id: str, *, unlists: bool = True) -> None:
        entry = self.delayed.get(item_id)
        self._push_settled(item_id, unlists=unlists)
        if self.mutation == "a promotion leaves the entry" and entry:
            self.delayed[item_id] = entry

    def push_scheduled(self, which: str, ids: Sequence[str]) -> Outcomes:
        """Promote due items, or kick buried ones."""
        statuses = []
        promotes = which == "delayed"
        for item_id in ids:
            kind = self._entry_kind(item_id, which)
            gone = item_id not in self.data
            status = "skipped" if promotes else "missing" if gone else "not-buried"
            if kind == "push":
                status = "promoted" if promotes else "kicked"
                self._promote(item_id)
                if not promotes:
                    self.returns.pop(item_id, None)
            elif kind == "stale":
                status = "pruned" if promotes else status
                self.delayed.pop(item_id, None) if promotes else self.buried.discard(item_id)
                self._drop_guards(item_id)
            elif kind == "leased" and not promotes:
                status = "not-owner"
            elif kind:
                status = "pruned"
                self.delayed.pop(item_id)
            statuses.append((item_id, status))
        return tuple(statuses)

    def repair(self, expected: Sequence[str], seen: Seen) -> Outcomes:
        """Repair what is still in one of the states, and what the first look saw.

        No states: the entries of listed items in the sorted sets go.
        """
        return tuple((i, self._repair(expected, i, identity)) for i, identity in seen)

    def _repair(self, expected: Sequence[str], item_id: str, seen: Identity | None) -> str:
        state = self.state(item_id)
        if not expected:
            listed = item_id in self.main or item_id in self.processing
            if (
                item_id not in self.data
                or not listed
                or not (item_id in self.delayed or item_id in self.buried)
                or (item_id not in self.main and self.is_guarded(item_id))
            ):
                return "skipped"
            self._unschedule(item_id)
            self._drop_guards(item_id)
            return "pruned"
        if self.mutation == "a clean does not check again":
            state = expected[0]
        elif state not in expected or not self._is_same(item_id, seen):
            return "skipped"
        if state == "ghost":
            self._unlist(item_id)
            return "dropped"
        if state == "duplicated":
            self._drop_surplus(item_id)
            return "dropped"
        self.returns[item_id] = self.returns.get(item_id, 0) + 1
        self._push_settled(item_id)
        return "returned"

    def _drop_surplus(self, item_id: str) -> None:
        """Keep the entry in processing if a session holds the item, else the next in main."""
        working = item_id in self.processing and self.session(item_id)
        keeps = self.processing if working else self.main
        at = len(keeps) - 1 - keeps[::-1].index(item_id)
        self.main[:], self.processing[:] = (
            [e for n, e in enumerate(entries) if e != item_id or (entries is keeps and n == at)]
            for entries in (self.main, self.processing)
        )

    def pushes(self, item_id: str) -> int:  # noqa: ARG002
        """How often anything was pushed so far: the server's clock, as settling leases know it."""
        return self.now()

    def repair_unlisted(self, item_id: str, seen: Identity | None, pushes: int) -> Outcomes:
        """Return an orphan that a walk found in no list, unless it was pushed since."""
        if item_id in self.main or item_id in self.processing:
            return ((item_id, "elsewhere"),)
        if self.is_settling(item_id) and self.pushed[item_id] > pushes:
            return ((item_id, "elsewhere"),)
        return self.repair(("orphaned",), ((item_id, seen),))

    def restore_guards(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Set what is missing of the guards of scheduled items in no list, whom nobody holds."""
        found = [i for i in ids if i in self.data and self._lacks_guard(i)]
        found = [i for i in found if i not in self.main and i not in self.processing]
        for item_id in found:
            kind = "buried" if item_id in self.buried else "delayed"
            if self.mutation != "no guard":
                self.new.setdefault(item_id, kind)
                self.old.setdefault(item_id, kind)
            if self.is_guarded(item_id):
                self.guarded[item_id] = kind
        return tuple(found)

    def prune(self, which: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Entries without data go; those of `cleaning` whatever they are."""
        pruned = []
        for item_id in ids:
            if which == "cleaning":
                found = item_id in self.cleaning
                self.cleaning[:] = [entry for entry in self.cleaning if entry != item_id]
            else:
                entries: Iterable[str] = self.delayed if which == "delayed" else self.buried
                found = item_id in entries and item_id not in self.data
                if found:
                    self.delayed.pop(item_id, None) if which == "delayed" else (
                        self.buried.discard(item_id)
                    )
                    self._drop_guards(item_id)
            if found:
                pruned.append(item_id)
        return tuple(pruned)
