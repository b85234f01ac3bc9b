-- Remove items with all their traces.
--
-- include: ending, leaving
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP; leases MGET DEL; delayed ZREM; buried ZREM; returns HDEL;
--   cleaning LREM; item DEL GET GETRANGE
-- rest words  the IDs, each once
-- Returns the outcomes of `outcome_reply`: removed, missing, not-owner, in-transit, changed, wrong-type, elsewhere.
return act(ids_in(words), function(id, found, now_ms)
  return staying_status(id, found, now_ms) or 'removed'
end, function(groups, facts)
  end_items(groups.removed, groups.missing, facts)
end)
