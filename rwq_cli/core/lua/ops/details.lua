-- Read how long items were idle, and their sizes and data, or of these the beginnings or tokens, until the budget of
-- bytes is reached. Writes nothing.
-- include: digest, facts
-- budget: 1500 items  three reads for each
-- arg what  what to read besides the idle time: 'nothing', 'preview', 'data' or 'token'
-- arg preview_bytes:number  the length of a preview
-- arg bytes_max:number  the budget of bytes
-- rest ids
-- Returns, for each ID that was read: its idle time in seconds, the size of its data, and what was asked for; false for
-- what was not, cannot be told, or is not there.
local reply, bytes = {}, 0
-- False also for what this user may not read.
local function reading(...)
  local answer = redis.pcall(...)
  return (type(answer) ~= 'table' or not answer.err) and answer
end
for i, id in ipairs(ids) do
  if bytes >= bytes_max then
    break
  end
  -- Before the data are read, which may reset it.
  local key = item_prefix .. id
  local idle = reading('OBJECT', 'IDLETIME', key)
  local data = what == 'data' and reading('GET', key)
  local size = data and #data or (what == 'preview' or what == 'token') and reading('STRLEN', key)
  if what == 'preview' then
    data = reading('GETRANGE', key, 0, preview_bytes - 1)
  elseif what == 'token' and size and (size > 0 or has_data(id)) then
    data = token_of(id)
  end
  bytes = bytes + (what == 'preview' and data and #data or size or 0)
  reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = idle, size, data
end
return reply
