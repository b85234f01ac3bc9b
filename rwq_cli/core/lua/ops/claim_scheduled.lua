-- Guard due or buried items whose guard has ended, or is of one generation alone, so that they can be
-- looked for in the lists.
--
-- arg 1     'delayed', for those of Q:delayed that are due, or 'buried'
-- arg 2     value of the guard, unique to this run
-- arg 3     how long it lasts, ms: if we die, the item is without a guard again after that
-- arg 4..   IDs
-- Returns the IDs that were guarded. Every cleaner of every language leaves them alone meanwhile. What
-- somebody else holds a lease of is left to them.
-- Uses: guards
local refusal = denied(
  { 'SET', lease_prefix .. 'x', 'x' },
  { 'SET', old_lease_prefix .. 'x', 'x' }
)
if refusal then
  return refusal
end
local is_delayed, guard, guard_ms, ids = arg(1) == 'delayed', arg(2), arg(3), args_from(4)
local now_ms, claimed = clock_ms(), {}

-- Whether a lease key is free for us; one of another type is a lease that nobody can read.
local function is_free(key)
  local value = redis.pcall('GET', key)
  return not value or (type(value) == 'string' and is_guard(value))
end

for _, id in ipairs(ids) do
  local at_ms = redis.call('ZSCORE', is_delayed and delayed or buried, id)
  if at_ms and (not is_delayed or tonumber(at_ms) <= now_ms)
      and redis.call('TYPE', item_prefix .. id).ok == 'string'
      and is_free(lease_prefix .. id) and is_free(old_lease_prefix .. id) then
    set_lease(id, guard, guard_ms)
    claimed[#claimed + 1] = id
  end
end
return claimed
