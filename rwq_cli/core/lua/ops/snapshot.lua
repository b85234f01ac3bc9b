-- Read everything about items, each with its data, all at one instant. Writes nothing.
--
-- arg 1     the list that the caller saw them in: 'main' | 'processing' | '' for none
-- arg 2     where the first of them stood in it, counted from the right end
-- arg 3     how many entries there were from the first to the last
-- arg 4     how many bytes of data to stop after (the item that crosses it is still read)
-- arg 5     how many of those that do not stand there may be looked for in all of both lists
-- arg 6..   IDs, in the order of the list
-- Returns { unix ms now, how far they drifted, ... } and then, for each ID that was read: 0 no data,
-- 1 data, 2 a data key that holds no string, 3 or 4 a new or old lease key that holds none; the data;
-- ms left of its lease (-1 no expiry, -2 none); its holder; its place (n main, nearer its next end; l
-- main, nearer its last end; p processing; - neither; ? not looked for); due and buried at, unix ms, or
-- ''; its returns, or ''.
-- Uses: places
local list = arg(1) == 'main' and main or arg(1) == 'processing' and processing
local offset, span, bytes_max = tonumber(arg(2)), tonumber(arg(3)), tonumber(arg(4))
local lookups, ids = tonumber(arg(5)), args_from(6)
local clock = redis.call('TIME')
local places, drift = {}, 0
if list then
  places, drift = places_near(list, ids, offset, span)
end
local main_length = redis.call('LLEN', main)
local holders, values = lease_holders(ids)
local new_in_main, new_in_processing

local function in_main(from_right)
  return from_right * 2 < main_length and 'n' or 'l'
end

local function place_of(id)
  if places[id] then
    return list == processing and 'p' or in_main(places[id][#places[id]])
  end
  if lookups > 0 then
    lookups = lookups - 1
    local index = redis.call('LPOS', main, id, 'RANK', -1)
    if index then
      return in_main(main_length - 1 - index)
    end
    return redis.call('LPOS', processing, id) and 'p' or '-'
  end
  -- Leased or released a moment ago, it stands where the new ones are.
  new_in_main = new_in_main or just_pushed(main)
  new_in_processing = new_in_processing or just_pushed(processing)
  if new_in_main[id] then
    return 'l'
  elseif new_in_processing[id] then
    return 'p'
  end
  return list and '?' or '-'
end

-- 1; or 3 or 4 where a lease cannot be read.
local function kind_of_item(id)
  -- Only then nobody can say who holds it.
  if holders[id] == '' then
    for kind, key in pairs({ [3] = lease_prefix .. id, [4] = old_lease_prefix .. id }) do
      local found = redis.call('TYPE', key).ok
      if found ~= 'none' and found ~= 'string' then
        return kind
      end
    end
  end
  return 1
end

local reply, bytes = { clock[1] * 1000 + math.floor(clock[2] / 1000), drift }, 0
for at, id in ipairs(ids) do
  if bytes >= bytes_max then
    break
  end
  local kind = redis.call('TYPE', item_prefix .. id).ok
  local data = kind == 'string' and redis.call('GET', item_prefix .. id) or ''
  local holder, ttl = holders[id], -2
  if holder then
    ttl = lease_left_ms(id, holder, values[2 * at - 1], values[2 * at])
  end
  bytes = bytes + #data
  reply[#reply + 1] = kind == 'none' and 0 or kind == 'string' and kind_of_item(id) or 2
  reply[#reply + 1] = data
  reply[#reply + 1] = ttl
  reply[#reply + 1] = holder or ''
  reply[#reply + 1] = kind == 'string' and place_of(id) or '-'
  reply[#reply + 1] = present[delayed] and redis.call('ZSCORE', delayed, id) or ''
  reply[#reply + 1] = present[buried] and redis.call('ZSCORE', buried, id) or ''
  reply[#reply + 1] = present[returns] and redis.call('HGET', returns, id) or ''
end
return reply
