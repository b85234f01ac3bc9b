-- Ending the guards of a clean, once the lists were read for what they kept cleaners off.
--
-- Uses: places

-- What is still so of items that were guarded; it is read before the caller's first write.
--
-- guard  its value, unique to the run
-- Returns the lease keys that are still that guard; the IDs that may go onto main where the caller saw
-- them in no list: with data, behind both guards, and not pushed since; and, by ID, whether a delayed
-- or buried guard is there, because somebody put it away anew.
local function still_guarded(ids, guard)
  local ours, unlisted, put_away = {}, {}, {}
  local exists = with_data(ids)
  local in_main, in_processing = just_pushed(main), just_pushed(processing)
  for _, id in ipairs(ids) do
    local mine = 0
    for _, key in ipairs({ lease_prefix .. id, old_lease_prefix .. id }) do
      local holder = redis.pcall('GET', key)
      if holder == guard then
        ours[#ours + 1] = key
        mine = mine + 1
      elseif type(holder) == 'string' and is_guard(holder) then
        put_away[id] = true
      end
    end
    if mine == 2 and exists[id] and not in_main[id] and not in_processing[id] then
      unlisted[#unlisted + 1] = id
    end
  end
  return ours, unlisted, put_away
end
