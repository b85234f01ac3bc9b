-- Read what is wrong with each ID, as far as its own keys tell. Writes nothing.
--
-- arg 1..   IDs
-- Returns one string with a letter for each ID in order: + data and a lease that ends; g data and a
-- guard of a delayed or buried item; a data, no lease; h data, a lease without expiry that is no
-- guard; 2 data, leases of both names held by different sessions; - no data, no lease; s no data, a
-- lease that ends; e no data, a lease without expiry; t a key of another type than the protocol says.
local letters = {}

local function is_guard(holder)
  return string.sub(holder, 1, 12) == 'rwq-delayed:' or string.sub(holder, 1, 11) == 'rwq-buried:'
end

local function letter(id)
  local kind = redis.call('TYPE', item_prefix .. id).ok
  local new_key, old_key = lease_prefix .. id, old_lease_prefix .. id
  local new, old = redis.pcall('GET', new_key), redis.pcall('GET', old_key)
  if (kind ~= 'none' and kind ~= 'string') or type(new) == 'table' or type(old) == 'table' then
    return 't'
  end
  if not (new or old) then
    return kind == 'none' and '-' or 'a'
  end
  local endless = redis.call('PTTL', new and new_key or old_key) == -1
    or (new and old and redis.call('PTTL', old_key) == -1)
  if kind == 'none' then
    return endless and 'e' or 's'
  end
  if is_guard(new or old) and (not old or is_guard(old)) then
    return 'g'
  end
  if endless then
    return 'h'
  end
  return (new and old and new ~= old) and '2' or '+'
end

for at, id in ipairs(args_from(1)) do
  letters[at] = letter(id)
end
return table.concat(letters)
