-- Sliding counter over layered buckets: the decisions of equal buckets as wide
-- as the fine ones, but a look reads the coarse buckets, and of the fine ones
-- only those in the coarse bucket that the window's edge runs through.
--
-- KEY    a HASH: "c" and the end of a coarse bucket -> its count, "f" and the
--        end of a fine one -> its count; "at" -> the time of the newest event;
--        "until" -> the end of a block, which is read with it.
--        The key's name holds window and layers, so that the buckets of one
--        key always line up.
-- PARAM  the width of a fine bucket in microseconds.
-- MORE   how many fine buckets make a coarse one.
-- CALLS  look: HGET HMGET HMGET, and HMGET for a denial.
--        charge: HINCRBY HINCRBY HSET PEXPIRE; HKEYS HDEL for a new coarse
--        bucket; but if all buckets have left, UNLINK first in place of these. In
--        a window are at most 1,000 fine buckets and as many coarse ones.
--- look
local width, coarse = param, param * more
--- insert newest
at = math.max(clock, newest)
-- What the buckets of a layer hold whose ends are first to last.
local function counts(layer, first, width, last)
  local fields = {}
  for stop = first, last, width do
    fields[#fields + 1] = layer .. format('%.0f', stop)
  end
  if #fields == 0 then
    return {}, 0
  end
  local found, total = call('HMGET', key, unpack(fields)), 0
  for i = 1, #found do
    local count = (found[i] or 0) + 0
    found[i], total = count, total + count
  end
  return found, total
end
-- The first microsecond inside the window, and its fine and coarse bucket.
local first = at - window + 1
local fine_stop = first - first % width + width
local coarse_stop = first - first % coarse + coarse
local last = at - at % coarse + coarse
local parts, parts_total = counts('f', fine_stop, width, coarse_stop)
local whole, whole_total = counts('c', coarse_stop + coarse, coarse, last)
local used = parts_total + whole_total
room = max - used
if used > 0 then
  reset = newest - newest % width + width - 1 + window - clock
end
if cost > room then
  local free, stop, i = room, fine_stop, 1
  while i <= #parts and free + parts[i] < cost do
    free, stop, i = free + parts[i], stop + width, i + 1
  end
  if i > #parts then
    i, stop = 1, coarse_stop
    while free + whole[i] < cost do
      free, stop, i = free + whole[i], stop + coarse, i + 1
    end
    -- It is within the coarse bucket after stop: look for the fine one.
    parts = counts('f', stop + width, width, stop + coarse)
    stop, i = stop + width, 1
    while free + parts[i] < cost do
      free, stop, i = free + parts[i], stop + width, i + 1
    end
  end
  retry = stop - 1 + window - clock
end
--- newest
local newest = (call('HGET', key, 'at') or 0) + 0
--- newest (block)
local own = call('HMGET', key, 'at', 'until')
local newest = (own[1] or 0) + 0
ends = own[2] and own[2] + 0
--- charge
local fine_stop = at - at % width + width
local coarse_stop = at - at % coarse + coarse
local added = format('%.0f', cost)
local edge = at - window
local idle = newest - newest % width + width - 1 <= edge -- all buckets have left
if idle and newest > 0 then
  call('UNLINK', key)
end
local opened = call('HINCRBY', key, 'c' .. format('%.0f', coarse_stop), added) == cost
call('HINCRBY', key, 'f' .. format('%.0f', fine_stop), added)
call('HSET', key, 'at', format('%.0f', at))
if opened and not idle then
  local gone, tonumber = {}, tonumber
  for _, field in ipairs(call('HKEYS', key)) do
    local stop = tonumber(sub(field, 2)) -- nil of "at"
    if stop and stop - 1 <= edge then
      gone[#gone + 1] = field
    end
  end
  if #gone > 0 then
    call('HDEL', key, unpack(gone))
  end
end
call('PEXPIRE', key, lifetime(fine_stop - 1 + window))
reset = fine_stop - 1 + window - clock
at = fine_stop - 1
--- refund
local coarse = param * more
local part = 'f' .. format('%.0f', at - at % param + param)
local whole = 'c' .. format('%.0f', at - at % coarse + coarse)
local back = math.min(cost, (call('HGET', key, part) or 0) + 0)
if back > 0 then
  call('HINCRBY', key, part, format('%.0f', -back))
  call('HINCRBY', key, whole, format('%.0f', -back))
end
--- mark
local written = redis.pcall('HSET', key, 'until', text(ends))
--- drop
call('HDEL', key, 'until')
