-- Read the facts about IDs at one instant, with all of their list entries or without any. Writes nothing.
--
-- include: digest, facts
-- arg scan_max:number  how many entries to scan at most, for all IDs together; '' to look in no list
-- arg digests_too:flag  add to the facts of each ID the digest of an item that neither a session nor a guard
--   protects, else ''. Other items need no second look
-- rest ids
-- Returns { lengths, facts }: the lengths of main, processing and cleaning; and unix ms now, then for each ID the type
-- of its data key, the value of its new lease key and the ms left as from `lease_reply`, the same for its old lease
-- key, its due time and its time of burial, unix ms, or '', its count of returns, or false; its places in these lists
-- counted from the left end, joined by spaces; and its digest, or ''. If the places would exceed the limit, only {
-- lengths }. Without places, only the facts; and without digests, nothing in their place.
local lists, facts_only = { main, processing, cleaning }, not scan_max
local lengths = { redis.call('LLEN', main), redis.call('LLEN', processing), redis.call('LLEN', cleaning) }
if not facts_only and #ids * (lengths[1] + lengths[2] + lengths[3]) > scan_max then
  return { lengths }
end
local reply, counts = { whole_ms(clock_ms()) }, counts_of(ids)
local facts, due, burials = read_facts(ids)
for i, id in ipairs(ids) do
  local found, last = facts[id], #reply
  reply[last + 1] = found.data
  reply[last + 2], reply[last + 3] = lease_reply(found, 'new')
  reply[last + 4], reply[last + 5] = lease_reply(found, 'old')
  reply[last + 6], reply[last + 7], reply[last + 8] = due[i] or '', burials[i] or '', counts[i] or false
  for at, list in ipairs(facts_only and {} or lists) do
    local places = lengths[at] > 0 and redis.call('LPOS', list, id, 'COUNT', 0) or {}
    reply[#reply + 1] = table.concat(places, ' ')
  end
  if digests_too or not facts_only then
    local is_free = digests_too and found.data == 'string' and not session_of(found) and not is_guarded(found)
    reply[#reply + 1] = is_free and select(2, digest_of(id)) or ''
  end
end
return facts_only and reply or { lengths, reply }
