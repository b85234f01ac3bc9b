-- Put items away, wherever they are: bury them, or delay them; and end their leases.
--
-- arg 1     0: find each ID wherever it is. -1: like 0, but what is behind a guard of both names is
--           taken to be in no list, because there are many IDs. n: only those in the n oldest entries of processing,
--           which the caller saw not to be in main. -2: only those that are delayed or buried behind a
--           guard of both names, and so in no list
-- arg 2     our own holder, whose leases need no force
-- arg 3     '1' to end a lease that another session holds, else '0'
-- arg 4     for how long to delay them, ms; 'bury' to bury them; 'rebury' to write the reason also into
--           the guard of what is buried already
-- arg 5     why they are buried; any bytes
-- arg 6..   IDs, each once
-- Returns { statuses, holder, ... }: a letter for each ID in order, b buried, e buried already, l
-- delayed, o leased by another, m missing, - not dealt with; then for each o who holds the lease.
-- Uses: guards, places, parking, moving
local refusal = denied(
  { 'LREM', processing, 0, 'x' },
  { 'RPOP', processing },
  { 'LPUSH', processing, 'x' },
  { 'LREM', main, 0, 'x' }
) or denied_to_park()
if refusal then
  return refusal
end
local page_size, own_holder, force = tonumber(arg(1)), arg(2), arg(3) == '1'
local delay_ms, replaces, reason, ids = tonumber(arg(4)), arg(4) == 'rebury', arg(5), args_from(6)
local exists, odd = with_data_of_right_type(ids)
if odd then
  return odd
end
local sessions, parked, buried_ms = sessions_and_parked(ids)
-- Its guard is no proof: the add_item of upstream 0.1 pushes what was put away without a look. Where few
-- are named they are looked for; of many, each look would cost as much as the lists are long.
local proven = page_size < 0 and parked or {}
local now_ms = clock_ms()
local may_park, told, reply = mover(ids, sessions, parked, exists, page_size, own_holder, force)

-- Of what is buried already: what its guard is to say from now on, or nil where it stays as it is.
local function new_reason(id)
  local holder = lease_holder(id)
  if replaces or not (holder and is_buried_guard(holder)) then
    return reason
  end
  return not parked[id] and string.sub(holder, 12) or nil
end

local chosen, again = {}, {}
if page_size > 0 then
  chosen = take_from_processing(page_size, ids, may_park)
else
  for _, id in ipairs(ids) do
    if may_park(id) then
      chosen[#chosen + 1] = id
      told[id] = delay_ms and 'l' or 'b'
      again[id] = not delay_ms and buried_ms[id] and { new_reason(id) }
    end
  end
end
local moved = {}
for _, id in ipairs(chosen) do
  local entries = 0
  if page_size <= 0 and not proven[id] then
    entries = redis.call('LREM', processing, 0, id) + redis.call('LREM', main, 0, id)
  end
  if again[id] and entries == 0 then
    -- It keeps the time at which it was buried.
    told[id] = 'e'
    if again[id][1] then
      guard_buried(id, again[id][1])
    end
    redis.call('ZREM', delayed, id)
  else
    told[id] = delay_ms and 'l' or 'b'
    moved[#moved + 1] = id
  end
end
if delay_ms then
  delay_all(moved, delay_ms, now_ms)
else
  bury_all(moved, reason, now_ms)
end
return reply()
