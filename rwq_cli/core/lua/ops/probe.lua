-- Read the facts about IDs, without their places in the lists, at one instant. Writes nothing.
--
-- include: identity
-- arg 1     '1' to add the `identity_reply` of each ID to its facts, else '0'
-- arg 2..   IDs
-- Returns the reply of `facts_reply`.
local identifies = arg(1) == '1'
return facts_reply(args_from(2), identifies and function(reply, id, facts)
  reply[#reply + 1] = identity_reply(id, facts)
end)
