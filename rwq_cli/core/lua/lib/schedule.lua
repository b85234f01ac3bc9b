-- Delayed and buried items: their scores, and the guards that keep every cleaner away from them.
--
-- include: facts

-- The value of the guard of a delayed item, and how long it lasts, ms: until the item is due, and then for
-- GUARD_MARGIN_MS, which is made from `core/keys.py`.
local function delayed_guard(due_ms, now_ms)
  -- The score may be infinite.
  local left_ms = math.min(math.max(0, math.ceil(due_ms - now_ms)) + GUARD_MARGIN_MS, 2 ^ 52)
  return GUARDS.delayed .. whole_ms(due_ms), whole_ms(left_ms)
end

-- The guard of a buried item has no expiry; its value gives the reason.
local function guard_buried(id, reason)
  redis.call('SET', lease_prefix .. id, GUARDS.buried .. reason)
  redis.call('SET', old_lease_prefix .. id, GUARDS.buried .. reason)
end

local function reason_in(value)
  return value and value ~= true and guard_kind(value) == 'buried' and string.sub(value, #GUARDS.buried + 1) or nil
end

-- Why an ID is buried, as the guard under the new name says, or else the one under the old; nil if neither does.
-- The same as `reason` in `core/state/rules.py`.
local function reason_of(facts)
  return facts.buried_ms and (reason_in(facts.new) or reason_in(facts.old)) or nil
end

-- Delete the guards of IDs. A session's lease under the other name stays, and so does a settling lease,
-- which an item that was just pushed still needs.
local function delete_guards(ids)
  local guards = {}
  for i, value in ipairs(lease_values(ids)) do
    if is_scheduling_guard(value) then
      guards[#guards + 1] = lease_keys({ ids[math.ceil(i / 2)] })[2 - i % 2]
    end
  end
  for_all('DEL', nil, guards)
end

-- Take the entries of IDs off Q:delayed and Q:buried.
local function unschedule(ids, facts)
  for zset, score in pairs({ [delayed] = 'due_ms', [buried] = 'buried_ms' }) do
    local entries, first, last = {}, math.huge, -math.huge
    for _, id in ipairs(present[zset] and ids or {}) do
      local at_ms = facts[id][score]
      if at_ms then
        entries[#entries + 1] = id
        first, last = math.min(first, at_ms), math.max(last, at_ms)
      end
    end
    -- Adjacent entries are removed at once, which is faster than looking up each.
    if #entries > 1 and redis.call('ZCOUNT', zset, as_score(first), as_score(last)) == #entries then
      redis.call('ZREMRANGEBYSCORE', zset, as_score(first), as_score(last))
    else
      for_all('ZREM', zset, entries)
    end
  end
end

-- The kind of an entry of Q:delayed or Q:buried, whose item has been located:
--   'push'        the item is due, or can be kicked
--   'leased'      a session holds the item
--   'superseded'  the item is due, but also buried
--   'stale'       the item has no data, or is in a list
--   nil           there is no entry, it is not due, or the data key has the wrong type; or the item is due, in
--                 no list, and held by a session: it is promoted when that lease has ended
local function entry_kind(facts, which, now_ms)
  local at_ms = which == 'delayed' and facts.due_ms or which == 'buried' and facts.buried_ms
  if not at_ms or (which == 'delayed' and at_ms > now_ms) then
    return nil
  elseif facts.data == 'none' then
    return 'stale'
  elseif facts.data ~= 'string' then
    return nil
  end
  local session = session_of(facts)
  if session then
    local is_unlisted = facts.main + facts.processing == 0
    return (which ~= 'delayed' or not (is_unlisted or session == '')) and 'leased' or nil
  end
  local state = state_of(facts, now_ms)
  if which == 'delayed' and state == 'buried' then
    return 'superseded'
  end
  return (state == 'due' or state == 'buried') and 'push' or 'stale'
end

-- A settling lease lasts this long, plus a time for each list entry: an upstream cleaner walks a snapshot
-- of the lists at about 10,000 entries a second.
local SETTLING_MS = 30000
local SETTLING_MS_PER_ENTRY = 0.1
local function settling_ms(entries)
  return SETTLING_MS + entries * SETTLING_MS_PER_ENTRY
end

-- Set settling leases for items that are pushed onto a main list.
--
-- Upstream cleaners read the lists once, and then push every item that has no lease at that moment, even
-- if rwq has pushed it since. The settling lease prevents that. Workers overwrite it with their leases,
-- and rwq does not count it as a lease. Its value ends with the time of the push, unix ms, by which a clean
-- knows that somebody has pushed the item since its first look: see `lib/digest.lua`.
--
-- keys     both lease keys of each item
-- why      what pushed them
-- entries  how many entries the two lists of that queue have
local function settle(keys, why, entries)
  local lease_ms = whole_ms(settling_ms(entries))
  local value = GUARDS.settling .. why .. ' ' .. whole_ms(clock_ms())
  for i = 1, #keys do
    redis.call('SET', keys[i], value, 'PX', lease_ms)
  end
end

-- Set settling leases for items that are about to be pushed. This must be the first write of a script: a
-- server that is out of memory refuses it, but does not stop a script that has already written.
local function settle_ids(ids, why)
  if #ids > 0 then
    settle(lease_keys(ids), why, redis.call('LLEN', main) + redis.call('LLEN', processing))
  end
end

-- Push items onto main, in the order in which they are to be leased: at the end of the queue, or at
-- its front. The caller has settled them, and has removed them from every other structure.
local function push(ids, front)
  if not front then
    for_all('LPUSH', main, ids)
    return
  end
  local last_first = {}
  for i = #ids, 1, -1 do
    last_first[#last_first + 1] = ids[i]
  end
  for_all('RPUSH', main, last_first)
end

-- IDs by the `entry_kind` of their entries; none yet.
local function no_entries()
  return { push = {}, leased = {}, superseded = {}, stale = {} }
end

-- Push the items among entries of Q:delayed or Q:buried, and remove those entries and all the others, stale ones
-- together with their guards. The caller has settled the items, and has removed them from the lists.
--
-- entries  IDs by kind, as from `no_entries`
local function push_entries(zset, entries, facts)
  unschedule(entries.push, facts)
  for _, kind in ipairs({ 'leased', 'superseded', 'stale' }) do
    for_all('ZREM', zset, entries[kind])
  end
  delete_guards(entries.stale)
  push(entries.push)
end
