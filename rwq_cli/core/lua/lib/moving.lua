-- Taking items from where they are, unless somebody has them in hand.
--
-- Uses: places

-- Who may take which of the items, asked of one after the other; and what is told of each.
--
-- page_size   0 or -1: each ID is found wherever it is. n: only in the n oldest entries of processing,
--             where it was seen not to be in main. -2: only behind a guard that proves it to be in no
--             list
-- own_holder  whose leases need no force
-- waiting     asked of an ID with data before its lease is: true to take it whoever has it, a letter to
--             tell of it instead, or nil; nil for not at all
-- Returns a function of an ID, which says no where the item must stay as it is; the letters by ID, which
-- it and the verb write; and a function that makes the reply of them: the letters in order, - for none,
-- and who holds the lease of each o.
local function mover(ids, sessions, parked, exists, page_size, own_holder, force, waiting)
  local told = {}
  local waits_again = page_size > 0 and just_pushed(main) or {}

  local function may_move(id)
    if told[id] or waits_again[id] or (page_size == -2 and not parked[id]) then
      return false
    end
    local holder, found = sessions[id], exists[id] and waiting and waiting(id)
    if not exists[id] then
      told[id] = 'm'
    elseif found then
      told[id] = found ~= true and found or nil
    elseif holder and holder ~= own_holder and not force then
      told[id] = 'o'
    end
    return not told[id]
  end

  local function reply()
    local statuses, holders = {}, {}
    for i, id in ipairs(ids) do
      statuses[i] = told[id] or '-'
      if told[id] == 'o' then
        holders[#holders + 1] = sessions[id]
      end
    end
    return { table.concat(statuses), unpack(holders) }
  end

  return may_move, told, reply
end
