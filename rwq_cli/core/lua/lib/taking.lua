-- Which items an operation may take from where they are, to release, bury or delay them.
--
-- arg 8     the caller's own holder, whose leases may always be ended
-- arg 9     '1' to end leases of other sessions, too, 'own' to take only what that holder has, else '0'
-- arg 10    '1' to skip abandoned and orphaned items, because this is the first look at them
local own_holder, force, own_only, is_first_look = arg(8), arg(9) == '1', arg(9) == 'own', arg(10) == '1'

-- The facts about IDs with their places; or nil, and the error that prevents the operation.
--
-- counts_attempt  whether it counts a return of each
local function facts_to_take(ids, counts_attempt)
  local refusal = counts_attempt and not dry_run and denied('count_returns')
  if refusal then
    return nil, refusal
  end
  local facts = read_facts(ids)
  locate(ids, facts)
  return facts
end

-- The status of an ID that may not be taken, or nil.
--
-- found    its facts
-- already  the status of an item that is where it is to go; nil if it is not there
local function untaken_status(id, found, now_ms, already)
  local refusal = refusal_of(id, found, now_ms)
  if refusal then
    return refusal
  end
  local other_session = other_session_of(found, own_holder)
  if other_session then
    -- For `outcome_reply`. Facts with a lease are of one ID alone.
    found.other_session = other_session
  end
  if own_only and (other_session or session_of(found) ~= own_holder) then
    return 'not-owner'
  elseif already then
    return already
  elseif other_session and not force then
    return 'not-owner'
  elseif is_first_look and needs_second_look(found, now_ms) then
    return 'in-transit'
  elseif is_taken_away(found) then
    return 'elsewhere'
  end
  return nil
end
