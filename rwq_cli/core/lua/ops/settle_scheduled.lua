-- End our guards of due or buried items: what was in no list while it was guarded goes onto main; for
-- what is in one its entry in Q:delayed or Q:buried means nothing any more, and goes.
--
-- arg 1     'delayed' | 'buried': which entry it is about; of what was buried and goes onto main, what
--           was counted of its returns is forgotten
-- arg 2     value of the guard
-- arg 3     '1' where the caller saw the items in no list, '0' where it saw them in one
-- arg 4..   IDs, in the order in which they shall be leased
-- Returns the IDs that went onto main. One whose guard is no longer ours keeps its lease: a worker that
-- had popped it leased it, or somebody completed or released it. Where somebody put it away anew, its
-- entry is theirs, and stays as well.
-- Uses: settling
local refusal = denied(
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'HDEL', returns, 'x' },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' },
  { 'LPUSH', main, 'x' }
)
if refusal then
  return refusal
end
local is_delayed, ids = arg(1) == 'delayed', args_from(4)
local ours, unlisted, put_away = still_guarded(ids, arg(2))
local pushed, settled = arg(3) == '1' and unlisted or {}, {}
for _, id in ipairs(ids) do
  if not put_away[id] then
    settled[#settled + 1] = id
  end
end
for_all('DEL', nil, ours)
for_all('ZREM', is_delayed and delayed or buried, settled)
if not is_delayed then
  for_all('ZREM', delayed, pushed)
  for_all('HDEL', returns, pushed)
end
for_all('LPUSH', main, pushed)
return pushed
