-- Put results in as they were, but not in the place of one that exists.
--
-- arg 1     '1' to replace one that exists, else '0'
-- arg 2..   for each: ID; ms left until it expires, -1 for no expiry; its status, 'completed' |
--           'rejected'; its completion time, unix ms; '1' if somebody held the lease, else '0'; the
--           holder; '1' if it has a result, else '0'; the result
-- Returns one code for each in order: imported, already-there, replaced, wrong-type for a key that holds
-- no result.
local replaces, words = arg(1) == '1', args_from(2)
local FIELDS = 8
local outcomes, codes, seen = {}, {}, {}
for at = 1, #words, FIELDS do
  local id = words[at]
  local kind = seen[id] and 'result' or result_kind(result_prefix .. id)
  local outcome = kind == 'none' and 'imported' or kind ~= 'result' and 'wrong-type'
    or replaces and 'replaced' or 'already-there'
  outcomes[#outcomes + 1] = outcome
  codes[#codes + 1] = CODES[outcome]
  seen[id] = seen[id] or outcome == 'imported'
end
for index, outcome in ipairs(dry_run and {} or outcomes) do
  if outcome == 'imported' or outcome == 'replaced' then
    local at = (index - 1) * FIELDS + 1
    local id, ttl, status, completed_ms, held, holder, given, result = unpack(words, at, at + FIELDS - 1)
    local key = result_prefix .. id
    -- All fields in one call, the first write: a server without memory refuses it.
    local fields = { 'status', status, 'completed_ms', completed_ms }
    local absent = {}
    for name, value in pairs({
      holder = held == '1' and holder, result = given == '1' and result,
    }) do
      if value then
        fields[#fields + 1] = name
        fields[#fields + 1] = value
      else
        absent[#absent + 1] = name
      end
    end
    redis.call('HSET', key, unpack(fields))
    if outcome == 'replaced' then
      for_all('HDEL', key, absent)
      redis.call('PERSIST', key)
    end
    if ttl ~= '-1' then
      redis.call('PEXPIRE', key, ttl)
    end
  end
end
return { table.concat(codes) }
