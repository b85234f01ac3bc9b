-- Acting on chosen items, if they still meet the conditions that they were chosen by: see `core/state/expected.py`.
-- include: digest, locate
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP
-- arg states  the expected states, joined by ';'; '' for any
-- arg idle_min:number  the minimum idle time, seconds; '' for any
-- arg has_tokens:flag  each ID is followed by the token of the data that was read, '' for none
-- arg marked_by  what its mark has, which follows these: 'lease', 'returns', or both; '' if there are no marks
local expected_states = states ~= '' and {} or nil
for state in string.gmatch(states, '[^;]+') do
  expected_states[state] = true
end
local expected_data, expected_marks, has_marks = {}, {}, marked_by ~= ''
local is_by_facts = not (idle_min or has_tokens or has_marks)
local expects_any = expected_states or not is_by_facts

local function ids_in(rest)
  if not (has_tokens or has_marks) then
    return rest
  end
  local ids, width = {}, 1 + (has_tokens and 1 or 0) + (has_marks and 1 or 0)
  for at = 1, #rest, width do
    local id = rest[at]
    ids[#ids + 1] = id
    expected_data[id] = has_tokens and rest[at + 1] or nil
    expected_marks[id] = has_marks and rest[at + width - 1] or nil
  end
  return ids
end

local function mark_of(id, facts)
  local lease = string.find(marked_by, 'lease') and effective_lease(facts) or ''
  local count = string.find(marked_by, 'returns') and redis.call('HGET', returns, id) or ''
  return lease .. '\n' .. count
end

-- The listing may have seen only one of the entries of a duplicated item, so the state of either counts; but one that a
-- session holds is not taken from it.
local function is_in_expected_state(facts, now_ms)
  local state = state_of(facts, now_ms)
  if state ~= 'duplicated' or expected_states[state] then
    return expected_states[state]
  end
  local is_held = facts.processing > 0 and session_of(facts)
  local in_processing = is_held and leased_or_held(facts, 'leased') or 'abandoned'
  return not is_held and expected_states.waiting or facts.processing > 0 and expected_states[in_processing]
end

-- Whether a located item with data no longer meets the conditions. The idle time is read first, because reading the
-- data may reset it.
local function is_changed(id, facts, now_ms)
  local idle = idle_min and redis.pcall('OBJECT', 'IDLETIME', item_prefix .. id)
  local mark, data = expected_marks[id], expected_data[id] or ''
  return expected_states and not is_in_expected_state(facts, now_ms)
    or type(idle) == 'number' and idle < idle_min
    or mark and mark_of(id, facts) ~= mark
    or data ~= '' and has_other_data(id, data)
end

-- The status of a located ID that is not an item to act on, or nil.
local function refusal_of(id, found, now_ms)
  return not found.main and 'elsewhere' or found.data == 'none' and 'missing'
    or has_wrong_type(found) and 'wrong-type' or expects_any and is_changed(id, found, now_ms) and 'changed' or nil
end

-- Whether an item that the caller has leased is not in processing: another worker is completing it, which in upstream
-- begins with its removal from there.
local function is_taken_away(found)
  return where == 'leased' and found.processing == 0
end

-- The status of an item of which the caller read no data, because it was added since.
local function unsaved_status(id)
  return expected_data[id] == '' and not dry_run and (where == 'name' and 'changed' or 'elsewhere')
end

-- Whether only a second look can tell if an item without a lease is between two commands of its worker or producer. In
-- the other states of `State.may_be_in_transit` it has a lease, is in main, or has no data.
local function needs_second_look(facts, now_ms)
  local state = state_of(facts, now_ms)
  return state == 'abandoned' or state == 'orphaned'
end

-- By ID, whether this is the first look at it; `flags` has '1' for each that is.
local function first_looks(ids, flags)
  local is_first = {}
  for i = 1, #flags do
    is_first[ids[i]] = string.sub(flags, i, i) == '1'
  end
  return is_first
end

-- Judge IDs by their facts and places, and unless it is a dry run, act: `status_of(id, found, now_ms)` gives the status
-- of each, `write(groups, facts, now_ms)` gets the IDs by their status, in order. `type_of` is that of `read_facts`.
-- `by_facts`: IDs that share their facts have the same status, unless it depends on how long they are leased.
local function act(ids, status_of, write, type_of, by_facts)
  local facts, now_ms, statuses = read_facts(ids, type_of), clock_ms(), {}
  locate(ids, facts)
  local groups = setmetatable({}, { __index = function(groups, status)
    groups[status] = {}
    return groups[status]
  end })
  for i, id in ipairs(ids) do
    local found = facts[id]
    found.id = id
    local status = found.status or status_of(id, found, now_ms)
    found.status = by_facts and not (found.new and expected_states) and status or nil
    local group = groups[status]
    statuses[i], group[#group + 1] = status, id
  end
  if not dry_run then
    write(groups, facts, now_ms)
  end
  return outcome_reply(ids, statuses, facts)
end
