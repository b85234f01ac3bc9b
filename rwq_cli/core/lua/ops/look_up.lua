-- Read the facts about IDs with all of their list entries, at one instant. Writes nothing.
--
-- include: digest
-- arg 1     the maximum number of entries to scan for all IDs together
-- arg 2     '1' to add the `digest_reply` of each ID to its facts, else '0'
-- arg 3..   IDs; each is looked up in the whole lists
-- Returns { lengths, facts }: the lengths of main, processing and cleaning; and the reply of `facts_reply` with
-- four more fields for each ID: its places in these lists counted from the left end, joined by spaces, and its
-- digest, or ''.
-- If that would exceed the limit, only { lengths }.
local lists, lengths, ids = { main, processing, cleaning }, {}, args_from(3)
local length = 0
for i, list in ipairs(lists) do
  lengths[i] = redis.call('LLEN', list)
  length = length + lengths[i]
end
if #ids * length > tonumber(arg(1)) then
  return { lengths }
end
local digests_too = arg(2) == '1'
local function add_more(reply, id, facts)
  for i, list in ipairs(lists) do
    local places = lengths[i] > 0 and redis.call('LPOS', list, id, 'COUNT', 0) or {}
    reply[#reply + 1] = table.concat(places, ' ')
  end
  reply[#reply + 1] = digests_too and digest_reply(id, facts) or ''
end
return { lengths, facts_reply(ids, add_more) }
