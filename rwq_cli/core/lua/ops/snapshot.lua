-- Read everything about items, each with its data, all at one instant. Writes nothing.
--
-- arg 1..4  how the caller knows where the IDs are: see `lib/locate.lua`
-- arg 5     how many bytes of data to stop after (the item that crosses it is still read)
-- arg 6..   IDs
-- Returns { unix ms now, length of main, ... } and then, for each ID that was read: the type of its data
-- key; the data; the value of its new lease key, and the ms left of it, -1 for no expiry, -2 for no
-- lease, -3 for a key that holds no string; the same of its old lease key; its place (its place in main,
-- counted from the right end; 'processing'; 'none'; 'elsewhere' if it is not where it was seen); its due
-- time and its time of burial, unix ms, or ''; how often a clean returned it, or ''.
local bytes_max, ids = tonumber(arg(5)), args_from(6)
local facts, length = read_facts(ids, claim), redis.call('LLEN', main)
locate(ids, facts)

local function place_of(id)
  local found = facts[id]
  if not found.main then
    return 'elsewhere'
  elseif found.main > 0 then
    return place[id] or length - 1 - redis.call('LPOS', main, id, 'RANK', -1)
  end
  return found.processing > 0 and 'processing' or 'none'
end

local reply, bytes = { string.format('%.0f', math.floor(clock_ms())), length }, 0
for _, id in ipairs(ids) do
  if bytes >= bytes_max then
    break
  end
  local found = facts[id]
  local data = found.data == 'string' and redis.call('GET', item_prefix .. id) or ''
  bytes = bytes + #data
  for _, value in ipairs({
    found.data, data,
    text_of(found.new), left_of(found, 'new'), text_of(found.old), left_of(found, 'old'),
    place_of(id),
    found.due_ms and as_score(found.due_ms) or '',
    found.buried_ms and as_score(found.buried_ms) or '',
    present[returns] and redis.call('HGET', returns, id) or '',
  }) do
    reply[#reply + 1] = value
  end
end
return reply
