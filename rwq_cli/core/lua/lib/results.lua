-- The results of completed items.
local RESULT_STATUSES = { completed = true, rejected = true }

-- What a result key holds: 'none', 'result', or the type of a key that is not a result. A hash may belong to a queue
-- whose name begins like this queue's result keys.
local function result_kind(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'hash' then
    local status, completed_ms = unpack(redis.call('HMGET', key, 'status', 'completed_ms'))
    if RESULT_STATUSES[status] and string.match(completed_ms or '', '^%d+$') and #completed_ms <= DIGITS_MAX then
      return 'result'
    end
  end
  return kind
end
