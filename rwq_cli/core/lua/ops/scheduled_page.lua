-- Read a page of Q:delayed or Q:buried by score, after the entries that were read before.
-- Writes nothing.
--
-- arg which  'delayed' | 'buried'
-- arg reversed:flag  begin with the latest
-- arg count:number  the maximum number of entries
-- rest read  ID, score, ID, score, ... of the entries that were read last, the last one first
-- Returns { ID, score, ID, score, ... }. If none of the given entries is still there, the page begins at the
-- last score, with entries that the caller may have read.
local zset, start = which == 'delayed' and delayed or buried, 0
local last_score = read[2]
if last_score then
  local rank
  for at = 1, #read, 2 do
    if redis.call('ZSCORE', zset, read[at]) == read[at + 1] then
      rank = redis.call(reversed and 'ZREVRANK' or 'ZRANK', zset, read[at])
      break
    end
  end
  if rank then
    start = rank + 1
  elseif reversed then
    start = redis.call('ZCOUNT', zset, '(' .. last_score, '+inf')
  else
    start = redis.call('ZCOUNT', zset, '-inf', '(' .. last_score)
  end
end
return redis.call(reversed and 'ZREVRANGE' or 'ZRANGE', zset, start, start + count - 1, 'WITHSCORES')
