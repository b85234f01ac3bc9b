-- Promote delayed items that are due, or kick buried ones: put them at the end of the main list.
--
-- include: locate, expected, schedule
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP LPUSH RPUSH; delayed ZREM ZCOUNT ZREMRANGEBYSCORE; buried
--   ZREM ZCOUNT ZREMRANGEBYSCORE; leases SET DEL GET; returns HDEL; server TIME
-- arg which  'delayed' | 'buried'
-- arg keeps_counts:flag  they keep their counts of returns
-- arg finishes_move:flag  also copies whose originals a move from another server has in hand
-- rest words  IDs, each once, in the order in which they are to be leased
-- Returns the outcomes of `outcome_reply`. Both: elsewhere. Of buried: kicked, not-buried, missing,
-- changed, not-owner, wrong-type, moving. Of delayed: promoted, skipped, and pruned for an entry that is stale, that
-- a burial supersedes, or whose item a session has leased. A stale entry, whose item has no data or is in a
-- list, is removed together with its guards. A kick also deletes the item's count of returns.
local is_promotion, entries = which == 'delayed', no_entries()

-- Whether it is the copy of an item that another server may still have: both must not be leased.
local function is_copy(found)
  return string.sub(effective_lease(found) or '', 1, #COPY_GUARD) == COPY_GUARD
end

-- The status of an ID whose entry stays, or nil.
local function unchanged_status(id, found, kind, now_ms)
  if not found.main then
    return 'elsewhere'
  elseif not is_promotion and found.data ~= 'none' then
    if has_wrong_type(found) then
      return 'wrong-type'
    elseif is_changed(id, found, now_ms) then
      return 'changed'
    elseif kind == 'leased' then
      return 'not-owner'
    elseif kind == 'push' and not finishes_move and is_copy(found) then
      return 'moving'
    end
  end
  if not kind then
    return is_promotion and 'skipped' or found.data == 'none' and 'missing' or 'not-buried'
  end
  return nil
end

return act(ids_in(words), function(id, found, now_ms)
  local kind = found.main and entry_kind(found, which, now_ms)
  local unchanged = unchanged_status(id, found, kind, now_ms)
  if unchanged then
    return unchanged
  end
  entries[kind][#entries[kind] + 1] = id
  if kind == 'push' then
    return is_promotion and 'promoted' or 'kicked'
  elseif is_promotion then
    found.state = state_of(found, now_ms)
    return 'pruned'
  end
  return found.data == 'none' and 'missing' or 'not-buried'
end, function(_, facts)
  settle_ids(entries.push, is_promotion and 'promoted' or 'kicked')
  remove_entries(entries.push)
  if not keeps_counts and present[returns] then
    for_all('HDEL', returns, entries.push)
  end
  push_entries(is_promotion and delayed or buried, entries, facts)
end)
