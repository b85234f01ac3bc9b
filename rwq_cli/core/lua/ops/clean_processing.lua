-- The act of a light clean: what looked abandoned, or a ghost, and still does.
--
-- arg 1     0: look for each ID in all of processing. n: only in its n oldest entries
-- arg 2     what came back so often already is buried instead of being returned; -1 for never
-- arg 3..   IDs that looked abandoned or ghosts a grace period ago
-- Returns, for each ID acted on: ID, 'returned' | 'buried' | 'ghost' | 'duplicated' (dropped, the latter
-- two).
-- Uses: places, returning
local bury_after = tonumber(arg(2))
local refusal = denied(
  { 'LREM', processing, 0, 'x' },
  { 'RPOP', processing },
  { 'LPUSH', processing, 'x' }
) or denied_to_bring_back(bury_after)
if refusal then
  return refusal
end
local page_size, ids = tonumber(arg(1)), args_from(3)

local exists, leased = with_data(ids), with_lease(ids)
local counts = returns_of(ids)

-- A lease means that somebody works on it after all; a ghost needs none to be dropped.
local function still_broken(id)
  return not (exists[id] and leased[id])
end

local waits_again = just_pushed(main)
local reply, returned, seen = {}, {}, {}
for _, id in ipairs(take_from_processing(page_size, ids, still_broken)) do
  -- An ID that was in processing twice is returned once.
  if not seen[id] then
    seen[id] = true
    local done = 'ghost'
    if exists[id] then
      -- Returned a moment ago, by us or another, this is its second entry.
      done = waits_again[id] and 'duplicated' or 'returned'
    end
    if done == 'returned' then
      returned[#returned + 1] = id
    end
    reply[#reply + 1] = id
    reply[#reply + 1] = done
  end
end
local is_buried = bring_back(returned, counts, bury_after)
for at = 1, #reply, 2 do
  if is_buried[reply[at]] then
    reply[at + 1] = 'buried'
  end
end
return reply
