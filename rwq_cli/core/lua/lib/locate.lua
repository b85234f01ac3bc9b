-- Finding the list entries of IDs, and removing them. An ID that is not found as the caller saw it, or was pushed
-- since, is left for another call: `main` is false in its facts.
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

local ELSEWHERE = { main = false }

-- By list and facts, the same with one more entry there.
local with_more = { [main] = {}, [processing] = {} }

local function note_entry(list, at, id, facts)
  local found = facts[id]
  local more = with_more[list][found]
  if not more then
    more = { new = found.new, old = found.old, due_ms = found.due_ms, buried_ms = found.buried_ms, data = found.data }
    more.main = found.main + (list == main and 1 or 0)
    more.processing = found.processing + (list == main and 0 or 1)
    with_more[list][found] = more
  end
  facts[id], entries_at[list][at] = more, id
end

local function locate_by_name(ids, facts)
  local is_long = #ids * (redis.call('LLEN', main) + redis.call('LLEN', processing)) > scan_max
  for _, id in ipairs(ids) do
    facts[id] = is_long and ELSEWHERE or facts[id]
    for list in pairs(is_long and {} or entries_at) do
      for _, at in ipairs(redis.call('LPOS', list, id, 'COUNT', 0)) do
        note_entry(list, at, id, facts)
      end
    end
  end
end

-- Find the latest entry of each ID. A fresh lease is near the left end, where LPOS begins. IDs that are left when too
-- many entries were passed are tried again, and then another is the first. Looking for a second entry, of an ID that
-- was added twice, would cost the length of the list for each; cleans remove it.
local function locate_leased(ids, facts)
  local length, passed = redis.call('LLEN', processing), 0
  for _, id in ipairs(ids) do
    local at = passed <= LEASED_ENTRIES and redis.call('LPOS', processing, id)
    facts[id] = passed <= LEASED_ENTRIES and facts[id] or ELSEWHERE
    passed = passed + (at or length)
    if at then
      note_entry(processing, at, id, facts)
    end
  end
end

-- Call `note(list, index from the left end, id)` for each place where the caller saw an ID: what comes next to be leased
-- last.
local function each_place(ids, seen, note)
  local lists = { [0] = main, processing, main, processing }
  local last = { [2] = redis.call('LLEN', main) - 1, [3] = redis.call('LLEN', processing) - 1 }
  for i = #ids, 1, -1 do
    local some, is_one = seen[i], type(seen[i]) == 'number'
    for each = 1, is_one and 1 or #some do
      local place = is_one and some or some[each]
      local kind = place % 4
      local at = (place - kind) / 4
      note(lists[kind], last[kind] and last[kind] - at or at, ids[i])
    end
  end
end

-- Note the entries of the IDs that are recent, or near those that were seen.
local function read_near(list, seen, drift, facts)
  local found = entries_at[list]
  local function read(first, last)
    first = math.max(0, first)
    -- What was there may have been popped; to LRANGE, a negative index is one from the other end.
    for i, id in ipairs(last < 0 and {} or redis.call('LRANGE', list, first, last)) do
      local at = first + i - 1
      if facts[id] and not found[at] then
        note_entry(list, at, id, facts)
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

-- How far entries of a list have moved since the caller saw them, as the first item tells that is not near; nil if it
-- left the list.
local function drift_of(list, seen, seen_at, facts)
  for _, at in ipairs(seen) do
    local id = seen_at[at]
    local found = facts[id]
    if found.data == 'string' and (list == main and found.main or found.processing) == 0 then
      local now = redis.call('LPOS', list, id)
      return now and now - at
    end
  end
end

-- The IDs that are not as often in each list as the caller saw them, or were pushed since.
local function moved_ids(ids, facts, seen)
  local moved = {}
  for i, id in ipairs(ids) do
    local found, some, is_one, in_processing = facts[id], seen[i], type(seen[i]) == 'number', 0
    local entries = is_one and 1 or #some
    for each = 1, entries do
      in_processing = in_processing + (is_one and some or some[each]) % 2
    end
    if found.processing ~= in_processing or found.main ~= entries - in_processing
      or entries == 0 and (pushed_ms(found) or -1) >= seen_ms then
      moved[#moved + 1] = id
    end
  end
  return moved
end

local function locate_at_places(ids, facts)
  local seen, is_sorted = cjson.decode(places), true
  local indexes, seen_at = { [main] = {}, [processing] = {} }, { [main] = {}, [processing] = {} }
  each_place(ids, seen, function(list, at)
    local before, count = indexes[list], #indexes[list]
    is_sorted, before[count + 1] = is_sorted and at > (before[count] or -1), at
  end)
  for list, some in pairs(indexes) do
    if not is_sorted then
      table.sort(some)
    end
    read_near(list, some, 0, facts)
  end
  local moved = moved_ids(ids, facts, seen)
  if #moved > 0 then
    each_place(ids, seen, function(list, at, id)
      seen_at[list][at] = id
    end)
    for list, some in pairs(indexes) do
      local drift = drift_of(list, some, seen_at[list], facts)
      if drift then
        read_near(list, some, drift, facts)
      end
    end
    for _, id in ipairs(moved_ids(ids, facts, seen)) do
      facts[id] = ELSEWHERE
    end
  end
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
    local indexes, latest, length = {}, kept and last_entries(list), redis.call('LLEN', list)
    local first, last = length, -1
    for at, id in pairs(entries) do
      if is_removed[id] and not (kept and kept[id] == list and latest[id] == at) then
        indexes[#indexes + 1], first, last = at, at < first and at or first, at > last and at or last
      end
    end
    local count = #indexes
    if count > 0 and first == length - count then
      redis.call('RPOP', list, count)
    elseif count > 0 then
      for _, at in ipairs(indexes) do
        redis.call('LSET', list, at, REMOVED)
      end
      redis.call('LREM', list, last < length - 1 - first and count or -count, REMOVED)
    end
  end
end
