-- Putting items into Q:delayed and Q:buried, and telling what is there.
--
-- Uses: guards

-- The error for what `bury_all` or `delay_all` may not do, or nil.
local function denied_to_park()
  return denied(
    { 'SET', lease_prefix .. 'x', 'x' },
    { 'SET', old_lease_prefix .. 'x', 'x' },
    { 'ZADD', delayed, 0, 'x' },
    { 'ZADD', buried, 0, 'x' },
    { 'ZREM', delayed, 'x' },
    { 'ZREM', buried, 'x' }
  )
end

-- By ID, its score in Q:delayed or Q:buried, or false.
local function scores_of(zset, ids)
  local scores = {}
  for first = 1, present[zset] and #ids or 0, UNPACK_MAX do
    local last = math.min(first + UNPACK_MAX - 1, #ids)
    for i, score in ipairs(redis.call('ZMSCORE', zset, unpack(ids, first, last))) do
      scores[ids[first + i - 1]] = score
    end
  end
  return scores
end

-- What the leases of items say, where a guard of a delayed or buried item is nobody's lease.
--
-- Returns three tables by ID: the session that holds a lease, '' where nobody can tell which, or false;
-- whether a guard of both lease names proves that it is delayed or buried and in no list; and since
-- when it is buried.
local function sessions_and_parked(ids)
  local holders, values = lease_holders(ids)
  local due_ms, buried_ms = scores_of(delayed, ids), scores_of(buried, ids)
  local sessions, parked = {}, {}
  for i, id in ipairs(ids) do
    local new, old = values[2 * i - 1], values[2 * i]
    sessions[id] = holders[id] and not is_guard(holders[id]) and holders[id]
    parked[id] = not sessions[id] and new and old and (
      (buried_ms[id] and is_buried_guard(new) and is_buried_guard(old))
      or (due_ms[id] and is_delayed_guard(new) and is_delayed_guard(old))
    ) and true or nil
  end
  return sessions, parked, buried_ms
end

-- Take the entries of items off Q:delayed and Q:buried.
local function unschedule(ids)
  for _, zset in ipairs({ delayed, buried }) do
    if present[zset] then
      for_all('ZREM', zset, ids)
    end
  end
end

-- Put items that are in no list into Q:buried, in this order.
local function bury_all(ids, reason, now_ms)
  unschedule(ids)
  local scores = {}
  for i, id in ipairs(ids) do
    scores[2 * i - 1], scores[2 * i] = as_ms(now_ms + i / 1000), id
    guard_buried(id, reason)
  end
  for_all('ZADD', buried, scores)
end

-- Put items that are in no list into Q:delayed; of those, the first is promoted first.
local function delay_all(ids, delay_ms, now_ms)
  unschedule(ids)
  local scores = {}
  for i, id in ipairs(ids) do
    local due_ms = now_ms + delay_ms + i / 1000
    scores[2 * i - 1], scores[2 * i] = as_ms(due_ms), id
    guard_delayed(id, due_ms, now_ms)
  end
  for_all('ZADD', delayed, scores)
end
