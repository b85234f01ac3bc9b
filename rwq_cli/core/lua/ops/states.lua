-- The states of IDs whose places in the lists the caller knows. Writes nothing.
--
-- arg 1     how often each is in main
-- arg 2     how often each is in processing
-- arg 3..   IDs
-- Returns one string with a code for each ID in order. STATE_CODES is made from `core/model.py`.
local in_main, in_processing, ids = tonumber(arg(1)), tonumber(arg(2)), args_from(3)
local facts, now_ms, codes = read_facts(ids), clock_ms(), {}
for i, id in ipairs(ids) do
  facts[id].main, facts[id].processing = in_main, in_processing
  codes[i] = STATE_CODES[state_of(facts[id], now_ms)]
end
return table.concat(codes)
