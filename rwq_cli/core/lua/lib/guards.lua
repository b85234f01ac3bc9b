-- The leases of ours that keep every cleaner off an item, and the clock that they go by.

-- Whether it is a guard that a clean of ours has put on what it is about to return.
local function is_cleaning_guard(holder)
  return string.sub(holder, 1, 10) == 'rwq-clean:'
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
