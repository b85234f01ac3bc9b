-- Remove items with all their traces.
--
-- include: ending
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP; leases MGET DEL; delayed ZREM; buried ZREM; returns HDEL;
--   cleaning LREM; item DEL GET GETRANGE
-- arg keeps_leased:flag  leave items with a lease or guard alone
-- arg is_first_look:flag  skip abandoned and orphaned items
-- rest words  the IDs, each once
-- Returns the outcomes of `outcome_reply`: removed, missing, not-owner, in-transit, changed, wrong-type, elsewhere.
local ids = ids_in(words)
local statuses, facts = judge(ids, 'removed', function(found, now_ms)
  return keeps_leased and effective_lease(found) and 'not-owner'
    or is_first_look and needs_second_look(found, now_ms) and 'in-transit'
end)
if not dry_run then
  end_items(ids, statuses, facts, 'removed')
end
return outcome_reply(ids, statuses, facts)
