-- Read the facts about IDs with all of their list entries, at one instant. Writes nothing.
--
-- arg 1     the maximum number of entries to scan for all IDs together; a single ID has no such limit
-- arg 2     the maximum length of a list
-- arg 3     '1' to add the `identity_reply` of each ID to its facts, else '0'
-- arg 4..   IDs; each is looked up in the whole lists
-- Returns { lengths, facts }: the lengths of main, processing and cleaning; and the reply of `facts_reply` with
-- four more fields for each ID: its places in these lists counted from the left end, joined by spaces, and its
-- identity, or ''.
-- If that would exceed a limit, only { lengths }.
local lists, lengths, ids = { main, processing, cleaning }, {}, args_from(4)
local length, longest = 0, 0
for i, list in ipairs(lists) do
  lengths[i] = redis.call('LLEN', list)
  length, longest = length + lengths[i], math.max(longest, lengths[i])
end
if longest > tonumber(arg(2)) or (#ids > 1 and #ids * length > tonumber(arg(1))) then
  return { lengths }
end
local identifies = arg(3) == '1'
local function add_more(reply, id, facts)
  for i, list in ipairs(lists) do
    local places = lengths[i] > 0 and redis.call('LPOS', list, id, 'COUNT', 0) or {}
    reply[#reply + 1] = table.concat(places, ' ')
  end
  reply[#reply + 1] = identifies and identity_reply(id, facts) or ''
end
return { lengths, facts_reply(ids, add_more) }
