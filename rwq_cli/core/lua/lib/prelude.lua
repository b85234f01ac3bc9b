-- Names for the KEYS and the first ARGV of every script, and small helpers. `core/keys.py` says what the keys hold.
--
-- ARGV has the prefixes of the data keys, of the lease keys of 0.2 and later and of 0.1, and of the result keys; '1'
-- for a dry run, else '0'; and the arguments that the headers name. On a cluster the queue's hash tag puts the keys
-- that are built from the prefixes into the slot of the KEYS.
local main, processing, cleaning = KEYS[1], KEYS[2], KEYS[3]
local delayed, buried, returns = KEYS[4], KEYS[5], KEYS[6]
local item_prefix, lease_prefix, old_lease_prefix = ARGV[1], ARGV[2], ARGV[3]
local result_prefix, dry_run = ARGV[4], ARGV[5] == '1'

-- Run a command that reads a string. Returns its reply, or nil if the key has the wrong type.
local function read_string(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) ~= 'table' then
    return reply
  elseif string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then
    -- Raises the error; Redis 6.2 cannot raise the table.
    return redis.call(command, key, ...)
  end
end

-- Run a command on values, unless there are none: then 0. `key` may be nil. No call has as many values or arguments as
-- unpack refuses, which are about 8,000.
local function for_all(command, key, values)
  if #values == 0 then
    return 0
  elseif key then
    return redis.call(command, key, unpack(values))
  end
  return redis.call(command, unpack(values))
end

-- The words at odd places; and by each of them the word that follows it.
local function split_pairs(words)
  local names, values = {}, {}
  for at = 1, #words, 2 do
    names[#names + 1] = words[at]
    values[words[at]] = words[at + 1]
  end
  return names, values
end

local function reversed(values)
  local copy, count = {}, #values
  for i = 1, count do
    copy[i] = values[count + 1 - i]
  end
  return copy
end

local function joined(...)
  local all = {}
  for _, values in ipairs({ ... }) do
    for i = 1, #values do
      all[#all + 1] = values[i]
    end
  end
  return all
end

local function prefixed(prefix, ids)
  local keys = {}
  for i = 1, #ids do
    keys[i] = prefix .. ids[i]
  end
  return keys
end

-- The server's clock, unix ms, with microseconds after the decimal point.
local function clock_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000
end

local function whole_ms(ms)
  return string.format('%.0f', math.floor(ms))
end

-- A time as a score or an argument: Lua's tostring would give 1.7e+12.
local function as_ms(time_ms)
  return string.format('%.3f', time_ms)
end

local function wrong_type(key, kind, expected)
  return redis.error_reply('WRONGTYPE ' .. key .. ' has the wrong type: a ' .. kind .. ', not ' .. expected)
end

-- The error for the first of these commands, each with its key, that this user may not run, or nil. Checked before the
-- first write, because a script that is denied halfway is not rolled back. A server before Redis 7 cannot tell.
local function denied(commands)
  for _, command in ipairs(redis.acl_check_cmd and commands or {}) do
    if not redis.acl_check_cmd(unpack(command)) then
      return redis.error_reply("NOPERM this user has no permissions to run the '"
        .. string.lower(command[1]) .. "' command" .. (command[2] and ' on ' .. command[2] or ''))
    end
  end
end

-- Which of the KEYS exist: most queues have no `cleaning`, `delayed`, `buried` or `returns`.
local present = {}

-- A key of the wrong type is reported before any write.
local function check_type(key, expected)
  local kind = redis.call('TYPE', key).ok
  present[key] = kind ~= 'none'
  return present[key] and kind ~= expected and wrong_type(key, kind, 'a ' .. expected)
end

local refusal_of_type = check_type(main, 'list') or check_type(processing, 'list')
  -- One call in place of four.
  or redis.call('EXISTS', cleaning, delayed, buried, returns) > 0 and (check_type(cleaning, 'list')
    or check_type(delayed, 'zset') or check_type(buried, 'zset') or check_type(returns, 'hash'))
if refusal_of_type then
  return refusal_of_type
end
