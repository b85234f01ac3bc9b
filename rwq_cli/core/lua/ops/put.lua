-- Take items from where they are, and end their leases: put them back to main, delay them, or bury them.
-- include: expected, schedule
-- writes: main LPUSH RPUSH; leases SET GET DEL; returns HMGET HSET; delayed ZADD ZREM; buried ZADD ZREM; server TIME
-- commands: release, release --delay, bury, work, mv --to-url
-- budget: 375 items  two leases are set for each
-- arg to  'main', 'front' (to be leased next), 'delayed' or 'buried'
-- arg delay_ms:number  how long to delay them, ms
-- arg reason  the reason to bury them, bytes
-- arg replaces_reason:flag  replace the reason of those that are already buried
-- arg own_holder  the caller's own holder, whose leases may always be ended
-- arg force:flag  leases of other sessions may be ended, too
-- arg own_only:flag  only what that holder has is taken
-- arg counts  how often each item counts as returned from now on, in the order of the IDs, separated by ',': no less
--   than now, but for what `forgive` took off in advance; '' to leave the counts as they are
-- rest words  IDs, each once, in the order in which they are to be leased
-- Returns the outcomes of `outcome_reply`: released, already-waiting, delayed, buried, already-buried,
-- reason-replaced, not-owner, missing, changed, moving, in-transit, wrong-type, elsewhere.
local done = (to == 'main' or to == 'front') and 'released' or to

local ids = ids_in(words)
local count_of, counted = {}, 0
for count in string.gmatch(counts, '%d+') do
  counted = counted + 1
  count_of[ids[counted]] = count
end

local function status_of(id, item, now_ms)
  local refusal, other = refusal_of(id, item, now_ms), other_session_of(item, own_holder)
  if other then
    -- For `outcome_reply`.
    item.other_session = other
  end
  return refusal
    or own_only and (other or session_of(item) ~= own_holder) and 'not-owner'
    or to == 'main' and item.main > 0 and 'already-waiting'
    or other and not force and 'not-owner'
    or not force and is_copy(item) and 'moving'
    or is_in_doubt(id, item, now_ms) and 'in-transit'
    or is_taken_away(item) and 'elsewhere'
    -- Buried by hand, it leaves the move that it was part of.
    or to == 'buried' and state_of(item, now_ms) == 'buried' and not is_in_transit(item)
      and (replaces_reason and reason_of(item) ~= reason and 'reason-replaced' or 'already-buried')
    or done
end

return act(ids, status_of, function(groups, facts, now_ms)
  local moved, scores = groups[done], {}
  local already_buried = joined(groups['already-buried'], groups['reason-replaced'])
  -- The leases first, because a server that is out of memory refuses them.
  local released = done == 'released' and moved or {}
  settle(prefixed(lease_prefix, released), prefixed(old_lease_prefix, released), 'released')
  local guard = GUARDS.buried .. reason
  for i, id in ipairs(done ~= 'released' and moved or {}) do
    local at_ms = now_ms + (delay_ms or 0) + i / 1000
    if to == 'delayed' then
      set_lease(id, delayed_guard(at_ms, now_ms))
    else
      set_lease(id, guard)
    end
    -- The server formats it.
    scores[2 * i - 1], scores[2 * i] = at_ms, id
  end
  note_returns(moved, count_of)
  for _, id in ipairs(already_buried) do
    -- The time of burial stays, and so does the reason unless it is replaced.
    set_lease(id, GUARDS.buried .. (not replaces_reason and reason_of(facts[id]) or reason))
  end
  for_all('ZREM', delayed, present[delayed] and already_buried or {})
  remove_entries(joined(moved, already_buried))
  delete_entries(moved, delayed, buried)
  for_all('ZADD', to == 'delayed' and delayed or buried, scores)
  push(done == 'released' and moved or {}, to == 'front')
end, is_by_facts and not (string.find(is_first_look, '0') and string.find(is_first_look, '1')))
