-- Write the counts of a queue into its history, once a minute whoever asks: the ID of an entry is its minute.
-- writes: history XADD
-- commands: clean --every
-- arg abandoned:number  how many items were found abandoned since the caller's last entry
-- arg done  how many items were done a minute since then, or '' if unknown
-- arg minutes_max:number  how many entries are kept; hours_max of those of an hour
-- arg hours_max:number
-- Returns how long it is until the next minute, ms, and whether it has written an entry. A queue without items gets its
--   first entry once it has some.
local now_ms = clock_ms()
local minute, prefix = math.floor(now_ms / 60000) * 60000, string.sub(main, 1, -6)
local function last_ms(key)
  local entry = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  return entry and tonumber(string.match(entry[1], '^%d+'))
end
local last, last_hour = last_ms(prefix .. 'history'), last_ms(prefix .. 'history:hours')
local waiting, in_processing = redis.call('LLEN', main), redis.call('LLEN', processing)
local later, aside = redis.call('ZCARD', delayed), redis.call('ZCARD', buried)
local next_id, age = redis.call('LINDEX', main, -1), ''
if next_id then
  -- Where the server keeps no idle times, it is an error.
  local idle = redis.pcall('OBJECT', 'IDLETIME', item_prefix .. next_id)
  age = type(idle) == 'number' and idle or ''
end
local is_empty = waiting + in_processing + later + aside == 0
local writes = not dry_run and (not last or last < minute) and (last or not is_empty)
if writes then
  local fields = { 'waiting', waiting, 'processing', in_processing, 'abandoned', abandoned, 'delayed', later,
    'buried', aside, 'done', done, 'age', age, 'next', next_id or '' }
  redis.call('XADD', prefix .. 'history', 'MAXLEN', '~', minutes_max, whole_ms(minute) .. '-0', unpack(fields))
  local hour = math.floor(now_ms / 3600000) * 3600000
  if not last_hour or last_hour < hour then
    redis.call('XADD', prefix .. 'history:hours', 'MAXLEN', '~', hours_max, whole_ms(minute) .. '-0', unpack(fields))
  end
end
return { math.ceil(minute + 60000 - now_ms), writes and 1 or 0 }
