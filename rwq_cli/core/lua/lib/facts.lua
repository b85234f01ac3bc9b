-- Reading the keys and scores of many IDs in a few calls, deleting them, and replying about them.
-- include: state

-- The lease keys of each ID: the new one, then the old one.
local function lease_keys(ids)
  local keys = {}
  for i = 1, #ids do
    keys[2 * i - 1] = lease_prefix .. ids[i]
    keys[2 * i] = old_lease_prefix .. ids[i]
  end
  return keys
end

-- The values of the lease keys, in the order of `lease_keys`: false or nil for none, true for a key of the wrong type;
-- the keys; and a table of the IDs that have a key of the wrong type. Nearly always, either all have a lease or none.
local function lease_values(ids)
  local keys, wrong, held = lease_keys(ids), {}, 0
  local are_leased = #ids > 0 and redis.call('EXISTS', keys[1]) == 1
  local count = not are_leased and for_all('EXISTS', nil, keys)
  local values = count ~= 0 and redis.call('MGET', unpack(keys)) or {}
  for i = 1, #values do
    held = held + (values[i] and 1 or 0)
  end
  -- MGET returns nil for a key of the wrong type, which counts as a lease.
  local are_read = held == #values or held == (count or redis.call('EXISTS', unpack(keys)))
  for i, key in ipairs(are_read and {} or keys) do
    local value, id = read_string('GET', key), ids[math.ceil(i / 2)]
    values[i], wrong[id] = value == nil or value, wrong[id] or value == nil
  end
  return values, keys, wrong
end

-- The scores of IDs in a zset, in order, as the server prints them, or false; none for an empty zset.
local function scores_of(zset, ids)
  return present[zset] and #ids > 0 and redis.call('ZMSCORE', zset, unpack(ids)) or {}
end

-- How often each ID was returned, in order, or false; none if none was.
local function counts_of(ids)
  return present[returns] and #ids > 0 and redis.call('HMGET', returns, unpack(ids)) or {}
end

-- When rwq pushed an item, unix ms, as its settling lease tells; nil without one.
local function pushed_ms(facts)
  local value = guard_of(facts, 'settling')
  return value and tonumber(string.match(value, '%d+$'))
end

-- The facts about IDs, by ID: see `lib/state.lua`. Until they are located, they are in no list. Also returns the scores,
-- as `scores_of` does.
--
-- IDs in a row may share their facts, if both lease keys of each have the same value, and it has no score: a table for
-- each would cost as much as reading its type. Who needs the time left of a lease sets the `id` before.
local function read_facts(ids)
  local facts, values, same = {}, lease_values(ids), {}
  local due, burials = scores_of(delayed, ids), scores_of(buried, ids)
  for i = 1, #ids do
    local id, new, old = ids[i], values[2 * i - 1] or false, values[2 * i] or false
    local data = redis.call('TYPE', item_prefix .. id).ok
    if new ~= old or due[i] or burials[i] then
      facts[id] = {
        id = id, data = data, main = 0, processing = 0, new = new, old = old,
        due_ms = due[i] and tonumber(due[i]) or nil, buried_ms = burials[i] and tonumber(burials[i]) or nil,
      }
    else
      if same.data ~= data or same.new ~= new then
        same = { id = id, data = data, main = 0, processing = 0, new = new, old = new }
      end
      facts[id] = same
    end
  end
  return facts, due, burials
end

local function has_data(id)
  return redis.call('EXISTS', item_prefix .. id) == 1
end

-- Without a time, for ever.
local function set_lease(id, holder, lease_ms)
  for _, prefix in ipairs({ lease_prefix, old_lease_prefix }) do
    if lease_ms then
      redis.call('SET', prefix .. id, holder, 'PX', lease_ms)
    else
      redis.call('SET', prefix .. id, holder)
    end
  end
end

local function delete_entries(ids, ...)
  for _, key in ipairs({ ... }) do
    for_all(key == returns and 'HDEL' or 'ZREM', key, present[key] and ids or {})
  end
end

-- Delete all entries of items, except those in main and processing. Each ID costs a scan of `cleaning`. If a 0.1
-- cleaner left a long list, the entries stay there: workers ignore entries without data, and the next clean removes
-- them page by page.
local function forget_entries(ids)
  delete_entries(ids, delayed, buried, returns)
  if present[cleaning] and #ids * redis.call('LLEN', cleaning) <= BUDGET_ENTRIES then
    for _, id in ipairs(ids) do
      redis.call('LREM', cleaning, 0, id)
    end
  end
end

-- Delete the leases and guards of IDs whose facts are known. A key of the wrong type is no lease, and stays.
local function delete_leases(ids, facts)
  local leases = {}
  for _, id in ipairs(ids) do
    local new, old = facts[id].new, facts[id].old
    leases[#leases + 1] = new and new ~= true and lease_prefix .. id or nil
    leases[#leases + 1] = old and old ~= true and old_lease_prefix .. id or nil
  end
  for_all('DEL', nil, leases)
end

-- The reply of an operation on IDs: a code of the status of each in order, then a detail of each that is 'not-owner',
-- its lease holder (the `other_session` in its facts, if there is one), or 'pruned', the state in its facts.
-- `statuses` are in the order of the IDs.
local function outcome_reply(ids, statuses, facts)
  local codes, details, code_of = {}, {}, status_codes()
  for i, status in ipairs(statuses) do
    codes[i] = code_of[status]
    if status == 'not-owner' then
      local item = facts[ids[i]]
      local holder = item.other_session or effective_lease(item)
      details[#details + 1] = holder ~= true and holder or ''
    elseif status == 'pruned' then
      details[#details + 1] = facts[ids[i]].state
    end
  end
  return { table.concat(codes), unpack(details) }
end

-- A lease key as a reply: its value, '' for none and for a wrong type; and the ms left, -1 for no expiry, -2 for no
-- lease, -3 for a wrong type.
local function lease_reply(facts, name)
  local value = facts[name]
  return value ~= true and value or '', value == true and -3 or value and left_ms(facts, name) or -2
end

-- What a result key holds: 'none', 'result', or the type of a key that is not a result. A hash may belong to a queue
-- whose name begins like this queue's result keys.
local function result_kind(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'hash' then
    local status, completed_ms = unpack(redis.call('HMGET', key, 'status', 'completed_ms'))
    if (status == 'completed' or status == 'rejected') and string.match(completed_ms or '', '^%d+$') and #completed_ms <= DIGITS_MAX then
      return 'result'
    end
  end
  return kind
end
