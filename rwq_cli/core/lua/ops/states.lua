-- The states of IDs whose places in the lists the caller knows. Writes nothing.
--
-- arg 1     how often each is in main
-- arg 2     how often each is in processing
-- arg 3..   IDs
-- Returns one string with a code for each ID in order. STATE_CODES is made from `core/model.py`.
local in_main, in_processing, ids = tonumber(arg(1)), tonumber(arg(2)), args_from(3)
local leases, now_ms, codes = lease_values(ids), clock_ms(), {}
local due, burials = scores_of(delayed, ids), scores_of(buried, ids)
-- One table for all: a table for each ID would take half of the time.
local facts = { main = in_main, processing = in_processing }
for i = 1, #ids do
  facts.id, facts.data = ids[i], redis.call('TYPE', item_prefix .. ids[i]).ok
  facts.new, facts.old = leases[2 * i - 1] or false, leases[2 * i] or false
  facts.due_ms = due[i] and tonumber(due[i]) or nil
  facts.buried_ms = burials[i] and tonumber(burials[i]) or nil
  codes[i] = STATE_CODES[state_of(facts, now_ms)]
end
return table.concat(codes)
