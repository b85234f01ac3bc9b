-- The marks of a file: a bitmap of the lines that an undo or import has restored. An interrupted one that is run again
-- knows from it where to resume. The bit of a line is at the line's number, as for SETBIT.
--
-- writes: marks BITFIELD_RO BITFIELD PEXPIRE
-- arg marks  the key of the bitmap; '' for none
-- It expires if the undo or import is not run again.
local MARKS_MS = 86400000
local marks_type = marks ~= '' and redis.call('TYPE', marks).ok or 'none'
if marks_type ~= 'none' and marks_type ~= 'string' then
  return wrong_type(marks, marks_type, 'a string')
end

-- Which of these lines are marked, by line.
local function read_marks(lines)
  local marked, args = {}, {}
  for i = 1, marks_type == 'string' and #lines or 0 do
    args[3 * i - 2], args[3 * i - 1], args[3 * i] = 'GET', 'u1', lines[i]
  end
  for i, bit in ipairs(#args > 0 and redis.call('BITFIELD_RO', marks, unpack(args)) or {}) do
    marked[lines[i]] = bit == 1
  end
  return marked
end

local function mark_lines(lines)
  local args = {}
  for i = 1, marks ~= '' and #lines or 0 do
    args[4 * i - 3], args[4 * i - 2], args[4 * i - 1], args[4 * i] = 'SET', 'u1', lines[i], 1
  end
  if #args > 0 then
    redis.call('BITFIELD', marks, unpack(args))
    redis.call('PEXPIRE', marks, MARKS_MS)
  end
end
