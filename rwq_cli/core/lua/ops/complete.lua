-- Complete items: delete the data, and with it every trace; keep an outcome where one is wanted. The
-- DEL of the data decides who won.
--
-- arg 1     0: find each ID wherever it is. n: only those in the n oldest entries of processing.
--           -1: like 0, but the caller saw them in no list: what has no data is not looked for there.
--           -2: only those that are delayed or buried behind a guard of both names, and so in no list
-- arg 2     only where this holder still has the lease; '' for any
-- arg 3     how long to keep an outcome of each, ms; '' to keep none
-- arg 4     what the outcome says: 'completed' | 'rejected'
-- arg 5     '1' where there is a result to keep with it, else '0'
-- arg 6     that result, bytes
-- arg 7..   IDs, each once; with a page, those of them that are elsewhere are left for another call
-- Returns { statuses, holder, ... }: a letter for each ID in order, c completed, m missing, o not the
-- owner, - not dealt with; then for each o who holds the lease, or ''.
-- Uses: places, parking, results
local refusal = denied(
  { 'LREM', processing, 0, 'x' },
  { 'RPOP', processing },
  { 'LPUSH', processing, 'x' },
  { 'DEL', item_prefix .. 'x' },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' },
  { 'LREM', main, 0, 'x' },
  { 'LREM', cleaning, 0, 'x' },
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'HDEL', returns, 'x' }
)
if refusal then
  return refusal
end
local page_size, owner, ids = tonumber(arg(1)), arg(2), args_from(7)
local exists, odd = with_data_of_right_type(ids)
if odd then
  return odd
end
local results, unfit = prepare_results(ids, exists, arg(3), arg(4), arg(5) == '1' and arg(6) or nil)
if unfit then
  return unfit
end
local statuses, holders = {}, {}
local refused, holder_of = {}, {}

local function is_refused(id)
  if owner ~= '' and refused[id] == nil then
    holder_of[id] = lease_holder(id) or ''
    refused[id] = exists[id] and holder_of[id] ~= owner
  end
  return refused[id]
end

-- Of many, what is behind a guard of both names is looked for in no list. Where few are named it is: the
-- add_item of upstream 0.1 pushes what was put away without a look.
local parked = {}
if page_size < 0 and (present[delayed] or present[buried]) then
  local _
  _, parked = sessions_and_parked(ids)
end
local waits_again = page_size > 0 and just_pushed(main) or {}
local function may_take(id)
  return not waits_again[id] and not parked[id] and not is_refused(id)
    and (page_size >= 0 or (page_size == -1 and exists[id]))
end

local here = {}
for _, id in ipairs(take_from_processing(page_size, ids, may_take)) do
  here[id] = true
end
local finished = {}
for i, id in ipairs(ids) do
  if page_size == -2 and not parked[id] then
    statuses[i] = '-'
  elseif (page_size <= 0 and not is_refused(id)) or here[id] then
    local won = exists[id]
    statuses[i] = won and 'c' or 'm'
    finished[#finished + 1] = id
    if not parked[id] and (page_size == 0 or (won and page_size < 0)) then
      -- A waiting item, or a second entry of a listed one, must not stay behind as a ghost.
      redis.call('LREM', main, 0, id)
    end
  elseif refused[id] then
    statuses[i] = 'o'
    holders[#holders + 1] = holder_of[id]
  else
    statuses[i] = '-'
  end
end
for_all('DEL', nil, item_keys(finished))
forget(finished)
settle_results(finished, results)
return { table.concat(statuses), unpack(holders) }
