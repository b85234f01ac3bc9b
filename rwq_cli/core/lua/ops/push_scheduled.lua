-- Promote delayed items that are due, or kick buried ones: put them at the end of the main list.
-- include: expected, schedule
-- writes: main LPUSH; delayed ZREM; buried ZREM; leases SET DEL GET; returns HDEL; server TIME
-- commands: lease, kick, work, mv --to-url, clean light, clean deep, doctor --fix
-- budget: 375 items  two leases are set for each
-- arg which  'delayed' | 'buried'
-- arg keeps_counts:flag  they keep their counts of returns
-- arg transit  the reason of what a move has buried, to push only that; '' for anything but the copies of a move
-- rest words  IDs, each once, in the order in which they are to be leased
-- Returns the outcomes of `outcome_reply`. Both: elsewhere. Of buried: kicked, not-buried, missing, changed, not-owner,
-- wrong-type, moving. Of delayed: promoted, skipped, and pruned for an entry that is stale, that a burial supersedes,
-- or whose item a session has leased. A stale entry, whose item has no data or is in a list, goes with its guards.
local is_kick, stale = which == 'buried', {}
local zset, done = is_kick and buried or delayed, is_kick and 'kicked' or 'promoted'

local function promotion_of(id, item, now_ms)
  local session = session_of(item)
  if not item.main then
    return 'elsewhere'
  elseif not item.due_ms or item.due_ms > now_ms then
    return 'skipped'
  -- What is in no list, but leased, is promoted when that lease has ended.
  elseif item.data ~= 'none' and (has_wrong_type(item) or session and item.main + item.processing == 0) then
    return 'skipped'
  end
  item.state = state_of(item, now_ms)
  if item.state == 'due' then
    return 'promoted'
  elseif item.data == 'none' or not session and item.state ~= 'buried' then
    stale[#stale + 1] = id
  end
  return 'pruned'
end

local function kick_of(id, item, now_ms)
  local refusal = refusal_of(id, item, now_ms)
  if refusal == 'missing' and item.buried_ms then
    stale[#stale + 1] = id
  end
  if refusal or not item.buried_ms then
    return refusal or 'not-buried'
  elseif session_of(item) then
    return 'not-owner'
  elseif state_of(item, now_ms) ~= 'buried' then
    stale[#stale + 1] = id
    return 'not-buried'
  end
  if transit ~= '' then
    return reason_of(item) == transit and 'kicked' or 'not-buried'
  end
  return is_copy(item) and 'moving' or 'kicked'
end

return act(ids_in(words), is_kick and kick_of or promotion_of, function(groups)
  local pushed = groups[done]
  settle(prefixed(lease_prefix, pushed), prefixed(old_lease_prefix, pushed), done)
  remove_entries(pushed)
  delete_entries(not keeps_counts and pushed or {}, returns)
  delete_entries(pushed, delayed, buried)
  for_all('ZREM', zset, is_kick and stale or groups.pruned)
  delete_guards(stale)
  push(pushed)
end)
