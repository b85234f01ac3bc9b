-- Promote delayed items that are due, or kick buried ones: put them at the end of the main list.
--
-- include: expected, schedule
-- writes: main LPUSH; delayed ZREM; buried ZREM; leases SET DEL GET; returns HDEL; server TIME
-- arg which  'delayed' | 'buried'
-- arg keeps_counts:flag  they keep their counts of returns
-- arg finishes_move:flag  also copies whose originals a move from another server has in hand
-- rest words  IDs, each once, in the order in which they are to be leased
-- Returns the outcomes of `outcome_reply`. Both: elsewhere. Of buried: kicked, not-buried, missing, changed, not-owner,
-- wrong-type, moving. Of delayed: promoted, skipped, and pruned for an entry that is stale, that a burial supersedes,
-- or whose item a session has leased. A stale entry, whose item has no data or is in a list, goes with its guards.
local zset, done, stale = buried, 'kicked', {}
if which == 'delayed' then
  zset, done = delayed, 'promoted'
end

local function promotion_of(id, found, now_ms)
  local session = session_of(found)
  if not found.main then
    return 'elsewhere'
  elseif not found.due_ms or found.due_ms > now_ms then
    return 'skipped'
  -- What is in no list, but leased, is promoted when that lease has ended.
  elseif found.data ~= 'none' and (has_wrong_type(found) or session and found.main + found.processing == 0) then
    return 'skipped'
  end
  found.state = state_of(found, now_ms)
  if found.state == 'due' then
    return 'promoted'
  elseif found.data == 'none' or not session and found.state ~= 'buried' then
    stale[#stale + 1] = id
  end
  return 'pruned'
end

local function kick_of(id, found, now_ms)
  local refusal = refusal_of(id, found, now_ms)
  if refusal == 'missing' and found.buried_ms then
    stale[#stale + 1] = id
  end
  if refusal or not found.buried_ms then
    return refusal or 'not-buried'
  elseif session_of(found) then
    return 'not-owner'
  elseif state_of(found, now_ms) ~= 'buried' then
    stale[#stale + 1] = id
    return 'not-buried'
  end
  return not finishes_move and is_copy(found) and 'moving' or 'kicked'
end

return act(ids_in(words), which == 'delayed' and promotion_of or kick_of, function(groups, facts)
  local pushed = groups[done]
  settle(lease_keys(pushed), done)
  remove_entries(pushed)
  for_all('HDEL', returns, not keeps_counts and present[returns] and pushed or {})
  delete_entries(pushed, delayed, buried)
  for_all('ZREM', zset, which == 'delayed' and groups.pruned or stale)
  delete_guards(stale)
  push(pushed)
end)
