-- Put right what an entry in Q:delayed or Q:buried says wrongly, or says without a guard.
--
-- arg 1     '1' to look for each ID in both lists, which costs their length: few at a time. '0' where
--           the caller saw it in none; what is guarded then stays in none
-- arg 2     how long the guard of a delayed item outlives its due time, ms
-- arg 3     the reason to write into the guard of a buried item that has lost it
-- arg 4..   IDs
-- Returns the IDs acted on. Listed: the entry goes, and with it a guard. Due behind a guard: it goes
-- onto main. Delayed or buried without a lease, or with a guard that ends before the item is due or,
-- of a buried one, at all: it is guarded anew.
local refusal = denied(
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'SET', lease_prefix .. 'x', 'x' },
  { 'SET', old_lease_prefix .. 'x', 'x' },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' },
  { 'LPUSH', main, 'x' }
)
if refusal then
  return refusal
end
local looks, margin_ms, reason, ids = arg(1) == '1', tonumber(arg(2)), arg(3), args_from(4)
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local waits_again = just_pushed(main)

-- How long the guard of an item lasts, ms.
local function guard_left(id)
  local new = redis.call('PTTL', lease_prefix .. id)
  local old = redis.call('PTTL', old_lease_prefix .. id)
  return (new == -1 or old == -1) and math.huge or math.max(new, old)
end

-- What is to be done about an ID, or nil; whether its guard goes; until when it is to be guarded; what
-- its guard says.
local function plan(id)
  local due_ms, buried_ms = redis.call('ZSCORE', delayed, id), redis.call('ZSCORE', buried, id)
  if not (due_ms or buried_ms) or redis.call('TYPE', item_prefix .. id).ok ~= 'string' then
    return nil
  end
  local holder = lease_holder(id)
  local guarded = holder and is_guard(holder)
  if waits_again[id]
      or (looks and (redis.call('LPOS', main, id) or (holder and redis.call('LPOS', processing, id))))
  then
    return 'unschedule', guarded
  end
  if looks or (holder and not guarded) then
    return nil
  end
  local until_ms = not buried_ms and math.max(tonumber(due_ms), now_ms) or nil
  if guarded and until_ms == now_ms then
    return 'promote', true
  end
  if guarded and guard_left(id) >= (until_ms and until_ms - now_ms or math.huge) then
    return nil
  end
  return 'guard', false, until_ms, holder
end

local plans, acted, promoted = {}, {}, {}
for at, id in ipairs(ids) do
  plans[at] = { plan(id) }
end
for at, id in ipairs(ids) do
  local what, guarded, due_ms, holder = plans[at][1], plans[at][2], plans[at][3], plans[at][4]
  if what == 'guard' then
    if due_ms then
      set_lease(id, 'rwq-delayed:', string.format('%.0f', due_ms - now_ms + margin_ms))
    else
      local says_why = holder and string.sub(holder, 1, 11) == 'rwq-buried:'
      local says = says_why and holder or 'rwq-buried:' .. reason
      redis.call('SET', lease_prefix .. id, says)
      redis.call('SET', old_lease_prefix .. id, says)
    end
  elseif what then
    redis.call('ZREM', delayed, id)
    redis.call('ZREM', buried, id)
    if guarded then
      drop_lease(id)
    end
    if what == 'promote' then
      promoted[#promoted + 1] = id
    end
  end
  if what then
    acted[#acted + 1] = id
  end
end
for_all('LPUSH', main, promoted)
return acted
