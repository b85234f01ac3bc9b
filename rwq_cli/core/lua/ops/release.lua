-- Put items back into the main list now and end their leases.
--
-- arg 1     0: find each ID wherever it is. -1: like 0, but what is behind a guard of both names is
--           taken to be in no list, because there are many IDs. n: only those in the n oldest entries of processing,
--           which the caller saw not to be in main. -2: only those that are delayed or buried behind a
--           guard of both names, and so in no list
-- arg 2     our own holder, whose leases need no force
-- arg 3     '1' to end a lease that another session holds, else '0'
-- arg 4     '1' to make them the next to be leased (only with arg 1 = 0), '0' for the end
-- arg 5..   IDs, in the order in which they shall be leased
-- Returns { statuses, holder, ... }: a letter for each ID in order, r released, w already waiting, o
-- leased by another, m missing, - not dealt with; then for each o who holds the lease.
-- Uses: places, parking, moving
local refusal = denied(
  { 'LREM', processing, 0, 'x' },
  { 'RPOP', processing },
  { 'LPUSH', processing, 'x' },
  { 'LREM', main, 0, 'x' },
  { 'LPUSH', main, 'x' },
  { 'RPUSH', main, 'x' },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' },
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' }
)
if refusal then
  return refusal
end
local page_size, own_holder = tonumber(arg(1)), arg(2)
local force, front, ids = arg(3) == '1', arg(4) == '1', args_from(5)
local exists, odd = with_data_of_right_type(ids)
if odd then
  return odd
end
local sessions, parked = sessions_and_parked(ids)
-- Its guard is no proof: the add_item of upstream 0.1 pushes what was put away without a look. Where few
-- are named they are looked for; of many, each look would cost as much as the lists are long.
local proven = page_size < 0 and parked or {}
local waits = {}

-- What waits already stays, or is moved to the front, whoever has a lease of it.
local function waiting(id)
  if page_size > 0 or proven[id] or not redis.call('LPOS', main, id) then
    return nil
  end
  waits[id] = front
  return front or 'w'
end

local may_release, told, reply =
  mover(ids, sessions, parked, exists, page_size, own_holder, force, waiting)
local released = {}
if page_size <= 0 then
  for _, id in ipairs(ids) do
    if may_release(id) then
      released[#released + 1] = id
      told[id] = 'r'
    end
  end
  for _, id in ipairs(released) do
    if not proven[id] then
      redis.call('LREM', processing, 0, id)
    end
    if waits[id] then
      redis.call('LREM', main, 0, id)
    end
  end
else
  released = take_from_processing(page_size, ids, may_release)
  for _, id in ipairs(released) do
    told[id] = 'r'
  end
end
-- Off the other structures first, then onto main: the order of the protocol.
unschedule(released)
drop_leases(released)
if front then
  -- The last one pushed on the right is the next to be leased.
  local last_first = {}
  for i = #released, 1, -1 do
    last_first[#last_first + 1] = released[i]
  end
  for_all('RPUSH', main, last_first)
else
  for_all('LPUSH', main, released)
end
return reply()
