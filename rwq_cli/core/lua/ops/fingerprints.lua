-- Read the fingerprints of data: see `fingerprint` of `lib/digest.lua`. Writes nothing.
--
-- include: digest
-- arg bytes_max:number  stop after this many bytes of data; the item that reaches the limit is still read
-- rest ids
-- Returns the fingerprints of the IDs that were read, 40 digits each; dashes for an ID without data or with a key of
-- the wrong type.
local found, bytes = {}, 0
for i, id in ipairs(ids) do
  if bytes >= bytes_max then
    break
  end
  local key = item_prefix .. id
  if redis.call('TYPE', key).ok == 'string' then
    bytes = bytes + redis.call('STRLEN', key)
    found[i] = fingerprint(id)
  else
    found[i] = string.rep('-', 40)
  end
end
return table.concat(found)
