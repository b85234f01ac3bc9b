-- Lease items: pop, read and lease them atomically, and drop ghosts. Some due items are promoted first, but not in a
-- dry run. A worker also completes the item that it has just worked on: nearly all ends are such.
-- include: schedule
-- writes: main RPOP; processing LPUSH; leases SET
-- commands: lease, work
-- budget: 250 items  two leases are set for each
-- writes promote: delayed ZREM; main LPUSH; leases DEL
-- commands promote: lease, work
-- writes finish: processing LREM; leases DEL; item DEL; returns HDEL; result EXISTS
-- arg holder  holder of the lease, bytes
-- arg lease_ms  ms
-- arg count_max:number  the maximum number of items
-- arg entries_max:number  the maximum number of entries to examine
-- arg wants_data:flag  return the data, not an empty string in its place
-- arg skip:number  how many entries to skip first: in a dry run, those that earlier calls examined; else 0
-- rest done  nothing; or the ID of an item to complete, and the holder of its lease
-- Returns { entries examined, due items promoted, due in, returns, finished, ID, data, ID, data, ... }: `due in` is the
-- ms until the next delayed item is due, -1 if there is none, read only if nothing was leased; `returns` is how often
-- each item was returned, in order, or empty if none was; `finished` is 1 if the item of `done` was completed, else 0:
-- it is not as most are, and `complete` tells. Instead of the number promoted, -1 if there are due entries that only
-- `push_scheduled` can judge. Error WRONGTYPE, naming the key, if a key of the next item is not a string.

-- How many due entries to read at most if none can be promoted: those of leased items and of the wrong type stay.
local DUE_MAX = 1000
-- How many to promote at most: enough for this call and a few more.
local promote_max = math.min(100, 2 + 2 * count_max)

local now_ms = present[delayed] and clock_ms() or 0

-- The items to promote among due entries, earliest first, whose guards have kept every cleaner from pushing them. An item
-- that has lost its guards, long after it fell due, may be in a list, and ends them, as what is due later comes after it:
-- the second value is true then.
local function promotable_in(page)
  local ids, facts = {}, read_facts(page)
  for _, id in ipairs(page) do
    local item = facts[id]
    if item.data == 'string' and is_guarded(item) and not item.buried_ms then
      ids[#ids + 1] = id
    elseif not has_wrong_type(item) and not session_of(item) then
      return ids, true
    end
  end
  return ids, false
end

-- The same of all due entries, page by page: those that stay must not hold up others.
local function promotable_items()
  for skipped = 0, DUE_MAX - 1, promote_max do
    local page = redis.call('ZRANGEBYSCORE', delayed, '-inf', as_ms(now_ms), 'LIMIT', skipped, promote_max)
    local ids, is_unsure = promotable_in(page)
    if #ids > 0 or is_unsure or #page < promote_max then
      return ids, is_unsure
    end
  end
  return {}, false
end

-- The error of a server that is out of memory: it must refuse before an item's data is read, which makes it look young. A
-- write to a key that never exists changes nothing. A user who may not write that key finds out later.
local function out_of_memory()
  local reply = redis.pcall('SET', string.sub(main, 1, -6) .. 'absent', '', 'XX')
  return type(reply) == 'table' and string.find(reply.err or '', 'OOM') and reply
end

-- The data of an item, or the length if the data is not wanted; false if there is none, nil for a key of the wrong
-- type. Items are read one by one, because the size of their data is not known in advance.
local READ = wants_data and 'GET' or 'STRLEN'
local function read(id)
  local data = read_string(READ, item_prefix .. id)
  return (data ~= 0 or has_data(id)) and data
end

-- The error for a key of an item that has the wrong type, given its data and the values of its lease keys; or nil.
local function wrong_key(id, data, new, old)
  local key, what = item_prefix .. id, 'the data'
  if data ~= nil then
    key, what = (new == true and lease_prefix or old_lease_prefix) .. id, 'a lease key'
  end
  local is_wrong = data == nil or data and (new == true or old == true)
  return is_wrong and wrong_type(key, redis.call('TYPE', key).ok, 'a string; it is ' .. what .. ' of the next item')
end

-- Examine candidates in order, as many as this call may lease: how many there were, the IDs to lease, their lease keys,
-- and IDs and data in turn; or an error if already the first one cannot be judged.
--
-- A ghost is dropped. So is a second entry of an item that is leased, by this call or by another session: if that session
-- fails, a clean returns the item.
local function examine(candidates)
  local batch, is_leased = { examined = 0, ids = {}, keys = {}, items = {} }, {}
  local count, bytes, lookups = 0, 0, 0
  local values, keys = lease_values(candidates)
  for i, id in ipairs(candidates) do
    if count >= count_max or bytes >= BUDGET_BYTES then
      break
    end
    local data, new, old = read(id), values[2 * i - 1] or false, values[2 * i] or false
    local is_held = false
    -- Hardly any waiting item has a lease.
    if data == nil or new or old then
      local refusal = wrong_key(id, data, new, old)
      is_held = not refusal and data and session_of({ new = new, old = old, left = { new = 0, old = 0 } })
      lookups = lookups + (is_held and 1 or 0)
      if refusal and i == 1 then
        return nil, refusal
      elseif refusal or is_held and lookups > math.max(1, BUDGET_ENTRIES / (redis.call('LLEN', processing) + 1)) then
        -- The next call begins with it.
        break
      end
    end
    batch.examined = i
    if data and not is_leased[id] and not (is_held and redis.call('LPOS', processing, id)) then
      count, is_leased[id] = count + 1, true
      batch.ids[count] = id
      batch.keys[2 * count - 1], batch.keys[2 * count] = keys[2 * i - 1], keys[2 * i]
      batch.items[2 * count - 1], batch.items[2 * count] = id, wants_data and data or ''
      bytes = bytes + (wants_data and #data or 0)
    end
  end
  return batch
end

-- Whether an item to complete is as most are: its holder alone has leased it, and there is nothing else of it.
local function is_plain(id, owner)
  if present[cleaning] or denied(NEEDS.finish()) then
    return false
  end
  local values = redis.call('MGET', lease_prefix .. id, old_lease_prefix .. id)
  return values[1] == owner and values[2] == owner and redis.call('TYPE', item_prefix .. id).ok == 'string'
    and not scores_of(delayed, { id })[1] and not scores_of(buried, { id })[1]
    and redis.pcall('EXISTS', result_prefix .. id) == 0
end

-- Complete an item, if it is as most are: 1, else 0.
local function finish(id, owner)
  if not is_plain(id, owner) or redis.call('LREM', processing, 1, id) == 0 then
    return 0
  end
  redis.call('DEL', item_prefix .. id, lease_prefix .. id, old_lease_prefix .. id)
  delete_entries({ id }, returns)
  return 1
end

local promoted, is_unsure = {}, false
if present[delayed] and not dry_run then
  promoted, is_unsure = promotable_items()
end
-- Next first: the entries of main, then the promoted ones, which are pushed after them.
local candidates = reversed(redis.call('LRANGE', main, -(skip + entries_max), -(skip + 1)))
for i = 1, math.min(#promoted, entries_max - #candidates) do
  candidates[#candidates + 1] = promoted[i]
end
local refusal = #promoted > 0 and denied(NEEDS.promote()) or not dry_run and #candidates > 0 and out_of_memory()
if refusal then
  return refusal
end
local batch, wrong = examine(candidates)
if wrong then
  return wrong
end
local counts, due_in_ms, finished = counts_of(batch.ids), -1, 0
if #batch.ids == 0 and present[delayed] then
  local next_due = redis.call('ZRANGEBYSCORE', delayed, '(' .. as_ms(now_ms), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  -- The due time may be infinite.
  due_in_ms = next_due[2] and math.ceil(math.min(next_due[2] - now_ms, 2 ^ 52)) or -1
end
if not dry_run then
  finished = #done > 0 and finish(done[1], done[2]) or 0
  settle(prefixed(lease_prefix, promoted), prefixed(old_lease_prefix, promoted), 'promoted')
  -- Before anything is popped, because a server that is out of memory refuses it.
  for _, key in ipairs(batch.keys) do
    redis.call('SET', key, holder, 'PX', lease_ms)
  end
  delete_entries(promoted, delayed)
  push(promoted)
  if batch.examined > 0 then
    redis.call('RPOP', main, batch.examined)
    for_all('LPUSH', processing, batch.ids)
  end
end
return { batch.examined, is_unsure and -1 or #promoted, due_in_ms, counts, finished, unpack(batch.items) }
