-- Where IDs stand in the lists, and how many of them are taken off at once.

-- The IDs at the new end of a list: what was pushed since the caller read it stands there.
local function just_pushed(list)
  local ids = {}
  for _, id in ipairs(redis.call('LRANGE', list, 0, 499)) do
    ids[id] = true
  end
  return ids
end

-- Take IDs off the processing list, either one by one or out of its oldest page.
--
-- page_size 0 or less: each of `ids` that `wanted` agrees to is removed with LREM, which costs the
-- length of the list each time: for few IDs.
-- page_size n: the n oldest entries are taken off; those of `ids` that `wanted` agrees to stay off
-- and the rest go back on at the new end. Called often enough, this walks the whole list at a cost
-- that does not depend on how many IDs are sought. The order within processing means nothing to any
-- worker, so turning the list round changes nothing for them.
--
-- Returns the IDs that were in processing and now are not.
local function take_from_processing(page_size, ids, wanted)
  local taken, sought = {}, {}
  -- All is asked before the first write: what `wanted` reads may fail.
  for _, id in ipairs(ids) do
    sought[id] = page_size > 0 or wanted(id)
  end
  if page_size <= 0 then
    for _, id in ipairs(ids) do
      if sought[id] and redis.call('LREM', processing, 0, id) > 0 then
        taken[#taken + 1] = id
      end
    end
    return taken
  end
  local kept, page = {}, redis.call('LRANGE', processing, -page_size, -1)
  for at = #page, 1, -1 do
    local id = page[at]
    if sought[id] and wanted(id) then
      taken[#taken + 1] = id
    else
      kept[#kept + 1] = id
    end
  end
  if #page > 0 then
    redis.call('RPOP', processing, #page)
    for_all('LPUSH', processing, kept)
  end
  return taken
end

-- Where IDs stand in a list, counted from its right end, where 0 leaves next.
--
-- offset    where the first of them was seen to stand
-- span      how many entries there were from the first to the last
-- Others push and pop meanwhile, so a few entries more are read on both sides; and where even the
-- first one is not among them, it is looked for as far as it can have come.
--
-- Returns a table from ID to its offsets, the furthest first, and how far the first has drifted.
local PLACE_SLACK = 200
local function places_near(list, ids, offset, span)
  local sought, first = {}, ids[1]
  for _, id in ipairs(ids) do
    sought[id] = true
  end
  local function read(from, to)
    local places, entries = {}, redis.call('LRANGE', list, -(to + 1), -(from + 1))
    for at, id in ipairs(entries) do
      if sought[id] then
        places[id] = places[id] or {}
        table.insert(places[id], from + #entries - at)
      end
    end
    return places
  end
  local places = read(math.max(0, offset - PLACE_SLACK), offset + span + PLACE_SLACK)
  if first and not places[first] then
    local index = redis.call('LPOS', list, first, 'RANK', -1, 'MAXLEN', offset + span + PLACE_SLACK)
    if index then
      local found = redis.call('LLEN', list) - 1 - index
      return read(math.max(0, found - PLACE_SLACK), found + span + PLACE_SLACK), found - offset
    end
  end
  return places, first and places[first] and places[first][#places[first]] - offset or 0
end

-- Take entries off a list by their places, counted from the right end; the rest keeps its order. It is
-- passed over once, from the nearer end and no further than the last of them: an LREM for each would
-- pass over it as often. `mark` is no ID of anybody's.
local function drop_places(list, places, mark)
  table.sort(places)
  if #places > 0 and places[#places] == #places - 1 then
    redis.call('RPOP', list, #places)
  elseif #places > 0 then
    local length = redis.call('LLEN', list)
    local from_left = places[1] > length - 1 - places[#places]
    for _, from_right in ipairs(places) do
      redis.call('LSET', list, from_left and length - 1 - from_right or -1 - from_right, mark)
    end
    redis.call('LREM', list, from_left and #places or -#places, mark)
  end
end

-- Where IDs stand in a stretch of main, by ID, counted from its right end.
--
-- wanted     a table with those IDs as keys
-- passed     how many entries at the right end of main to pass over
-- count      how many entries to look at behind those
-- What has been pushed a second time since the caller read the lists has no place here: it is left to
-- be looked for by name.
local function sole_places(wanted, passed, count)
  local place, length = {}, redis.call('LLEN', main)
  local stretch = redis.call('LRANGE', main, -(passed + count), -(passed + 1))
  for at, id in ipairs(stretch) do
    if wanted[id] ~= nil then
      place[id] = passed + #stretch - at
    end
  end
  for id in pairs(just_pushed(processing)) do
    place[id] = nil
  end
  for at, id in ipairs(redis.call('LRANGE', main, 0, 499)) do
    if place[id] and place[id] ~= length - at then
      place[id] = nil
    end
  end
  return place
end
