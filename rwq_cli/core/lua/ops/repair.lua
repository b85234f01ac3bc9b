-- Repair IDs that looked broken in the same way twice, a grace period apart, and still do.
-- include: expected, schedule
-- writes: main LPUSH; delayed ZREM; buried ZADD ZREM; leases SET DEL GET; returns HSET; server TIME
-- commands: clean light, clean deep, doctor --fix
-- budget: 375 items  two leases are set for each
-- arg bury_after:number  an item that was already returned this often is buried instead; -1 for never
-- arg looked_ms:number  when the first look began, unix ms
-- rest words  IDs, each once, with their digests in the first look ('' for none) as tokens
-- Returns the outcomes of `outcome_reply`: returned, buried, dropped, guarded, pruned, skipped, elsewhere. An ID with
-- other data than before names a new item, which is skipped like a healthy one. So is an item that rwq has pushed
-- since: a worker may have popped it, and be about to set its lease. By the expected state:
--   abandoned, orphaned   returned
--   ghost                 its entries in both lists are dropped
--   duplicated            one entry stays: that in processing if a session holds the item, else the next in main
--   delayed, due, buried  what is missing of its guard is put back, unless a session holds the item
--   none                  the entry in the sorted set of an item that is in a list is removed
local ids, kept = ids_in(words), {}
local counts = returns_of(ids)
local function is_another(id)
  local digest = tokens[id] or ''
  return digest ~= '' and has_other_data(id, digest)
end
-- Ghosts have none.
local function was_pushed_since_first_look(item)
  return item.data ~= 'none' and (pushed_ms(item) or 0) > looked_ms
end

return act(ids, function(id, item, now_ms)
  local state = item.main and state_of(item, now_ms)
  if not state then
    return 'elsewhere'
  elseif not expected_states and has_stale_schedule(item, state) then
    item.state = state
    return 'pruned'
  elseif not expected_states or not expected_states[state] or is_another(id) or was_pushed_since_first_look(item) then
    return 'skipped'
  elseif state == 'duplicated' then
    kept[id] = item.processing > 0 and session_of(item) and processing or main
    return 'dropped'
  elseif state == 'ghost' then
    return 'dropped'
  elseif state == 'delayed' or state == 'due' or state == 'buried' then
    return (is_guarded(item) or session_of(item)) and 'skipped' or 'guarded'
  end
  return bury_after >= 0 and (counts[id] or 0) >= bury_after and 'buried' or 'returned'
end, function(groups, facts, now_ms)
  local scores, outdated = {}, {}
  for _, id in ipairs(groups.returned) do
    outdated[#outdated + 1] = facts[id].old and old_lease_prefix .. id or nil
  end
  -- Leases first, as in `settle`.
  settle(prefixed(lease_prefix, groups.returned), outdated, 'returned')
  for i, id in ipairs(groups.buried) do
    local count = counts[id] or 0
    set_lease(id, GUARDS.buried .. string.format('returned %d time%s', count, count == 1 and '' or 's'))
    scores[2 * i - 1], scores[2 * i] = as_ms(now_ms + i / 1000), id
  end
  for _, id in ipairs(groups.guarded) do
    local item, value, expiry = facts[id], delayed_guard(facts[id].due_ms or 0, now_ms)
    if item.buried_ms then
      value, expiry = GUARDS.buried .. (reason_of(item) or 'its reason was lost with its guard'), nil
    end
    for _, key in ipairs(lease_keys({ id })) do
      redis.call('SET', key, value, 'NX', unpack(expiry and { 'PX', expiry } or {}))
    end
  end
  count_returns(groups.returned, counts)
  local returned = joined(groups.returned, groups.buried)
  remove_entries(joined(returned, groups.dropped), kept)
  delete_entries(groups.pruned, delayed, buried)
  delete_guards(groups.pruned)
  delete_entries(returned, delayed, buried)
  for_all('ZADD', buried, scores)
  push(groups.returned)
end)
