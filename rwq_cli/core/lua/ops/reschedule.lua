-- Put right what an entry in Q:delayed or Q:buried says wrongly, or says without a guard.
--
-- arg 1     '1' to look for each ID in both lists, which costs their length: few at a time. '0' where
--           the caller saw it in none; what is guarded then stays in none
-- arg 2     the reason to write into the guard of a buried item that has lost it
-- arg 3..   IDs
-- Returns the IDs acted on. Listed: the entry goes, and with it what is left of a guard. Delayed or
-- buried without a lease, or with a guard that ends before the item is due or, of a buried one, at all:
-- it is guarded anew.
-- Uses: guards, places, parking
local refusal = denied(
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'SET', lease_prefix .. 'x', 'x' },
  { 'SET', old_lease_prefix .. 'x', 'x' },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' }
)
if refusal then
  return refusal
end
local looks, reason, ids = arg(1) == '1', arg(2), args_from(3)
local now_ms = clock_ms()
local waits_again = just_pushed(main)

-- How long the guard of an item lasts, ms: the cleaners of either generation look at one name alone.
local function guard_left(id)
  local left = math.huge
  for _, key in ipairs({ lease_prefix .. id, old_lease_prefix .. id }) do
    local key_left = redis.call('PTTL', key)
    left = key_left == -1 and left or math.min(left, key_left)
  end
  return left
end

-- What is to be done about an ID, or nil; until when it is to be guarded, nil for ever; what its guard
-- says.
local function plan(id)
  local due_ms, buried_ms = redis.call('ZSCORE', delayed, id), redis.call('ZSCORE', buried, id)
  if not (due_ms or buried_ms) or redis.call('TYPE', item_prefix .. id).ok ~= 'string' then
    return nil
  end
  local holder = lease_holder(id)
  if waits_again[id]
      or (looks and (redis.call('LPOS', main, id) or (holder and redis.call('LPOS', processing, id))))
  then
    return 'unschedule'
  end
  if looks or (holder and not is_guard(holder)) then
    return nil
  end
  local until_ms = not buried_ms and tonumber(due_ms) or nil
  if holder and guard_left(id) >= (until_ms and until_ms - now_ms or math.huge) then
    return nil
  end
  return 'guard', until_ms, holder
end

local plans, acted = {}, {}
for at, id in ipairs(ids) do
  plans[at] = { plan(id) }
end
for at, id in ipairs(ids) do
  local what, due_ms, holder = plans[at][1], plans[at][2], plans[at][3]
  if what == 'guard' and due_ms then
    guard_delayed(id, due_ms, now_ms)
  elseif what == 'guard' then
    guard_buried(id, holder and is_buried_guard(holder) and string.sub(holder, 12) or reason)
  elseif what then
    redis.call('ZREM', delayed, id)
    redis.call('ZREM', buried, id)
    drop_guards(id)
  end
  if what then
    acted[#acted + 1] = id
  end
end
return acted
