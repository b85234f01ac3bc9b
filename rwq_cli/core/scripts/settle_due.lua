-- End our guards of due items: what was in no list while it was guarded is promoted; for what is in one
-- its entry in Q:delayed means nothing any more, and goes.
--
-- arg 1     value of the guard
-- arg 2     '1' where the caller saw the items in no list, '0' where it saw them in one
-- arg 3..   IDs, the earliest due first
-- Returns the IDs that were promoted. One whose guard is no longer ours keeps its lease: a worker that
-- had popped it leased it, or somebody completed or released it.
local refusal = denied(
  { 'ZREM', delayed, 'x' },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' },
  { 'LPUSH', main, 'x' }
)
if refusal then
  return refusal
end
local guard, unlisted, ids = arg(1), arg(2) == '1', args_from(3)
local promoted, ours = {}, {}
local exists = with_data(ids)
local in_main, in_processing = just_pushed(main), just_pushed(processing)
for _, id in ipairs(ids) do
  local new_key, old_key = lease_prefix .. id, old_lease_prefix .. id
  local new, old = redis.pcall('GET', new_key), redis.pcall('GET', old_key)
  if new == guard then
    ours[#ours + 1] = new_key
  end
  if old == guard then
    ours[#ours + 1] = old_key
  end
  local alone = new == guard and old == guard
  if unlisted and alone and exists[id] and not in_main[id] and not in_processing[id] then
    promoted[#promoted + 1] = id
  end
end
for_all('DEL', nil, ours)
for_all('ZREM', delayed, ids)
for_all('LPUSH', main, promoted)
return promoted
