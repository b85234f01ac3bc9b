-- Lease IDs that the caller saw in no list to itself, so that no cleaner in any language pushes them
-- while the lists are read again. If we die, the lease ends by itself.
--
-- arg 1   the value of the lease, unique to this run
-- arg 2   how long it lasts, ms
-- arg 3.. IDs
-- Returns the IDs that were claimed: those with data that nobody holds a lease of, and that no guard
-- proves to be delayed or buried. A guard under one name alone stays: it gives the reason of a burial. So
-- does a settling lease: the ID was pushed since the caller looked, and to give up the claim would end it.
local value, lease_ms, ids = arg(1), arg(2), args_from(3)
if not dry_run and for_all('EXISTS', nil, lease_keys(ids)) == 0
    and for_all('EXISTS', nil, prefixed(item_prefix, ids)) == #ids then
  -- As most often, nobody leases any of them. The script that acts on them looks at the type of the data.
  for i = 1, #ids do
    set_lease(ids[i], value, lease_ms)
  end
  return ids
end
local facts, claimed = read_facts(ids), {}
for _, id in ipairs(ids) do
  local found = facts[id]
  -- A data key of another type is a key of another queue, or nothing of ours.
  if found.data == 'string' and not session_of(found) and not is_guarded(found)
      and not is_settling(found.new) and not is_settling(found.old) then
    claimed[#claimed + 1] = id
    for key, held in pairs({ [lease_prefix .. id] = found.new, [old_lease_prefix .. id] = found.old }) do
      if not dry_run and not is_scheduling_guard(held) then
        redis.call('SET', key, value, 'PX', lease_ms)
      end
    end
  end
end
return claimed
