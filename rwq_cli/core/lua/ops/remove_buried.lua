-- Remove items that a move has buried: originals whose copies have arrived, which is written down in the same step; or
-- copies.
-- include: digest, schedule
-- writes: leases MGET DEL; delayed ZREM; buried ZREM; returns HDEL; cleaning LREM; item DEL GET GETRANGE
-- commands: mv --to-url
-- writes moved: moved HGET HSET DEL RENAME EXPIRE
-- commands moved: mv --to-url
-- budget: 250 items  three keys are deleted, and a field is set, for each
-- arg reason  why they are buried; others are left alone
-- arg moved  the key of the hash of the originals that the move has removed; '' to write nothing down
-- arg holder  the mover, which must have begun that hash
-- arg begins:flag  the hash is emptied first: all its items are in the queue at the destination
-- rest words  the IDs, each once, with the token of its data, '' for any
-- Returns the outcomes of `outcome_reply`: moved, missing, changed, wrong-type; for no IDs if another mover has begun
-- the hash since.
local refusal = moved ~= '' and denied(NEEDS.moved())
if refusal then
  return refusal
elseif moved ~= '' and redis.call('HGET', moved, '') ~= holder then
  return outcome_reply({}, {}, {})
end
local ids, tokens = split_pairs(words)
local facts, statuses, removed = read_facts(ids), {}, {}
for i, id in ipairs(ids) do
  local item, token = facts[id], tokens[id]
  if item.data == 'none' then
    statuses[i] = 'missing'
  elseif has_wrong_type(item) then
    statuses[i] = 'wrong-type'
  elseif reason_of(item) ~= reason or session_of(item) or token ~= '' and has_other_data(id, token) then
    statuses[i] = 'changed'
  else
    statuses[i], removed[#removed + 1] = 'moved', id
  end
end
-- First, because a full server does not stop a script that has already written.
for_all('DEL', nil, prefixed(item_prefix, removed))
delete_leases(removed, facts)
forget_entries(removed)
if moved ~= '' then
  local fields = begins and { '', holder } or {}
  for _, id in ipairs(removed) do
    fields[#fields + 1], fields[#fields + 2] = id, '1'
  end
  for_all('DEL', nil, begins and { moved } or {})
  for_all('HSET', moved, fields)
end
return outcome_reply(ids, statuses, facts)
