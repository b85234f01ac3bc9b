-- Complete items: delete their data and all their traces, and optionally keep a result.
--
-- include: ending, expected, results
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP; leases MGET DEL; delayed ZREM; buried ZREM; returns HDEL;
--   cleaning LREM; item DEL
-- arg keep_ms  how long to keep the results, ms; '' to keep none
-- arg status  the status of the results: 'completed' | 'rejected'
-- arg has_result:flag  the results have data
-- arg result  the data of the results, bytes
-- arg owners  holders of which one must have the lease of an item, each as its length, a colon and its bytes; ''
--   for any item
-- rest words  the IDs, each once
-- Returns the outcomes of `outcome_reply`: completed, missing, not-owner, changed, wrong-type, elsewhere.
local ids, is_owner, first = ids_in(words), {}, 1
while first <= #owners do
  local colon = string.find(owners, ':', first, true)
  local last = colon + tonumber(string.sub(owners, first, colon - 1))
  is_owner[string.sub(owners, colon + 1, last)] = true
  first = last + 1
end
local statuses, facts = judge(ids, function(id, found, now_ms)
  return refusal_of(id, found, now_ms)
    or owners ~= '' and not is_owner[effective_lease(found)] and 'not-owner'
    or is_taken_away(found) and 'elsewhere' or unsaved_status(id) or 'completed'
end)
local groups = by_status(ids, statuses)
local results, refusal = prepare_results(groups.completed, facts, keep_ms, status, has_result and result or nil)
if refusal then
  return refusal
end
for id in pairs(results.wrong) do
  statuses[id] = 'wrong-type'
end
if not dry_run then
  groups = next(results.wrong) and by_status(ids, statuses) or groups
  end_items(groups.completed, groups.missing, facts)
  write_results(groups.completed, results)
end
return outcome_reply(ids, statuses, facts)
