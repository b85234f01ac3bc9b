-- Complete items, and optionally keep a result; or remove them: delete their data and all their traces. If several
-- clients do that, the one whose DEL deletes the data wins.
-- include: expected
-- writes: leases MGET DEL; delayed ZREM; buried ZREM; returns HDEL; cleaning LREM; item DEL GET GETRANGE; server TIME
-- commands: complete, complete --result, rm, purge, work
-- writes results: result EXISTS TYPE HMGET HSET PEXPIRE DEL
-- commands results: complete --result
-- budget: 750 items  three keys and an entry are deleted for each
-- arg done  the status to report: 'completed'; or 'removed', for which no owner is asked and no result is touched
-- arg owners  holders of which one must have the lease of an item, each as its length, a colon and its bytes; an empty
--   one stands for no session: the item may be unleased. '' for any item
-- arg keep_ms  how long to keep the results, ms; '' to keep none
-- arg status  the status of the results: 'completed' | 'rejected'
-- arg has_result:flag  the results have data
-- arg result  the data of the results, bytes
-- rest words  the IDs, each once
-- Returns the outcomes of `outcome_reply`: completed or removed, missing, not-owner, moving, changed, wrong-type, elsewhere.
local ids, is_owner, unread = ids_in(words), {}, owners
while unread ~= '' do
  local length, bytes = string.match(unread, '^(%d+):(.*)$')
  is_owner[length ~= '0' and string.sub(bytes, 1, length)], unread = true, string.sub(bytes, length + 1)
end
-- Rarely, an earlier item with this ID has left a result, or something else has the key of one that is to be kept. A
-- user who may not read results can still complete items without keeping any, as if there were none.
local has_results = done == 'completed' and redis.pcall('EXISTS', unpack(prefixed(result_prefix, ids)))
has_results = type(has_results) == 'number' and has_results > 0
local refusal = not dry_run and (has_results or keep_ms ~= '') and denied(NEEDS.results())
if refusal then
  return refusal
end
local KEPT = { none = true, result = true }
local function cannot_keep(id)
  return has_results and keep_ms ~= '' and not KEPT[result_kind(result_prefix .. id)]
end
-- Most calls name no owner and keep no result.
local asks_more = owners ~= '' or where == 'leased' or has_tokens or has_results and keep_ms ~= ''

return act(ids, function(id, item, now_ms)
  return refusal_of(id, item, now_ms) or item.buried_ms and is_copy(item) and 'moving'
    or asks_more and (owners ~= '' and not is_owner[session_of(item)] and 'not-owner'
      or is_taken_away(item) and 'elsewhere' or unsaved_status(id) or cannot_keep(id) and 'wrong-type') or done
end, function(groups, facts, now_ms)
  local completed, gone, outdated, holders = groups[done], joined(groups[done], groups.missing), {}, {}
  for _, id in ipairs((has_results or keep_ms ~= '') and completed or {}) do
    local key = result_prefix .. id
    holders[id] = keep_ms ~= '' and session_of(facts[id])
    outdated[#outdated + 1] = has_results and result_kind(key) == 'result' and key or nil
  end
  -- First, and also for IDs without data: DEL needs no memory, and a full server does not stop a script that has
  -- already written.
  for_all('DEL', nil, prefixed(item_prefix, gone))
  delete_leases(gone, facts)
  forget_entries(gone)
  remove_entries(gone)
  for_all('DEL', nil, outdated)
  for _, id in ipairs(keep_ms ~= '' and completed or {}) do
    local key, holder = result_prefix .. id, holders[id]
    redis.call('HSET', key, 'status', status, 'completed_ms', whole_ms(now_ms))
    for_all('HSET', key, has_result and { 'result', result } or {})
    for_all('HSET', key, holder and holder ~= '' and { 'holder', holder } or {})
    redis.call('PEXPIRE', key, keep_ms)
  end
end, is_by_facts and not (has_results and keep_ms ~= ''))
