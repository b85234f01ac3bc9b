-- Read the facts about IDs at one instant, with all of their list entries or without any. Writes nothing.
-- include: digest, facts
-- budget: 1000 items  six reads for each, more if it has leases
-- arg scan_max:number  how many entries to scan at most, for all IDs together; '' to look in no list
-- arg digests_too:flag  add to the facts of each ID the digest of an item that neither a session nor a guard
--   protects, else ''. Other items need no second look
-- rest ids
-- Returns a flat list: unix ms now; the lengths of main, processing and cleaning; then for each ID the type of its data
-- key, the `lease_reply` of its new lease key and of its old one, its due time and its time of burial, unix ms, or '',
-- its count of returns, or false, its digest, or ''; its places in these lists from the left end, joined by spaces. If
-- the scans would exceed the limit, nothing after the lengths; if it looks in no list, no lengths and no places.
local lists, reply, entries = scan_max and { main, processing, cleaning } or {}, { whole_ms(clock_ms()) }, 0
for at, list in ipairs(lists) do
  reply[at + 1] = redis.call('LLEN', list)
  entries = entries + reply[at + 1]
end
if entries > 0 and #ids * entries > scan_max then
  return reply
end
local counts, facts, due, burials = counts_of(ids), read_facts(ids)
for i, id in ipairs(ids) do
  local item, last = facts[id], #reply
  item.id = id
  reply[last + 1] = item.data
  reply[last + 2], reply[last + 3] = lease_reply(item, 'new')
  reply[last + 4], reply[last + 5] = lease_reply(item, 'old')
  reply[last + 6], reply[last + 7], reply[last + 8] = due[i] or '', burials[i] or '', counts[i] or false
  local is_free = digests_too and item.data == 'string' and not session_of(item) and not is_guarded(item)
  reply[last + 9] = is_free and select(2, digest_of(id)) or ''
  for at, list in ipairs(lists) do
    local places = reply[at + 1] > 0 and redis.call('LPOS', list, id, 'COUNT', 0) or {}
    reply[last + 9 + at] = table.concat(places, ' ')
  end
end
return reply
