-- The effective lease and the state of an ID: pure functions of facts, the same as those of `core/state/rules.py`. A
-- test compares them over every combination of facts.
--
-- The facts about an ID are a table:
--   data              the type of the data key: 'string', 'none', or a wrong type
--   main, processing  how often the ID is in these lists
--   new, old          the values of the two lease keys: false or nil for none, true for a key of the wrong type
--   left              a table of the ms left of 'new' and 'old', -1 for no expiry; nil to read them
--   due_ms, buried_ms its scores in Q:delayed and Q:buried, or nil

-- 'delayed', 'buried' or 'settling' for the value of a guard; else nil. Cached, because the same values are checked
-- several times for one ID.
local GUARD_KINDS = { [GUARDS.delayed] = 'delayed', [GUARDS.buried] = 'buried', [GUARDS.settling] = 'settling' }
local known_kinds = { [true] = false, [false] = false }
local function guard_kind(value)
  if known_kinds[value] == nil then
    known_kinds[value] = GUARD_KINDS[string.match(value, '^[^:]*:')] or false
  end
  return known_kinds[value] or nil
end

-- The precedence of a lease: one whose holder cannot be read before a session's, and that before a guard. A settling
-- lease does not count.
local function lease_rank(value)
  if not value then
    return 0
  elseif value == true or value == '' then
    return 3
  end
  local kind = guard_kind(value)
  return not kind and 2 or kind == 'settling' and 0 or 1
end

local function is_own_lease(value)
  return type(value) == 'string' and string.sub(value, 1, #OWN_LEASE) == OWN_LEASE
end

-- The values of the two lease keys as far as they count, false for none. rwq sets a lease of its own under both names:
-- under one alone, or beside another value, a client that knows only the other name has ended it.
local function live_leases(facts)
  local new, old = facts.new or false, facts.old or false
  if new ~= old then
    new, old = not is_own_lease(new) and new, not is_own_lease(old) and old
  end
  return new, old
end

local function left_ms(facts, name)
  return facts.left and facts.left[name]
    or redis.call('PTTL', (name == 'new' and lease_prefix or old_lease_prefix) .. facts.id)
end

local function ends_later(a, b)
  return b ~= -1 and (a == -1 or a > b)
end

-- The lease that counts where the two names disagree: the higher rank, then the one that ends later. Its value, false
-- for none, and whether the new and the old key hold it. The time left is read only where it decides.
local function effective_lease(facts)
  local new, old = live_leases(facts)
  local new_rank, old_rank = lease_rank(new), lease_rank(old)
  if new_rank + old_rank == 0 then
    return false, false, false
  elseif new_rank ~= old_rank then
    local is_new = new_rank > old_rank
    return is_new and new or old, is_new, not is_new
  elseif new ~= old and ends_later(left_ms(facts, 'old'), left_ms(facts, 'new')) then
    return old, false, true
  end
  return new, true, new == old
end

-- Whether an item is the copy of one that another server may still have: both must not be leased, and
-- what ends or changes the copy alone would not last.
local function is_copy(facts)
  return string.sub(effective_lease(facts) or '', 1, #COPY_GUARD) == COPY_GUARD
end

-- The ms left of the effective lease: -1 for no expiry, -2 for no lease.
local function effective_left_ms(facts)
  local _, in_new, in_old = effective_lease(facts)
  local new_ms, old_ms = in_new and left_ms(facts, 'new') or -2, in_old and left_ms(facts, 'old') or -2
  return ends_later(old_ms, new_ms) and old_ms or new_ms
end

-- The value of the guard of this kind, under the new name or else the old; nil if there is none.
local function guard_of(facts, kind)
  local new, old = facts.new or false, facts.old or false
  return guard_kind(new) == kind and new or guard_kind(old) == kind and old or nil
end

-- The holder of the effective lease if it is not a guard ('' if it cannot be read), or false.
local function session_of(facts)
  local holder = effective_lease(facts)
  return holder == true and '' or not guard_kind(holder) and holder
end

-- The same of a session that is not `own`, under the other name if need be.
local function other_session_of(facts, own_holder)
  local session = session_of(facts)
  for _, value in ipairs(session == own_holder and { live_leases(facts) } or {}) do
    if value ~= own_holder and lease_rank(value) >= 2 then
      return value ~= true and value or ''
    end
  end
  return session ~= own_holder and session
end

-- Whether guards under both names prove that the ID is delayed or buried: see `Facts.is_guarded`. The caller checks
-- main.
local function is_guarded(facts)
  local kind = guard_kind(facts.new or false)
  return kind ~= nil and kind == guard_kind(facts.old or false)
    and (kind == 'buried' and facts.buried_ms ~= nil or kind == 'delayed' and facts.due_ms ~= nil)
end

local function leased_or_held(facts, otherwise)
  return effective_left_ms(facts) == -1 and 'held' or otherwise
end

-- A key of the wrong type belongs to others: nothing may delete or overwrite it.
local function has_wrong_type(facts)
  return (facts.data ~= 'none' and facts.data ~= 'string') or facts.new == true or facts.old == true
end

-- The state that follows from the facts, by the table of the protocol.
local function state_of(facts, now_ms)
  if has_wrong_type(facts) then
    return 'wrong-type'
  elseif facts.data == 'none' and (facts.main + facts.processing > 0 or facts.due_ms or facts.buried_ms) then
    return 'ghost'
  elseif facts.data == 'none' then
    return effective_lease(facts) and 'stray-lease' or 'gone'
  elseif facts.main > 1 or (facts.main == 1 and facts.processing > 0) then
    return 'duplicated'
  elseif facts.main == 1 then
    return 'waiting'
  elseif facts.processing > 0 and not is_guarded(facts) then
    return session_of(facts) and leased_or_held(facts, 'leased') or 'abandoned'
  elseif facts.buried_ms then
    return 'buried'
  elseif facts.due_ms then
    return facts.due_ms <= now_ms and 'due' or 'delayed'
  end
  return session_of(facts) and leased_or_held(facts, 'unlisted') or 'orphaned'
end

-- Whether an ID in this state is an item in a list that also has an entry in Q:delayed or Q:buried.
local LISTED_ITEMS = { waiting = true, leased = true, held = true, abandoned = true, duplicated = true }
local function has_stale_schedule(facts, state)
  return (facts.due_ms ~= nil or facts.buried_ms ~= nil) and LISTED_ITEMS[state] ~= nil
end
