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
local promoted, is_promoted, is_unsure = {}, {}, false

-- Note the earliest due items, whose guards have kept every cleaner from pushing them. One that has lost them, long after
-- it fell due, may be in a list; what is due later comes after it. Entries that stay must not hold up others. Returns
-- the error of a user who may not promote.
local function note_due_items()
  for skipped = 0, DUE_MAX - 1, promote_max do
    local page = redis.call('ZRANGEBYSCORE', delayed, '-inf', as_ms(now_ms), 'LIMIT', skipped, promote_max)
    local refusal = #page > 0 and denied(NEEDS.promote())
    if refusal then
      return refusal
    end
    local facts = read_facts(page)
    for _, id in ipairs(page) do
      local item = facts[id]
      if item.data == 'string' and is_guarded(item) and not item.buried_ms then
        promoted[#promoted + 1], is_promoted[id] = id, true
      elseif not has_wrong_type(item) and not session_of(item) then
        is_unsure = true
        return
      end
    end
    if #promoted > 0 or #page < promote_max then
      return
    end
  end
end
local refusal = present[delayed] and not dry_run and note_due_items()
if refusal then
  return refusal
end

-- The entries to examine, next first: those of main, then the promoted ones, which are pushed after them.
local candidates = reversed(redis.call('LRANGE', main, -(skip + entries_max), -(skip + 1)))
for i = 1, math.min(#promoted, entries_max - #candidates) do
  candidates[#candidates + 1] = promoted[i]
end

-- The data of an item, or the length if the data is not wanted; false if there is none, nil for a key of the wrong
-- type. Items are read one by one, because the size of their data is not known in advance.
local READ = wants_data and 'GET' or 'STRLEN'
local function read(id)
  local data = read_string(READ, item_prefix .. id)
  return (data ~= 0 or has_data(id)) and data
end

-- Reading an item's data makes it look young. So a server that is out of memory must refuse this before: a write to a
-- key that never exists changes nothing. A user who may not write that key finds out later.
if not dry_run and #candidates > 0 then
  local reply = redis.pcall('SET', string.sub(main, 1, -6) .. 'absent', '', 'XX')
  if type(reply) == 'table' and string.find(reply.err or '', 'OOM') then
    return reply
  end
end

local lookups_left

-- Whether a session holds a waiting item; nil if finding out would take too long for this call.
local function is_worked_on(id, new, old)
  if is_promoted[id] or not session_of({ new = new, old = old, left = { new = 0, old = 0 } }) then
    return false
  end
  lookups_left = lookups_left or math.max(1, math.floor(BUDGET_ENTRIES / (redis.call('LLEN', processing) + 1)))
  if lookups_left == 0 then
    return nil
  end
  lookups_left = lookups_left - 1
  return redis.call('LPOS', processing, id) ~= false
end

-- The error for a key of the next item that has the wrong type, given what was read of it; or nil.
local function wrong_key(id, data, new, old)
  local key, what = item_prefix .. id, 'the data'
  if data ~= nil then
    key, what = (new == true and lease_prefix or old_lease_prefix) .. id, 'a lease key'
  end
  local is_wrong = data == nil or data and (new == true or old == true)
  return is_wrong and wrong_type(key, redis.call('TYPE', key).ok, 'a string; it is ' .. what .. ' of the next item')
end

local reply, leased, leases, is_leased = { 0, is_unsure and -1 or #promoted, -1, {}, 0 }, {}, {}, {}
local examined, count, bytes = 0, 0, 0
local values, keys = lease_values(candidates)
for i, id in ipairs(candidates) do
  if count >= count_max or bytes >= BUDGET_BYTES then
    break
  end
  local data, new, old, wrong, worked_on = read(id), values[2 * i - 1] or false, values[2 * i] or false, nil, false
  -- Hardly any waiting item has a lease.
  if data == nil or new or old then
    wrong = wrong_key(id, data, new, old)
    worked_on = not wrong and data and is_worked_on(id, new, old)
  end
  if wrong and examined == 0 then
    return wrong
  elseif wrong or worked_on == nil then
    break
  end
  examined = examined + 1
  -- A ghost is dropped. So is a second entry of an item that is leased, by this call or by another session: if that
  -- session fails, a clean returns the item.
  if data and not worked_on and not is_leased[id] then
    count, is_leased[id] = count + 1, true
    leased[count] = id
    leases[2 * count - 1], leases[2 * count] = keys[2 * i - 1], keys[2 * i]
    reply[2 * count + 4], reply[2 * count + 5] = id, wants_data and data or ''
    bytes = bytes + (wants_data and #data or 0)
  end
end
reply[1], reply[4] = examined, counts_of(leased)
if count == 0 and present[delayed] then
  local next_due = redis.call('ZRANGEBYSCORE', delayed, '(' .. as_ms(now_ms), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  -- The due time may be infinite.
  reply[3] = next_due[2] and math.ceil(math.min(next_due[2] - now_ms, 2 ^ 52)) or -1
end
if dry_run then
  return reply
end

-- Whether the item to complete is as most are: its holder alone has leased it, and there is nothing else of it.
local function is_plain(id, owner)
  if present[cleaning] or denied(NEEDS.finish()) then
    return false
  end
  local values = redis.call('MGET', lease_prefix .. id, old_lease_prefix .. id)
  return values[1] == owner and values[2] == owner and redis.call('TYPE', item_prefix .. id).ok == 'string'
    and not scores_of(delayed, { id })[1] and not scores_of(buried, { id })[1]
    and redis.pcall('EXISTS', result_prefix .. id) == 0
end

if #done > 0 and is_plain(done[1], done[2]) and redis.call('LREM', processing, 1, done[1]) == 1 then
  reply[5] = 1
  redis.call('DEL', item_prefix .. done[1], lease_prefix .. done[1], old_lease_prefix .. done[1])
  delete_entries({ done[1] }, returns)
end
settle(lease_keys(promoted), 'promoted')
-- Before anything is popped, because a server that is out of memory refuses it.
for i = 1, 2 * count do
  redis.call('SET', leases[i], holder, 'PX', lease_ms)
end
delete_entries(promoted, delayed)
push(promoted)
if examined > 0 then
  redis.call('RPOP', main, examined)
  for_all('LPUSH', processing, leased)
end
return reply
