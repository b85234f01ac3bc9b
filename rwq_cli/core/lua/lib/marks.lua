-- The marks of a file: a bitmap of the lines that an undo or import has restored, by their numbers. An interrupted one
-- that is run again knows from it where to resume. It expires if that is not done.
-- writes: marks BITFIELD_RO BITFIELD PEXPIRE
-- arg marks  the key of the bitmap; '' for none
local MARKS_MS = 86400000
local wrong_marks = marks ~= '' and check_type(marks, 'string')
if wrong_marks then
  return wrong_marks
end

local function read_marks(lines)
  local marked, args = {}, {}
  for i = 1, present[marks] and #lines or 0 do
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
