-- The states of IDs whose places in the lists the caller knows. Writes nothing.
-- include: digest, facts
-- budget: 1500 items  five reads for each
-- arg in_main:number  how often each is there
-- arg in_processing:number
-- arg digests_too:flag  return the digests of abandoned items
-- rest ids
-- Returns a string with a code for each ID in order; a string with the digest of each abandoned item in order; and those
-- IDs whose schedule is unsure: see `Facts.has_unsure_schedule`.
local codes, digests, unsure, code_of, now_ms = {}, {}, {}, state_codes(), clock_ms()
local leases, due, burials = lease_values(ids), scores_of(delayed, ids), scores_of(buried, ids)
-- One table for all IDs: half of the time would go into a table for each.
local facts = { main = in_main, processing = in_processing }
for i, id in ipairs(ids) do
  local digest
  facts.id, facts.new, facts.old = id, leases[2 * i - 1] or false, leases[2 * i] or false
  if digests_too and not session_of(facts) then
    facts.data, digest = digest_of(id)
  else
    facts.data = redis.call('TYPE', item_prefix .. id).ok
  end
  facts.due_ms, facts.buried_ms = tonumber(due[i] or nil), tonumber(burials[i] or nil)
  if (facts.due_ms or facts.buried_ms) and (facts.due_ms and facts.buried_ms or not is_guarded(facts)) then
    unsure[#unsure + 1] = id
  end
  local state = state_of(facts, now_ms)
  codes[i] = code_of[state]
  digests[#digests + 1] = state == 'abandoned' and digest or nil
end
return { table.concat(codes), table.concat(digests), unpack(unsure) }
