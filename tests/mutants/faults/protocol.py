"""Faults in the core: the guarantees of the protocol, its keys, its states, and its verbs."""

from tests.mutants.faults.fault import Fault

_CORE = "rwq_cli/core"
_OPS = "rwq_cli/core/lua/ops"
_LIB = "rwq_cli/core/lua/lib"

PROTOCOL: tuple[Fault, ...] = (
    # Guarantee 1: nothing is lost.
    Fault(
        "clean-pushes-nothing",
        "A clean takes an abandoned item off processing and never makes it available again.",
        f"{_OPS}/repair.lua",
        "  push(groups.returned)\n",
        "",
    ),
    Fault(
        "removal-of-unsaved-data",
        "rm deletes data that were replaced since they were written to the undo file.",
        f"{_LIB}/expected.lua",
        "or token ~= '' and differs_from(token, id, facts)",
        "",
    ),
    Fault(
        "move-over-another-item",
        "mv takes an item out of its list although the other queue has another one of its ID.",
        f"{_OPS}/move.lua",
        "some_exist and is_occupied(id) and 'conflict' or 'moved'",
        "'moved'",
    ),
    # Guarantee 2: one winner, and only what was chosen.
    Fault(
        "complete-without-data",
        "Two workers are both told that they completed an item, though only one deleted it.",
        f"{_OPS}/complete.lua",
        "return refusal_of(id, item, now_ms) or item.buried_ms",
        "return item.data ~= 'none' and refusal_of(id, item, now_ms) or item.buried_ms",
    ),
    Fault(
        "chosen-items-unchecked",
        "A verb acts on an item that is not in the chosen state any more.",
        f"{_LIB}/expected.lua",
        "return expected_states and not is_in_expected_state(facts, now_ms)\n    or ",
        "return ",
    ),
    Fault(
        "chosen-holder-unchecked",
        "rm --holder removes an item that another session has leased since it was chosen.",
        f"{_LIB}/digest.lua",
        "or lease and (effective_lease(facts) or '') ~= lease\n",
        "",
    ),
    # Guarantee 3: no half steps.
    Fault(
        "add-overwrites",
        "add replaces the data of an item that exists, where a duplicate should be refused.",
        f"{_OPS}/add.lua",
        "not has_wrong_lease[id] and redis.call('SETNX', key, data) == 1",
        "not has_wrong_lease[id] and redis.call('SET', key, data)",
    ),
    Fault(
        "wait-turns-the-list",
        "Waiting for an item moves the next one to the end of the queue.",
        f"{_CORE}/server/push_waiter.py",
        '("BLMOVE", key, key, "RIGHT", "RIGHT", BLOCK_S)',
        '("BLMOVE", key, key, "RIGHT", "LEFT", BLOCK_S)',
    ),
    Fault(
        "ghosts-are-leased",
        "A worker is handed the ID of an item that was completed, with no data.",
        f"{_OPS}/lease.lua",
        "if data and not worked_on and not is_leased[id] then",
        "if not worked_on and not is_leased[id] then\n    data = data or ''",
    ),
    Fault(
        "burying-leaves-the-entry",
        "A buried item stays in its list: a worker takes it all the same.",
        f"{_OPS}/put.lua",
        "  remove_entries(joined(moved, already_buried))\n",
        "",
    ),
    # Guarantee 4: cleaning beside live workers and other cleaners.
    Fault(
        "no-settling-lease",
        "A cleaner of upstream's pushes a second time what a clean of ours has just returned.",
        f"{_OPS}/repair.lua",
        "  settle(lease_keys(groups.returned), 'returned')\n",
        "",
    ),
    Fault(
        "clean-without-a-second-check",
        "A clean takes an item from a worker that leased it between the clean's looks.",
        f"{_OPS}/repair.lua",
        "not expected_states[state] or is_another(id)",
        "is_another(id)",
    ),
    Fault(
        "no-grace-period",
        "A clean looks twice at once, and takes an item between its worker's pop and lease.",
        f"{_CORE}/items/lock.py",
        "while seconds > 0:",
        "while False:",
    ),
    # Guarantee 5: the server never stalls.
    Fault(
        "endless-lookups",
        "One script looks for hundreds of IDs in a list of a million: everybody waits for seconds.",
        f"{_CORE}/batches.py",
        "entries: int = 500_000",
        "entries: int = 500_000_000",
    ),
    Fault(
        "one-call-at-a-time",
        "Adding waits for each reply before the next call: a far server is slow.",
        f"{_CORE}/server/connection.py",
        "WINDOW_CALLS = 24",
        "WINDOW_CALLS = 1",
    ),
    # Servers.
    Fault(
        "old-connections-are-kept",
        "After a failover behind one name, commands stay with the old primary, now a replica.",
        f"{_CORE}/server/endpoint.py",
        "self._client.connection_pool.disconnect(inuse_connections=False)",
        "pass",
    ),
    Fault(
        "lost-writes-are-sent-again",
        "A write whose reply was lost is sent again, and is carried out twice.",
        f"{_CORE}/server/patience.py",
        'READS_ONLY = ("lost", "timeout")',
        'READS_ONLY = ("timeout",)',
    ),
    # Guarantee 6: looking changes nothing.
    Fault(
        "looking-counts-as-use",
        "A listing resets the idle times of items, by which their age is known.",
        f"{_CORE}/server/link.py",
        '"NO-TOUCH", "ON"',
        '"NO-TOUCH", "OFF"',
    ),
    Fault(
        "dry-run-releases",
        "release --dry-run releases; and so on: a dry run acts.",
        f"{_LIB}/expected.lua",
        "if not dry_run then\n    write(",
        "if true then\n    write(",
    ),
    # The keys: Q:queue.
    Fault(
        "last-in-first-out",
        "What is added last is leased first.",
        f"{_OPS}/add.lua",
        "for_all('LPUSH', main, for_main)",
        "for_all('RPUSH', main, for_main)",
    ),
    Fault(
        "front-is-the-end",
        "release --front puts an item behind all others.",
        f"{_LIB}/schedule.lua",
        "for_all(front and 'RPUSH' or 'LPUSH', main, front and reversed(ids) or ids)",
        "for_all('LPUSH', main, front and reversed(ids) or ids)",
    ),
    Fault(
        "kick-to-the-front",
        "Kicked and promoted items come before those that have waited.",
        f"{_OPS}/push_scheduled.lua",
        "  push(pushed)\n",
        "  push(pushed, true)\n",
    ),
    Fault(
        "low-priority-first",
        "lease -q high -q low takes from the last queue that has something.",
        f"{_CORE}/items/lease.py",
        "due_in_s = inf\n    for queue in queues:",
        "due_in_s = inf\n    for queue in reversed(queues):",
    ),
    # Q:processing.
    Fault(
        "lease-is-not-listed",
        "A leased item is not in processing: when its worker dies, no light clean finds it.",
        f"{_OPS}/lease.lua",
        "  for_all('LPUSH', processing, leased)\n",
        "",
    ),
    # Q:lease and Q:leased_by_session.
    Fault(
        "one-lease-name",
        "We set the lease under the later name only: a cleaner of 0.1 takes the item away.",
        f"{_LIB}/facts.lua",
        "for _, prefix in ipairs({ lease_prefix, old_lease_prefix }) do",
        "for _, prefix in ipairs({ lease_prefix }) do",
    ),
    Fault(
        "lease-without-end",
        "A lease never ends: what a dead worker held is held for ever.",
        f"{_OPS}/lease.lua",
        "redis.call('SET', leases[i], holder, 'PX', lease_ms)",
        "redis.call('SET', leases[i], holder)",
    ),
    Fault(
        "earlier-lease-counts",
        "Where the two lease names disagree, the lease that ends first counts.",
        f"{_LIB}/state.lua",
        "return b ~= -1 and (a == -1 or a > b)",
        "return b ~= -1 and (a == -1 or a < b)",
    ),
    Fault(
        "settling-lease-counts",
        "An item that was just pushed counts as leased, though nobody works on it.",
        f"{_CORE}/state/rules.py",
        "return None if guard_kind(lease) == SETTLING_GUARD else lease",
        "return lease",
    ),
    # Q:cleaning.
    Fault(
        "cleaning-is-kept",
        "An ID that a dead cleaner of 0.1 had in hand stays in Q:cleaning after its item is gone.",
        f"{_LIB}/facts.lua",
        "      redis.call('LREM', cleaning, 0, id)\n",
        "",
    ),
    # Q:delayed.
    Fault(
        "delayed-too-early",
        "A promotion takes items off Q:delayed that are due tomorrow.",
        f"{_OPS}/push_scheduled.lua",
        "elseif not item.due_ms or item.due_ms > now_ms then",
        "elseif not item.due_ms or item.due_ms > now_ms + 86400000 then",
    ),
    Fault(
        "delayed-out-of-order",
        "Items that were added for one time come back in the order of their IDs.",
        f"{_OPS}/add.lua",
        "local STEP_MS = 0.001",
        "local STEP_MS = 0",
    ),
    Fault(
        "guard-without-margin",
        "A guard ends when its item is due: a foreign cleaner pushes it, and so do we.",
        f"{_LIB}/schedule.lua",
        "math.ceil(due_ms - now_ms)) + GUARD_MARGIN_MS",
        "math.ceil(due_ms - now_ms))",
    ),
    # Q:buried.
    Fault(
        "reason-is-lost",
        "Nobody is told why an item was buried.",
        f"{_OPS}/put.lua",
        "local guard = GUARDS.buried .. reason",
        "local guard = GUARDS.buried",
    ),
    # Q:returns.
    Fault(
        "returns-are-not-counted",
        "An item that kills its workers is returned for ever, whatever --bury-after says.",
        f"{_LIB}/schedule.lua",
        "(counts[id] or 0) + 1)",
        "(counts[id] or 0))",
    ),
    # Q:result.
    Fault(
        "result-without-end",
        "Results are kept for ever, and fill the server.",
        f"{_OPS}/complete.lua",
        "    redis.call('PEXPIRE', key, keep_ms)\n",
        "",
    ),
    # Q:undo.
    Fault(
        "undo-twice",
        "An undo that was cut and is run again brings back items that were completed meanwhile.",
        f"{_OPS}/restore.lua",
        "mark_lines(done)\n",
        "",
    ),
    # Q:absent.
    Fault(
        "half-a-slot",
        "While a slot of a cluster moves, a script reads what has moved already as missing.",
        f"{_CORE}/handle.py",
        ", *[self.keys.absent] * self.connection.is_cluster)",
        ",)",
    ),
    # Q:clean-lock, Q:move-lock.
    Fault(
        "two-cleans-at-once",
        "Two cleans are at work on a queue: each returns what the other has just returned.",
        f"{_OPS}/lock.lua",
        "elseif current and current ~= holder then",
        "elseif false then",
    ),
    Fault(
        "a-mover-that-lost-its-turn",
        "A move that was stopped for long removes items whose copies the next one has removed.",
        f"{_OPS}/remove_buried.lua",
        "redis.call('HGET', moved, '') ~= holder",
        "false",
    ),
    Fault(
        "completed-before-it-arrived",
        "An item that was completed at the destination of a move that was killed comes back there.",
        f"{_OPS}/complete.lua",
        "item.buried_ms and is_copy(item) and 'moving'",
        "nil",
    ),
    # Q:moved.
    Fault(
        "removed-and-moved",
        "What was removed at the source of a move that was killed comes back at the destination.",
        f"{_CORE}/items/transfer.py",
        'moved = set(self._queue.call("HKEYS", key))',
        "moved = set[bytes]()",
    ),
    # Names.
    Fault(
        "purge-of-nested-queues",
        "purge of jobs deletes the keys of the queue jobs:item:x.",
        f"{_CORE}/items/purge.py",
        "if nested := nested_names(queue, suspects) or unlisted_owners(queue, items):",
        "if nested := ():",
    ),
    # States.
    Fault(
        "duplicate-waits",
        "An item that is in both lists counts as waiting, and nothing repairs it.",
        f"{_CORE}/state/rules.py",
        "if self.in_main > 1 or (self.in_main and self.in_processing):",
        "if self.in_main > 1:",
    ),
    Fault(
        "glob-in-the-name",
        "A queue whose name has a * is mixed up with others: purge deletes their items.",
        f"{_CORE}/keys.py",
        'rb"[]*?[\\\\^-]"',
        'rb"[]?[\\\\^-]"',
    ),
    # The outcomes of verbs.
    Fault(
        "complete-ignores-the-owner",
        "complete --owner completes what another session has leased since.",
        f"{_OPS}/complete.lua",
        "not is_owner[session_of(item)] and",
        "false and",
    ),
    Fault(
        "touch-revives-a-lease",
        "touch leases again an item whose lease has ended.",
        f"{_OPS}/touch.lua",
        "(not session or session == '') and 'not-leased'",
        "session == '' and 'not-leased'",
    ),
    Fault(
        "release-takes-from-others",
        "release without --force ends the lease of another session.",
        f"{_OPS}/put.lua",
        "    or other and not force and 'not-owner'\n",
        "",
    ),
    Fault(
        "edit-overwrites",
        "edit replaces data that somebody else has changed meanwhile.",
        f"{_OPS}/set_data.lua",
        "length ~= #before or redis.call('GET', key) ~= before",
        "false",
    ),
    Fault(
        "wait-is-over-at-once",
        "wait --until-empty returns while items are being worked on.",
        f"{_CORE}/items/results.py",
        "not (count.waiting or count.processing or count.delayed)",
        "not (count.waiting or count.delayed)",
    ),
)
