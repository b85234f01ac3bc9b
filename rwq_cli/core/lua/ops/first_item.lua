-- Find the first entry of a list or sorted set that is an item, from where items leave it. Writes nothing.
--
-- arg 1   'queue' | 'processing' | 'cleaning' | 'delayed' | 'buried'
-- arg 2   how many entries to skip
-- arg 3   how many to look at after those
-- Returns how many there were, and the first that has data, if any.
local name, skipped, count = arg(1), tonumber(arg(2)), tonumber(arg(3))
local zset = ({ delayed = delayed, buried = buried })[name]
local list = ({ queue = main, processing = processing, cleaning = cleaning })[name]
local entries, from, to, step
if zset then
  entries = redis.call('ZRANGE', zset, skipped, skipped + count - 1)
  from, to, step = 1, #entries, 1
else
  entries = redis.call('LRANGE', list, -skipped - count, -skipped - 1)
  from, to, step = #entries, 1, -1
end
if for_all('EXISTS', nil, prefixed(item_prefix, entries)) > 0 then
  for i = from, to, step do
    if redis.call('EXISTS', item_prefix .. entries[i]) == 1 then
      return { #entries, entries[i] }
    end
  end
end
return { #entries }
