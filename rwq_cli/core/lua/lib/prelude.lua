-- Names for what every script is given, and the few steps that several of them share.
--
-- KEYS[1]  Q:queue       list  waiting IDs
-- KEYS[2]  Q:processing  list  leased and abandoned IDs
-- KEYS[3]  Q:cleaning    list  IDs that a cleaner of 0.1 has in hand
-- KEYS[4]  Q:delayed     zset  ID -> due time, unix ms
-- KEYS[5]  Q:buried      zset  ID -> buried at, unix ms
-- KEYS[6]  Q:returns     hash  ID -> how often a cleaner brought it back
-- ARGV[1]  prefix of the data keys, bytes
-- ARGV[2]  prefix of the lease keys of 0.2 and later, bytes
-- ARGV[3]  prefix of the lease keys of 0.1, bytes
-- ARGV[4]  prefix of the keys of results, bytes
-- ARGV[5..] the verb's own, named in its file and read with `arg(1)`, `arg(2)`, ...
--
-- The item, lease and result keys are made from the prefixes: there are as many as there are IDs, and on a
-- cluster the queue's hash tag puts them all in the slot of the KEYS.
local main, processing, cleaning = KEYS[1], KEYS[2], KEYS[3]
local delayed, buried, returns = KEYS[4], KEYS[5], KEYS[6]
local item_prefix, lease_prefix, old_lease_prefix = ARGV[1], ARGV[2], ARGV[3]
local result_prefix = ARGV[4]

-- unpack fails at about 8,000 values.
local UNPACK_MAX = 5000

local function arg(n)
  return ARGV[n + 4]
end

-- The verb's arguments from its n-th on, as a table.
local function args_from(n)
  local rest = {}
  for i = n + 4, #ARGV do
    rest[i - n - 3] = ARGV[i]
  end
  return rest
end

local function has_data(id)
  return redis.call('EXISTS', item_prefix .. id) == 1
end

-- By ID, whether it has data; and the error for the first data key that holds no string, or nil: the
-- structure of a queue whose name begins like our data keys, or nothing of ours. It must not be
-- deleted as an item.
local function with_data_of_right_type(ids)
  local answer = {}
  for _, id in ipairs(ids) do
    local kind = redis.call('TYPE', item_prefix .. id).ok
    if kind ~= 'none' and kind ~= 'string' then
      return answer, redis.error_reply('WRONGTYPE ' .. item_prefix .. id
        .. ' holds another type than the protocol says')
    end
    answer[id] = kind == 'string'
  end
  return answer, nil
end

local function has_lease(id)
  return redis.call('EXISTS', lease_prefix .. id, old_lease_prefix .. id) > 0
end

-- Whether a lease's value is one of ours that only keeps cleaners off a delayed or buried item.
local function is_delayed_guard(holder)
  return string.sub(holder, 1, 12) == 'rwq-delayed:'
end

local function is_buried_guard(holder)
  return string.sub(holder, 1, 11) == 'rwq-buried:'
end

local function is_guard(holder)
  return is_delayed_guard(holder) or is_buried_guard(holder)
end

-- The lease that speaks for an item: its value, false for none, and the ms left of it, -1 for no expiry
-- and -2 for none. Where both generations have a key, a session's lease speaks before a guard of a
-- delayed or buried item, which is nobody's, whichever ends later; of two of a kind the later ending one.
-- A lease key of another type is a lease whose holder cannot be known: '', and that speaks first.
local function lease_holder(id)
  local holder, left_ms, rank = false, -2, 0
  for _, key in ipairs({ lease_prefix .. id, old_lease_prefix .. id }) do
    local value = redis.pcall('GET', key)
    if value then
      local unreadable = type(value) == 'table'
      local own_rank = unreadable and 3 or is_guard(value) and 1 or 2
      local own_ms = redis.call('PTTL', key)
      if own_rank > rank
          or (own_rank == rank and left_ms ~= -1 and (own_ms == -1 or own_ms > left_ms)) then
        holder, left_ms, rank = unreadable and '' or value, own_ms, own_rank
      end
    end
  end
  return holder, left_ms
end

local function set_lease(id, holder, lease_ms)
  redis.call('SET', lease_prefix .. id, holder, 'PX', lease_ms)
  redis.call('SET', old_lease_prefix .. id, holder, 'PX', lease_ms)
end

-- Run a command on many values in chunks that unpack can take; the key may be nil.
-- Returns the sum of its replies where they are numbers.
local function for_all(command, key, values)
  local sum = 0
  for first = 1, #values, UNPACK_MAX do
    local last = math.min(first + UNPACK_MAX - 1, #values)
    local reply
    if key then
      reply = redis.call(command, key, unpack(values, first, last))
    else
      reply = redis.call(command, unpack(values, first, last))
    end
    sum = sum + (tonumber(reply) or 0)
  end
  return sum
end

-- The following ask about many IDs in a few calls, because nearly always all of them are alike: asked
-- one by one, each call costs the server as much again as its answer.

local function item_keys(ids)
  local made = {}
  for i, id in ipairs(ids) do
    made[i] = item_prefix .. id
  end
  return made
end

-- Both lease keys of each ID: the new one, then the old.
local function lease_keys(ids)
  local made = {}
  for i, id in ipairs(ids) do
    made[2 * i - 1] = lease_prefix .. id
    made[2 * i] = old_lease_prefix .. id
  end
  return made
end

-- By ID, whether it has data.
local function with_data(ids)
  local count, answer = for_all('EXISTS', nil, item_keys(ids)), {}
  for _, id in ipairs(ids) do
    answer[id] = count == #ids or (count > 0 and has_data(id))
  end
  return answer
end

-- By ID, whether it has a lease.
local function with_lease(ids)
  local count, answer = for_all('EXISTS', nil, lease_keys(ids)), {}
  for _, id in ipairs(ids) do
    answer[id] = count > 0 and has_lease(id)
  end
  return answer
end

-- The values of the lease keys, in the order of lease_keys, false for none; and how many there are.
local function leases_of(ids)
  local asked, values, count = lease_keys(ids), {}, 0
  for first = 1, #asked, UNPACK_MAX do
    local last = math.min(first + UNPACK_MAX - 1, #asked)
    for i, value in ipairs(redis.call('MGET', unpack(asked, first, last))) do
      values[first + i - 1] = value
      count = count + (value and 1 or 0)
    end
  end
  return values, count
end

-- By ID, the holder that lease_holder tells; and the values that `leases_of` gives.
local function lease_holders(ids)
  local values, count = leases_of(ids)
  -- MGET gives nothing for a key of another type, which is a lease, too.
  local all_seen = count == for_all('EXISTS', nil, lease_keys(ids))
  local answer = {}
  for i, id in ipairs(ids) do
    local new, old = values[2 * i - 1], values[2 * i]
    if all_seen and (new == old or not (new and old)) then
      answer[id] = new or old
    else
      answer[id] = (lease_holder(id))
    end
  end
  return answer, values
end

-- How long the lease that speaks lasts, as lease_holder says, without reading again what both names say.
--
-- holder    what lease_holders says of it, no false
-- new, old  the values of its two keys, as leases_of gives them
local function lease_left_ms(id, holder, new, old)
  if holder == '' or (new and old and new ~= old) then
    local _, left_ms = lease_holder(id)
    return left_ms
  end
  local new_ms = redis.call('PTTL', lease_prefix .. id)
  local old_ms = redis.call('PTTL', old_lease_prefix .. id)
  return (new_ms == -1 or old_ms == -1) and -1 or math.max(new_ms, old_ms)
end

-- End the leases of many IDs.
local function drop_leases(ids)
  for_all('DEL', nil, lease_keys(ids))
end

-- The error for the first command that this user may not run, or nil. Asked before the first write:
-- a script that is denied half-way is not rolled back. Servers before Redis 7 cannot be asked.
local function denied(...)
  if not redis.acl_check_cmd then
    return nil
  end
  for _, words in ipairs({ ... }) do
    if not redis.acl_check_cmd(unpack(words)) then
      return redis.error_reply("NOPERM this user has no permissions to run the '"
        .. string.lower(words[1]) .. "' command on " .. words[2])
    end
  end
  return nil
end

-- Which of the KEYS exist: most have no `cleaning`, `delayed`, `buried` or `returns`.
local present = {}

-- Before any write, because a failed script is not rolled back: a key of another type is reported.
for key, expected in pairs({
  [main] = 'list', [processing] = 'list', [cleaning] = 'list',
  [delayed] = 'zset', [buried] = 'zset', [returns] = 'hash',
}) do
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= expected then
    return redis.error_reply('WRONGTYPE ' .. key
      .. ' holds another type than the protocol says: a ' .. found .. ' and not a ' .. expected)
  end
  present[key] = found ~= 'none'
end

-- Delete every trace of items but their data and their entries in main and processing.
--
-- Each ID costs a pass over `cleaning`. Where that would hold the server for more than a few
-- milliseconds, because a cleaner of 0.1 left a long list behind, the entries stay: without data they
-- mean nothing to anybody, and our next clean takes them off page by page.
local CLEANING_PASSED_MAX = 500000
local function forget(ids)
  drop_leases(ids)
  for key, command in pairs({ [delayed] = 'ZREM', [buried] = 'ZREM', [returns] = 'HDEL' }) do
    if present[key] then
      for_all(command, key, ids)
    end
  end
  if present[cleaning] and #ids * redis.call('LLEN', cleaning) <= CLEANING_PASSED_MAX then
    for _, id in ipairs(ids) do
      redis.call('LREM', cleaning, 0, id)
    end
  end
end
