-- Deleting items with all their traces. If several clients do that, the one whose DEL deletes the data wins.
--
-- include: locate, expected

-- What becomes of each ID: `refusal(found, now_ms)` gives the operation's own reasons to leave an item alone; the
-- others get the status `ended`. Returns the statuses and the facts, by ID.
local function judge(ids, ended, refusal)
  local facts, now_ms, statuses = read_facts(ids), clock_ms(), {}
  locate(ids, facts)
  for _, id in ipairs(ids) do
    local found = facts[id]
    statuses[id] = refusal_of(id, found, now_ms) or refusal(found, now_ms) or unsaved_status(id) or ended
  end
  return statuses, facts
end

-- The IDs that have this status.
local function ids_with(status, ids, statuses)
  local some = {}
  for _, id in ipairs(ids) do
    some[#some + 1] = statuses[id] == status and id or nil
  end
  return some
end

-- Delete items, and what is left of IDs without data: their entries, leases and counts.
local function end_items(ids, statuses, facts, ended)
  local gone, leased = {}, {}
  for _, id in ipairs(ids) do
    if statuses[id] == ended or statuses[id] == 'missing' then
      gone[#gone + 1] = id
      leased[#leased + 1] = (facts[id].new or facts[id].old) and id or nil
    end
  end
  -- First, and also for IDs without data: DEL needs no memory, and a full server does not stop a script that has
  -- already written.
  for_all('DEL', nil, prefixed(item_prefix, gone))
  delete_leases(leased)
  forget_entries(gone)
  remove_entries(gone)
end
