-- Return items to the main list and end their leases.
--
-- include: taking, schedule, returns
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP LPUSH RPUSH; delayed ZREM ZCOUNT ZREMRANGEBYSCORE; buried
--   ZREM ZCOUNT ZREMRANGEBYSCORE; leases SET GET
-- arg front:flag  make the items the next to be leased, not the last
-- rest words  IDs, each once, in the order in which they are to be leased
-- Returns the outcomes of `outcome_reply`: released, already-waiting, not-owner, missing, changed,
-- in-transit, wrong-type, elsewhere.
return act(ids_in(words), function(id, found, now_ms)
  local is_waiting = found.main and found.main > 0 and not front
  return untaken_status(id, found, now_ms, is_waiting and 'already-waiting') or 'released'
end, function(groups, facts)
  settle_ids(groups.released, 'released')
  if counts_attempt then
    count_returns(groups.released, returns_of(groups.released))
  end
  remove_entries(groups.released)
  unschedule(groups.released, facts)
  push(groups.released, front)
end)
