-- List the groups of NEEDS that the server's ACL denies this user. Writes nothing.
--
-- writes read: main TYPE LLEN LRANGE LPOS; delayed ZRANGE ZSCORE; item EXISTS GET STRLEN; leases GET PTTL; server TIME
-- commands read: ls
-- include: target
-- arg marks  the key of the marks of an undo
-- Returns { group, first denied command, its key, ... }; nil where the server cannot be asked, before Redis 7.
if not redis.acl_check_cmd then
  return nil
end
local reply = {}
for group, commands in pairs(NEEDS) do
  for _, words in ipairs(commands()) do
    if not redis.acl_check_cmd(unpack(words)) then
      reply = joined(reply, { group, words[1], words[2] or '' })
      break
    end
  end
end
return reply
