-- Read the facts about IDs with all of their list entries, at one instant. Writes nothing.
--
-- arg 1..   IDs; each is looked for in the whole of the lists
-- Returns { lengths, facts }: how many entries main, processing and cleaning have; and what `facts_reply` gives
-- with three more fields for each ID, its places in these lists counted from the left end, joined by spaces.
local lists, lengths = { main, processing, cleaning }, {}
for i, list in ipairs(lists) do
  lengths[i] = redis.call('LLEN', list)
end
local function add_places(reply, id)
  for i, list in ipairs(lists) do
    local places = lengths[i] > 0 and redis.call('LPOS', list, id, 'COUNT', 0) or {}
    reply[#reply + 1] = table.concat(places, ' ')
  end
end
return { lengths, facts_reply(args_from(1), add_places) }
