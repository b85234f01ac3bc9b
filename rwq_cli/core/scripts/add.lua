-- Add items, deciding duplicates by whether the data key existed.
--
-- arg 1     'distinct' where the caller knows that no ID is here twice, else 'any'
-- arg 2..   ID, data, ID, data, ...  (bytes; 2,000 pairs at most; none: only the checks)
-- Returns the 0-based indexes of the items that were duplicates and so were not added.
local refusal = denied(
  { 'LPUSH', main, 'x' },
  { 'SETNX', item_prefix .. 'x', 'x' },
  { 'MSETNX', item_prefix .. 'x', 'x' }
)
if refusal then
  return refusal
end
-- What was completed from elsewhere while it was delayed or buried, or had come back, has left an entry
-- behind, and a guard perhaps: a new item of that ID begins without them.
local leaves = {}
for key, command in pairs({ [delayed] = 'ZREM', [buried] = 'ZREM', [returns] = 'HDEL' }) do
  if present[key] then
    leaves[key] = command
    refusal = refusal
      or denied({ command, key, 'x' }, { 'DEL', lease_prefix .. 'x' }, { 'DEL', old_lease_prefix .. 'x' })
  end
end
if refusal then
  return refusal
end
local function forget_past(added)
  for key, command in pairs(leaves) do
    if for_all(command, key, added) > 0 and key ~= returns then
      for id, holder in pairs(lease_holders(added)) do
        if holder and is_guard(holder) then
          drop_lease(id)
        end
      end
    end
  end
end
local keys_and_data, ids = args_from(2), {}
for at = 1, #keys_and_data, 2 do
  local id = keys_and_data[at]
  ids[(at + 1) / 2] = id
  keys_and_data[at] = item_prefix .. id
end
-- All new, as nearly always: one call. MSETNX sets all or none, and of an ID that is twice in it the
-- last, where the first must win.
if arg(1) == 'distinct' and redis.call('MSETNX', unpack(keys_and_data)) == 1 then
  forget_past(ids)
  for_all('LPUSH', main, ids)
  return {}
end
local added, duplicates = {}, {}
for i, id in ipairs(ids) do
  if redis.call('SETNX', keys_and_data[2 * i - 1], keys_and_data[2 * i]) == 1 then
    added[#added + 1] = id
  else
    duplicates[#duplicates + 1] = i - 1
  end
end
forget_past(added)
for_all('LPUSH', main, added)
return duplicates
