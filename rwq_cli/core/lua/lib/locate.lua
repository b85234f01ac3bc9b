-- Finding the list entries of IDs, and removing them. An ID that is not found as the caller saw it, or was pushed
-- since, is left for another call: `main` is false in its facts.
-- include: facts
-- arg where  'name': in the whole of both lists; 'windows': in the parts of them where the caller saw them; 'leased': in
--   processing, because the caller has leased them
-- arg main_windows  for 'windows', the parts of main, as numbers joined by spaces: the index where the caller saw the last
--   of the IDs that it saw there; the first and last index of each part. Indexes count from the left end, or if they are
--   negative from the right end, as in LRANGE. '' for none
-- arg main_seen  for 'windows', a byte for each ID, how often the caller saw it in main; '' if none was seen there
-- arg processing_windows  the same of processing
-- arg processing_seen  the same of processing
-- arg seen_ms:number  for 'windows', unix ms before the caller looked
-- arg scan_max:number  for 'name', how many entries to scan at most

-- Entries at the left end that count as recent pushes: an item that was in no list may be among them.
local RECENT_ENTRIES = 500
-- Entries at both ends of a window that are read with it: a few entries may have left the list or entered it.
local MARGIN_ENTRIES = 32
-- How many entries may be passed in looking for one leased ID after the other. The last may take a whole scan.
local LEASED_ENTRIES = 100000

-- By list and index from the left end, the entries of the IDs that were located.
local entries_at = { [main] = {}, [processing] = {} }

local ELSEWHERE = { main = false }

-- By list and facts, the same with one more entry there.
local with_more = { [main] = {}, [processing] = {} }

local function note_entry(list, at, id, facts)
  local item = facts[id]
  local more = with_more[list][item]
  if not more then
    more = { new = item.new, old = item.old, due_ms = item.due_ms, buried_ms = item.buried_ms, data = item.data }
    more.main = item.main + (list == main and 1 or 0)
    more.processing = item.processing + (list == main and 0 or 1)
    with_more[list][item] = more
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
    if passed > LEASED_ENTRIES then
      facts[id] = ELSEWHERE
    else
      local at = redis.call('LPOS', processing, id)
      passed = passed + (at or length)
      if at then
        note_entry(processing, at, id, facts)
      end
    end
  end
end

-- The windows of a list from its argument, all counted from the left end: the `anchor`, where the caller saw the last of
-- the IDs that it saw there; and the first and last index of each part. What was in no list may be a recent push.
local function windows_of(list, text)
  local parts, length = {}, redis.call('LLEN', list)
  for number in string.gmatch(text, '%S+') do
    local at = tonumber(number)
    parts[#parts + 1] = at < 0 and at + length or at
  end
  return { anchor = table.remove(parts, 1), parts = joined({ 0, RECENT_ENTRIES - 1 }, parts) }
end

-- Note the entries of the IDs in the parts of a list, if all entries have moved by so many since the caller looked.
local function read_parts(list, parts, moved_by, facts)
  for i = 1, #parts, 2 do
    -- What was there may have been popped, so that the part begins before the left end.
    local first, last = math.max(0, parts[i] + moved_by - MARGIN_ENTRIES), parts[i + 1] + moved_by + MARGIN_ENTRIES
    for offset, id in ipairs(last < first and {} or redis.call('LRANGE', list, first, last)) do
      local at = first + offset - 1
      if facts[id] and not entries_at[list][at] then
        note_entry(list, at, id, facts)
      end
    end
  end
end

-- How often the caller saw an ID in main and in processing.
local function times_seen(i)
  return string.byte(main_seen, i) or 0, string.byte(processing_seen, i) or 0
end

-- The IDs that are not as often in each list as the caller saw them, or were pushed since.
local function moved_ids(ids, facts)
  local moved = {}
  for i, id in ipairs(ids) do
    local item, in_main, in_processing = facts[id], times_seen(i)
    if item.main ~= in_main or item.processing ~= in_processing
      or in_main + in_processing == 0 and (pushed_ms(item) or -1) >= seen_ms then
      moved[#moved + 1] = id
    end
  end
  return moved
end

-- How far the entries of a list have moved, as the ID at the anchor tells; nil if it cannot.
local function drift_of(list, anchor, ids, facts)
  for i = anchor and #ids or 0, 1, -1 do
    local in_main, in_processing = times_seen(i)
    if (list == main and in_main or in_processing) > 0 then
      local is_there = entries_at[list][anchor] == ids[i]
      local at = not is_there and facts[ids[i]].data == 'string' and redis.call('LPOS', list, ids[i])
      return at and at - anchor
    end
  end
end

-- Read the windows; and if IDs are not there, again where they should be by now, as pushes and pops move all entries.
local function locate_in_windows(ids, facts)
  local windows = { [main] = windows_of(main, main_windows), [processing] = windows_of(processing, processing_windows) }
  for list, window in pairs(windows) do
    read_parts(list, window.parts, 0, facts)
  end
  if #moved_ids(ids, facts) > 0 then
    for list, window in pairs(windows) do
      local drift = drift_of(list, window.anchor, ids, facts)
      read_parts(list, drift and window.parts or {}, drift or 0, facts)
    end
    for _, id in ipairs(moved_ids(ids, facts)) do
      facts[id] = ELSEWHERE
    end
  end
end

local locate = ({ name = locate_by_name, leased = locate_leased, windows = locate_in_windows })[where]

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
