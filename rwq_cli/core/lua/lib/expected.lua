-- Checking that chosen items still meet the conditions that they were chosen by.
--
-- arg 5  the expected states, joined by ';'; '' for any
-- arg 6  the minimum idle time, seconds; '' for any
-- arg 7  '1' if each ID is followed by the fingerprint of the data that was read, else '0'
local expected_states = nil
for state in string.gmatch(arg(5), '[^;]+') do
  expected_states = expected_states or {}
  expected_states[state] = true
end
local idle_min, expected_data = tonumber(arg(6)), {}

-- The IDs from the operation's n-th argument on; the fingerprints go into `expected_data`.
local function ids_from(n)
  if arg(7) ~= '1' then
    return args_from(n)
  end
  local ids = {}
  for at = n + 5, #ARGV, 2 do
    ids[#ids + 1] = ARGV[at]
    expected_data[ARGV[at]] = ARGV[at + 1]
  end
  return ids
end

-- The same as `fingerprint` in `core/state/expected.py`. FINGERPRINT_BYTES is made from
-- `core/lua/__init__.py`.
local function fingerprint(id)
  local key, half = item_prefix .. id, FINGERPRINT_BYTES / 2
  local data = redis.call('GETRANGE', key, 0, FINGERPRINT_BYTES)
  if #data <= FINGERPRINT_BYTES then
    return redis.sha1hex(#data .. ':' .. data)
  end
  return redis.sha1hex(redis.call('STRLEN', key) .. ':' .. string.sub(data, 1, half)
    .. redis.call('GETRANGE', key, -half, -1))
end

-- Whether an item is in one of the expected states. The listing may have seen only one of the entries of a
-- duplicated item, so the state of either entry counts.
local function is_in_expected_state(facts, now_ms)
  local state = state_of(facts, now_ms)
  if expected_states[state] or state ~= 'duplicated' then
    return expected_states[state] ~= nil
  end
  local is_worked_on = facts.processing > 0 and session_of(facts)
  state = facts.processing > 0 and state_of(setmetatable({ main = 0 }, { __index = facts }), now_ms)
  -- An item that also waits must not be taken from the session that holds it.
  return (expected_states.waiting and not is_worked_on) or expected_states[state] ~= nil
end

-- Whether a located item with data no longer meets the conditions. The idle time is read first, because
-- reading the data may reset it.
local function is_changed(id, facts, now_ms)
  if expected_states and not is_in_expected_state(facts, now_ms) then
    return true
  elseif idle_min then
    local idle = redis.pcall('OBJECT', 'IDLETIME', item_prefix .. id)
    if type(idle) == 'number' and idle < idle_min then
      return true
    end
  end
  return expected_data[id] ~= nil and fingerprint(id) ~= expected_data[id]
end

-- The status of a located ID that is not an item to act on, or nil.
local function refusal_of(id, found, now_ms)
  if not found.main then
    return 'elsewhere'
  elseif found.data == 'none' then
    return 'missing'
  elseif has_wrong_type(found) then
    return 'wrong-type'
  elseif is_changed(id, found, now_ms) then
    return 'changed'
  end
  return nil
end
