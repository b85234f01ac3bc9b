-- Read the facts about IDs, without their places in the lists, at one instant. Writes nothing.
--
-- include: digest
-- arg digests_too:flag  add the `digest_reply` of each ID to its facts
-- rest ids
-- Returns the reply of `facts_reply`.
return facts_reply(ids, digests_too and function(reply, id, facts)
  reply[#reply + 1] = digest_reply(id, facts)
end)
