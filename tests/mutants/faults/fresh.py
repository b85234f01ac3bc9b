"""Faults that were invented with fresh eyes, when the runner was finished: a test of the tests."""

from tests.mutants.faults.fault import Fault

FRESH: tuple[Fault, ...] = (
    Fault(
        "export-forgets-returns",
        "What an export has of an item does not say how often it came back: it is tried again.",
        "rwq_cli/core/lua/ops/snapshot.lua",
        "reply[at + 10] = counts[i] or ''",
        "reply[at + 10] = ''",
    ),
    Fault(
        "prune-of-live-entries",
        "A clean takes the due time of an item that exists: it never comes back.",
        "rwq_cli/core/lua/ops/prune.lua",
        "(which == 'cleaning' or entry ~= 0 and not has_data(id))",
        "true",
    ),
    Fault(
        "last-lease-first",
        "leases shows those first that end last, and those that matter on no screen.",
        "rwq_cli/core/inspect/listing.py",
        "else float(item.lease.ttl_ms)",
        "else -float(item.lease.ttl_ms)",
    ),
    Fault(
        "below-or-equal",
        "wait --below 5 returns while five items wait.",
        "rwq_cli/core/items/results.py",
        "count.waiting < below",
        "count.waiting <= below",
    ),
    Fault(
        "renewed-at-the-last-moment",
        "A worker renews its leases when they all but end: one slow reply, and it loses its items.",
        "rwq_cli/core/work/session.py",
        "_RENEW_AT = 2 / 3",
        "_RENEW_AT = 1 / 100",
    ),
    Fault(
        "finishes-what-is-lost",
        "With the next lease, a worker completes an item that another one has leased since.",
        "rwq_cli/core/lua/ops/lease.lua",
        "values[1] == owner and values[2] == owner and ",
        "",
    ),
    Fault(
        "older-is-younger",
        "rm --older-than 30d removes what came yesterday.",
        "rwq_cli/core/inspect/selection.py",
        "item.idle_s < self.older_than_s",
        "item.idle_s > self.older_than_s",
    ),
    Fault(
        "leased-is-abandoned",
        "stats counts the items that are worked on as abandoned: a false alarm.",
        "rwq_cli/core/inspect/counting.py",
        "abandoned=by_state[State.ABANDONED]",
        "abandoned=by_state[State.ABANDONED] + by_state[State.LEASED]",
    ),
    Fault(
        "doctor-is-content",
        "doctor ends with 0 though it found something: no script notices.",
        "rwq_cli/commands/doctor.py",
        "ExitStatus.OK if is_healthy else ExitStatus.NO",
        "ExitStatus.OK",
    ),
    Fault(
        "variable-before-option",
        "RWQ_URL outdoes -u: rm removes items from another server than the one that was named.",
        "rwq_cli/cli/settings.py",
        'yield "-u", options.get("url"), None',
        'yield "-u", None if variables.get("RWQ_URL") else options.get("url"), None',
    ),
    Fault(
        "quiet-is-loud",
        "-Q prints notes and summaries: cron mails every run.",
        "rwq_cli/environment.py",
        "if not self.quiet:",
        "if True:",
    ),
)
