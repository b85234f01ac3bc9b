-- Acting on chosen items, if they still meet the conditions that they were chosen by: see `core/state/expected.py`.
-- include: digest, locate
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP
-- arg states  the expected states, joined by ';'; '' for any
-- arg age_min:number  the minimum age, seconds; '' for any
-- arg age_max:number  the longest idle time that can be true, seconds; '' for any
-- arg has_tokens:flag  each ID is followed by a token of what was seen of it, '' if nothing was
-- arg is_first_look  for each ID '1' if it is left alone, as 'in-transit', where only a second look can tell whether it
--   is between two commands of its worker or producer; '' for none
local expected_states = states ~= '' and {} or nil
for state in string.gmatch(states, '[^;]+') do
  expected_states[state] = true
end
local is_by_facts = not (age_min or has_tokens)
local expects_any = expected_states or not is_by_facts

local tokens, is_first = {}, {}
local function ids_in(rest)
  local ids = rest
  if has_tokens then
    ids, tokens = split_pairs(rest)
  end
  for i = 1, #is_first_look do
    is_first[ids[i]] = string.sub(is_first_look, i, i) == '1'
  end
  return ids
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

-- Whether an item is younger than the minimum age, or its age is unknown.
local function is_too_young(id, facts, now_ms)
  if state_of(facts, now_ms) == 'buried' then
    return now_ms - facts.buried_ms < age_min * 1000
  end
  local idle = redis.pcall('OBJECT', 'IDLETIME', item_prefix .. id)
  return type(idle) ~= 'number' or idle < age_min or idle > (age_max or idle)
end

-- Whether a located item with data no longer meets the conditions. The age is read first, because reading the data may
-- reset it.
local function is_changed(id, facts, now_ms)
  local is_young = age_min and is_too_young(id, facts, now_ms)
  local token = tokens[id] or ''
  return expected_states and not is_in_expected_state(facts, now_ms)
    or is_young
    or token ~= '' and differs_from(token, id, facts)
end

-- The status of a located ID that is not an item to act on, or nil.
local function refusal_of(id, item, now_ms)
  return not item.main and 'elsewhere' or item.data == 'none' and 'missing'
    or has_wrong_type(item) and 'wrong-type' or expects_any and is_changed(id, item, now_ms) and 'changed' or nil
end

-- Whether an item that the caller has leased is not in processing: another worker is completing it, which in upstream
-- begins with its removal from there.
local function is_taken_away(item)
  return where == 'leased' and item.processing == 0
end

-- The status of an item of which the caller read no data, because it was added since.
local function unsaved_status(id)
  return tokens[id] == '' and not dry_run and (where == 'name' and 'changed' or 'elsewhere')
end

-- Whether an item is to be left alone at this first look. In the other states of `State.may_be_in_transit` it has a
-- lease, is in main, or has no data.
local function is_in_doubt(id, item, now_ms)
  local state = is_first[id] and state_of(item, now_ms)
  return state == 'abandoned' or state == 'orphaned'
end

-- The IDs by their status, in order.
local function grouped(ids, statuses)
  local groups = setmetatable({}, { __index = function(groups, status)
    groups[status] = {}
    return groups[status]
  end })
  for i, id in ipairs(ids) do
    local group = groups[statuses[i]]
    group[#group + 1] = id
  end
  return groups
end

-- Judge IDs by their facts and places: the statuses, the facts, and the time. `status_of(id, facts of the ID, now_ms)`
-- gives the status of each. `by_facts`: the status follows from the facts alone, so that IDs that share them share it,
-- unless it depends on how long each of them is leased.
local function judge(ids, status_of, by_facts)
  local facts, now_ms, statuses, status_by_facts = read_facts(ids), clock_ms(), {}, {}
  locate(ids, facts)
  for i, id in ipairs(ids) do
    local item = facts[id]
    local status = status_by_facts[item]
    if not status then
      -- The time left of a lease is that of this ID.
      item.id = id
      status = status_of(id, item, now_ms)
      status_by_facts[item] = by_facts and not (item.new and expected_states) and status or nil
    end
    statuses[i] = status
  end
  return statuses, facts, now_ms
end

-- Judge IDs, and unless it is a dry run, act: `write(groups, facts, now_ms)` gets them by their status, in order.
local function act(ids, status_of, write, by_facts)
  local statuses, facts, now_ms = judge(ids, status_of, by_facts)
  if not dry_run then
    write(grouped(ids, statuses), facts, now_ms)
  end
  return outcome_reply(ids, statuses, facts)
end
