-- Promote delayed items that are due, or kick buried ones: put them at the end of the main list.
--
-- arg 1..4  how the caller knows where the IDs are: see `lib/locate.lua`
-- arg 5..7  the conditions that the items must still meet: see `lib/expected.lua`
-- arg 8     'delayed' | 'buried', or 'moved' for buried ones that keep their counts of returns
-- arg 9..   IDs, each once, in the order in which they are to be leased
-- Returns the outcomes of `outcome_reply`. Both: elsewhere. Of buried: kicked, not-buried, missing,
-- changed, not-owner, wrong-type. Of delayed: promoted, skipped, and pruned for an entry that is stale, that
-- a burial supersedes, or whose item a session has leased. A stale entry, whose item has no data or is in a
-- list, is removed together with its guards. A kick also deletes the item's count of returns.
local which, ids = arg(8) == 'moved' and 'buried' or arg(8), ids_from(9)
local zset, is_promotion = which == 'delayed' and delayed or buried, which == 'delayed'
local facts = read_facts(ids, claim)
locate(ids, facts)
-- For `entries`, the entry is removed; for `stale`, the entry and its guards.
local statuses, pushed, stale, entries = {}, {}, {}, {}
local now_ms = clock_ms()
for _, id in ipairs(ids) do
  local found = facts[id]
  if not found.main then
    statuses[id] = 'elsewhere'
  else
    local kind = entry_kind(found, which, now_ms)
    if not is_promotion and found.data ~= 'none' and has_wrong_type(found) then
      statuses[id] = 'wrong-type'
    elseif not is_promotion and found.data == 'string' and is_changed(id, found, now_ms) then
      statuses[id] = 'changed'
    elseif kind == 'push' and found.processing == 0 and not may_push_unlisted(found) then
      statuses[id] = 'elsewhere'
    elseif kind == 'push' then
      statuses[id] = is_promotion and 'promoted' or 'kicked'
      pushed[#pushed + 1] = id
    elseif kind == 'leased' then
      statuses[id] = is_promotion and 'pruned' or 'not-owner'
      if is_promotion then
        entries[#entries + 1] = id
      end
    elseif kind == 'superseded' then
      statuses[id] = 'pruned'
      entries[#entries + 1] = id
    elseif kind == 'stale' then
      statuses[id] = is_promotion and 'pruned' or found.data == 'none' and 'missing' or 'not-buried'
      stale[#stale + 1] = id
    else
      statuses[id] = is_promotion and 'skipped' or found.data == 'none' and 'missing' or 'not-buried'
    end
    if statuses[id] == 'pruned' then
      found.state = state_of(found, now_ms)
    end
  end
end
if not dry_run then
  settle_ids(pushed, is_promotion and 'promoted' or 'kicked')
  remove_entries(pushed, facts)
  unschedule(pushed, facts)
  for_all('ZREM', zset, stale)
  for_all('ZREM', zset, entries)
  delete_guards(stale)
  if arg(8) == 'buried' and present[returns] then
    for_all('HDEL', returns, pushed)
  end
  push(pushed)
end
return outcome_reply(ids, statuses, facts)
