-- Take items out of the queue with every trace of them: remove them, or move them to another queue.
--
-- arg 1..4  how the caller knows where the IDs are: see `lib/locate.lua`
-- arg 5     the main list of the queue to move them to, or '' to remove them
-- arg 6     that queue's prefix of data keys
-- arg 7     that queue's hash of returns
-- arg 8     '1' to move also items that have a lease, else '0'
-- arg 9..   ID, fingerprint of the data that the caller has saved ('' if it saw none), ID, ...; each ID
--           once, in the order in which they are to wait
-- Returns the outcomes of `outcome_reply`: removed, moved, missing, changed for other data by now,
-- not-owner for a leased item, conflict if the other queue has this ID, elsewhere. Entries without data
-- are dropped.
local to_main, to_prefix, to_returns, force = arg(5), arg(6), arg(7), arg(8) == '1'
local moves = to_main ~= ''
if moves and not dry_run and redis.acl_check_cmd then
  for _, words in ipairs({
    { 'RENAMENX', item_prefix .. 'x', to_prefix .. 'x' },
    { 'LPUSH', to_main, 'x' },
    { 'HSET', to_returns, 'x', 1 },
  }) do
    NEEDS.move = NEEDS.move or {}
    table.insert(NEEDS.move, words)
  end
  local refusal = denied('move')
  if refusal then
    return refusal
  end
end
for key, expected in pairs(moves and { [to_main] = 'list', [to_returns] = 'hash' } or {}) do
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= expected then
    return wrong_type(key, found, 'a ' .. expected)
  end
end
local words, ids, saved = args_from(9), {}, {}
for at = 1, #words, 2 do
  ids[#ids + 1] = words[at]
  saved[words[at]] = words[at + 1]
end
local facts = read_facts(ids, claim)
local wrong = wrong_data(ids, facts)
if wrong then
  return wrong
end
locate(ids, facts)

-- Of larger data, the two ends and the length: hashing takes two milliseconds a megabyte.
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

local outcomes, taken, off = {}, {}, {}
for _, id in ipairs(ids) do
  local found = facts[id]
  if not found.main then
    outcomes[id] = 'elsewhere'
  elseif found.data == 'none' then
    outcomes[id] = 'missing'
    off[#off + 1] = id
  elseif not (dry_run and saved[id] == '') and (saved[id] == '' or fingerprint(id) ~= saved[id]) then
    outcomes[id] = 'changed'
  elseif moves and not force and effective_lease(found) then
    outcomes[id] = 'not-owner'
  elseif moves and redis.call('EXISTS', to_prefix .. id) == 1 then
    outcomes[id] = 'conflict'
  else
    outcomes[id] = moves and 'moved' or 'removed'
    taken[#taken + 1] = id
    off[#off + 1] = id
  end
end
if dry_run then
  return outcome_reply(ids, outcomes, facts)
end
local counts = {}
for _, id in ipairs(moves and present[returns] and taken or {}) do
  counts[id] = redis.call('HGET', returns, id)
end
-- What needs no memory comes first: a server that has none lets a script go on that has begun with it. A
-- new name for the data needs no more than the old one.
if #taken > 0 then
  forget(taken)
  if not moves then
    for_all('DEL', nil, prefixed(item_prefix, taken))
  end
end
remove_entries(off, facts)
if moves and #taken > 0 then
  for _, id in ipairs(taken) do
    redis.call('RENAMENX', item_prefix .. id, to_prefix .. id)
    if counts[id] then
      redis.call('HSET', to_returns, id, counts[id])
    end
  end
  for_all('LPUSH', to_main, taken)
end
return outcome_reply(ids, outcomes, facts)
