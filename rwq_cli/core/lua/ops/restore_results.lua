-- Restore results as they were.
--
-- include: results, marks
-- writes: result HSET HDEL PEXPIRE PERSIST
-- arg replaces:flag  replace results that exist
-- rest args  for each: the number of its line in the file; ID; ms left until it expires, -1 for no expiry; its
--   status, 'completed' | 'rejected'; its completion time, unix ms; '1' if somebody held the lease, else '0'; the
--   holder; '1' if it has a result, else '0'; the result; the completion time of the one result that may be
--   replaced, '' for any. Each ID once
-- Returns the outcomes of `outcome_reply`: imported, imported-before if its line is marked, already-there,
-- replaced, wrong-type for a key that is not a result.
local FIELDS = 10
local lines, ids, statuses, done, restored = {}, {}, {}, {}, {}
for at = 1, #args, FIELDS do
  lines[#lines + 1] = args[at]
end
local marked = read_marks(lines)
for at = 1, #args, FIELDS do
  local line, id = args[at], args[at + 1]
  local kind, replaceable = result_kind(result_prefix .. id), args[at + 9]
  local may_replace = replaces and (replaceable == ''
    or kind == 'result' and redis.call('HGET', result_prefix .. id, 'completed_ms') == replaceable)
  local status = marked[line] and 'imported-before' or kind == 'none' and 'imported'
    or kind ~= 'result' and 'wrong-type' or may_replace and 'replaced' or 'already-there'
  ids[#ids + 1], statuses[id] = id, status
  restored[#restored + 1] = (status == 'imported' or status == 'replaced') and at or nil
  done[#done + 1] = status ~= 'imported-before' and status ~= 'wrong-type' and line or nil
end
if dry_run then
  return outcome_reply(ids, statuses)
end
-- The first write is one that a server that is out of memory refuses.
mark_lines(done)
for _, at in ipairs(restored) do
  local id, left_ms, status, completed_ms, held, holder, given, result =
    unpack(args, at + 1, at + 8)
  local key = result_prefix .. id
  redis.call('HSET', key, 'status', status, 'completed_ms', completed_ms)
  for name, value in pairs({ holder = held == '1' and holder, result = given == '1' and result }) do
    if value then
      redis.call('HSET', key, name, value)
    elseif statuses[id] == 'replaced' then
      redis.call('HDEL', key, name)
    end
  end
  if statuses[id] == 'replaced' then
    redis.call('PERSIST', key)
  end
  if left_ms ~= '-1' then
    redis.call('PEXPIRE', key, left_ms)
  end
end
return outcome_reply(ids, statuses)
