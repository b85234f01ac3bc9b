-- Return items to the main list and end their leases.
--
-- include: taking, schedule, returns
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP LPUSH RPUSH; delayed ZREM ZCOUNT ZREMRANGEBYSCORE; buried
--   ZREM ZCOUNT ZREMRANGEBYSCORE; leases SET GET
-- arg front:flag  make the items the next to be leased, not the last
-- rest words  IDs, each once, in the order in which they are to be leased
-- Returns the outcomes of `outcome_reply`: released, already-waiting, not-owner, missing, changed,
-- in-transit, wrong-type, elsewhere.
local ids = ids_in(words)
local facts, refusal = facts_to_take(ids)
if refusal then
  return refusal
end
local statuses, released, now_ms = {}, {}, clock_ms()
for _, id in ipairs(ids) do
  local found = facts[id]
  local is_waiting = found.main and found.main > 0 and not front
  statuses[id] = untaken_status(id, found, now_ms, is_waiting and 'already-waiting')
  if not statuses[id] then
    statuses[id] = 'released'
    released[#released + 1] = id
  end
end
if not dry_run then
  settle_ids(released, 'released')
  if counts_attempt then
    count_returns(released, returns_of(released))
  end
  remove_entries(released)
  unschedule(released, facts)
  push(released, front)
end
return outcome_reply(ids, statuses, facts)
