-- Add items, deciding duplicates by whether the data key existed.
--
-- arg 1     '1' to skip the duplicate check (the caller vouches for the IDs), else '0'
-- arg 2..   ID, data, ID, data, ...  (bytes)
-- Returns the 0-based indexes of the items that were duplicates and so were not added.
check_types()
local unique = arg(1) == '1'
local pairs_given = args_from(2)
local added, duplicates = {}, {}
if unique then
  local keys_and_data = {}
  for i = 1, #pairs_given, 2 do
    added[#added + 1] = pairs_given[i]
    keys_and_data[i] = item_prefix .. pairs_given[i]
    keys_and_data[i + 1] = pairs_given[i + 1]
  end
  for first = 1, #keys_and_data, 4000 do
    redis.call('MSET', unpack(keys_and_data, first, math.min(first + 3999, #keys_and_data)))
  end
else
  for i = 1, #pairs_given, 2 do
    local id = pairs_given[i]
    if redis.call('SETNX', item_prefix .. id, pairs_given[i + 1]) == 1 then
      added[#added + 1] = id
    else
      duplicates[#duplicates + 1] = (i - 1) / 2
    end
  end
end
push_all('LPUSH', main, added)
return duplicates
