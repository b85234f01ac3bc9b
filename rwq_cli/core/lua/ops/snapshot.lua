-- Read everything about items, including their data, at one instant, until the budget of bytes is reached. Writes
-- nothing.
-- include: locate
-- budget: 750 items  eight reads for each
-- arg bytes_max:number  the budget of bytes
-- rest ids
-- Returns { unix ms now, length of main, ... } and then, for each ID that was read: the type of its data key; the data;
-- the `lease_reply` of its new lease key, and of its old one; its place (its place in main, counted from the right end;
-- 'processing'; 'none'; 'elsewhere' if it is not where it was seen); its due time and its time of burial, unix ms, or
-- ''; how often it was returned, or ''.
local length, facts, same = redis.call('LLEN', main), {}, { data = 'string', main = 0, processing = 0 }
for i = 1, #ids do
  facts[ids[i]] = same
end
locate(ids, facts)

local in_main = last_entries(main)
local leases, due, burials, counts = lease_values(ids), scores_of(delayed, ids), scores_of(buried, ids), counts_of(ids)
local reply, at, bytes = { whole_ms(clock_ms()), length }, 2, 0
-- Written into the reply directly, and one table for the leases of all items: a table for each would cost as much as
-- reading it.
local item = {}
for i = 1, #ids do
  if bytes >= bytes_max then
    break
  end
  local id, new, old, place = ids[i], leases[2 * i - 1], leases[2 * i], facts[ids[i]]
  item.id, item.new, item.old = id, new, old
  local data = read_string('GET', item_prefix .. id)
  bytes = bytes + #(data or '')
  reply[at + 1] = data and 'string' or data == nil and redis.call('TYPE', item_prefix .. id).ok or 'none'
  reply[at + 2] = data or ''
  reply[at + 3], reply[at + 4] = lease_reply(item, 'new')
  reply[at + 5], reply[at + 6] = lease_reply(item, 'old')
  reply[at + 7] = not place.main and 'elsewhere' or place.main > 0 and length - 1 - in_main[id]
    or place.processing > 0 and 'processing' or 'none'
  reply[at + 8], reply[at + 9] = due[i] or '', burials[i] or ''
  reply[at + 10] = counts[i] or ''
  at = at + 10
end
return reply
