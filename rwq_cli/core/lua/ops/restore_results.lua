-- Restore results as they were.
-- include: facts, marks
-- writes: result HSET HDEL PEXPIRE PERSIST
-- commands: undo, import
-- budget: 250 items  a key with several fields is set for each
-- arg replaces:flag  replace results that exist
-- rest args  for each: the number of its line in the file; ID; ms left until it expires, -1 for no expiry; its
--   status, 'completed' | 'rejected'; its completion time, unix ms; '1' if somebody held the lease, else '0'; the
--   holder; '1' if it has a result, else '0'; the result; the completion time of the one result that may be replaced,
--   '' for any. Each ID once
-- Returns the outcomes of `outcome_reply`: imported, imported-before if its line is marked, already-there, replaced,
-- wrong-type for a key that is not a result.
local FIELDS = 10
local lines, ids, statuses, done = {}, {}, {}, {}
for at = 1, #args, FIELDS do
  lines[#lines + 1], ids[#ids + 1] = args[at], args[at + 1]
end
local marked = read_marks(lines)
for i, id in ipairs(ids) do
  local key, kind = result_prefix .. id, result_kind(result_prefix .. id)
  local first, last = FIELDS * i - 7, FIELDS * i
  local left_ms, status, completed_ms, held, holder, has_result, result, replaceable = unpack(args, first, last)
  local may_replace = replaces and (replaceable == ''
    or kind == 'result' and redis.call('HGET', key, 'completed_ms') == replaceable)
  local outcome = marked[lines[i]] and 'imported-before' or kind == 'none' and 'imported'
    or kind ~= 'result' and 'wrong-type' or may_replace and 'replaced' or 'already-there'
  statuses[i] = outcome
  done[#done + 1] = outcome ~= 'imported-before' and outcome ~= 'wrong-type' and lines[i] or nil
  if not dry_run and (outcome == 'imported' or outcome == 'replaced') then
    -- The first write is one that a server that is out of memory refuses.
    redis.call('HSET', key, 'status', status, 'completed_ms', completed_ms)
    for name, value in pairs({ holder = held == '1' and holder, result = has_result == '1' and result }) do
      if value then
        redis.call('HSET', key, name, value)
      elseif outcome == 'replaced' then
        redis.call('HDEL', key, name)
      end
    end
    if left_ms ~= '-1' then
      redis.call('PEXPIRE', key, left_ms)
    elseif outcome == 'replaced' then
      redis.call('PERSIST', key)
    end
  end
end
mark_lines(dry_run and {} or done)
return outcome_reply(ids, statuses)
