-- Add items, deciding duplicates by whether the data key existed.
--
-- arg 1     '1' to skip the duplicate check (the caller vouches for the IDs), else '0'
-- arg 2..   ID, data, ID, data, ...  (bytes; 2,000 pairs at most)
-- Returns the 0-based indexes of the items that were duplicates and so were not added.
local refusal = denied(
  { 'LPUSH', main, 'x' },
  { 'SETNX', item_prefix .. 'x', 'x' },
  { 'MSETNX', item_prefix .. 'x', 'x' },
  { 'MSET', item_prefix .. 'x', 'x' }
)
if refusal then
  return refusal
end
local given = args_from(2)
local ids, keys_and_data, seen, repeated = {}, {}, {}, false
for at = 1, #given, 2 do
  local id = given[at]
  keys_and_data[at] = item_prefix .. id
  keys_and_data[at + 1] = given[at + 1]
  ids[#ids + 1] = id
  repeated = repeated or seen[id]
  seen[id] = true
end
if arg(1) == '1' then
  redis.call('MSET', unpack(keys_and_data))
  push_all('LPUSH', main, ids)
  return {}
end
-- All new, as nearly always: one call. MSETNX sets all or none, and of an ID that is twice in it the
-- last, where the first must win.
if not repeated and redis.call('MSETNX', unpack(keys_and_data)) == 1 then
  push_all('LPUSH', main, ids)
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
push_all('LPUSH', main, added)
return duplicates
