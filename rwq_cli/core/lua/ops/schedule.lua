-- Bury or delay items, wherever they are, and end their leases.
--
-- include: taking, schedule, returns
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP; leases SET GET; delayed ZADD ZREM ZCOUNT
--   ZREMRANGEBYSCORE; buried ZADD ZREM ZCOUNT ZREMRANGEBYSCORE; server TIME
-- arg delay_ms:number  how long to delay them, ms; '' to bury them
-- arg reason  the reason to bury them, bytes
-- arg replaces_reason:flag  replace the reason of those that are already buried
-- rest words  IDs, each once
-- Returns the outcomes of `outcome_reply`: buried, already-buried, delayed, not-owner, missing,
-- changed, in-transit, wrong-type, elsewhere.
return act(ids_in(words), function(id, found, now_ms)
  return untaken_status(id, found, now_ms) or delay_ms and 'delayed'
    or state_of(found, now_ms) == 'buried' and 'already-buried' or 'buried'
end, function(groups, facts, now_ms)
  -- The guards first, because a server that is out of memory refuses them.
  local moved, already_buried = delay_ms and groups.delayed or groups.buried, groups['already-buried']
  local zset, first_ms, scores, listed = delay_ms and delayed or buried, now_ms + (delay_ms or 0), {}, {}
  for i, id in ipairs(moved) do
    local at_ms = first_ms + i / 1000
    if delay_ms then
      set_lease(id, delayed_guard(at_ms, now_ms))
    else
      guard_buried(id, reason)
    end
    scores[2 * i - 1], scores[2 * i], listed[i] = as_ms(at_ms), id, id
  end
  if counts_attempt then
    count_returns(moved, returns_of(moved))
  end
  for _, id in ipairs(already_buried) do
    -- The time of burial stays, and so does the reason unless it is replaced.
    guard_buried(id, not replaces_reason and reason_of(facts[id]) or reason)
    listed[#listed + 1] = id
  end
  if present[delayed] then
    for_all('ZREM', delayed, already_buried)
  end
  remove_entries(listed)
  unschedule(moved, facts)
  for_all('ZADD', zset, scores)
end)
