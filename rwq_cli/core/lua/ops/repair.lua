-- Repair IDs that looked broken in the same way twice, a grace period apart, and still do. Without states,
-- remove stale entries of Q:delayed and Q:buried.
--
-- include: locate, expected, digest, schedule, returns
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP LPUSH RPUSH; delayed ZREM ZCOUNT ZREMRANGEBYSCORE; buried
--   ZREM ZCOUNT ZREMRANGEBYSCORE; leases SET DEL GET; returns HSET; server TIME
-- writes bury_returned: leases MSET; buried ZADD
-- arg bury_after:number  an item that was already returned this often is buried instead; -1 for never
-- arg looked_ms:number  when the first look began, unix ms
-- rest words  IDs, each once, with their digests in the first look ('' for none) as fingerprints. States:
--   'abandoned', 'orphaned', 'ghost', 'duplicated'; none to remove the entry in Q:delayed or Q:buried of an item
--   that is in a list
-- Returns the outcomes of `outcome_reply`: returned, buried, dropped, pruned, skipped, elsewhere. An ID with
-- other data than before names a new item, which is skipped like a healthy one. So is an item that rwq has
-- pushed since: a worker may have popped it, and be about to set its lease.
--   abandoned       returned
--   orphaned        returned
--   ghost           its entries in both lists are dropped
--   duplicated      one entry stays: that in processing if a session holds the item, else the next in main
--   ''              the entry in the sorted set is removed
local ids, changed = ids_in(words), {}
local function type_of(id)
  local kind, digest = digest_of(id)
  changed[id] = expected_data[id] ~= '' and digest ~= expected_data[id]
  return kind
end
-- Ghosts have none.
local function was_pushed_since_first_look(found)
  return found.data ~= 'none' and (pushed_ms(found) or 0) > looked_ms
end
if bury_after >= 0 and not dry_run then
  local refusal = denied('bury_returned')
  if refusal then
    return refusal
  end
end
local counts, removed, returned, stale, kept = returns_of(ids), {}, {}, {}, {}
return act(ids, function(id, found, now_ms)
  local state = found.main and state_of(found, now_ms)
  if not state then
    return 'elsewhere'
  elseif not expected_states and has_stale_schedule(found, state) then
    found.state, stale[#stale + 1] = state, id
    return 'pruned'
  elseif not expected_states or not expected_states[state] or changed[id] or was_pushed_since_first_look(found) then
    return 'skipped'
  end
  removed[#removed + 1] = id
  if state == 'duplicated' then
    kept[id] = found.processing > 0 and session_of(found) and processing or main
  elseif state ~= 'ghost' then
    returned[#returned + 1] = id
    return is_to_be_buried(id, counts, bury_after) and 'buried' or 'returned'
  end
  return 'dropped'
end, function(_, facts)
  local pushed, scores = begin_returns(returned, counts, bury_after)
  remove_entries(removed, kept)
  unschedule(stale, facts)
  delete_guards(stale)
  unschedule(returned, facts)
  end_returns(pushed, scores)
end, has_fingerprints and type_of)
