-- Put delayed items that are due onto main, the earliest due first.
--
-- arg 1  how many due entries to look at, at most
-- arg 2  how many to pass over first
-- arg 3  '1' to promote them, '0' to say what would be done, and do nothing
-- Returns { looked at, promoted, ID, ..., dropped, ID, ..., ID, ... }: how many entries were looked at;
-- how many were promoted, and their IDs; how many entries were dropped that mean nothing any more, and
-- their IDs; the IDs that have to be looked for in the lists first.
-- Uses: guards, promoting
local only_tells = arg(3) == '0'
local refusal = not only_tells and denied_to_promote()
if refusal then
  return refusal
end
local promoted, dropped, unproven, looked_at =
  promote_due(tonumber(arg(1)), tonumber(arg(2)), clock_ms(), only_tells)
local reply = { looked_at }
for _, ids in ipairs({ promoted, dropped }) do
  reply[#reply + 1] = #ids
  for _, id in ipairs(ids) do
    reply[#reply + 1] = id
  end
end
for _, id in ipairs(unproven) do
  reply[#reply + 1] = id
end
return reply
