-- Claim IDs that the caller saw in no list: lease them, so that no cleaner in any language pushes them while
-- the lists are read again. The lease expires if rwq dies.
--
-- arg 1   the value of the lease, unique to this run
-- arg 2   how long it lasts, ms
-- arg 3.. IDs
-- Returns the claimed IDs: those with data, without a session's lease, and without the guards of a delayed
-- or buried item. A guard under only one name stays, because it may hold the reason of a burial. An ID with a
-- settling lease is not claimed: it was pushed since the caller looked, and `unclaim` would delete that lease.
local value, lease_ms, ids = arg(1), arg(2), args_from(3)
local facts, claimed = read_facts(ids), {}
for i = 1, #ids do
  local id = ids[i]
  local found = facts[id]
  -- A data key of the wrong type belongs to another queue, or is not rwq's.
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
