-- Read the facts about IDs with all of their list entries, at one instant. Writes nothing.
--
-- include: digest
-- arg scan_max:number  how many entries to scan at most, for all IDs together
-- arg digests_too:flag  add the `digest_reply` of each ID to its facts
-- rest ids  each is looked up in the whole lists
-- Returns { lengths, facts }: the lengths of main, processing and cleaning; and the reply of `facts_reply` with
-- four more fields for each ID: its places in these lists counted from the left end, joined by spaces, and its
-- digest, or ''.
-- If that would exceed the limit, only { lengths }.
local lists, lengths, length = { main, processing, cleaning }, {}, 0
for i, list in ipairs(lists) do
  lengths[i] = redis.call('LLEN', list)
  length = length + lengths[i]
end
if #ids * length > scan_max then
  return { lengths }
end
local function add_more(reply, id, facts)
  for i, list in ipairs(lists) do
    local places = lengths[i] > 0 and redis.call('LPOS', list, id, 'COUNT', 0) or {}
    reply[#reply + 1] = table.concat(places, ' ')
  end
  reply[#reply + 1] = digests_too and digest_reply(id, facts) or ''
end
return { lengths, facts_reply(ids, add_more) }
