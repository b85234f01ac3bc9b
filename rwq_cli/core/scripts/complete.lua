-- Complete items: delete the data, and with it every trace. The DEL of the data decides who won.
--
-- arg 1     0: find each ID wherever it is. n: only those in the n oldest entries of processing
-- arg 2     only where this holder still has the lease; '' for any
-- arg 3..   IDs; with a page, those of them that are elsewhere are left for another call
-- Returns, for each ID that was dealt with: ID, 'completed' | 'missing' | 'not-owner', holder or ''.
check_types()
local page_size, owner, ids = tonumber(arg(1)), arg(2), args_from(3)
local reply = {}

local function tell(id, status, holder)
  reply[#reply + 1] = id
  reply[#reply + 1] = status
  reply[#reply + 1] = holder or ''
end

local refused = {}
local function is_ours(id)
  if owner == '' or not has_data(id) then
    return true
  end
  local holder = lease_holder(id)
  if holder == owner then
    return true
  end
  if not refused[id] then
    refused[id] = true
    tell(id, 'not-owner', holder or '')
  end
  return false
end

local in_processing = {}
for _, id in ipairs(take_from_processing(page_size, ids, is_ours)) do
  in_processing[id] = true
end
local finished = {}
for _, id in ipairs(ids) do
  if not finished[id] and not refused[id] and (page_size == 0 or in_processing[id]) then
    finished[id] = true
    local won = redis.call('DEL', item_prefix .. id) == 1
    drop_lease(id)
    if page_size == 0 then
      -- A waiting item, or a second entry of a listed one, must not stay behind as a ghost.
      redis.call('LREM', main, 0, id)
      redis.call('LREM', cleaning, 0, id)
    end
    redis.call('ZREM', delayed, id)
    redis.call('ZREM', buried, id)
    redis.call('HDEL', returns, id)
    tell(id, won and 'completed' or 'missing')
  end
end
return reply
