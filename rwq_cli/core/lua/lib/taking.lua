-- Which items an operation may take from where they are, to release, bury or delay them.
--
-- include: locate, expected, returns
-- arg own_holder  the caller's own holder, whose leases may always be ended
-- arg force:flag  leases of other sessions may be ended, too
-- arg own_only:flag  only what that holder has is taken
-- arg is_first_look:flag  skip abandoned and orphaned items
-- arg counts_attempt:flag  count a return of each item, because an attempt of it failed
if counts_attempt and not dry_run then
  local refusal = denied('count_returns')
  if refusal then
    return refusal
  end
end

-- The status of an ID that may not be taken, or nil. `already` is that of an item that is where it is to go; nil if
-- it is not there.
local function untaken_status(id, found, now_ms, already)
  local refusal = refusal_of(id, found, now_ms)
  if refusal then
    return refusal
  end
  local other_session = other_session_of(found, own_holder)
  if other_session then
    -- For `outcome_reply`.
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
