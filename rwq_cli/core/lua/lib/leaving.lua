-- Which items may leave their queue.
--
-- include: locate, expected
-- arg keeps_leased:flag  leave items with a lease or guard alone
-- arg is_first_look:flag  skip abandoned and orphaned items

-- The status of an ID that stays, or nil.
local function staying_status(id, found, now_ms)
  local refusal = refusal_of(id, found, now_ms)
  if refusal then
    return refusal
  elseif keeps_leased and effective_lease(found) then
    return 'not-owner'
  elseif is_first_look and needs_second_look(found, now_ms) then
    return 'in-transit'
  end
  return unsaved_status(id)
end
