-- Take ghosts and second entries off the main list. Each costs the length of the list: few at a time.
--
-- arg 1..   IDs that looked like ghosts or duplicates a grace period ago
-- Returns, for each ID acted on: ID, 'ghost' | 'duplicated'.
local refusal = denied(
  { 'LREM', main, 0, 'x' },
  { 'LREM', processing, 0, 'x' }
)
if refusal then
  return refusal
end
local reply = {}
for _, id in ipairs(args_from(1)) do
  local state = nil
  if not has_data(id) then
    if redis.call('LREM', main, 0, id) > 0 then
      state = 'ghost'
    end
  else
    local entries = #redis.call('LPOS', main, id, 'COUNT', 0)
    local elsewhere = redis.call('LPOS', processing, id) and 1 or 0
    local surplus = entries - 1
    if entries > 0 and elsewhere == 1 and has_lease(id) then
      -- Somebody is working on it: it comes back by itself if they fail.
      surplus = entries
    elseif elsewhere == 1 and entries > 0 then
      redis.call('LREM', processing, 0, id)
      state = 'duplicated'
    end
    if surplus > 0 then
      -- From the left, so that the entry that is leased first keeps its place.
      redis.call('LREM', main, surplus, id)
      state = 'duplicated'
    end
  end
  if state then
    reply[#reply + 1] = id
    reply[#reply + 1] = state
  end
end
return reply
