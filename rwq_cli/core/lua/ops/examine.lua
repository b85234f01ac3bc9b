-- Read what is wrong with each ID, as far as its own keys tell. Writes nothing.
--
-- arg 1..   IDs, a few hundred at most
-- Returns one string with a letter for each ID in order: + data and a lease that ends; g data and a
-- guard of a delayed or buried item; w the same, but it ends before the item is due, or at all though
-- the item is buried; a data, no lease; h data, a lease without expiry that is no
-- guard; 2 data, leases of both names held by different sessions; - no data, no lease; s no data, a
-- lease that ends; e no data, a lease without expiry; t a lease key that holds no string.
local ids, letters = args_from(1), {}
local data = with_data(ids)
local values = redis.call('MGET', unpack(lease_keys(ids)))

local function is_endless(id, new, old)
  return (new and redis.call('PTTL', lease_prefix .. id) == -1)
    or (old and redis.call('PTTL', old_lease_prefix .. id) == -1)
end

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- Whether a guard lets go of an item too early. Of two lease keys the later ending one speaks.
local function is_weak(id, new, old)
  local due_ms = present[delayed] and redis.call('ZSCORE', delayed, id)
  local buried_ms = present[buried] and redis.call('ZSCORE', buried, id)
  if not (due_ms or buried_ms) or is_endless(id, new, old) then
    return false
  end
  local left_ms = math.max(
    redis.call('PTTL', lease_prefix .. id),
    redis.call('PTTL', old_lease_prefix .. id)
  )
  return buried_ms or left_ms < tonumber(due_ms) - now_ms
end

local function letter(id, has, new, old)
  if not (new or old) then
    return has_lease(id) and 't' or has and 'a' or '-'
  end
  if new and old and is_guard(new) ~= is_guard(old) then
    -- The session's lease speaks, and the guard beside it is nobody's.
    new, old = not is_guard(new) and new, not is_guard(old) and old
  end
  if not has then
    return is_endless(id, new, old) and 'e' or 's'
  end
  if is_guard(new or old) and (not old or is_guard(old)) then
    return is_weak(id, new, old) and 'w' or 'g'
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
