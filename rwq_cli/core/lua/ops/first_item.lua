-- Find the first entry of a list or sorted set that is an item, from where items leave it. Writes nothing.
--
-- arg structure  'queue' | 'processing' | 'cleaning' | 'delayed' | 'buried'
-- arg skip:number  how many entries to skip
-- arg count:number  how many to look at after those
-- Returns how many there were, and the first that has data, if any.
local zset = ({ delayed = delayed, buried = buried })[structure]
local list = ({ queue = main, processing = processing, cleaning = cleaning })[structure]
local entries, from, to, step
if zset then
  entries = redis.call('ZRANGE', zset, skip, skip + count - 1)
  from, to, step = 1, #entries, 1
else
  entries = redis.call('LRANGE', list, -skip - count, -skip - 1)
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
