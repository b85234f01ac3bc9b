-- Which lines of a file are done: a bitmap that an undo or an import keeps while it goes on, so that
-- one that was interrupted knows exactly what is back when it is run again.
--
-- arg 1  the key of the bitmap; '' to keep none
local marks = arg(1)
-- It ends by itself if nobody runs it again.
local MARKS_MS = 86400000
if marks ~= '' then
  local refusal = not dry_run and denied('mark_lines')
  if refusal then
    return refusal
  end
  local found = redis.call('TYPE', marks).ok
  if found ~= 'none' and found ~= 'string' then
    return wrong_type(marks, found, 'a string')
  end
end

local function is_marked(line)
  return marks ~= '' and redis.call('GETBIT', marks, line) == 1
end

local function mark_lines(lines)
  if marks ~= '' and #lines > 0 then
    for _, line in ipairs(lines) do
      redis.call('SETBIT', marks, line, 1)
    end
    redis.call('PEXPIRE', marks, MARKS_MS)
  end
end
