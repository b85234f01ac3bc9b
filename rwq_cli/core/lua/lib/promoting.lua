-- Bringing back what is due.
--
-- Uses: guards

-- The error for what `promote_due` may not do, or nil; where nothing is delayed it does nothing.
local function denied_to_promote()
  return present[delayed] and denied(
    { 'ZREM', delayed, 'x' },
    { 'ZREMRANGEBYRANK', delayed, 0, 0 },
    { 'DEL', lease_prefix .. 'x' },
    { 'DEL', old_lease_prefix .. 'x' },
    { 'LPUSH', main, 'x' }
  ) or nil
end

-- Put delayed items that are due onto main, the earliest due first.
--
-- count_max  how many entries to look at, at most
-- skip       how many due entries to pass over first
-- now_ms     the server's clock, unix ms
-- only_tells say what would be done, and do nothing
-- A guard of both generations proves that no cleaner has touched the item. That no producer of 0.1 has
-- pushed it all the same is taken for granted: to look for each in main would cost its length, and a
-- second entry is dropped when it is leased or by a deep clean. Without the guard a cleaner of another
-- language may have returned the item already, and only who reads the lists can tell; so these stay. An
-- entry without data, or of an item that somebody holds a lease of, means nothing any more and goes.
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

-- How long until the next delayed item is due, ms, rounded up; -1 where there is none.
local function due_in_ms(now_ms)
  local next_due = present[delayed]
    and redis.call('ZRANGEBYSCORE', delayed, '(' .. as_ms(now_ms), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if not next_due or #next_due == 0 then
    return -1
  end
  return math.ceil(tonumber(next_due[2]) - now_ms)
end
