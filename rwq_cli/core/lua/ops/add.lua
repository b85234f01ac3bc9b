-- Add items. An item whose data key exists is a duplicate, unless the caller knows that none is.
-- include: schedule
-- writes: item SETNX MSETNX MSET; main LPUSH; leases SET DEL; delayed ZADD ZREM; buried ZREM; returns HDEL; server TIME
-- commands: add, add --id, add --unique, add --delay
-- budget: 500 items  about a millisecond
-- arg ids_are  what the caller knows about the IDs: 'random' if they were generated for these items, so that they
--   are distinct and have no leftovers; 'distinct' if no ID is repeated; 'new' if none exists, so that duplicates
--   need not be looked for; else 'any'
-- arg delays  each followed by ';', for each item or one for all: empty for none, '+ms' for a delay from now, 'ms'
--   for a due time, unix ms. '' if no item is delayed
-- rest keys_and_data  ID, data, ID, data, ... (bytes; none to run only the checks)
-- Returns the 1-based indexes of the items that were not added: of duplicates as they are, and negative if the
-- data key or a lease key has the wrong type. A repeated ID is a duplicate the second time, even in a dry run.
local ids = {}
for at = 1, #keys_and_data, 2 do
  local id = keys_and_data[at]
  ids[(at + 1) / 2] = id
  keys_and_data[at] = item_prefix .. id
end
-- A worker would overwrite a key of the wrong type.
local leases, _, has_wrong_lease = lease_values(ids_are == 'random' and {} or ids)

-- Items with the same due time keep the order in which they were added: each score is a thousandth of a millisecond
-- above the previous one. This finds a free score from `at_ms` on, whole unix ms, after those of earlier items: it is
-- in the smallest of the stretches of 1, 2, 4, ... ms that is not full to its end.
local STEP_MS = 0.001
local function first_free(at_ms)
  local width, last = 1, nil
  repeat
    local latest = redis.call(
      'ZREVRANGEBYSCORE', delayed, '(' .. as_ms(at_ms + width), as_ms(at_ms), 'WITHSCORES', 'LIMIT', 0, 1
    )
    last, width = tonumber(latest[2]), 2 * width
  until not last or last < at_ms + width / 2 - 1.5 * STEP_MS
  -- Through its text, so that rounding errors do not add up.
  return last and tonumber(as_ms(last + STEP_MS)) or at_ms
end

-- The due time by ID, unix ms, or false if it is not delayed or already due. The first delay of a repeated ID counts.
local now_ms = delays ~= '' and clock_ms()
local function due_times()
  local texts, due, free = {}, {}, {}
  for delay in string.gmatch(delays, '([^;]*);') do
    texts[#texts + 1] = delay
  end
  for i, id in ipairs(ids) do
    if due[id] == nil then
      local delay = texts[#texts > 1 and i or 1]
      local ms = tonumber(delay)
      due[id] = false
      if ms and string.sub(delay, 1, 1) == '+' then
        due[id] = ms > 0 and now_ms + ms + (i - 1) * STEP_MS
      elseif ms and ms > now_ms then
        free[delay] = free[delay] or { first_free(ms), 0 }
        due[id] = free[delay][1] + free[delay][2] * STEP_MS
        free[delay][2] = free[delay][2] + 1
      end
    end
  end
  return due
end

local due = now_ms and due_times()
local function enter(added)
  -- A new item must not inherit what a worker leaves, which deletes only one lease key and none of rwq's entries.
  if next(leases) then
    delete_guards(added, true)
  end
  delete_entries(ids_are ~= 'random' and added or {}, delayed, buried, returns)
  local for_main, for_delayed = due and {} or added, {}
  -- Formatting a number takes as long as setting a key: one guard serves a whole millisecond, and the server formats
  -- the scores.
  local guard_ms, holder, lease_ms = -1, nil, nil
  for _, id in ipairs(due and added or {}) do
    local due_ms = due[id]
    if due_ms then
      if due_ms < guard_ms or due_ms >= guard_ms + 1 then
        guard_ms = math.floor(due_ms)
        holder, lease_ms = delayed_guard(due_ms, now_ms)
      end
      set_lease(id, holder, lease_ms)
      for_delayed[#for_delayed + 1] = due_ms
      for_delayed[#for_delayed + 1] = id
    else
      for_main[#for_main + 1] = id
    end
  end
  for_all('ZADD', delayed, for_delayed)
  for_all('LPUSH', main, for_main)
end

-- Nearly always, all IDs are new, and one call is enough. MSETNX sets all keys or none. It cannot be used if an
-- ID may be repeated, because it would keep the last data instead of the first.
local may_exist = ids_are ~= 'new'
if may_exist and ids_are ~= 'any' and not dry_run and not next(has_wrong_lease)
  and redis.call('MSETNX', unpack(keys_and_data)) == 1 then
  enter(ids)
  return {}
end
local added, is_added, pairs_of_added, refused = {}, {}, {}, {}
local some_exist = not may_exist and for_all('EXISTS', nil, prefixed(item_prefix, ids)) > 0
for i, id in ipairs(ids) do
  local key, data, is_free = keys_and_data[2 * i - 1], keys_and_data[2 * i], false
  if not may_exist then
    local kind = some_exist and redis.call('TYPE', key).ok or 'none'
    is_free = not has_wrong_lease[id] and (kind == 'none' or kind == 'string')
    pairs_of_added[#pairs_of_added + 1] = is_free and key or nil
    pairs_of_added[#pairs_of_added + 1] = is_free and data or nil
  elseif dry_run then
    is_free = not (is_added[id] or has_wrong_lease[id] or has_data(id))
  else
    is_free = not has_wrong_lease[id] and redis.call('SETNX', key, data) == 1
  end
  if is_free then
    added[#added + 1], is_added[id] = id, true
  else
    local is_duplicate = may_exist and (is_added[id] or redis.call('TYPE', key).ok == 'string')
    refused[#refused + 1] = is_duplicate and i or -i
  end
end
if dry_run and #ids > 0 then
  -- Refused as the run would be, if the server is full or takes no writes; it changes nothing.
  redis.call('SET', string.sub(main, 1, -6) .. 'absent', '', 'XX')
elseif not dry_run then
  for_all('MSET', nil, pairs_of_added)
  enter(added)
end
return refused
