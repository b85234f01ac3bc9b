-- Finding the list entries of IDs where the caller saw them, and removing them.
--
-- arg 1  where the caller saw the IDs:
--        'name'        unknown: each is looked up in the whole of both lists
--        'unlisted'    in no list
--        'processing'  each once in processing, in the page below, and not in main
--        'main'        each once in main, in the page below, and not in processing
--        'leased'      in processing, because the caller has leased them; not looked up in main. Only
--                      the first is always looked for: see `locate_leased`
-- arg 2  how many entries at the right end of that list to skip
-- arg 3  how many entries to read after those; in main, some more on both sides if an ID is not among them
-- arg 4  a token: never an ID, and unique to this run of the caller
--
-- The places are checked again: an ID that is not where it was seen, or was pushed since, is left for
-- another call. Entries are pushed at the left end, so only that end is read to find new ones.
local mode, offset, count, token = arg(1), tonumber(arg(2)), tonumber(arg(3)), arg(4)
-- The lease that the caller put on IDs that it saw in no list, so that no cleaner pushes them.
local claim = GUARDS.claim .. token
-- Entries that count as recent pushes.
local RECENT_ENTRIES = 500

local function recently_pushed(list)
  local entries, ids = redis.call('LRANGE', list, 0, RECENT_ENTRIES - 1), {}
  for i = 1, #entries do
    ids[entries[i]] = true
  end
  return ids
end

-- Entries of a list, the rightmost one last.
local function entries_of(list, skipped, length)
  return redis.call('LRANGE', list, -(skipped + length), -(skipped + 1))
end

-- By ID, its place in the list, counted from the right end; false if it is there twice.
local place = {}

local page = mode == 'processing' and entries_of(processing, offset, count) or {}

-- How many entries may be passed in looking for one ID after the other. The last may take a scan of the list.
local LEASED_ENTRIES = 100000

-- Find the latest entry of each ID. A fresh lease is near the left end, where LPOS begins. IDs that are left
-- when too many entries were passed stay unlocated: the caller tries them again, and then another is the first.
--
-- An ID that was added twice may be in processing again, or in main: looking for a second entry would cost the
-- length of the list for each ID. That entry is a ghost or a duplicate afterwards, which cleans remove.
local function locate_leased(ids, facts)
  local length, passed = redis.call('LLEN', processing), 0
  for _, id in ipairs(ids) do
    if passed > LEASED_ENTRIES then
      return
    end
    local at = redis.call('LPOS', processing, id)
    passed = passed + (at or length)
    place[id] = at and length - 1 - at
    set_places(facts, id, 0, at and 1 or 0)
  end
end

-- Whether a located item that the caller has leased is not in processing: another worker is completing it, which
-- in upstream begins with its removal from there.
local function is_taken_away(facts)
  return mode == 'leased' and facts.data == 'string' and facts.processing == 0
end

local function locate_unlisted(ids, facts)
  local in_main, in_processing = recently_pushed(main), recently_pushed(processing)
  for _, id in ipairs(ids) do
    if not (in_main[id] or in_processing[id]) then
      set_places(facts, id, 0, 0)
    end
  end
end

local function locate_in_processing(_, facts)
  for i = 1, #page do
    local found = facts[page[i]]
    if found then
      set_places(facts, page[i], 0, (found.processing or 0) + 1)
    end
  end
  local latest = redis.call('LRANGE', main, 0, RECENT_ENTRIES - 1)
  for i = 1, #latest do
    if facts[latest[i]] then
      set_places(facts, latest[i], false, false)
    end
  end
end

-- Find the places of IDs in a page of main. Returns how many of them are there.
local function find_in_main(facts, skipped, length)
  local entries, found = entries_of(main, skipped, length), 0
  place = {}
  for at = 1, #entries do
    local id = entries[at]
    if facts[id] then
      found = found + (place[id] == nil and 1 or 0)
      place[id] = place[id] == nil and skipped + #entries - at
    end
  end
  return found
end

local function locate_in_main(ids, facts)
  if find_in_main(facts, offset, count) < #ids then
    -- SLACK_ENTRIES is made from `core/batches.py`.
    local skipped = math.max(0, offset - SLACK_ENTRIES)
    find_in_main(facts, skipped, offset - skipped + count + SLACK_ENTRIES)
  end
  local length, in_processing = redis.call('LLEN', main), recently_pushed(processing)
  local newest = redis.call('LRANGE', main, 0, RECENT_ENTRIES - 1)
  for at = 1, #newest do
    local id = newest[at]
    if place[id] and place[id] ~= length - at then
      place[id] = false
    end
  end
  for i = 1, #ids do
    local id = ids[i]
    if place[id] and not in_processing[id] then
      set_places(facts, id, 1, 0)
    end
  end
end

-- Set `main` and `processing` of the facts about each ID that is where the caller saw it; they stay false
-- for the others.
local function locate(ids, facts)
  local how = {
    name = locate_by_name,
    leased = locate_leased,
    unlisted = locate_unlisted,
    processing = locate_in_processing,
    main = locate_in_main,
  }
  how[mode](ids, facts)
end

-- Remove entries of a list by their places, counted from the right end; the others keep their order.
-- This scans the list once, from the nearer end up to the last place; an LREM for each entry would scan it
-- each time.
local function remove_places(list, places)
  table.sort(places)
  if #places > 0 and places[#places] == #places - 1 then
    redis.call('RPOP', list, #places)
  elseif #places > 0 then
    local length = redis.call('LLEN', list)
    local from_left = places[1] > length - 1 - places[#places]
    for _, from_right in ipairs(places) do
      redis.call('LSET', list, from_left and length - 1 - from_right or -1 - from_right, token)
    end
    redis.call('LREM', list, from_left and #places or -#places, token)
  end
end

-- Remove all list entries of located IDs.
--
-- A page of processing is rotated: the entries that stay are pushed at the left end, so that the next page
-- is at the right end. Workers do not depend on the order of processing. So this must be called for every
-- page, even without IDs.
local function remove_entries(ids, facts)
  if mode == 'name' then
    remove_by_name(ids, facts)
  elseif mode == 'main' or mode == 'leased' then
    local places = {}
    for _, id in ipairs(ids) do
      places[#places + 1] = place[id] or nil
    end
    remove_places(mode == 'main' and main or processing, places)
  elseif mode == 'processing' and #page > 0 then
    local removed, kept = {}, {}
    for i = 1, #ids do
      removed[ids[i]] = true
    end
    for at = #page, 1, -1 do
      if not removed[page[at]] then
        kept[#kept + 1] = page[at]
      end
    end
    redis.call('RPOP', processing, #page)
    for_all('LPUSH', processing, kept)
  end
end

-- Whether only a second look can tell if an item without a lease is between two commands of its worker or producer.
-- In the other states of `State.may_be_in_transit` it has a lease, which the operations respect, or is in main, or
-- has no data.
local function needs_second_look(facts, now_ms)
  local state = state_of(facts, now_ms)
  return state == 'abandoned' or state == 'orphaned'
end

-- Whether an ID that is in no list may be pushed: either this script looked it up by name, or a claim, guard
-- or lease has kept every cleaner from pushing it since the caller read the lists. A dry run claims nothing.
local function may_push_unlisted(facts)
  if is_taken_away(facts) then
    return false
  end
  return mode ~= 'unlisted' or dry_run or facts.is_claimed or is_guarded(facts)
    or session_of(facts) ~= false
end
