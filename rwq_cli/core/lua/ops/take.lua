-- Take items out of the queue with every trace of them: remove them, or move them to another queue.
--
-- arg 1     the list that they were seen in: 'main' | 'processing' | '' for none
-- arg 2     where the first of them stood in it, counted from the right end
-- arg 3     how many entries there were from the first to the last
-- arg 4     '1' to look for each by name in both lists, which costs their length; '0' only where they
--           were seen
-- arg 5     a value that is no ID, to mark entries of a list with
-- arg 6     the main list of the queue to move them to, or '' to remove them
-- arg 7     that queue's prefix of data keys
-- arg 8     that queue's hash of returns
-- arg 9     '1' to move also what has a lease, else '0'
-- arg 10..  ID, fingerprint of the data that the caller wrote down ('' if it saw none), ID, ...; each
--           ID once, in the order in which they shall wait
-- Returns { statuses, holder, ... }: a letter for each ID in order, x removed, v moved, m no data (any
-- more), g other data by now, o leased, f the other queue has this ID, - not where it was seen; then
-- for each o who holds the lease. Only what is x or v was an item and is none here any more; entries
-- without data are dropped.
-- Uses: places
local list_name, offset, span = arg(1), tonumber(arg(2)), tonumber(arg(3))
local by_name, mark = arg(4) == '1', arg(5)
local to_main, to_prefix, to_returns, force = arg(6), arg(7), arg(8), arg(9) == '1'
local moves = to_main ~= ''
local refusal = denied(
  { 'LREM', main, 0, 'x' },
  { 'LSET', main, 0, 'x' },
  { 'RPOP', main },
  { 'LREM', processing, 0, 'x' },
  { 'LSET', processing, 0, 'x' },
  { 'RPOP', processing },
  { 'LREM', cleaning, 0, 'x' },
  { 'DEL', item_prefix .. 'x' },
  { 'GETRANGE', item_prefix .. 'x', 0, 1 },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' },
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'HDEL', returns, 'x' }
)
if not refusal and moves then
  refusal = denied(
    { 'RENAMENX', item_prefix .. 'x', to_prefix .. 'x' },
    { 'LPUSH', to_main, 'x' },
    { 'HSET', to_returns, 'x', 1 }
  )
end
if refusal then
  return refusal
end
for key, expected in pairs(moves and { [to_main] = 'list', [to_returns] = 'hash' } or {}) do
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= expected then
    return redis.error_reply('WRONGTYPE ' .. key
      .. ' holds another type than the protocol says: a ' .. found .. ' and not a ' .. expected)
  end
end
local words, ids, written = args_from(10), {}, {}
for at = 1, #words, 2 do
  ids[#ids + 1] = words[at]
  written[words[at]] = words[at + 1]
end
local exists, odd = with_data_of_right_type(ids)
if odd then
  return odd
end

-- Of data larger than this, its two ends and its length: hashing takes two milliseconds a megabyte.
local FINGERPRINT_BYTES = 1048576
local function fingerprint(id)
  local key, half = item_prefix .. id, FINGERPRINT_BYTES / 2
  local length = redis.call('STRLEN', key)
  if length <= FINGERPRINT_BYTES then
    return redis.sha1hex(length .. ':' .. redis.call('GET', key))
  end
  return redis.sha1hex(length .. ':' .. redis.call('GETRANGE', key, 0, half - 1)
    .. redis.call('GETRANGE', key, -half, -1))
end

local list = list_name == 'main' and main or list_name == 'processing' and processing
local places = list and places_near(list, ids, offset, span) or {}
local new_in_main = not list and not by_name and just_pushed(main) or {}
local new_in_processing = not list and not by_name and just_pushed(processing) or {}
local letters, holders, taken, offsets, unnamed = {}, {}, {}, {}, {}
for i, id in ipairs(ids) do
  local letter = moves and 'v' or 'x'
  if not exists[id] then
    letter = 'm'
  elseif written[id] == '' or fingerprint(id) ~= written[id] then
    letter = 'g'
  elseif moves and not force and has_lease(id) then
    letter = 'o'
    holders[#holders + 1] = lease_holder(id) or ''
  elseif moves and redis.call('EXISTS', to_prefix .. id) == 1 then
    letter = 'f'
  elseif list and not places[id] then
    letter = '-'
  end
  letters[i] = letter
  if letter == 'x' or letter == 'v' then
    taken[#taken + 1] = id
  end
  if letter == 'x' or letter == 'v' or letter == 'm' then
    for _, from_right in ipairs(places[id] or {}) do
      offsets[#offsets + 1] = from_right
    end
    if by_name or new_in_main[id] or new_in_processing[id] then
      unnamed[#unnamed + 1] = id
    end
  end
end
local counts = {}
for _, id in ipairs(moves and present[returns] and taken or {}) do
  counts[id] = redis.call('HGET', returns, id)
end
-- All is read; now the writes. What needs no memory comes first: a server that has none lets a script
-- go on that has begun with it. A new name for the data needs none that the old one did not have.
if #taken > 0 then
  forget(taken)
  if not moves then
    for_all('DEL', nil, item_keys(taken))
  end
end
drop_places(list, offsets, mark)
for _, id in ipairs(unnamed) do
  -- What was pushed a moment ago stands at the left end, where one entry is found at once.
  if by_name or new_in_main[id] then
    redis.call('LREM', main, by_name and 0 or 1, id)
  end
  if by_name or new_in_processing[id] then
    redis.call('LREM', processing, by_name and 0 or 1, id)
  end
end
if moves and #taken > 0 then
  for _, id in ipairs(taken) do
    redis.call('RENAMENX', item_prefix .. id, to_prefix .. id)
    if counts[id] then
      redis.call('HSET', to_returns, id, counts[id])
    end
  end
  for_all('LPUSH', to_main, taken)
end
return { table.concat(letters), unpack(holders) }
