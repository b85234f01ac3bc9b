-- Replace the data of items that is still what the caller has read. Nothing else changes.
-- include: facts
-- writes: item SET GET STRLEN
-- commands: edit
-- budget: 1000 items  a read and a write for each
-- rest args  for each item: ID; the data that was read, bytes; the new data, bytes
-- Returns the outcomes of `outcome_reply`: set, changed, moving, missing, wrong-type.
local ids, codes, code_of = {}, {}, status_codes()
for at = 1, #args, 3 do
  ids[#ids + 1] = args[at]
end
local leases = lease_values(ids)
for i, id in ipairs(ids) do
  local key, before, after, status = item_prefix .. id, args[3 * i - 1], args[3 * i], 'set'
  local length = read_string('STRLEN', key)
  if not length then
    status = 'wrong-type'
  elseif length == 0 and redis.call('EXISTS', key) == 0 then
    status = 'missing'
  -- All of the data is compared, not a fingerprint: 50 MB take about 20 ms, and a SHA-1 five times that.
  elseif length ~= #before or redis.call('GET', key) ~= before then
    status = 'changed'
  elseif is_copy({ id = id, new = leases[2 * i - 1], old = leases[2 * i] }) then
    status = 'moving'
  elseif not dry_run then
    redis.call('SET', key, after, 'KEEPTTL')
  end
  codes[#codes + 1] = code_of[status]
end
return { table.concat(codes) }
