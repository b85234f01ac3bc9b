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
local facts, claimed = read_facts(ids), {}
for i = 1, #ids do
  local id = ids[i]
  local found = facts[id]
  -- A data key of another type is a key of another queue, or nothing of ours.
  if found.data == 'string' and not session_of(found) and not is_guarded(found)
      and not is_settling(found.new) and not is_settling(found.old) then
    claimed[#claimed + 1] = id
    if not dry_run and not is_scheduling_guard(found.new) then
      redis.call('SET', lease_prefix .. id, value, 'PX', lease_ms)
    end
    if not dry_run and not is_scheduling_guard(found.old) then
      redis.call('SET', old_lease_prefix .. id, value, 'PX', lease_ms)
    end
  end
end
return claimed
