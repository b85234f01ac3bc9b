-- Read the facts about IDs, without their places in the lists, at one instant. Writes nothing.
--
-- include: digest
-- arg 1     '1' to add the `digest_reply` of each ID to its facts, else '0'
-- arg 2..   IDs
-- Returns the reply of `facts_reply`.
return facts_reply(args_from(2), arg(1) == '1' and function(reply, id, facts)
  reply[#reply + 1] = digest_reply(id, facts)
end)
