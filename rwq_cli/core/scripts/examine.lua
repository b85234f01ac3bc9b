-- Read what is wrong with each ID, as far as its own keys tell. Writes nothing.
--
-- arg 1..   IDs, a few hundred at most
-- Returns one string with a letter for each ID in order: + data and a lease that ends; g data and a
-- guard of a delayed or buried item; a data, no lease; h data, a lease without expiry that is no
-- guard; 2 data, leases of both names held by different sessions; - no data, no lease; s no data, a
-- lease that ends; e no data, a lease without expiry; t a lease key that holds no string.
local ids, letters = args_from(1), {}
local data = with_data(ids)
local values = redis.call('MGET', unpack(lease_keys(ids)))

local function is_guard(holder)
  return string.sub(holder, 1, 12) == 'rwq-delayed:' or string.sub(holder, 1, 11) == 'rwq-buried:'
end

local function is_endless(id, new, old)
  return (new and redis.call('PTTL', lease_prefix .. id) == -1)
    or (old and redis.call('PTTL', old_lease_prefix .. id) == -1)
end

local function letter(id, has, new, old)
  if not (new or old) then
    return has_lease(id) and 't' or has and 'a' or '-'
  end
  if not has then
    return is_endless(id, new, old) and 'e' or 's'
  end
  if is_guard(new or old) and (not old or is_guard(old)) then
    return 'g'
  end
  if is_endless(id, new, old) then
    return 'h'
  end
  return (new and old and new ~= old) and '2' or '+'
end

for at, id in ipairs(ids) do
  letters[at] = letter(id, data[id], values[2 * at - 1], values[2 * at])
end
return table.concat(letters)
