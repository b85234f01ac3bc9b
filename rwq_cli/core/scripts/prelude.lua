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

-- The value of the lease, or false. Where both generations have a key, the later ending one speaks.
-- A lease key of another type is a lease whose holder cannot be known: ''.
local function lease_holder(id)
  local new_key, old_key = lease_prefix .. id, old_lease_prefix .. id
  local new, old = redis.pcall('GET', new_key), redis.pcall('GET', old_key)
  if type(new) == 'table' or type(old) == 'table' then
    return ''
  end
  if not (new and old) then
    return new or old
  end
  local new_ttl, old_ttl = redis.call('PTTL', new_key), redis.call('PTTL', old_key)
  if new_ttl == -1 or (old_ttl ~= -1 and new_ttl >= old_ttl) then
    return new
  end
  return old
end

-- Whether a lease's value is one of ours that only keeps cleaners off a delayed or buried item.
local function is_delayed_guard(holder)
  return string.sub(holder, 1, 12) == 'rwq-delayed:'
end

local function is_buried_guard(holder)
  return string.sub(holder, 1, 11) == 'rwq-buried:'
end

-- Whether it is a guard that a clean of ours has put on what it is about to return.
local function is_cleaning_guard(holder)
  return string.sub(holder, 1, 10) == 'rwq-clean:'
end

local function is_guard(holder)
  return is_delayed_guard(holder) or is_buried_guard(holder)
end

local function set_lease(id, holder, lease_ms)
  redis.call('SET', lease_prefix .. id, holder, 'PX', lease_ms)
  redis.call('SET', old_lease_prefix .. id, holder, 'PX', lease_ms)
end

local function drop_lease(id)
  redis.call('DEL', lease_prefix .. id, old_lease_prefix .. id)
end

-- The server's clock, unix ms; what is below a millisecond is behind the point.
local function clock_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000
end

-- A time as a score or an argument: Lua itself would write 1.7e+12.
local function as_ms(time_ms)
  return string.format('%.3f', time_ms)
end

-- The guard of a delayed item outlives its due time by so long: time for us to promote it before a
-- cleaner of another language may return it.
local GUARD_MARGIN_MS = 60000

-- What the guard says, and how long it lasts, ms.
local function delayed_guard(due_ms, now_ms)
  local left_ms = math.max(0, math.ceil(due_ms - now_ms)) + GUARD_MARGIN_MS
  return string.format('rwq-delayed:%.0f', math.floor(due_ms)), string.format('%.0f', left_ms)
end

local function guard_delayed(id, due_ms, now_ms)
  set_lease(id, delayed_guard(due_ms, now_ms))
end

-- The guard of a buried item has no expiry and says why.
local function guard_buried(id, reason)
  redis.call('SET', lease_prefix .. id, 'rwq-buried:' .. reason)
  redis.call('SET', old_lease_prefix .. id, 'rwq-buried:' .. reason)
end

-- End the guards of a delayed or buried item, and no lease that somebody holds by the other name.
local function drop_guards(id)
  for _, key in ipairs({ lease_prefix .. id, old_lease_prefix .. id }) do
    local holder = redis.pcall('GET', key)
    if type(holder) == 'string' and is_guard(holder) then
      redis.call('DEL', key)
    end
  end
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

-- By ID, what lease_holder says.
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
      answer[id] = lease_holder(id)
    end
  end
  return answer
end

-- End the leases of many IDs.
local function drop_leases(ids)
  for_all('DEL', nil, lease_keys(ids))
end

-- The IDs at the new end of a list: what was pushed since the caller read it stands there.
local function just_pushed(list)
  local ids = {}
  for _, id in ipairs(redis.call('LRANGE', list, 0, 499)) do
    ids[id] = true
  end
  return ids
end

-- Take IDs off the processing list, either one by one or out of its oldest page.
--
-- page_size 0 or less: each of `ids` that `wanted` agrees to is removed with LREM, which costs the
-- length of the list each time: for few IDs.
-- page_size n: the n oldest entries are taken off; those of `ids` that `wanted` agrees to stay off
-- and the rest go back on at the new end. Called often enough, this walks the whole list at a cost
-- that does not depend on how many IDs are sought. The order within processing means nothing to any
-- worker, so turning the list round changes nothing for them.
--
-- Returns the IDs that were in processing and now are not.
local function take_from_processing(page_size, ids, wanted)
  local taken, sought = {}, {}
  -- All is asked before the first write: what `wanted` reads may fail.
  for _, id in ipairs(ids) do
    sought[id] = page_size > 0 or wanted(id)
  end
  if page_size <= 0 then
    for _, id in ipairs(ids) do
      if sought[id] and redis.call('LREM', processing, 0, id) > 0 then
        taken[#taken + 1] = id
      end
    end
    return taken
  end
  local kept, page = {}, redis.call('LRANGE', processing, -page_size, -1)
  for at = #page, 1, -1 do
    local id = page[at]
    if sought[id] and wanted(id) then
      taken[#taken + 1] = id
    else
      kept[#kept + 1] = id
    end
  end
  if #page > 0 then
    redis.call('RPOP', processing, #page)
    for_all('LPUSH', processing, kept)
  end
  return taken
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

-- Where IDs stand in a list, counted from its right end, where 0 leaves next.
--
-- offset    where the first of them was seen to stand
-- span      how many entries there were from the first to the last
-- Others push and pop meanwhile, so a few entries more are read on both sides; and where even the
-- first one is not among them, it is looked for as far as it can have come.
--
-- Returns a table from ID to its offsets, the furthest first, and how far the first has drifted.
local PLACE_SLACK = 200
local function places_near(list, ids, offset, span)
  local sought, first = {}, ids[1]
  for _, id in ipairs(ids) do
    sought[id] = true
  end
  local function read(from, to)
    local places, entries = {}, redis.call('LRANGE', list, -(to + 1), -(from + 1))
    for at, id in ipairs(entries) do
      if sought[id] then
        places[id] = places[id] or {}
        table.insert(places[id], from + #entries - at)
      end
    end
    return places
  end
  local places = read(math.max(0, offset - PLACE_SLACK), offset + span + PLACE_SLACK)
  if first and not places[first] then
    local index = redis.call('LPOS', list, first, 'RANK', -1, 'MAXLEN', offset + span + PLACE_SLACK)
    if index then
      local found = redis.call('LLEN', list) - 1 - index
      return read(math.max(0, found - PLACE_SLACK), found + span + PLACE_SLACK), found - offset
    end
  end
  return places, first and places[first] and places[first][#places[first]] - offset or 0
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
  local values, count = leases_of(ids)
  local due_ms, buried_ms = scores_of(delayed, ids), scores_of(buried, ids)
  -- MGET gives nothing for a key of another type, which is a lease, too.
  local all_seen = count == 2 * #ids or count == for_all('EXISTS', nil, lease_keys(ids))
  local sessions, parked = {}, {}
  for i, id in ipairs(ids) do
    local new, old = values[2 * i - 1], values[2 * i]
    -- A guard of the one name may speak for longer than the lease of a worker of the other.
    local new_session = new and not is_guard(new) and new
    local old_session = old and not is_guard(old) and old
    if not all_seen and lease_holder(id) == '' then
      sessions[id] = ''
    elseif new_session and old_session and new ~= old then
      sessions[id] = lease_holder(id)
    else
      sessions[id] = new_session or old_session
    end
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

-- Take entries off a list by their places, counted from the right end; the rest keeps its order. It is
-- passed over once, from the nearer end and no further than the last of them: an LREM for each would
-- pass over it as often. `mark` is no ID of anybody's.
local function drop_places(list, places, mark)
  table.sort(places)
  if #places > 0 and places[#places] == #places - 1 then
    redis.call('RPOP', list, #places)
  elseif #places > 0 then
    local length = redis.call('LLEN', list)
    local from_left = places[1] > length - 1 - places[#places]
    for _, from_right in ipairs(places) do
      redis.call('LSET', list, from_left and length - 1 - from_right or -1 - from_right, mark)
    end
    redis.call('LREM', list, from_left and #places or -#places, mark)
  end
end

-- Where IDs stand in a stretch of main, by ID, counted from its right end.
--
-- wanted     a table with those IDs as keys
-- passed     how many entries at the right end of main to pass over
-- count      how many entries to look at behind those
-- What has been pushed a second time since the caller read the lists has no place here: it is left to
-- be looked for by name.
local function sole_places(wanted, passed, count)
  local place, length = {}, redis.call('LLEN', main)
  local stretch = redis.call('LRANGE', main, -(passed + count), -(passed + 1))
  for at, id in ipairs(stretch) do
    if wanted[id] ~= nil then
      place[id] = passed + #stretch - at
    end
  end
  for id in pairs(just_pushed(processing)) do
    place[id] = nil
  end
  for at, id in ipairs(redis.call('LRANGE', main, 0, 499)) do
    if place[id] and place[id] ~= length - at then
      place[id] = nil
    end
  end
  return place
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

-- Put delayed items that are due onto main, the earliest due first.
--
-- count_max  how many entries to look at, at most
-- skip       how many due entries to pass over first
-- now_ms     the server's clock, unix ms
-- only_tells say what would be done, and do nothing
-- A guard of both generations proves that no cleaner has touched the item: it is in no list. Without
-- it a cleaner of another language may have returned the item already, and only who reads the lists
-- can tell; so these stay. An entry without data, or of an item that somebody holds a lease of, means
-- nothing any more and goes.
--
-- Returns the IDs that were promoted; those whose entry was dropped; those that have to be looked for
-- in the lists; and how many entries were looked at.
local function promote_due(count_max, skip, now_ms, only_tells)
  local promoted, dropped, unproven, off = {}, {}, {}, {}
  if not present[delayed] then
    return promoted, dropped, unproven, 0
  end
  local ids = redis.call('ZRANGEBYSCORE', delayed, '-inf', as_ms(now_ms), 'LIMIT', skip, count_max)
  if #ids == 0 then
    return promoted, dropped, unproven, 0
  end
  local holders = redis.call('MGET', unpack(lease_keys(ids)))
  for i, id in ipairs(ids) do
    local kind = redis.call('TYPE', item_prefix .. id).ok
    local new, old = holders[2 * i - 1], holders[2 * i]
    local guarded = (new and is_delayed_guard(new)) or (old and is_delayed_guard(old))
    local foreign = (new and not is_delayed_guard(new)) or (old and not is_delayed_guard(old))
    if kind == 'none' then
      dropped[#dropped + 1] = id
      if guarded and not foreign then
        off[#off + 1] = id
      end
    elseif kind == 'string' and guarded and not foreign and new and old then
      promoted[#promoted + 1] = id
      off[#off + 1] = id
    elseif kind == 'string' and not foreign then
      unproven[#unproven + 1] = id
    elseif kind == 'string' and not is_cleaning_guard(new or old) then
      dropped[#dropped + 1] = id
    end
  end
  if only_tells then
    return promoted, dropped, unproven, #ids
  end
  drop_leases(off)
  if #promoted + #dropped == #ids then
    -- All that was looked at stands together, and is not looked for one by one.
    redis.call('ZREMRANGEBYRANK', delayed, skip, skip + #ids - 1)
  else
    for_all('ZREM', delayed, promoted)
    for_all('ZREM', delayed, dropped)
  end
  for_all('LPUSH', main, promoted)
  return promoted, dropped, unproven, #ids
end

-- By ID, how often a clean has brought it back. A field that is no number counts as none.
local function returns_of(ids)
  local values, counts = {}, {}
  if present[returns] and #ids > 0 then
    values = redis.call('HMGET', returns, unpack(ids))
  end
  for i, id in ipairs(ids) do
    local digits = values[i] and string.match(values[i], '^%d+$')
    counts[id] = digits and #digits < 16 and tonumber(digits) or 0
  end
  return counts
end

-- Put items that a clean took off processing, or found in no list, onto main, and count that.
--
-- counts      what `returns_of` says of them; read before the caller's first write
-- bury_after  what came back so often already is buried instead, which is not counted; -1 for never
-- Returns, by ID, whether it was buried.
local function bring_back(ids, counts, bury_after)
  local back, counted, put_away, guards, is_buried = {}, {}, {}, {}, {}
  local now_ms = as_ms(clock_ms())
  for _, id in ipairs(ids) do
    local count = counts[id]
    if bury_after >= 0 and count >= bury_after then
      is_buried[id] = true
      put_away[#put_away + 1] = now_ms
      put_away[#put_away + 1] = id
      -- As `guard_buried` does, for all of them in one call.
      local holder = string.format('rwq-buried:returned %d time%s', count, count == 1 and '' or 's')
      for _, key in ipairs({ lease_prefix .. id, old_lease_prefix .. id }) do
        guards[#guards + 1] = key
        guards[#guards + 1] = holder
      end
    else
      back[#back + 1] = id
      counted[#counted + 1] = id
      counted[#counted + 1] = string.format('%.0f', count + 1)
    end
  end
  for_all('HSET', returns, counted)
  for_all('MSET', nil, guards)
  for_all('ZADD', buried, put_away)
  for_all('LPUSH', main, back)
  return is_buried
end

-- How long until the next delayed item is due, ms, rounded up; -1 where there is none.
local function due_in_ms(now_ms)
  local next_due = present[delayed]
    and redis.call('ZRANGEBYSCORE', delayed, '(' .. as_ms(now_ms), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if not next_due or #next_due == 0 then
    return -1
  end
  return math.ceil(tonumber(next_due[2]) - now_ms)
end

-- What a completion has to know about results before its first write.
--
-- ids         those that it may complete
-- exists      by ID, whether it has data: without them there is nothing to complete
-- keep_ms     how long to keep their outcome, ms; '' where none is kept
-- status      what the outcome says: 'completed' | 'rejected'
-- result      the result, or nil for an outcome without one
-- Returns what `settle_results` needs, and nil; or nil and the error.
local function prepare_results(ids, exists, keep_ms, status, result)
  local keeps, probe = keep_ms ~= '', result_prefix .. 'x'
  local known = { exists = exists, keep_ms = keep_ms, status = status, result = result }
  local asked = {}
  for i, id in ipairs(ids) do
    asked[i] = result_prefix .. id
  end
  -- Nearly never is there one: of an earlier item with this ID.
  local some_are_there = for_all('EXISTS', nil, asked) > 0
  local refusal = (some_are_there and denied({ 'DEL', probe }))
    or (keeps and denied({ 'HSET', probe, 'x', 'x' }, { 'PEXPIRE', probe, 1 }))
  if refusal then
    return nil, refusal
  end
  if some_are_there then
    known.old = {}
    for i, id in ipairs(ids) do
      local kind = redis.call('TYPE', asked[i]).ok
      if keeps and exists[id] and kind ~= 'none' and kind ~= 'hash' then
        return nil, redis.error_reply('WRONGTYPE ' .. asked[i]
          .. ' holds another type than the protocol says: a ' .. kind .. ' and not a hash')
      end
      known.old[id] = kind == 'hash'
    end
  end
  if keeps then
    known.holders = lease_holders(ids)
    known.now_ms = string.format('%.0f', math.floor(clock_ms()))
  end
  return known, nil
end

-- Keep the outcome of those IDs that had data and so were completed; and no result of an earlier item
-- with such an ID, which would be taken for theirs.
local function settle_results(ids, known)
  if not known.old and known.keep_ms == '' then
    return
  end
  local completed, outdated = {}, {}
  for _, id in ipairs(ids) do
    if known.exists[id] then
      completed[#completed + 1] = id
      if known.old and known.old[id] then
        outdated[#outdated + 1] = result_prefix .. id
      end
    end
  end
  for_all('DEL', nil, outdated)
  if known.keep_ms == '' then
    return
  end
  for _, id in ipairs(completed) do
    local key, holder = result_prefix .. id, known.holders[id]
    redis.call('HSET', key, 'status', known.status, 'completed_ms', known.now_ms)
    if known.result then
      redis.call('HSET', key, 'result', known.result)
    end
    if holder and holder ~= '' and not is_guard(holder) and not is_cleaning_guard(holder) then
      redis.call('HSET', key, 'holder', holder)
    end
    redis.call('PEXPIRE', key, known.keep_ms)
  end
end
