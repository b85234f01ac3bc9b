-- Read how long items were idle, and their sizes and data or the beginnings of these. Writes nothing.
--
-- arg what  what to read besides the idle time: 'nothing', 'preview' or 'data'
-- arg preview_bytes:number  the length of a preview
-- arg bytes_max:number  stop after this many bytes of data; the item that reaches the limit is still read
-- rest ids
-- Returns, for each ID that was read: its idle time in seconds, the size of its data, and those or their beginning;
-- false for what was not asked for, cannot be told, or is not there.
local reply, bytes = {}, 0
-- False also for what this user may not read.
local function reading(...)
  local found = redis.pcall(...)
  return (type(found) ~= 'table' or not found.err) and found
end
for i, id in ipairs(ids) do
  if bytes >= bytes_max then
    break
  end
  -- Before the data are read, which may reset it.
  local key = item_prefix .. id
  local idle, size, data = reading('OBJECT', 'IDLETIME', key), false, false
  if what == 'data' then
    data = reading('GET', key)
    size = data and #data
  elseif what == 'preview' then
    size = reading('STRLEN', key)
    data = reading('GETRANGE', key, 0, preview_bytes - 1)
  end
  bytes = bytes + (data and #data or 0)
  reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = idle, size, data
end
return reply
