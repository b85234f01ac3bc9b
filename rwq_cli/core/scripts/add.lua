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
local keys_and_data, ids = args_from(2), {}
for at = 1, #keys_and_data, 2 do
  local id = keys_and_data[at]
  ids[(at + 1) / 2] = id
  keys_and_data[at] = item_prefix .. id
end
-- All new, as nearly always: one call. MSETNX sets all or none, and of an ID that is twice in it the
-- last, where the first must win.
if arg(1) == 'distinct' and redis.call('MSETNX', unpack(keys_and_data)) == 1 then
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
for_all('LPUSH', main, added)
return duplicates
