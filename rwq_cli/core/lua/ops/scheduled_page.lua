-- Read a page of Q:delayed or Q:buried by score, after the entries that were read before.
-- Writes nothing.
--
-- arg 1     which: 'delayed' | 'buried'
-- arg 2     '1' to begin with the latest, '0' with the earliest
-- arg 3     the maximum number of entries
-- arg 4..   ID, score, ID, score, ... of the entries that were read last, the last one first
-- Returns { ID, score, ID, score, ... }. If none of the given entries is still there, the page begins at the
-- last score, with entries that the caller may have read.
local zset, reversed = arg(1) == 'delayed' and delayed or buried, arg(2) == '1'
local count, start, read = tonumber(arg(3)), 0, args_from(4)
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
