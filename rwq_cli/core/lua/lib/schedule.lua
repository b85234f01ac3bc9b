-- Pushing items onto main; delayed and buried items, and the guards that keep every cleaner away from them.
-- include: facts

-- The value of the guard of a delayed item, and how long it lasts, ms: until GUARD_MARGIN_MS after the item is due.
local function delayed_guard(due_ms, now_ms)
  -- The score may be infinite.
  local left_ms = math.min(math.max(0, math.ceil(due_ms - now_ms)) + GUARD_MARGIN_MS, 2 ^ 52)
  return GUARDS.delayed .. whole_ms(due_ms), whole_ms(left_ms)
end

-- Why an ID is buried, or nil. The same as `reason` in `core/state/rules.py`.
local function reason_of(facts)
  local value = facts.buried_ms and guard_of(facts, 'buried')
  return value and string.sub(value, #GUARDS.buried + 1)
end

-- Whether a move has buried an item, here or there.
local function is_in_transit(facts)
  return string.sub(effective_lease(facts) or '', 1, #MOVING_GUARD) == MOVING_GUARD
end

-- Delete the guards of IDs, or all of their leases. Otherwise, a session's lease under the other name stays, and so
-- does a settling lease, which an item that was just pushed still needs.
local function delete_guards(ids, leases_too)
  local outdated, values, keys = {}, lease_values(ids)
  for i, key in ipairs(next(values) and keys or {}) do
    local kind = guard_kind(values[i] or false)
    local is_lease = leases_too and values[i] and values[i] ~= true
    outdated[#outdated + 1] = (is_lease or kind == 'delayed' or kind == 'buried') and key or nil
  end
  for_all('DEL', nil, outdated)
end

-- How long a settling lease lasts: an upstream cleaner walks a snapshot of the lists at about 10,000 entries a second.
local SETTLING_MS = 30000
local SETTLING_MS_PER_ENTRY = 0.1
local function settling_ms(a_main, a_processing)
  local entries = redis.call('LLEN', a_main) + redis.call('LLEN', a_processing)
  return whole_ms(SETTLING_MS + entries * SETTLING_MS_PER_ENTRY)
end

-- Set settling leases, given the new lease keys of items that are about to be pushed onto the main list of a queue, of
-- this one if none is given, and those old ones that may exist. This must be the first write of a script: a server that
-- is out of memory refuses it, but does not stop a script that has already written.
--
-- Later upstream cleaners read the lists once, and then push every item that has no lease at that moment, even if rwq
-- has pushed it since. The settling lease prevents that. Those of 0.1 push only what they have removed from processing
-- themselves, or find in no list, so it stands under the new name alone, and no lease is left under the old one.
-- Workers overwrite it with their leases, and rwq does not count it as a lease. Its value ends with the time of the
-- push, unix ms, by which a clean knows that somebody has pushed the item since its first look.
local function settle(new_keys, old_keys, why, a_main, a_processing)
  if #new_keys == 0 then
    return
  end
  local lease_ms = settling_ms(a_main or main, a_processing or processing)
  local value = GUARDS.settling .. why .. ' ' .. whole_ms(clock_ms())
  for _, key in ipairs(new_keys) do
    redis.call('SET', key, value, 'PX', lease_ms)
  end
  for_all('DEL', nil, old_keys)
end

-- Push items onto main, in the order in which they are to be leased: at the end of the queue, or at its front. The
-- caller has settled them, and has removed them from every other structure.
local function push(ids, front)
  for_all(front and 'RPUSH' or 'LPUSH', main, front and reversed(ids) or ids)
end

-- By ID, how often it was returned; nil for never, and for a field that is not a number.
local function returns_of(ids)
  local counts = {}
  for i, value in ipairs(counts_of(ids)) do
    local digits = value and string.match(value, '^%d+$')
    counts[ids[i]] = digits and #digits <= DIGITS_MAX and tonumber(digits) or nil
  end
  return counts
end

-- Note how often items count as returned, given that by ID; 0 is not noted. HINCRBY would fail on a field that is not a
-- number.
local function note_returns(ids, counts)
  local fields = {}
  for _, id in ipairs(ids) do
    if counts[id] and counts[id] ~= '0' then
      fields[#fields + 1], fields[#fields + 2] = id, counts[id]
    end
  end
  for_all('HSET', returns, fields)
end

-- Count one more return of each item, given how often it was returned.
local function count_returns(ids, counts)
  local more = {}
  for _, id in ipairs(ids) do
    more[id] = string.format('%.0f', (counts[id] or 0) + 1)
  end
  note_returns(ids, more)
end
