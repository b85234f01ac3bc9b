-- Deleting items with all their traces. If several clients do that, the one whose DEL deletes the data wins.
--
-- include: locate

-- Delete items, and what is left of IDs without data: their entries, leases and counts.
local function end_items(ended, missing, facts)
  local gone = {}
  for _, ids in ipairs({ ended, missing }) do
    for _, id in ipairs(ids) do
      gone[#gone + 1] = id
    end
  end
  -- First, and also for IDs without data: DEL needs no memory, and a full server does not stop a script that has
  -- already written.
  for_all('DEL', nil, prefixed(item_prefix, gone))
  delete_leases(gone, facts)
  forget_entries(gone)
  remove_entries(gone)
end
