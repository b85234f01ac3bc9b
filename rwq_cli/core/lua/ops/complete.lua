-- Complete items: delete their data and all their traces, and optionally keep a result. If several
-- clients complete an item, the one whose DEL deletes the data wins.
--
-- arg 1..4  how the caller knows where the IDs are: see `lib/locate.lua`
-- arg 5..7  the conditions that the items must still meet: see `lib/expected.lua`
-- arg 8     how many holders follow, of which one must have the lease of an item; 0 for any item
-- arg 9     how long to keep the results, ms; '' to keep none
-- arg 10    the status of the results: 'completed' | 'rejected'
-- arg 11    '1' if the results have data, else '0'
-- arg 12    the data of the results, bytes
-- arg 13..  the holders, then the IDs, each once
-- Returns the outcomes of `outcome_reply`: completed, missing, not-owner, changed, wrong-type,
-- elsewhere. Without holders, a lease key of the wrong type does not matter; it stays.
local owner_count, owners, keep_ms = tonumber(arg(8)), {}, arg(9)
for i = 1, owner_count do
  owners[arg(12 + i)] = true
end
local ids = ids_from(13 + owner_count)
local facts = read_facts(ids)
locate(ids, facts)
local statuses, finished, completed, now_ms = {}, {}, {}, expected_states and clock_ms()
local may_be_changed = expected_states or idle_min or next(expected_data)
for i = 1, #ids do
  local id = ids[i]
  local found = facts[id]
  if not found.main then
    statuses[id] = 'elsewhere'
  elseif found.data ~= 'none' and (found.data ~= 'string' or (owner_count > 0 and has_wrong_type(found))) then
    statuses[id] = 'wrong-type'
  elseif expected_data[id] == '' and found.data == 'string' then
    -- It was added since the caller looked.
    statuses[id] = where == 'name' and 'changed' or 'elsewhere'
  elseif may_be_changed and found.data == 'string' and is_changed(id, found, now_ms) then
    statuses[id] = 'changed'
  elseif owner_count > 0 and found.data == 'string' and not owners[(effective_lease(found))] then
    statuses[id] = 'not-owner'
  elseif is_taken_away(found) then
    statuses[id] = 'elsewhere'
  else
    finished[#finished + 1] = id
    if found.data == 'string' then
      statuses[id] = 'completed'
      completed[#completed + 1] = id
    else
      statuses[id] = 'missing'
    end
  end
end
local results, refusal = prepare_results(completed, facts, keep_ms, arg(10), arg(11) == '1' and arg(12) or nil)
if refusal then
  return refusal
end
local function without_wrong(some)
  local kept = {}
  for _, id in ipairs(some) do
    if results.wrong[id] then
      statuses[id] = 'wrong-type'
    else
      kept[#kept + 1] = id
    end
  end
  return kept
end
if next(results.wrong) then
  finished, completed = without_wrong(finished), without_wrong(completed)
end
if not dry_run then
  -- First, and also for IDs without data, as in `remove`.
  for_all('DEL', nil, prefixed(item_prefix, finished))
  delete_leases(finished)
  forget_entries(finished)
  remove_entries(finished)
  write_results(completed, results)
end
return outcome_reply(ids, statuses, facts)
