-- The act of a light clean: what looked abandoned, or a ghost, and still does.
--
-- arg 1     0: look for each ID in all of processing. n: only in its n oldest entries
-- arg 2..   IDs that looked abandoned or ghosts a grace period ago
-- Returns, for each ID acted on: ID, 'returned' | 'dropped'.
local refusal = denied(
  { 'LREM', processing, 0, 'x' },
  { 'RPOP', processing },
  { 'LPUSH', processing, 'x' },
  { 'LPUSH', main, 'x' }
)
if refusal then
  return refusal
end
local page_size, ids = tonumber(arg(1)), args_from(2)

-- A lease means that somebody works on it after all; a ghost needs none to be dropped.
local function still_broken(id)
  return not (has_data(id) and has_lease(id))
end

local reply, returned, seen = {}, {}, {}
for _, id in ipairs(take_from_processing(page_size, ids, still_broken)) do
  -- An ID that was in processing twice is returned once.
  if not seen[id] then
    seen[id] = true
    local exists = has_data(id)
    if exists then
      returned[#returned + 1] = id
    end
    reply[#reply + 1] = id
    reply[#reply + 1] = exists and 'returned' or 'dropped'
  end
end
push_all('LPUSH', main, returned)
return reply
