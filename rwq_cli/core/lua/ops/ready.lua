-- Find the queues that may have an item to lease: one that waits or is due. Writes nothing, and costs an idle
-- worker one call for all of its queues.
--
-- rest names  for each queue, the names of its main list and of its delayed items
-- Returns { due in, n, n, ... }: the numbers of those queues, from 1; and the ms until the next delayed item of
-- any queue is due, -1 if there is none.
local reply = { -1 }
if for_all('EXISTS', nil, names) == 0 then
  return reply
end
local now_ms, next_ms = clock_ms(), nil
for i = 1, #names, 2 do
  local is_ready = redis.call('EXISTS', names[i]) == 1
  -- A key of the wrong type is reported by the lease.
  local first = redis.pcall('ZRANGE', names[i + 1], 0, 0, 'WITHSCORES')
  local due_ms = first.err and 0 or tonumber(first[2])
  if due_ms and due_ms <= now_ms then
    is_ready = true
  elseif due_ms then
    next_ms = math.min(next_ms or due_ms, due_ms)
  end
  if is_ready then
    reply[#reply + 1] = (i + 1) / 2
  end
end
reply[1] = due_in(next_ms, now_ms)
return reply
