-- Finding the list entries of IDs, and removing them. An ID that is not found as the caller saw it, or was pushed
-- since, is left for another call: the facts about it have no places.
-- include: facts
-- arg where  'name': in the whole of both lists; 'places': where the caller saw them; 'leased': in processing, because
--   the caller has leased them
-- arg places  for 'places', JSON: for each ID its place, or a list of none or of several. A place is four times the index
--   from the left end, or the number of entries between it and the right end: plus 0 for an index of main, 1 of
--   processing; 2 for such a number of main, 3 of processing
-- arg seen_ms:number  for 'places', unix ms before the caller looked
-- arg scan_max:number  for 'name', how many entries to scan at most

-- Entries at the left end that count as recent pushes: an item that was in no list may be among them.
local RECENT_ENTRIES = 500
-- Entries between two places that are read with them.
local GAP_ENTRIES = 64
-- How many entries may be passed in looking for one leased ID after the other. The last may take a whole scan.
local LEASED_ENTRIES = 100000

-- By list and index from the left end, the entries of the IDs that were located.
local entries_at = { [main] = {}, [processing] = {} }

local function locate_by_name(ids, facts)
  if #ids * (redis.call('LLEN', main) + redis.call('LLEN', processing)) > scan_max then
    return
  end
  for _, id in ipairs(ids) do
    local counts = {}
    for list, entries in pairs(entries_at) do
      local indexes = redis.call('LPOS', list, id, 'COUNT', 0)
      counts[list] = #indexes
      for _, at in ipairs(indexes) do
        entries[at] = id
      end
    end
    facts[id].main, facts[id].processing = counts[main], counts[processing]
  end
end

-- Find the latest entry of each ID. A fresh lease is near the left end, where LPOS begins. IDs that are left when too
-- many entries were passed are tried again, and then another is the first. Looking for a second entry, of an ID that
-- was added twice, would cost the length of the list for each; cleans remove it.
local function locate_leased(ids, facts)
  local length, passed = redis.call('LLEN', processing), 0
  for _, id in ipairs(ids) do
    if passed > LEASED_ENTRIES then
      return
    end
    local at = redis.call('LPOS', processing, id)
    passed = passed + (at or length)
    if at then
      entries_at[processing][at] = id
    end
    facts[id].main, facts[id].processing = 0, at and 1 or 0
  end
end

-- Call `note(id, list, index from the left end)` for each place where the caller saw an ID: what comes next to be
-- leased last.
local function each_place(ids, seen, note)
  local lists = { [0] = main, processing, main, processing }
  local last = { [2] = redis.call('LLEN', main) - 1, [3] = redis.call('LLEN', processing) - 1 }
  local function note_place(id, place)
    local kind = place % 4
    local at = (place - kind) / 4
    note(id, lists[kind], last[kind] and last[kind] - at or at)
  end
  for i = #ids, 1, -1 do
    if type(seen[i]) == 'number' then
      note_place(ids[i], seen[i])
    else
      for _, place in ipairs(seen[i]) do
        note_place(ids[i], place)
      end
    end
  end
end

-- How many entries of an ID the caller saw in main, and in processing, given its place or its places.
local function seen_counts(some)
  if type(some) == 'number' then
    return 1 - some % 2, some % 2
  end
  local in_processing = 0
  for _, place in ipairs(some) do
    in_processing = in_processing + place % 2
  end
  return #some - in_processing, in_processing
end

-- Note the entries that are recent, or near those that were seen, of the IDs by index, and how many each ID has.
local function read_near(list, seen, drift, facts, found, counts)
  local function read(first, last)
    first = math.max(0, first)
    -- What was there may have been popped; to LRANGE, a negative index is one from the other end.
    for i, id in ipairs(last < 0 and {} or redis.call('LRANGE', list, first, last)) do
      local at = first + i - 1
      if facts[id] and not found[at] then
        found[at] = id
        counts[id] = (counts[id] or 0) + 1
      end
    end
  end
  read(0, RECENT_ENTRIES - 1)
  local first
  for i = 1, #seen do
    local at, next_at = seen[i] + drift, seen[i + 1]
    first = first or at
    if not next_at or next_at + drift > at + GAP_ENTRIES then
      read(first - GAP_ENTRIES / 2, at + GAP_ENTRIES / 2)
      first = nil
    end
  end
end

-- How far entries of a list have moved since the caller saw them, as the first tells that is not where it was; nil if
-- it left the list. Of an ID with several, one may have moved, because what was removed was to the left of it alone.
local function drift_of(list, seen, seen_at, facts, found, counts)
  local times, passed = {}, {}
  for _, id in pairs(seen_at) do
    times[id] = (times[id] or 0) + 1
  end
  for _, at in ipairs(seen) do
    local id = seen_at[at]
    if counts[id] ~= times[id] and facts[id].data == 'string' then
      passed[id] = (passed[id] or 0) + 1
      if found[at] ~= id then
        local now = redis.call('LPOS', list, id, 'RANK', passed[id])
        return now and now - at
      end
    end
  end
end

-- Set the places of the IDs that are as often in each list as the caller saw them. Returns whether all are.
local function set_places(ids, facts, seen, counts)
  local all_main, all_processing, are_as_seen = counts[main], counts[processing], true
  for i, id in ipairs(ids) do
    local in_main, in_processing = all_main[id] or 0, all_processing[id] or 0
    local seen_main, seen_processing = seen_counts(seen[i])
    local is_as_seen, found = in_main == seen_main and in_processing == seen_processing, facts[id]
    are_as_seen = are_as_seen and is_as_seen
    is_as_seen = is_as_seen and not (in_main + in_processing == 0 and (pushed_ms(found) or -1) >= seen_ms)
    found.main, found.processing = is_as_seen and in_main, is_as_seen and in_processing
  end
  return are_as_seen
end

local function locate_at_places(ids, facts)
  local seen, indexes, counts, seen_at, is_sorted = cjson.decode(places), {}, {}, {}, true
  for list in pairs(entries_at) do
    indexes[list], counts[list], seen_at[list] = {}, {}, {}
  end
  each_place(ids, seen, function(_, list, at)
    local before = indexes[list]
    is_sorted = is_sorted and at > (before[#before] or -1)
    before[#before + 1] = at
  end)
  for list, found in pairs(entries_at) do
    if not is_sorted then
      table.sort(indexes[list])
    end
    read_near(list, indexes[list], 0, facts, found, counts[list])
  end
  if set_places(ids, facts, seen, counts) then
    return
  end
  each_place(ids, seen, function(id, list, at)
    seen_at[list][at] = id
  end)
  for list, found in pairs(entries_at) do
    local drift = drift_of(list, indexes[list], seen_at[list], facts, found, counts[list])
    if drift then
      read_near(list, indexes[list], drift, facts, found, counts[list])
    end
  end
  set_places(ids, facts, seen, counts)
end

local locate = ({ name = locate_by_name, leased = locate_leased, places = locate_at_places })[where]

-- By ID, the index of its entry in a list that is nearest to the right end; in main, next to be leased.
local function last_entries(list)
  local last = {}
  for at, id in pairs(entries_at[list]) do
    last[id] = math.max(last[id] or 0, at)
  end
  return last
end

-- Stands for entries that are about to be removed; never an ID.
local REMOVED = '\0rwq-removed\0'

-- Remove the list entries of located IDs, once in a script: the indexes change. `kept` has, by ID, the list of which
-- the last entry stays. This scans a list once, from the nearer end; an LREM for each would scan it each time.
local function remove_entries(ids, kept)
  local is_removed = {}
  for _, id in ipairs(ids) do
    is_removed[id] = true
  end
  for list, entries in pairs(entries_at) do
    local indexes, last, length = {}, kept and last_entries(list), redis.call('LLEN', list)
    local first = length
    for at, id in pairs(entries) do
      if is_removed[id] and not (kept and kept[id] == list and last[id] == at) then
        indexes[#indexes + 1], first = at, at < first and at or first
      end
    end
    local count = #indexes
    if count > 0 and first == length - count then
      redis.call('RPOP', list, count)
    elseif count > 0 then
      table.sort(indexes)
      for _, at in ipairs(indexes) do
        redis.call('LSET', list, at, REMOVED)
      end
      local from_left = indexes[count] < length - 1 - first
      redis.call('LREM', list, from_left and count or -count, REMOVED)
    end
  end
end
