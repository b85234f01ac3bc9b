-- Put results in as they were, but not in the place of one that is there.
--
-- arg 1     '1' to replace one that is there, else '0'
-- arg 2..   for each: ID; ms left until it is forgotten, -1 for no expiry; what it says, 'completed' |
--           'rejected'; when, unix ms; '1' if somebody held the lease, else '0'; who; '1' if a result
--           was given, else '0'; the result
-- Returns { statuses }: a letter for each in order, i imported, h one is there, which stays, p
-- replaced, y its key holds what is no result.
-- Uses: results
local refusal = denied(
  { 'HSET', result_prefix .. 'x', 'x', 'x' },
  { 'PEXPIRE', result_prefix .. 'x', 1 },
  { 'DEL', result_prefix .. 'x' }
)
if refusal then
  return refusal
end
local replaces, words = arg(1) == '1', args_from(2)
local FIELDS = 8
local letters, seen = {}, {}
for at = 1, #words, FIELDS do
  local id = words[at]
  local kind = seen[id] and 'result' or result_kind(result_prefix .. id)
  local letter = kind == 'none' and 'i' or kind ~= 'result' and 'y' or replaces and 'p' or 'h'
  letters[#letters + 1] = letter
  seen[id] = seen[id] or letter == 'i'
end
for index, letter in ipairs(letters) do
  if letter == 'i' or letter == 'p' then
    local at = (index - 1) * FIELDS + 1
    local id, ttl, status, completed_ms, held, holder, given, result = unpack(words, at, at + FIELDS - 1)
    local key = result_prefix .. id
    if letter == 'p' then
      redis.call('DEL', key)
    end
    redis.call('HSET', key, 'status', status, 'completed_ms', completed_ms)
    if held == '1' then
      redis.call('HSET', key, 'holder', holder)
    end
    if given == '1' then
      redis.call('HSET', key, 'result', result)
    end
    if ttl ~= '-1' then
      redis.call('PEXPIRE', key, ttl)
    end
  end
end
return { table.concat(letters) }
