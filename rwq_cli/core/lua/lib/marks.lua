-- The marks of a file: a bitmap of the lines that an undo or import has restored. An interrupted one that
-- is run again knows from it where to resume. The bit of a line is at the line's number, as for SETBIT.
--
-- writes mark_lines: marks BITFIELD_RO BITFIELD PEXPIRE
-- arg marks  the key of the bitmap; '' for none
-- It expires if the undo or import is not run again.
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

-- How many lines one call reads or marks; each takes up to four arguments, and unpack is limited.
local LINES_MAX = 1000

-- Which of these lines are marked, by line.
local function read_marks(lines)
  local marked = {}
  for first = 1, marks ~= '' and #lines or 0, LINES_MAX do
    local args, last = {}, math.min(first + LINES_MAX - 1, #lines)
    for i = first, last do
      local at = #args
      args[at + 1], args[at + 2], args[at + 3] = 'GET', 'u1', lines[i]
    end
    local bits = redis.call('BITFIELD_RO', marks, unpack(args))
    for i = first, last do
      marked[lines[i]] = bits[i - first + 1] == 1
    end
  end
  return marked
end

local function mark_lines(lines)
  for first = 1, marks ~= '' and #lines or 0, LINES_MAX do
    local args = {}
    for i = first, math.min(first + LINES_MAX - 1, #lines) do
      local at = #args
      args[at + 1], args[at + 2], args[at + 3], args[at + 4] = 'SET', 'u1', lines[i], 1
    end
    redis.call('BITFIELD', marks, unpack(args))
    redis.call('PEXPIRE', marks, MARKS_MS)
  end
end
