-- Read the facts that the keys and scores of IDs say, at one instant. Writes nothing.
--
-- arg 1..   IDs
-- Returns what `facts_reply` does.
return facts_reply(args_from(1))
